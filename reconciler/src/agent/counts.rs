//! What an agent counts of its tunnels, for its reports.

use tokio::sync::watch;
use tunnel::{CloseReason, TargetClass};

use crate::wire::AgentCounts;

/// Why a tunnel was left for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The hub asked for it.
    Asked,
    /// Nothing was heard on it.
    Dead,
    /// It broke.
    Cut,
    /// Somebody said so, or the machine moved.
    Woken,
}

/// Counts, for all tunnels of an agent.
#[derive(Debug)]
pub(super) struct Counts(watch::Sender<AgentCounts>);

impl Default for Counts {
    fn default() -> Self {
        Self(watch::Sender::new(AgentCounts::default()))
    }
}

impl From<&CloseReason> for Left {
    fn from(reason: &CloseReason) -> Self {
        match reason {
            CloseReason::Peer(Some(_)) => Self::Asked,
            CloseReason::Dead(_) => Self::Dead,
            CloseReason::Peer(None)
            | CloseReason::Local(_)
            | CloseReason::Violation(_)
            | CloseReason::Connection(_)
            | CloseReason::Aborted => Self::Cut,
        }
    }
}

impl Counts {
    /// The counts, as they grow.
    pub(super) fn told(&self) -> watch::Receiver<AgentCounts> {
        self.0.subscribe()
    }

    /// One tunnel that is left.
    pub(super) fn left(&self, why: Left) {
        self.0.send_modify(|counts| {
            *match why {
                Left::Asked => &mut counts.left_asked,
                Left::Dead => &mut counts.left_dead,
                Left::Cut => &mut counts.left_cut,
                Left::Woken => &mut counts.left_woken,
            } += 1;
        });
    }

    /// How many lines of the audit log were lost so far.
    pub(super) fn audit_lines_lost(&self, lines: u64) {
        self.0.send_if_modified(|counts| {
            let is_news = counts.audit_lines_lost != lines;
            counts.audit_lines_lost = lines;
            is_news
        });
    }

    /// One stream that the policy refused; and how many there were.
    pub(super) fn refused(&self, class: &TargetClass) -> u64 {
        self.0.send_modify(|counts| {
            *match class {
                TargetClass::ApiServer => &mut counts.refused_read,
                TargetClass::Interactive => &mut counts.refused_interactive,
                TargetClass::Push => &mut counts.refused_push,
                TargetClass::Dial => &mut counts.refused_dial,
                TargetClass::Look => &mut counts.refused_look,
                TargetClass::Deliver
                | TargetClass::Report
                | TargetClass::Keys
                | TargetClass::Peer
                | TargetClass::Unknown(_) => &mut counts.refused_other,
            } += 1;
        });
        self.0.borrow().refused()
    }
}
