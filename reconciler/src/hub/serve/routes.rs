//! The API's routes, for each of the listeners that answer them.

use std::sync::Arc;

use axum::Router;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::router::router;
use super::store::{GitTimes, Store};
use crate::hub::SharedState;
use crate::hub::asking::Asking;
use crate::hub::peers::FirstWords;
use crate::hub::tally::Tally;

/// What all listeners share.
pub(in crate::hub) struct Routes(Context);

impl Routes {
    /// `times` says what Git knows of times; `look_now` is told when somebody asks the hub to look at its
    /// repositories, `asking` asks clusters, and `tally` is what the door for people counts.
    pub(in crate::hub) fn new(
        state: SharedState,
        times: GitTimes,
        (look_now, asking, tally): (Arc<Notify>, Asking, Arc<Tally>),
        shutdown: CancellationToken,
    ) -> Self {
        let store = Arc::new(Store::new(state, times));
        let context = Context::new(store, false, shutdown);
        Self(context.looking(look_now).asking(asking).counting(tally))
    }

    /// The same, of a hub that is ready once others have told.
    pub(in crate::hub) fn after(self, first_words: Arc<FirstWords>) -> Self {
        Self(self.0.after(first_words))
    }

    /// Of a state alone, for tests.
    #[cfg(test)]
    pub(in crate::hub) fn alone(state: SharedState, shutdown: CancellationToken) -> Self {
        let store = Arc::new(Store::new(state, GitTimes::none()));
        Self(Context::new(store, false, shutdown))
    }

    /// For a listener whose callers are judged before they come here.
    pub(in crate::hub) fn judged(&self) -> Router {
        router(self.0.clone())
    }

    /// For a listener that knows no callers. `local_names`: whether they come through TCP, where a web page may send a
    /// browser.
    pub(super) fn unjudged(&self, local_names: bool) -> Router {
        router(self.0.clone().local_names(local_names))
    }
}
