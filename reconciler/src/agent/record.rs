//! Keeps what was taken where it outlives the agent: the newest of it, whenever it is another, and again until it stands.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::deliver::{Mark, Shared};
use super::store::{Absence, Kept};
use crate::apply::Backoff;
use crate::fault::line;
use crate::limits::{ABSENCE_NOTE_GAP, JOURNAL_RETRY_FIRST, JOURNAL_RETRY_MAX};

/// What is to be written, and since when.
struct Due {
    kept: watch::Receiver<Arc<Kept>>,
    notes: watch::Receiver<Option<Absence>>,
    /// When an absence was written last.
    noted: Option<Instant>,
    is_noteworthy: bool,
}

/// Records until the agent ends, from what is kept now on; with that itself where it `is_due`.
pub(super) fn record(
    shared: Arc<Shared>,
    notes: watch::Receiver<Option<Absence>>,
    is_due: bool,
) -> impl Future<Output = ()> + Send + 'static {
    let is_noteworthy = notes.borrow().is_some();
    // Not when this is polled first: what is taken before that would be no news.
    let mut kept = shared.kept();
    if is_due {
        kept.mark_changed();
    }
    let due = Due {
        kept,
        is_noteworthy,
        notes,
        noted: None,
    };
    record_due(shared, due)
}

async fn record_due(shared: Arc<Shared>, mut due: Due) {
    let mut backoff = Backoff::new(JOURNAL_RETRY_FIRST, JOURNAL_RETRY_MAX);
    while due.wait().await {
        loop {
            shared.store.ready().await;
            let kept = due.newest();
            let mark = kept.held.as_ref().map(Mark::of);
            let hub_keys = kept.hub_keys.clone();
            let Err(error) = shared.store.write(kept).await else {
                shared.recorded.send_replace(mark);
                shared.recorded_keys.send_replace(hub_keys);
                backoff.reset();
                break;
            };
            tracing::warn!(error = line(&error), "Could not write the journal.");
            if error.is_overtaken()
                && let Err(error) = shared.read_newer().await
            {
                tracing::warn!(error = line(&error), "Could not read the journal again.");
            }
            tokio::time::sleep(backoff.wait()).await;
        }
    }
}

impl Due {
    /// Waits until something is to be written; `false` when the agent is ending.
    async fn wait(&mut self) -> bool {
        loop {
            let gap_ends = self.noted.map_or_else(Instant::now, |noted| noted + ABSENCE_NOTE_GAP);
            tokio::select! {
                biased;
                changed = self.kept.changed() => return changed.is_ok(),
                changed = self.notes.changed(), if self.notes.has_changed().is_ok() => self.is_noteworthy |= changed.is_ok(),
                () = sleep_until(gap_ends), if self.is_noteworthy => return true,
            }
        }
    }

    fn newest(&mut self) -> Kept {
        let absence = *self.notes.borrow_and_update();
        self.is_noteworthy = false;
        self.noted = absence.map(|_| Instant::now());
        Kept {
            absence,
            ..Kept::clone(&self.kept.borrow_and_update())
        }
    }
}
