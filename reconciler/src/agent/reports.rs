//! The agent's report stream: the newest report, sent when it changes.

use render::ClusterName;
use tokio::io::AsyncWrite;
use tokio::sync::watch;
use tokio::time::{Duration, sleep};

use super::presence::Presence;
use crate::apply::{ApplyReport, Desired};
use crate::wire::{FramingError, Refusal, Report, write_message};

/// A burst of changes is one report: nothing that a person or the hub's decisions wait for is later than
/// this.
const SETTLE: Duration = Duration::from_millis(20);

/// Where a report's parts come from.
pub(super) struct Sources {
    pub(super) cluster: ClusterName,
    pub(super) desired: watch::Receiver<Option<std::sync::Arc<Desired>>>,
    pub(super) refused: watch::Receiver<Option<(u64, Refusal)>>,
    pub(super) applied: watch::Receiver<ApplyReport>,
    pub(super) presence: watch::Receiver<Presence>,
}

impl Sources {
    fn report(&mut self) -> Report {
        let held = self
            .desired
            .borrow_and_update()
            .as_ref()
            .map(|desired| desired.held.clone());
        let refused = self.refused.borrow_and_update().clone();
        let applied = self.applied.borrow_and_update().clone();
        let presence = *self.presence.borrow_and_update();
        Report {
            without_hub_since: presence.was_away_since,
            ..Report::new(self.cluster.clone(), held, refused, applied)
        }
    }

    /// Waits until a part changes; `false` when the agent is ending.
    async fn changed(&mut self) -> bool {
        let changed = tokio::select! {
            changed = self.desired.changed() => changed,
            changed = self.refused.changed() => changed,
            changed = self.applied.changed() => changed,
        };
        changed.is_ok()
    }
}

/// Sends reports until the stream or the agent ends.
pub(super) async fn send<W>(mut sources: Sources, stream: W) -> Result<(), FramingError>
where
    W: AsyncWrite,
{
    let mut stream = Box::pin(stream);
    let mut last = None;
    loop {
        let report = sources.report();
        if last.as_ref() != Some(&report) {
            // What nodes have left may be long, and changes more seldom than the rest.
            let told = last.as_ref().and_then(|last| last.capacity.as_ref());
            let news = report.capacity.clone().filter(|capacity| Some(capacity) != told);
            let sent = Report {
                capacity: news,
                ..report.clone()
            };
            write_message(&mut stream, &sent).await?;
            last = Some(report);
        }
        if !sources.changed().await {
            return Ok(());
        }
        sleep(SETTLE).await;
    }
}
