//! The room that a cluster has, told while it changes.
//!
//! In: what happens to nodes and pods, and what is delivered. Out: the newest [`Capacity`], or why nobody knows it
//! ([`Room`]). Counting is a plain function (`survey`), of how many nodes fare how as well; this module's loop only listens
//! and waits. How many replicas go where is deliberately not here: that is the hub's to decide.

mod follow;
mod survey;
mod wanted;

use std::sync::Arc;

use kube::Client;
use render::capacity::Capacity;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::follow::Told;
use self::survey::Survey;
use super::{ApplyReport, Desired};
use crate::limits::{CAPACITY_PAUSE, WATCH_FAILURE_COUNTS};

/// What is known of a cluster's room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// Nobody knows: why. Never taken for no room.
    Unknown(String),
    /// What there is.
    Known(Arc<Capacity>),
}

impl Default for Room {
    fn default() -> Self {
        Self::Unknown("nodes and pods were not listed yet".to_owned())
    }
}

/// Follows nodes and pods until shutdown, and says in the report what they leave.
pub(super) async fn follow(
    client: Client,
    mut desired: watch::Receiver<Option<Arc<Desired>>>,
    report: watch::Sender<ApplyReport>,
    shutdown: CancellationToken,
) {
    let mut follower = follow::Follower::start(&client);
    let mut survey = Survey::default();
    let mut trouble: Option<Trouble> = None;
    // When what changed is to be told: a rollout changes every pod, and is one report every now and then.
    let mut due = Some(Instant::now() + CAPACITY_PAUSE);
    let mut told_at = Instant::now();
    loop {
        let heard = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = until(due) => None,
            told = follower.next() => Some(Some(told)),
            changed = desired.changed() => match changed {
                Ok(()) => Some(None),
                Err(_) => return,
            },
        };
        let Some(told) = heard else {
            told_at = Instant::now();
            let newest = desired.borrow_and_update().clone();
            let lasting = trouble.as_ref().filter(|trouble| trouble.lasts());
            let counted = || survey.capacity(&wanted::wanted(newest.as_deref()));
            let nodes = survey.node_facts().filter(|_| lasting.is_none()).map(Arc::new);
            let next = match lasting {
                Some(trouble) => Room::Unknown(format!("nodes and pods cannot be watched: {}", trouble.why)),
                None => counted().map_or_else(Room::default, |capacity| Room::Known(Arc::new(capacity))),
            };
            // It is looked at again when the trouble is over.
            due = trouble.as_ref().map(|_| told_at + WATCH_FAILURE_COUNTS);
            report.send_if_modified(|report| {
                let changed = report.room != next || report.nodes != nodes;
                report.room = next;
                report.nodes = nodes;
                changed
            });
            continue;
        };
        match told {
            Some(Told::Failed(why)) => trouble = Some(Trouble::another(trouble, why)),
            Some(told) => survey.take(told),
            None => {}
        }
        let soon = told_at + CAPACITY_PAUSE;
        due = Some(due.map_or(soon, |due| due.min(soon)));
    }
}

/// A watch that does not work.
struct Trouble {
    since: Instant,
    last: Instant,
    why: String,
}

impl Trouble {
    /// One more failure: of the same trouble, where the one before is not long ago.
    fn another(before: Option<Self>, why: String) -> Self {
        let now = Instant::now();
        let same = before.filter(|before| before.last.elapsed() < WATCH_FAILURE_COUNTS);
        Self {
            since: same.map_or(now, |before| before.since),
            last: now,
            why,
        }
    }

    /// Whether it lasts: a watch that is begun anew at once is no trouble.
    fn lasts(&self) -> bool {
        self.since.elapsed() >= WATCH_FAILURE_COUNTS && self.last.elapsed() < WATCH_FAILURE_COUNTS
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
