//! One address of a hub: a tunnel to it, and when that is over the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::backoff::{Backoff, Outcome};
use tunnel::limits::PROBE_EPOCH;
use tunnel::{ConnectError, GoAwayReason, HandshakeError, NOT_REGISTERED, Tunnel};

use super::Dialer;
use super::board::{Address, Board, Number};
use super::serve::serve;
use super::wake::Wake;
use crate::agent::counts::Left;
use crate::agent::own_keys::Which;
use crate::agent::presence::Keeper;
use crate::key_wish::KeyStand;

pub(super) struct Line {
    dialer: Arc<Dialer>,
    board: Arc<Board>,
    number: Number,
    address: Address,
    wake: Wake,
    backoff: Backoff,
    /// Which of the agent's keys is dialled with.
    key: Which,
    /// The hub refused the other one a moment ago.
    tried_both: bool,
    /// Tunnels that were left for the next one, and end what they are at.
    left: JoinSet<()>,
}

/// What comes after a tunnel, or after none.
enum Next {
    /// Dial after a while.
    After(Outcome),
    /// Dial now.
    AtOnce,
}

impl Line {
    pub(super) fn new(dialer: Arc<Dialer>, board: Arc<Board>, number: Number, address: Address) -> Self {
        let wake = Wake::new(dialer.hang_ups.clone(), dialer.way.first_stop(&address.url));
        Self {
            dialer,
            board,
            number,
            address,
            wake,
            backoff: Backoff::default(),
            key: Which::default(),
            tried_both: false,
            left: JoinSet::new(),
        }
    }

    /// Keeps a tunnel until shutdown, or until the address is given up.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                next = self.one(&shutdown) => next,
            };
            self.board.down(self.number);
            self.dialer.tell_absence();
            let outcome = match next {
                Next::AtOnce => continue,
                Next::After(outcome) => outcome,
            };
            self.tried_both = false;
            let (backoff, wait) = self.backoff.after(outcome, tunnel::backoff::random());
            self.backoff = backoff;
            let (wait_ms, attempt) = (wait.as_millis(), backoff.failures());
            if self.board.gives_up(self.number, attempt) {
                tracing::info!(peer = %self.address.url, attempt, "Gave up an address that a hub told of.");
                return;
            }
            if outcome == Outcome::Refused {
                // Longer than anybody expects who has just pushed the cluster's file.
                tracing::info!(wait_ms, attempt, "Put off the next dial.");
            } else {
                tracing::debug!(wait_ms, attempt, "Put off the next dial.");
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                reason = self.wake.before_the_time() => tracing::info!(reason, "Dial at once."),
                () = sleep(wait) => {}
            }
        }
    }

    /// One tunnel, or none.
    async fn one(&mut self, shutdown: &CancellationToken) -> Next {
        let dialer = &self.dialer;
        let (mut pins, (key, which)) = (dialer.holdings.hub_keys(), dialer.keys.of(self.key));
        pins.retain(|pin| !self.board.is_denied(&self.address, pin));
        self.key = which;
        let mut options = dialer
            .way
            .options(&self.address.url, pins, &dialer.cluster, key, epoch());
        options.allowance = dialer.allowance.clone();
        options.instance.clone_from(&dialer.instance);
        if self.address.is_given {
            options.token = dialer.token.clone();
        }
        options.avoids = self.address.avoids();
        options.held = self.board.held_by_others(self.number);
        match Box::pin(tunnel::connect(&options)).await {
            Ok(tunnel) => self.stand(tunnel, shutdown).await,
            Err(error) => {
                // A proxy knows nothing of keys.
                let other = (!error.is_denied()).then(|| self.with_other_key(error.outcome()));
                other.flatten().unwrap_or_else(|| {
                    self.tell(&error);
                    Next::After(error.outcome())
                })
            }
        }
    }

    /// A hub that does not let one of two keys in is asked with the other one before the agent waits.
    fn with_other_key(&mut self, outcome: Outcome) -> Option<Next> {
        let other = self
            .dialer
            .keys
            .beside(self.key)
            .filter(|_| outcome == Outcome::Refused)?;
        if std::mem::replace(&mut self.tried_both, true) {
            return None;
        }
        self.key = other;
        tracing::info!(peer = %self.address.url, "The hub did not let the agent's key in; dial at once with its other one.");
        Some(Next::AtOnce)
    }

    /// Lets a tunnel be served, until it is over or there is a reason to have another one.
    async fn stand(&mut self, tunnel: Tunnel, shutdown: &CancellationToken) -> Next {
        tracing::info!(peer = %self.address.url, hub = tunnel.peer.server_id, "Connected to hub.");
        self.board
            .up(self.number, &tunnel.peer.server_id, &tunnel.peer.endpoints);
        self.backoff = self.backoff.spread_over(tunnel.peer.spread);
        let (leave, mut left) = oneshot::channel();
        let (stand, mut heard) = watch::channel(KeyStand::default());
        let used = self.key;
        let presence = Keeper::connected(&self.dialer.keeper);
        let (dialer, ended) = (Arc::clone(&self.dialer), shutdown.child_token());
        let (board, number, hub) = (Arc::clone(&self.board), self.number, tunnel.peer.key);
        let serving = async move {
            let denies = move |hubs| board.denies(number, hubs);
            let outcome = Box::pin(serve(&dialer, tunnel, (used, stand, denies), leave, &ended)).await;
            drop(presence);
            outcome
        };
        let mut serving = Box::pin(serving.in_current_span());
        let next = tokio::select! {
            biased;
            () = self.board.denied(&self.address, &hub) => {
                // With all that goes on in it, and in those of before.
                self.left.abort_all();
                tracing::warn!(peer = %self.address.url, "Left a hub that another one led to and that a hub of this agent's denies.");
                return Next::After(Outcome::Refused);
            }
            outcome = &mut serving => {
                return self.with_other_key(outcome).unwrap_or(Next::After(outcome));
            }
            Ok((outcome, life)) = &mut left => {
                self.backoff = self.backoff.after_life(life);
                Next::After(outcome)
            }
            Ok(_) = heard.wait_for(|stand| stand.next), if used == Which::Present => {
                self.key = Which::Next;
                // docs/register-a-cluster.md quotes this line.
                tracing::info!(peer = %self.address.url, "The hub lets the agent's new key in; dial with it at once.");
                Next::AtOnce
            }
            reason = self.wake.instead() => {
                tracing::info!(reason, "Dial at once.");
                self.dialer.counts.left(Left::Woken);
                Next::AtOnce
            }
        };
        // It goes on beside its successor, until that has taken its place or the hub is gone.
        self.left.spawn(async move {
            let _outcome = serving.await;
        });
        while self.left.try_join_next().is_some() {}
        next
    }

    fn tell(&self, error: &ConnectError) {
        let cause = error as &dyn std::error::Error;
        if error.outcome() == Outcome::Duplicate {
            tracing::debug!(peer = %self.address.url, error = cause, "Left a hub that there is a tunnel to.");
            return;
        }
        tracing::warn!(peer = %self.address.url, error = cause, "Could not connect to hub.");
        if let ConnectError::Handshake(HandshakeError::Refused(away)) = error
            && away.reason == GoAwayReason::IdentityRefused
        {
            for line in advice(&away.text, !self.dialer.token.is_empty()) {
                tracing::warn!(cluster = %self.dialer.cluster, "{line}");
            }
        } else if error.is_denied() {
            // docs/networks.md quotes this line.
            tracing::warn!(
                peer = %self.address.url,
                "A proxy or a server before the hub does not let this agent through. Correct the name and password of --proxy, or what that server allows; it is asked again each minute."
            );
        }
    }
}

/// docs/register-a-cluster.md quotes this line.
const UNKNOWN: &str = "The hub does not know this cluster with this key. Push its file, as flotilla agent join prints it, to clusters/ of the fleet repository.";

/// The hub tells nobody what a token is worth.
const TOKEN: &str = "Where the cluster has no file yet, its bootstrap token is unknown, of another cluster, too old or used. Make a new one with flotilla hub token create.";

/// What a person is told beside a refusal, which only a commit can change. A hub that says more than that it does not know
/// the agent (which branch to merge, whose key this is) has said what to do.
fn advice(said: &str, has_token: bool) -> &'static [&'static str] {
    match (said == NOT_REGISTERED, has_token) {
        (false, _) => &[],
        (true, false) => &[UNKNOWN],
        (true, true) => &[UNKNOWN, TOKEN],
    }
}

/// A number that is higher in each later session of this cluster: milliseconds since 1970. A clock that
/// was put back makes the hub prefer the older session until that one is seen dead.
fn epoch() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(PROBE_EPOCH);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    // Two lines may dial one hub in the same moment: by one number it would take the end of one for that of the other.
    let next = |last: u64| now.max(last.saturating_add(1));
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)))
        .map_or(now, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_whose_token_was_taken_is_not_told_that_it_is_worth_nothing() {
        assert_eq!(advice(NOT_REGISTERED, true), [UNKNOWN, TOKEN]);
        assert_eq!(advice(NOT_REGISTERED, false), [UNKNOWN]);
        for said in [
            "proposed as branch flotilla/register-oslo; merge it",
            "this key is registered as cluster oslo",
        ] {
            assert!(advice(said, true).is_empty(), "the hub said what to do: {said}");
        }
    }

    #[test]
    fn dials_of_one_moment_have_rising_epochs() {
        let epochs: Vec<_> = (0..1_000).map(|_| epoch()).collect();
        assert!(epochs.is_sorted_by(|one, next| one < next));
        assert!(epochs[0] > PROBE_EPOCH);
    }
}
