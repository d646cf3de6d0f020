//! When to look again: a moved ref is an edge, what is passed on is a level.
//!
//! Events only say "look"; where refs point is read by whoever looks. Many events become one look, and a
//! slow poll makes up for events that were lost or cannot be had.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::hub::repository::LocalRepository;

/// A new folder of refs is watched only a moment after it appeared; a ref put into it at once is caught by
/// looking a second time this much later.
const SETTLE: Duration = Duration::from_millis(100);

/// How refs are being followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// By events, with a poll behind them.
    Watching,
    /// By the poll alone, and why.
    Polling(Arc<str>),
    /// The folder is not there or holds no repository; it is looked for at every poll.
    Gone,
}

/// "Look again": each value of the channel that is new to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// How many looks were asked for so far.
    pub count: u64,
    /// How refs are being followed.
    pub state: WatchState,
}

/// Follows the refs of one repository. Holds no more than one pending look, however many events come.
#[derive(Debug)]
pub struct RefWatch {
    path: PathBuf,
    poll: Duration,
    looks: watch::Sender<Look>,
}

/// Events arriving, and which folder they come from.
struct Events {
    _watcher: Option<RecommendedWatcher>,
    folder: FolderIdentity,
    state: WatchState,
}

impl RefWatch {
    /// A watch of the repository at `path` that looks at least every `poll`, and where its looks arrive.
    pub fn new(path: impl Into<PathBuf>, poll: Duration) -> (Self, watch::Receiver<Look>) {
        let (looks, receiver) = watch::channel(Look {
            count: 0,
            state: WatchState::Gone,
        });
        let path = path.into();
        (Self { path, poll, looks }, receiver)
    }

    /// Runs until `shutdown`. A repository that goes away is a state and not an end.
    pub async fn run(self, shutdown: CancellationToken) {
        let moved = Arc::new(Notify::new());
        let mut poll = tokio::time::interval(self.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = None;
        let mut second_look: Option<Instant> = None;
        loop {
            // Each arm only waits, so that a dropped one loses nothing: `Notify` keeps its permit.
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = moved.notified() => second_look = Some(Instant::now() + SETTLE),
                () = sleep_until(second_look) => second_look = None,
                _ = poll.tick() => {}
            }
            events = self.renewed(events, &moved).await;
            let state = events.as_ref().map_or(WatchState::Gone, |events| events.state.clone());
            self.looks.send_modify(|look| {
                look.count += 1;
                look.state = state;
            });
        }
    }

    /// The watch as it is, or a new one where the folder was replaced or had been gone.
    async fn renewed(&self, events: Option<Events>, moved: &Arc<Notify>) -> Option<Events> {
        let (path, moved) = (self.path.clone(), moved.clone());
        let check = move || match events {
            Some(events) if events.is_well() => Some(events),
            _ => Events::start(&path, moved),
        };
        // A join error means that the runtime is shutting down.
        tokio::task::spawn_blocking(check).await.ok().flatten()
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl Events {
    /// Whether there is nothing to be gained by starting again.
    fn is_well(&self) -> bool {
        self.state == WatchState::Watching && self.folder.is_unchanged()
    }

    /// `None` where there is no repository.
    fn start(path: &Path, moved: Arc<Notify>) -> Option<Self> {
        let folder = LocalRepository::open(path).ok()?.common_dir();
        let folder = FolderIdentity::of(folder)?;
        let (watcher, state) = match watcher(&folder.path, moved) {
            Ok(watcher) => (Some(watcher), WatchState::Watching),
            Err(error) => (None, WatchState::Polling(error.to_string().into())),
        };
        Some(Self {
            _watcher: watcher,
            folder,
            state,
        })
    }
}

fn watcher(folder: &Path, moved: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let refs = folder.join("refs");
    let root = folder.to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error of the watcher is a reason to look as well: events may have been lost.
        if event.is_ok_and(|event| !is_about_refs(&root, &event)) {
            return;
        }
        moved.notify_one();
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    watcher.watch(&refs, RecursiveMode::Recursive)?;
    Ok(watcher)
}

fn is_about_refs(root: &Path, event: &notify::Event) -> bool {
    // Looking opens the files, so an answer to being opened would look for ever.
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    event.need_rescan() || event.paths.iter().any(|path| is_ref_path(root, path))
}

fn is_ref_path(root: &Path, path: &Path) -> bool {
    let Ok(inner) = path.strip_prefix(root) else {
        return true;
    };
    if path.extension().is_some_and(|extension| extension == "lock") {
        return false;
    }
    inner.as_os_str().is_empty()
        || ["HEAD", "packed-refs", "refs"]
            .iter()
            .any(|name| inner.starts_with(name))
}

/// A folder as this very folder, and not another one that took its place.
struct FolderIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl FolderIdentity {
    fn of(path: PathBuf) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let refs = std::fs::metadata(path.join("refs")).ok()?;
        Some(Self {
            path,
            device: refs.dev(),
            inode: refs.ino(),
        })
    }

    fn is_unchanged(&self) -> bool {
        Self::of(self.path.clone()).is_some_and(|now| now.device == self.device && now.inode == self.inode)
    }
}
