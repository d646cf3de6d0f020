//! When refs are looked at: at every poll and event of a file system, when the remote moved, and when somebody
//! asks.

use std::sync::{Arc, Mutex, PoisonError};

use render::Revision;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::turn::Hub;
use crate::hub::blocking::blocking;
use crate::hub::engine::{Event, Head, StateHead};
use crate::hub::keeper::Known;
use crate::hub::look::{Told, look};
use crate::hub::options::HubOptions;
use crate::hub::remote::Remote;
use crate::hub::source::{Look, RefWatch, WatchState};

impl Hub {
    /// Looks at source whenever its refs may have moved.
    pub(super) fn watch_source(&self, options: &HubOptions, shutdown: &CancellationToken) -> watch::Receiver<Look> {
        let Some(remote) = &self.remote else {
            let (watch, looks) = RefWatch::new(&options.source, options.poll);
            self.watch_over(watch.run(shutdown.clone()).instrument(tracing::info_span!("watch")));
            return looks;
        };
        let (sender, looks) = watch::channel(Look {
            count: 0,
            state: WatchState::Gone,
        });
        let follow = Arc::clone(remote).follow(
            Arc::clone(&self.source),
            Arc::clone(&self.state),
            self.events.clone(),
            sender,
            options.poll,
            shutdown.clone(),
        );
        self.watch_over(follow.instrument(tracing::info_span!("remote")));
        looks
    }

    /// Looks at the refs of a state repository of its own; the source's are looked at with source.
    pub(super) fn watch_state(
        &self,
        options: &HubOptions,
        shutdown: &CancellationToken,
    ) -> Option<watch::Receiver<Look>> {
        let (watch, looks) = RefWatch::new(options.state.as_ref()?, options.poll);
        self.watch_over(watch.run(shutdown.clone()).instrument(tracing::info_span!("watch")));
        Some(looks)
    }

    /// Looks at the refs once more; where they are a remote's, after it was asked.
    pub(super) fn look_again(&self) {
        match self.remote.as_ref().filter(|remote| remote.holds_state()) {
            Some(remote) => remote.look_now(),
            None => self.look_at_state.notify_one(),
        }
    }

    /// Asks for a look at all there is.
    pub(super) fn look_everywhere(&self) {
        self.remote.iter().for_each(|remote| remote.look_now());
        self.look_at_source.notify_one();
        self.look_at_state.notify_one();
    }

    /// Looks at source and state whenever asked, one look at a time, so that an older look never comes
    /// after a newer one.
    pub(super) fn start_looking(&self, shutdown: &CancellationToken) {
        self.looker(&self.look_at_source, shutdown, self.source_look());
        self.looker(&self.look_at_state, shutdown, self.state_look());
    }

    fn source_look(&self) -> impl Fn() -> Option<Event> + Clone + Send + 'static {
        let (source, state, on_rewrite) = (Arc::clone(&self.source), Arc::clone(&self.state), self.on_rewrite);
        let remote = self.remote.clone();
        let told = Arc::new(Told::default());
        let asked_for = Arc::new(Mutex::new(None));
        move || {
            if remote.as_ref().is_some_and(|remote| !remote.is_reached()) {
                return None;
            }
            let judged_by = state.read().unwrap_or_else(PoisonError::into_inner).judged_by();
            let (head, covered) = look(&source, &judged_by, on_rewrite);
            told.seen(&head, &source);
            let is_unreadable = matches!(head, Head::Unreadable { .. });
            suspect(remote.as_deref(), is_unreadable);
            if let (Some(remote), Some(accepted), Head::At { revision, .. }) = (&remote, &judged_by.accepted, &head)
                && !source.is_relation_told(accepted, revision).unwrap_or(true)
            {
                // More history is fetched first, now that it is known what for.
                remote.look_now();
                return None;
            }
            if let (Some(remote), Some(from)) = (&remote, &judged_by.named)
                && !remote.holds_state()
                && is_new(&asked_for, from)
                && source.commit_seconds(from).is_none()
            {
                // What another hub has seen already is fetched, once.
                remote.look_now();
                return None;
            }
            Some(Event::SourceSeen {
                head,
                judged_by,
                covered,
            })
        }
    }

    fn state_look(&self) -> impl Fn() -> Option<Event> + Clone + Send + 'static {
        let (keeper, state) = (Arc::clone(&self.keeper), Arc::clone(&self.state));
        let source = Arc::clone(&self.source);
        let copied = self.remote.clone();
        let remote = copied.clone().filter(|remote| remote.holds_state());
        move || {
            if remote.as_ref().is_some_and(|remote| !remote.is_reached()) {
                return None;
            }
            let (known, writes) = {
                let state = state.read().unwrap_or_else(PoisonError::into_inner);
                let known = Known {
                    rendered: state.rendered.as_ref().map(|rendered| rendered.commit.clone()),
                    released: state.released.as_ref().map(|released| released.commit.clone()),
                    proposed: state.proposed.clone(),
                    keys: state.agent_keys.has_branch(),
                    accepted: state.accepted.clone(),
                };
                (known, state.writes)
            };
            let seen = keeper.look(&source, &known, writes);
            let heads = [&seen.rendered, &seen.released];
            let is_unreadable = heads.iter().any(|head| matches!(head, StateHead::Unreadable(_)));
            let unclear = seen.followed.as_ref().err();
            let is_garbled = unclear.is_some_and(|unclear| unclear.sought.is_empty());
            suspect(remote.as_deref(), is_unreadable || is_garbled);
            if let (Some(copied), Some(unclear)) = (&copied, unclear) {
                if !is_garbled && !copied.is_reached() {
                    return None;
                }
                // More history may say it.
                unclear.sought.iter().for_each(|commit| copied.seek(commit));
            }
            Some(Event::StateSeen(seen))
        }
    }

    fn looker(
        &self,
        asked: &Arc<Notify>,
        shutdown: &CancellationToken,
        look: impl Fn() -> Option<Event> + Clone + Send + 'static,
    ) {
        let (asked, shutdown, events) = (Arc::clone(asked), shutdown.clone(), self.events.clone());
        let looking = async move {
            loop {
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => return,
                    () = asked.notified() => {}
                }
                if let Some(event) = blocking(look.clone()).await
                    && events.send(event).await.is_err()
                {
                    return;
                }
            }
        };
        self.watch_over(looking.instrument(tracing::info_span!("look")));
    }
}

/// Whether a commit is another one than last time.
fn is_new(last: &Mutex<Option<Revision>>, commit: &Revision) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    last.replace(commit.clone()).as_ref() != Some(commit)
}

/// Has a remote's copy fetched anew where what was read in it cannot be so.
pub(super) fn suspect(remote: Option<&Remote>, is_damaged: bool) {
    if let Some(remote) = remote.filter(|_| is_damaged) {
        remote.suspect();
    }
}
