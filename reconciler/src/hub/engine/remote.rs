//! How the remote fares: shown to people, and reason for no decision.

use super::condition::Condition;
use super::event::{RemoteSeen, Trouble};
use super::state::State;

/// What is known of the remote.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RemoteState {
    /// Where it is; carries no secret.
    pub url: String,
    /// Whether the hub's own refs are there as well.
    pub holds_state: bool,
    /// Whether it answered, last time; `None` before the first time.
    pub reached: Option<Result<(), Trouble>>,
    /// Whether it took what was pushed, last time; `None` before the first time.
    pub pushed: Option<Result<(), Trouble>>,
}

impl State {
    pub(super) fn remote_seen(&mut self, seen: RemoteSeen) {
        let Some(remote) = &mut self.remote else {
            return;
        };
        let (place, trouble) = match seen {
            RemoteSeen::Reached(trouble) => (&mut remote.reached, trouble),
            RemoteSeen::Pushed(trouble) => (&mut remote.pushed, trouble),
        };
        *place = Some(trouble.map_or(Ok(()), Err));
    }
}

impl RemoteState {
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let url = &self.url;
        let reached = condition("RemoteReached", &self.reached, || {
            ("Fetched", format!("{url} answers"), format!("{url} was not asked yet"))
        });
        if !self.holds_state {
            return vec![reached];
        }
        let pushed = condition("StatePushed", &self.pushed, || {
            let nothing = "nothing was to be pushed yet".to_owned();
            ("Pushed", format!("{url} has what was decided"), nothing)
        });
        // Nothing to push is no reason to wait.
        let pushed = match self.pushed {
            None => Condition {
                status: "True",
                ..pushed
            },
            Some(_) => pushed,
        };
        vec![reached, pushed]
    }
}

fn condition(
    kind: &'static str,
    last: &Option<Result<(), Trouble>>,
    words: impl FnOnce() -> (&'static str, String, String),
) -> Condition {
    let (well, is_well, not_yet) = words();
    let (status, reason, message) = match last {
        None => ("Unknown", "NotYet", not_yet),
        Some(Ok(())) => ("True", well, is_well),
        Some(Err(trouble)) => ("False", trouble.reason, trouble.message.clone()),
    };
    Condition {
        kind,
        status,
        reason,
        message,
    }
}
