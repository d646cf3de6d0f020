//! The agent's report stream: the newest report, sent when it changes.

use std::sync::Arc;

use render::ClusterName;
use tokio::io::AsyncWrite;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep, sleep_until};

use super::presence::Presence;
use super::store::Kept;
use crate::apply::{ApplyReport, Desired};
use crate::limits::COUNTS_REST;
use crate::wire::{AgentCounts, FramingError, Refusal, Report, write_message};

/// A burst of changes is one report: nothing that a person or the hub's decisions wait for is later than
/// this.
const SETTLE: Duration = Duration::from_millis(20);

/// Where a report's parts come from.
pub(super) struct Sources {
    pub(super) cluster: ClusterName,
    pub(super) desired: watch::Receiver<Option<Arc<Desired>>>,
    pub(super) refused: watch::Receiver<Option<(u64, Refusal)>>,
    pub(super) applied: watch::Receiver<ApplyReport>,
    pub(super) presence: watch::Receiver<Presence>,
    pub(super) kept: watch::Receiver<Arc<Kept>>,
    pub(super) counts: watch::Receiver<AgentCounts>,
    /// When counts alone are worth a report again.
    pub(super) counts_due: Instant,
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
        let hub_keys_known = self.kept.borrow_and_update().hub_keys_known.clone();
        let agent = *self.counts.borrow_and_update();
        self.counts_due = Instant::now() + COUNTS_REST;
        Report {
            agent,
            hub_keys_known,
            without_hub_since: presence.was_away_since,
            ..Report::new(self.cluster.clone(), held, refused, applied)
        }
    }

    /// Waits until a part changes; `false` when the agent is ending.
    async fn changed(&mut self) -> bool {
        let counts = async {
            sleep_until(self.counts_due).await;
            self.counts.changed().await
        };
        let changed = tokio::select! {
            changed = self.desired.changed() => changed,
            changed = self.refused.changed() => changed,
            changed = self.applied.changed() => changed,
            changed = self.kept.changed() => changed,
            changed = counts => changed,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::presence::Keeper;
    use crate::key_sets::KeysKnown;

    #[tokio::test(start_paused = true)]
    async fn counts_alone_are_told_at_a_pace_of_their_own() {
        let (_desired, desired) = watch::channel(None);
        let (_refused, refused) = watch::channel(None);
        let (applier, applied) = watch::channel(ApplyReport::default());
        let (counter, counts) = watch::channel(AgentCounts::default());
        let (keeps, kept) = watch::channel(Arc::new(Kept::default()));
        let mut sources = Sources {
            cluster: ClusterName::parse("north").expect("a name"),
            desired,
            refused,
            applied,
            presence: Keeper::new(None).presence(),
            kept,
            counts,
            counts_due: Instant::now(),
        };
        let begun = Instant::now();
        assert!(sources.report().agent.are_none());
        counter.send_modify(|counts| counts.refused_push += 1);
        assert!(sources.changed().await, "somebody is there");
        assert_eq!(begun.elapsed(), COUNTS_REST);
        assert_eq!(sources.report().agent.refused(), 1);
        applier.send_modify(|report| report.trouble = "no lease".to_owned());
        assert!(sources.changed().await, "somebody is there");
        assert_eq!(begun.elapsed(), COUNTS_REST, "what else changes is told at once");
        let known = KeysKnown::default().now_that(&[tunnel::PublicKey::from_bytes([7; 32])], 100);
        keeps.send_modify(|kept| Arc::make_mut(kept).hub_keys_known = known.clone());
        assert!(sources.changed().await, "somebody is there");
        assert_eq!(
            (begun.elapsed(), sources.report().hub_keys_known),
            (COUNTS_REST, known),
            "and so is since when a hub's key is known"
        );
    }
}
