//! A remote and its copy: fetched before it is read, pushed before what was written counts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use render::Revision;
use tokio::sync::{Mutex, Notify, mpsc, watch};
use tokio::time::Instant;

use super::address::RemoteUrl;
use super::answers::Refs;
use super::copy::{Copy, CopyError};
use super::failure::Failure;
use super::kind::FailureKind;
use super::login::Login;
use super::refs::{Names, StateNames, Update, updates};
use super::sought::Sought;
use super::transport::Transport;
use crate::apply::Backoff;
use crate::hub::blocking::blocking;
use crate::hub::engine::{Event, RemoteSeen, Trouble};
use crate::hub::publish::{StateRef, StateRepository};
use crate::hub::repository::LocalRepository;
use crate::hub::source::{Source, SourceError};
use crate::limits::{COPY_LOCK_WAIT, COPY_REMAKE_PAUSE, MOVES_PER_HOUSEKEEPING, PUSH_RETRY_FIRST, PUSH_RETRY_MAX};

/// Keeps the accepted commit when its branch was rewritten: only its descendants are followed.
const ACCEPTED_REF: &str = "refs/flotilla/accepted";

/// By how much more history is fetched than last time, when it was not enough to tell an ancestor.
const DEEPEN_FACTOR: u32 = 8;

/// More commits than any history has: all of it.
const WHOLE_DEPTH: u32 = 0x7fff_ffff;

/// A remote repository, as flags say it.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Where it is.
    pub url: RemoteUrl,
    /// The folder of the copy.
    pub copy: PathBuf,
    /// What the hub logs in with.
    pub login: Login,
    /// How long one exchange may take.
    pub timeout: Duration,
    /// Commits of the source's history that are fetched; all of them without a number.
    pub depth: Option<u32>,
}

/// A remote with its copy, which this hub alone uses.
#[derive(Debug)]
pub struct Remote {
    transport: Transport,
    copy: Copy,
    names: Names,
    depth: Option<u32>,
    /// Held by whoever changes the copy, so that a fetch, a commit with its push, and packing take turns.
    known: Mutex<Known>,
    reached: AtomicBool,
    suspected: AtomicBool,
    pub(super) wake: Notify,
    /// What agents named, and how often more history was fetched for it.
    sought: std::sync::Mutex<Sought>,
    deepened: Arc<watch::Sender<u64>>,
    /// Ends the rest of a push that failed. Its own, since whoever follows the remote waits for the push then.
    push_now: Notify,
}

/// What is known of the remote.
#[derive(Debug)]
struct Known {
    refs: Refs,
    accepted: Option<Revision>,
    remade: Option<Instant>,
    /// Fetches and pushes that moved something since the copy was packed.
    moves: u32,
    refusals: Backoff,
}

impl Remote {
    /// Takes the copy, making it when there is none; nothing is fetched yet. One that cannot be opened is made
    /// anew. `branch` is the source's full name.
    pub async fn open(options: RemoteOptions, branch: String) -> Result<Self, CopyError> {
        let copy = take(&options).await?;
        let path = copy.path().to_owned();
        let transport = Transport::new(options.url, path.clone(), &options.login, options.timeout);
        if copy.is_begun() && LocalRepository::open(&path).is_err() {
            tracing::warn!(object = %path.display(), "Could not open the copy; it is made anew.");
            let failed = |source| CopyError::Folder {
                path: path.clone(),
                source,
            };
            copy.empty().map_err(failed)?;
        }
        if !copy.is_begun() {
            let failed = |source| CopyError::Init { path, source };
            transport.begin().await.map_err(failed)?;
        }
        Ok(Self {
            transport,
            copy,
            names: Names {
                source: branch,
                state: None,
            },
            depth: options.depth,
            known: Mutex::new(Known {
                refs: Refs::new(),
                accepted: None,
                remade: None,
                moves: 0,
                refusals: Backoff::new(PUSH_RETRY_FIRST, PUSH_RETRY_MAX),
            }),
            reached: AtomicBool::new(false),
            suspected: AtomicBool::new(false),
            wake: Notify::new(),
            sought: std::sync::Mutex::default(),
            deepened: Arc::default(),
            push_now: Notify::new(),
        })
    }

    /// The same, where the remote also holds the refs that the hub writes.
    pub fn with_state(self, state: &StateRepository) -> Self {
        let names = Names {
            state: Some(StateNames {
                refs: [
                    state.ref_name(StateRef::Rendered),
                    state.ref_name(StateRef::Released),
                    state.keys_branch(),
                    state.keys_asked(),
                    state.followed_ref(),
                ]
                .map(str::to_owned),
                prefixes: [state.proposed_prefix(), state.register_prefix()].map(str::to_owned),
            }),
            ..self.names
        };
        Self { names, ..self }
    }

    /// Where it is.
    pub fn url(&self) -> &RemoteUrl {
        &self.transport.url
    }

    /// Whether it holds the refs that the hub writes.
    pub fn holds_state(&self) -> bool {
        self.names.state.is_some()
    }

    /// Whether the copy was made like the remote since this hub runs. Before that it may be old, and is not to be
    /// looked at: an old ref of the hub's own would be taken for a rewound one.
    pub fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Acquire)
    }

    /// Looks at the remote, and tries a push that rests, at once.
    pub fn look_now(&self) {
        self.wake.notify_one();
        self.push_now.notify_one();
    }

    /// Asks for so much history that it says whether `commit` is in it. Where it was looked for lately, it is not again.
    pub(in crate::hub) fn seek(&self, commit: &Revision) {
        let is_new = self.depth.is_some() && self.sought().ask(commit, Instant::now());
        if is_new {
            self.wake.notify_one();
        }
    }

    /// Changes when that was fetched.
    pub(in crate::hub) fn deepened(&self) -> Arc<watch::Sender<u64>> {
        Arc::clone(&self.deepened)
    }

    fn sought(&self) -> MutexGuard<'_, Sought> {
        self.sought.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read in the copy cannot be so: it is fetched anew, unless that was tried lately.
    pub fn suspect(&self) {
        self.suspected.store(true, Ordering::Release);
    }

    /// Makes the copy's refs those of the remote, with enough history to say whether `accepted` is in it.
    pub async fn refresh(&self, source: &Arc<Source>, accepted: Option<Revision>) -> Result<(), Failure> {
        let mut known = self.known.lock().await;
        self.refresh_known(&mut known, source, accepted).await
    }

    async fn refresh_known(
        &self,
        known: &mut Known,
        source: &Arc<Source>,
        accepted: Option<Revision>,
    ) -> Result<(), Failure> {
        if self.suspected.swap(false, Ordering::AcqRel) && known.may_remake() {
            self.remake(known).await?;
        }
        let mut done = self.fetch(known, source, accepted.clone()).await;
        if done
            .as_ref()
            .is_err_and(|failure| failure.kind == FailureKind::CopyLocked)
        {
            self.copy.clear_leftovers();
            done = self.fetch(known, source, accepted.clone()).await;
        }
        if done
            .as_ref()
            .is_err_and(|failure| failure.kind == FailureKind::CopyDamaged)
            && known.may_remake()
        {
            self.remake(known).await?;
            done = self.fetch(known, source, accepted).await;
        }
        done?;
        self.reached.store(true, Ordering::Release);
        self.pack_if_due(known).await;
        Ok(())
    }

    async fn fetch(&self, known: &mut Known, source: &Arc<Source>, accepted: Option<Revision>) -> Result<(), Failure> {
        let remote = self.transport.remote_refs(&self.names).await?;
        let local = self.transport.local_refs(&self.names).await?;
        let (gone, moved): (Vec<_>, Vec<_>) = updates(&local, &remote)
            .into_iter()
            .partition(|update| update.new.is_none());
        self.keep_accepted(known, accepted.clone()).await;
        self.transport.set_refs(&gone).await?;
        let (source_moved, state_moved): (Vec<_>, Vec<_>) = moved
            .iter()
            .map(|update| update.name.as_str())
            .partition(|name| *name == self.names.source);
        if !source_moved.is_empty() {
            self.transport.fetch(&source_moved, self.depth).await?;
        }
        if !state_moved.is_empty() {
            self.transport.fetch(&state_moved, None).await?;
        }
        if remote.contains_key(&self.names.source) {
            let sought = self.sought().due(Instant::now());
            let wanted: Arc<[_]> = accepted.into_iter().chain(sought.iter().cloned()).collect();
            self.deepen(source, wanted).await?;
            if !sought.is_empty() {
                self.sought().looked(&sought, Instant::now());
                self.deepened.send_modify(|times| *times += 1);
            }
        }
        known.moves += u32::from(!moved.is_empty());
        known.refs = self.transport.local_refs(&self.names).await?;
        Ok(())
    }

    /// Fetches more history until it says of each of these commits whether it is in it.
    async fn deepen(&self, source: &Arc<Source>, wanted: Arc<[Revision]>) -> Result<(), Failure> {
        let Some(mut depth) = self.depth else {
            return Ok(());
        };
        loop {
            let (source, wanted) = (Arc::clone(source), Arc::clone(&wanted));
            // What cannot be read is said by the look that follows.
            let told = blocking(move || {
                let head = source.head()?.revision;
                let mut told = wanted.iter().map(|wanted| source.is_relation_told(wanted, &head));
                told.try_fold(true, |all, told| Ok::<_, SourceError>(all && told?))
            });
            if depth == WHOLE_DEPTH || told.await.unwrap_or(true) {
                return Ok(());
            }
            depth = depth.saturating_mul(DEEPEN_FACTOR).min(WHOLE_DEPTH);
            tracing::info!(component = %self.transport.url, "Fetched more history, to find an older commit.");
            self.transport.fetch(&[&self.names.source], Some(depth)).await?;
        }
    }

    /// The accepted commit stays readable when nothing else leads to it any more.
    async fn keep_accepted(&self, known: &mut Known, accepted: Option<Revision>) {
        if known.accepted == accepted {
            return;
        }
        let new = accepted.as_ref().map(|accepted| accepted.as_str().to_owned());
        let update = Update {
            name: ACCEPTED_REF.to_owned(),
            old: None,
            new,
        };
        // A copy that is new may not have it.
        if self.transport.set_refs(&[update]).await.is_ok() {
            known.accepted = accepted;
        }
    }

    /// Empties the copy. What was in it is at the remote: nothing counts before it was pushed.
    async fn remake(&self, known: &mut Known) -> Result<(), Failure> {
        tracing::warn!(object = %self.path().display(), "Found the copy damaged; it is fetched anew.");
        (known.remade, known.accepted) = (Some(Instant::now()), None);
        let failed = |words: String| Failure {
            kind: FailureKind::CopyDamaged,
            message: format!("the copy of {} could not be made anew: {words}", self.transport.url),
        };
        self.copy
            .empty()
            .map_err(|error: io::Error| failed(error.to_string()))?;
        let begun = self.transport.begin().await;
        begun.map_err(|error| failed(crate::fault::line(&error)))
    }

    async fn pack_if_due(&self, known: &mut Known) {
        if known.moves < MOVES_PER_HOUSEKEEPING {
            return;
        }
        known.moves = 0;
        if let Err(error) = self.transport.pack().await {
            tracing::warn!(error = crate::fault::line(&error), "Could not pack the copy.");
        }
    }

    /// The folder of the copy.
    pub fn path(&self) -> &Path {
        self.copy.path()
    }

    /// Does one write in the copy and pushes what it moved. What the write says counts only once the remote took
    /// it; else the copy's refs are put back, and after a rest it is refused. While nobody answers it is tried
    /// again, since only the remote knows whether it was taken.
    pub(crate) async fn write(
        &self,
        source: &Arc<Source>,
        events: &mpsc::Sender<Event>,
        write: impl FnOnce() -> Event + Send + 'static,
    ) -> Event {
        let mut known = self.known.lock().await;
        let event = blocking(write).await;
        let failure = match self.push_written(&mut known, events, &event).await {
            Ok(()) if is_refused(&event) => None,
            Ok(()) => return event,
            Err(failure) => Some(failure),
        };
        let is_push_refused = failure.is_some();
        if let Some(failure) = failure {
            if failure.kind == FailureKind::LeaseLost {
                // Another hub, or a person: the next look sees who was first, and there is nothing that anybody should do.
                tracing::info!(component = %self.transport.url, error = failure.message, "Found a ref moved by somebody else.");
                let accepted = known.accepted.clone();
                let _told_by_the_poll = self.refresh_known(&mut known, source, accepted).await;
            } else {
                tracing::warn!(component = %self.transport.url, error = failure.message, "Could not push.");
                tell(events, RemoteSeen::Pushed(Some(failure.into()))).await;
            }
        }
        let rest = known.refusals.wait();
        drop(known);
        self.rest(rest).await;
        // What came to nothing here already says why itself.
        if is_push_refused { Event::WriteRefused } else { event }
    }

    async fn push_written(
        &self,
        known: &mut Known,
        events: &mpsc::Sender<Event>,
        event: &Event,
    ) -> Result<(), Failure> {
        let is_state = |refs: &Refs| -> Refs {
            let state = refs.iter().filter(|(name, _)| self.names.is_state(name));
            state.map(|(name, id)| (name.clone(), id.clone())).collect()
        };
        let before = is_state(&known.refs);
        let after = is_state(&self.transport.local_refs(&self.names).await?);
        let moved = updates(&before, &after);
        let is_written = !is_refused(event) && !matches!(event, Event::AdoptionFailed { .. });
        let pushed = match is_written && !moved.is_empty() {
            true => self.push(known, events, &moved).await,
            false => Ok(()),
        };
        if is_written && pushed.is_ok() {
            for update in moved {
                match update.new {
                    Some(new) => known.refs.insert(update.name, new),
                    None => known.refs.remove(&update.name),
                };
            }
            known.moves += 1;
            known.refusals.reset();
            tell(events, RemoteSeen::Pushed(None)).await;
        } else {
            self.transport.set_refs(&updates(&after, &before)).await?;
        }
        pushed
    }

    /// Pushes until there is an answer.
    async fn push(&self, known: &mut Known, events: &mpsc::Sender<Event>, moved: &[Update]) -> Result<(), Failure> {
        loop {
            let failure = match self.transport.push(moved).await {
                Err(failure) if failure.kind.is_open() => failure,
                answered => return answered,
            };
            tracing::warn!(component = %self.transport.url, error = failure.message, "Could not push; it is tried again.");
            tell(events, RemoteSeen::Pushed(Some(failure.clone().into()))).await;
            loop {
                self.rest(known.refusals.wait()).await;
                let Ok(now) = self.transport.remote_refs(&self.names).await else {
                    continue;
                };
                let stands = |at: fn(&Update) -> &Option<String>| {
                    moved.iter().all(|update| now.get(&update.name) == at(update).as_ref())
                };
                if stands(|update| &update.new) {
                    return Ok(());
                }
                if stands(|update| &update.old) {
                    break;
                }
                return Err(Failure {
                    kind: FailureKind::LeaseLost,
                    ..failure
                });
            }
        }
    }

    /// Rests, unless somebody asks the hub to look.
    async fn rest(&self, time: Duration) {
        tokio::select! {
            () = self.push_now.notified() => {}
            () = tokio::time::sleep(time) => {}
        }
    }
}

/// Whether a write in the copy came to nothing.
fn is_refused(event: &Event) -> bool {
    matches!(event, Event::WriteRefused | Event::WriteFailed { .. })
}

/// Takes the copy. A hub that was killed lets go of it a moment later, when a program that it was about to start
/// has begun or ended.
async fn take(options: &RemoteOptions) -> Result<Copy, CopyError> {
    let started = Instant::now();
    loop {
        match Copy::open(&options.copy, &options.url) {
            Err(CopyError::InUse { .. }) if started.elapsed() < COPY_LOCK_WAIT => {
                tokio::time::sleep(COPY_LOCK_WAIT / 20).await;
            }
            other => return other,
        }
    }
}

impl Known {
    fn may_remake(&self) -> bool {
        self.remade.is_none_or(|remade| remade.elapsed() >= COPY_REMAKE_PAUSE)
    }
}

/// The engine is gone only when the hub is ending.
pub(super) async fn tell(events: &mpsc::Sender<Event>, seen: RemoteSeen) {
    let _sent = events.send(Event::RemoteSeen(seen)).await;
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self {
            reason: failure.kind.reason(),
            message: failure.message,
        }
    }
}
