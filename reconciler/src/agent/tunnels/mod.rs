//! The agent's tunnels: addresses of hubs enter, and for each one a tunnel stands, one after another.
//!
//! [`mod@line`] keeps one address: dial, serve, dial again. [`board`] is what the lines know of each other, so that two that
//! lead to one hub become one, and that hubs' other addresses get a line. [`serve`] is one tunnel from its handshake to
//! its end; [`wake`] why a line dials at once; [`way`] what is between here and a hub. Deliberately not here: what the
//! hub's streams are answered with (`streams`), and what is done with what they bring.

mod board;
mod line;
mod serve;
mod wake;
mod way;

use std::sync::Arc;

use render::ClusterName;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::{Allowance, Token};

pub use self::way::Way;

pub(super) use self::wake::{HangUps, hang_ups};

use self::board::Board;
use super::counts::Counts;
use super::deliver::Holdings;
use super::own_keys::OwnKeys;
use super::presence::Keeper;
use super::streams::Streams;
use crate::apply::ApplyReport;

/// What every tunnel of this agent has in common.
pub(super) struct Dialer {
    pub(super) cluster: ClusterName,
    /// Where hubs listen, as URLs.
    pub(super) hubs: Vec<String>,
    pub(super) way: Way,
    pub(super) keys: OwnKeys,
    pub(super) allowance: Allowance,
    /// What the hub's streams go to.
    pub(super) streams: Streams,
    pub(super) holdings: Arc<Holdings>,
    pub(super) applied: watch::Receiver<ApplyReport>,
    pub(super) keeper: Arc<Keeper>,
    /// Which process of the cluster's agents this is.
    pub(super) instance: String,
    /// A bootstrap token; mostly none.
    pub(super) token: Token,
    /// Somebody says that it shall dial at once.
    pub(super) hang_ups: HangUps,
    pub(super) counts: Arc<Counts>,
}

impl Dialer {
    /// Keeps a tunnel to every hub until shutdown.
    pub(super) async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let board = Arc::new(Board::new(&self.hubs));
        let mut lines = JoinSet::new();
        loop {
            while let Some((number, address)) = board.next_line() {
                let span = tracing::info_span!("line", peer = %address.url);
                let line = line::Line::new(Arc::clone(&self), Arc::clone(&board), number, address);
                lines.spawn(line.run(shutdown.clone()).instrument(span));
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = board.changed() => {}
                // A line of a hub that is told of no more; the others go on.
                Some(_) = lines.join_next() => {}
            }
        }
    }

    /// Says once for each absence that the agent goes on without a hub, and with what.
    fn tell_absence(&self) {
        let desired = self.holdings.desired();
        let held = desired.borrow().as_ref().map(|desired| desired.held.sequence);
        self.keeper.tell(held);
    }
}

#[cfg(test)]
mod tests;
