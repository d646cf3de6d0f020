//! What hub and agents say while a push goes through them, with the time: the log's own lines, taken down as
//! they are written. They are also in the demo's log file.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

/// Steps that are remembered: a push takes some ten for each cluster, and there are 200 at most.
const STEPS_MAX: usize = 8_192;

/// What is taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// The hub saw where source stands.
    Source,
    /// It was loaded, scheduled and localized.
    Plan,
    /// A state ref was written.
    Write,
    /// The hub told a cluster.
    Told,
    /// The agent took what it was told.
    Took,
    /// It applied all of it.
    Applied,
}

/// The log's sentence for each.
const SENTENCES: [(&str, Room); 6] = [
    ("Saw revision.", Room::Source),
    ("Planned revision.", Room::Plan),
    ("Wrote decision.", Room::Write),
    ("Told envelope.", Room::Told),
    ("Took envelope.", Room::Took),
    ("Applied delivery.", Room::Applied),
];

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at: Instant,
    pub(super) room: Room,
    pub(super) fields: Fields,
}

/// What a line says, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) cluster: Option<String>,
    pub(super) revision: Option<String>,
    pub(super) component: Option<String>,
    pub(super) sequence: Option<u64>,
    pub(super) elapsed_ms: Option<u64>,
    message: String,
}

/// The newest steps.
#[derive(Clone, Default)]
pub(super) struct Rooms(Arc<Mutex<VecDeque<Step>>>);

impl Rooms {
    /// Starts to log into a file, and to take steps down.
    pub(super) fn start(log: &Path) -> anyhow::Result<Self> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("failed to open {}", log.display()))?;
        let rooms = Self::default();
        let written = tracing_subscriber::fmt::layer()
            .with_writer(Mutex::new(file))
            .with_ansi(false)
            .with_target(false)
            .with_filter(EnvFilter::new("info,flotilla_reconciler=debug"));
        let noted = rooms
            .clone()
            .with_filter(EnvFilter::new("off,flotilla_harness=info,flotilla_reconciler=debug"));
        let started = tracing_subscriber::registry().with(written).with(noted).try_init();
        started.context("failed to start logging")?;
        // One TLS provider for every library that asks for the process default.
        drop(rustls::crypto::ring::default_provider().install_default());
        Ok(rooms)
    }

    fn steps(&self) -> MutexGuard<'_, VecDeque<Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The steps since a moment for which `wanted` holds, oldest first.
    pub(super) fn since(&self, since: Instant, wanted: impl Fn(&Step) -> bool) -> Vec<Step> {
        let steps = self.steps();
        steps
            .iter()
            .filter(|step| step.at >= since && wanted(step))
            .cloned()
            .collect()
    }

    /// When the hub first saw a revision.
    pub(super) fn seen(&self, revision: &str) -> Option<Instant> {
        let is_it = |step: &&Step| step.room == Room::Source && step.fields.revision.as_deref() == Some(revision);
        self.steps().iter().find(is_it).map(|step| step.at)
    }
}

impl<S> Layer<S> for Rooms
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let (Some(cluster), Some(span)) = (fields.cluster, context.span(id)) {
            span.extensions_mut().insert(Cluster(cluster));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let at = Instant::now();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some((_, room)) = SENTENCES.iter().find(|(sentence, _)| *sentence == fields.message) else {
            return;
        };
        if fields.cluster.is_none() {
            let mut spans = context.event_scope(event).into_iter().flatten();
            fields.cluster = spans.find_map(|span| span.extensions().get::<Cluster>().map(|named| named.0.clone()));
        }
        let mut steps = self.steps();
        if steps.len() == STEPS_MAX {
            steps.pop_front();
        }
        steps.push_back(Step {
            at,
            room: *room,
            fields,
        });
    }
}

/// The cluster that a span is about.
struct Cluster(String);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "sequence" => self.sequence = Some(value),
            "elapsed_ms" => self.elapsed_ms = Some(value),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field.name(), format!("{value:?}"));
    }
}

impl Fields {
    fn take(&mut self, name: &str, value: String) {
        match name {
            "cluster" => self.cluster = Some(value),
            "revision" => self.revision = Some(value),
            "component" => self.component = Some(value),
            "message" => self.message = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_step_with_the_cluster_that_its_span_names() {
        let rooms = Rooms::default();
        let begun = Instant::now();
        let subscriber = tracing_subscriber::registry().with(rooms.clone());
        tracing::subscriber::with_default(subscriber, || {
            let agent = tracing::info_span!("agent", cluster = %"oslo");
            agent.in_scope(|| {
                tracing::info_span!("stream").in_scope(|| tracing::info!(sequence = 4_u64, "Took envelope."));
            });
            tracing::debug!(revision = %"abc", elapsed_ms = 7_u64, "Planned revision.");
            tracing::info!("Something else.");
        });
        let steps = rooms.since(begun, |_| true);
        let short: Vec<_> = steps
            .iter()
            .map(|step| (step.room, step.fields.cluster.as_deref()))
            .collect();
        assert_eq!(short, [(Room::Took, Some("oslo")), (Room::Plan, None)]);
        assert_eq!(
            (steps[0].fields.sequence, steps[1].fields.elapsed_ms),
            (Some(4), Some(7))
        );
        assert_eq!(steps[1].fields.revision.as_deref(), Some("abc"));
    }
}
