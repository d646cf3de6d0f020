//! A remote at a file URL: the same exchanges as with any host, without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use render::Revision;
use tokio::sync::mpsc;

use crate::hub::SharedState;
use crate::hub::engine::{Event, RemoteSeen};
use crate::hub::mode_order::{ModeOrder, Pair};
use crate::hub::publish::{Author, StateRefs, StateRepository};
use crate::hub::remote::{CopyError, FailureKind, Login, Remote, RemoteOptions, RepositoryAddress};
use crate::hub::repository::Relation;
use crate::hub::repository::fixture::{Fixture, git};
use crate::hub::source::{Source, SourceError};

/// A remote with people who push to it, and a copy.
struct World {
    people: Fixture,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            people: Fixture::new(),
            folder: tempfile::tempdir().expect("a folder"),
        };
        git(
            world.folder.path(),
            &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"],
        );
        // As hosts do, and as is by default over http.
        world.remote_git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        let remote = world.bare().display().to_string();
        world.people.git(&["remote", "add", "origin", &remote]);
        world
    }

    fn bare(&self) -> PathBuf {
        self.folder.path().join("remote.git")
    }

    fn copy(&self) -> PathBuf {
        self.folder.path().join("copy.git")
    }

    fn remote_git(&self, arguments: &[&str]) -> String {
        git(&self.bare(), arguments)
    }

    fn push(&self, message: &str) -> Revision {
        self.people.write("a.yaml", format!("text: {message}\n"));
        let head = self.people.commit(message);
        self.people.git(&["push", "--quiet", "--force", "origin", "HEAD:main"]);
        Revision::parse(head).expect("git prints a commit")
    }

    fn options(&self, depth: Option<u32>) -> RemoteOptions {
        let url = format!("file://{}", self.bare().display());
        let Ok(RepositoryAddress::Remote(url)) = url.parse() else {
            unreachable!("{url} is a URL");
        };
        RemoteOptions {
            url,
            copy: self.copy(),
            login: Login::default(),
            timeout: Duration::from_secs(60),
            depth,
        }
    }

    async fn open(&self, depth: Option<u32>) -> Opened {
        let options = self.options(depth);
        let remote = Remote::open(options, "refs/heads/main".to_owned())
            .await
            .expect("it opens");
        let source = Arc::new(Source::open(self.copy(), "main").expect("the copy opens"));
        let state = StateRepository::open(self.copy(), StateRefs::default(), Author::default(), &source);
        let remote = Arc::new(remote.with_state(&state.expect("the copy opens")));
        Opened { remote, source }
    }

    fn counted(&self, reference: &str) -> String {
        git(&self.copy(), &["rev-list", "--count", reference])
    }
}

struct Opened {
    remote: Arc<Remote>,
    source: Arc<Source>,
}

impl Opened {
    async fn refresh(&self, accepted: Option<&Revision>) {
        let refreshed = self.remote.refresh(&self.source, accepted.cloned()).await;
        refreshed.expect("the remote answers");
    }

    fn head(&self) -> Revision {
        self.source.head().expect("the branch is there").revision
    }

    /// Writes as a keeper does: a commit put on `rendered` in the copy.
    async fn write(&self, copy: &Path, commit: &str) -> (Event, Vec<Event>) {
        let (events, mut heard) = mpsc::channel(16);
        let (copy, commit) = (copy.to_owned(), commit.to_owned());
        let write = move || {
            git(&copy, &["update-ref", "refs/heads/flotilla/rendered", &commit]);
            Event::Proposed {
                proposal: None,
                kept: Vec::new(),
            }
        };
        let event = self.remote.write(&self.source, &events, write).await;
        drop(events);
        let mut told = Vec::new();
        while let Some(event) = heard.recv().await {
            told.push(event);
        }
        (event, told)
    }
}

fn rendered(folder: &Path) -> String {
    let found = git(
        folder,
        &["for-each-ref", "--format=%(objectname)", "refs/heads/flotilla/rendered"],
    );
    found.trim().to_owned()
}

#[tokio::test]
async fn a_copy_follows_the_branch_through_every_kind_of_push() {
    let world = World::new();
    let first = world.push("one");
    let opened = world.open(Some(3)).await;
    assert!(!opened.remote.is_reached(), "an old copy is not looked at");
    opened.refresh(None).await;
    assert!(opened.remote.is_reached());
    assert_eq!(opened.head(), first);
    let mut last = first.clone();
    for message in ["two", "three", "four", "five"] {
        last = world.push(message);
    }
    opened.refresh(Some(&first)).await;
    assert_eq!(opened.head(), last);
    assert_eq!(
        opened.source.relation(&first, &last).expect("readable"),
        Relation::Descendant
    );
    world.people.git(&["reset", "--quiet", "--hard", "HEAD~3"]);
    world.people.git(&["push", "--quiet", "--force", "origin", "HEAD:main"]);
    let back = Revision::parse(world.people.head()).expect("a commit");
    opened.refresh(Some(&last)).await;
    assert_eq!(opened.head(), back, "reset to an older commit");
    assert_eq!(
        opened.source.relation(&last, &back).expect("readable"),
        Relation::Rewritten
    );
    world.people.git(&["checkout", "--quiet", "--orphan", "other"]);
    let other = world.push("another root");
    opened.refresh(Some(&last)).await;
    assert_eq!(opened.head(), other);
    opened.source.tree(&last).expect("the accepted commit stays readable");
    world.people.git(&["push", "--quiet", "origin", "HEAD:beside"]);
    world.remote_git(&["update-ref", "-d", "refs/heads/main"]);
    opened.refresh(Some(&last)).await;
    assert!(matches!(opened.source.head(), Err(SourceError::BranchMissing { .. })));
    world.people.git(&["tag", "main", &first.to_string()]);
    world
        .people
        .git(&["push", "--quiet", "origin", "refs/tags/main", "HEAD:refs/heads/main"]);
    for _ in 0..3 {
        opened.refresh(Some(&last)).await;
        assert_eq!(opened.head(), other, "a tag of the branch's name is not the branch");
    }
}

#[tokio::test]
async fn history_is_fetched_as_far_as_ancestry_needs_it() {
    let world = World::new();
    let root = world.push("one");
    for at in 0..40 {
        world.people.commit(&format!("more {at}"));
    }
    let head = world.push("last");
    let opened = world.open(Some(2)).await;
    opened.refresh(None).await;
    assert_eq!(world.counted("main"), "2", "no more than was asked for");
    assert!(!opened.source.is_relation_told(&root, &head).expect("readable"));
    opened.refresh(Some(&root)).await;
    assert_eq!(
        opened.source.relation(&root, &head).expect("readable"),
        Relation::Descendant
    );
    // Of a commit that was never there the whole history has to say so.
    let gone = Revision::parse("12345678".repeat(5)).expect("a commit");
    opened.refresh(Some(&gone)).await;
    assert_eq!(world.counted("main"), "42");
    assert_eq!(
        opened.source.relation(&gone, &head).expect("readable"),
        Relation::Rewritten
    );
}

#[tokio::test]
async fn a_mode_told_below_the_edge_of_a_shallow_copy_does_not_outlast_a_newer_one() {
    let world = World::new();
    let told = world.push("the mode that a quiet cluster goes by");
    for at in 0..40 {
        world.people.commit(&format!("more {at}"));
    }
    let head = world.push("another mode");
    let opened = world.open(Some(2)).await;
    opened.refresh(None).await;
    let (source, remote) = (Arc::clone(&opened.source), Arc::clone(&opened.remote));
    let modes = ModeOrder::of(source, SharedState::default(), Some(remote));
    let mut deepened = modes.deepened();
    let pair = |held: &Revision| Pair {
        own: head.clone(),
        held: held.clone(),
    };
    assert!(!modes.comes_after(&pair(&told)).await, "it is not known yet");
    opened.refresh(Some(&head)).await;
    assert!(deepened.has_changed().expect("it is there"), "sessions look again");
    deepened.mark_unchanged();
    assert!(modes.comes_after(&pair(&told)).await);
    // What was never there is looked for once, in all there is.
    let gone = Revision::parse("12345678".repeat(5)).expect("a commit");
    assert!(!modes.comes_after(&pair(&gone)).await);
    opened.refresh(Some(&head)).await;
    assert!(
        !deepened.has_changed().expect("it is there"),
        "not so soon after the last one"
    );
    assert!(!modes.comes_after(&pair(&gone)).await);
}

#[tokio::test]
async fn a_rewrite_near_the_head_needs_no_more_history() {
    let world = World::new();
    for at in 0..30 {
        world.people.commit(&format!("more {at}"));
    }
    let old = world.push("old");
    let opened = world.open(Some(4)).await;
    opened.refresh(None).await;
    world.people.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let new = world.push("new");
    opened.refresh(Some(&old)).await;
    assert_eq!(
        opened.source.relation(&old, &new).expect("readable"),
        Relation::Rewritten
    );
    assert_eq!(world.counted("main"), "4");
}

#[tokio::test]
async fn what_was_written_is_pushed_by_compare_and_swap() {
    let world = World::new();
    let first = world.push("one");
    let second = world.push("two");
    let opened = world.open(None).await;
    opened.refresh(None).await;
    let (event, told) = opened.write(&world.copy(), first.as_str()).await;
    assert!(matches!(event, Event::Proposed { .. }), "{event:?}");
    assert!(
        matches!(told.as_slice(), [Event::RemoteSeen(RemoteSeen::Pushed(None))]),
        "{told:?}"
    );
    assert_eq!(rendered(&world.bare()), first.as_str());

    // Somebody was faster: nothing is overwritten, and the copy says what the remote has.
    world.remote_git(&["update-ref", "refs/heads/flotilla/rendered", second.as_str()]);
    let root = world.people.git(&["rev-list", "--max-parents=0", "HEAD"]);
    let other = world
        .people
        .git(&["commit-tree", "-m", "other", "-p", &root, "HEAD^{tree}"]);
    world
        .people
        .git(&["push", "--quiet", "origin", &format!("{other}:refs/heads/elsewhere")]);
    git(
        &world.copy(),
        &["fetch", "--quiet", &world.bare().display().to_string(), "elsewhere"],
    );
    let (event, told) = opened.write(&world.copy(), &other).await;
    assert!(matches!(event, Event::WriteRefused), "{event:?}");
    assert!(told.is_empty(), "that another hub was first is no trouble: {told:?}");
    assert_eq!(rendered(&world.bare()), second.as_str());
    assert_eq!(rendered(&world.copy()), second.as_str());
}

#[tokio::test]
async fn a_hook_that_declines_leaves_the_copy_as_the_remote_is() {
    let world = World::new();
    let first = world.push("one");
    let opened = world.open(None).await;
    opened.refresh(None).await;
    let hook = world.bare().join("hooks/pre-receive");
    fs::create_dir_all(world.bare().join("hooks")).expect("ours");
    fs::write(&hook, "#!/bin/sh\necho 'only Ann may push here' >&2\nexit 1\n").expect("ours");
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("ours");
    let (event, told) = opened.write(&world.copy(), first.as_str()).await;
    assert!(matches!(event, Event::WriteRefused), "{event:?}");
    let [Event::RemoteSeen(RemoteSeen::Pushed(Some(trouble)))] = told.as_slice() else {
        unreachable!("{told:?}");
    };
    assert_eq!(trouble.reason, "PushRefused");
    assert!(
        trouble.message.contains("the server says: only Ann may push here"),
        "{}",
        trouble.message
    );
    assert_eq!(rendered(&world.copy()), "", "the copy is never ahead");
}

#[tokio::test]
async fn a_copy_that_was_left_in_the_middle_or_damaged_heals() {
    let world = World::new();
    let first = world.push("one");
    let opened = world.open(None).await;
    opened.refresh(None).await;
    drop(opened);
    let copy = world.copy();
    for left in [
        "shallow.lock",
        "refs/heads/main.lock",
        "packed-refs.lock",
        "objects/pack/tmp_pack_AbCd",
    ] {
        fs::write(copy.join(left), "").expect("ours");
    }
    let opened = world.open(None).await;
    assert!(!copy.join("shallow.lock").exists() && !copy.join("objects/pack/tmp_pack_AbCd").exists());
    let second = world.push("two");
    opened.refresh(Some(&first)).await;
    assert_eq!(opened.head(), second);

    // Objects are lost: what is read cannot be so, and the copy is fetched anew, once.
    fs::remove_dir_all(copy.join("objects")).expect("ours");
    fs::create_dir_all(copy.join("objects")).expect("ours");
    assert!(opened.source.head().is_err());
    opened.remote.suspect();
    opened.refresh(Some(&first)).await;
    assert_eq!(opened.head(), second);
    opened.source.tree(&second).expect("whole");
    drop(opened);

    fs::write(copy.join("config"), "[core\n").expect("ours");
    let opened = world.open(None).await;
    opened.refresh(None).await;
    assert_eq!(opened.head(), second, "one that cannot even be opened is made anew");
}

#[tokio::test]
async fn a_copy_belongs_to_one_hub_and_one_repository() {
    let world = World::new();
    world.push("one");
    let opened = world.open(None).await;
    let again = Remote::open(world.options(None), "refs/heads/main".to_owned()).await;
    assert!(matches!(again, Err(CopyError::InUse { .. })), "{again:?}");
    drop(opened);
    let other = World::new();
    let options = RemoteOptions {
        copy: world.copy(),
        ..other.options(None)
    };
    let taken = Remote::open(options, "refs/heads/main".to_owned()).await;
    assert!(matches!(taken, Err(CopyError::OfAnother { .. })), "{taken:?}");
    let options = RemoteOptions {
        copy: world.people.path().to_owned(),
        ..world.options(None)
    };
    let taken = Remote::open(options, "refs/heads/main".to_owned()).await;
    assert!(matches!(taken, Err(CopyError::NotOurs { .. })), "{taken:?}");
    assert!(world.people.file("a.yaml").exists(), "what is not ours is left alone");
}

#[tokio::test]
async fn a_remote_that_is_away_or_of_another_form_is_a_named_state() {
    let world = World::new();
    world.push("one");
    let opened = world.open(None).await;
    opened.refresh(None).await;
    fs::rename(world.bare(), world.folder.path().join("away.git")).expect("ours");
    let failure = opened
        .remote
        .refresh(&opened.source, None)
        .await
        .expect_err("it is away");
    assert_eq!(failure.kind, FailureKind::RepositoryNotFound, "{}", failure.message);
    opened.source.head().expect("what was fetched stays");
    git(
        world.folder.path(),
        &["init", "--quiet", "--bare", "--object-format=sha256", "remote.git"],
    );
    let people = Fixture::new();
    fs::remove_dir_all(people.file(".git")).expect("ours");
    people.git(&[
        "init",
        "--quiet",
        "--object-format=sha256",
        "--initial-branch=main",
        ".",
    ]);
    people.commit("one");
    people.git(&["push", "--quiet", &world.bare().display().to_string(), "main"]);
    let failure = opened
        .remote
        .refresh(&opened.source, None)
        .await
        .expect_err("it has other ids");
    assert_eq!(failure.kind, FailureKind::FormatUnsupported, "{}", failure.message);
    assert!(failure.message.contains("--object-format=sha1"), "{}", failure.message);
}

/// Answers every request with a page of one line, as a host's login page may be.
async fn login_page() -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let serve = async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _asked = stream.read(&mut [0; 4096]).await;
            let page = "<html><body>Please log in</body></html>";
            let length = page.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
            );
            let _sent = stream.write_all(answer.as_bytes()).await;
        }
    };
    (address, tokio::spawn(serve))
}

#[tokio::test]
async fn a_login_page_is_not_an_empty_repository() {
    let world = World::new();
    let (address, serving) = login_page().await;
    let Ok(RepositoryAddress::Remote(url)) = format!("http://{address}/fleet.git").parse() else {
        unreachable!("{address} makes a URL");
    };
    let options = RemoteOptions {
        url,
        ..world.options(None)
    };
    let remote = Remote::open(options, "refs/heads/main".to_owned())
        .await
        .expect("it opens");
    let source = Arc::new(Source::open(world.copy(), "main").expect("the copy opens"));
    let failure = remote.refresh(&source, None).await.expect_err("it is no repository");
    serving.abort();
    assert_eq!(failure.kind, FailureKind::NotGit, "{}", failure.message);
    assert!(failure.message.contains("login page"), "{}", failure.message);
}

#[tokio::test]
async fn a_repository_that_lost_all_its_refs_is_not_an_empty_one() {
    let world = World::new();
    let opened = world.open(None).await;
    // A new one is empty, and that is a look.
    opened.refresh(None).await;
    world.push("one");
    opened.refresh(None).await;
    let head = opened.head();
    world.remote_git(&["update-ref", "-d", "refs/heads/main"]);
    let failure = opened.remote.refresh(&opened.source, None).await;
    let failure = failure.expect_err("its refs are gone");
    assert!(failure.message.contains("no refs at all"), "{}", failure.message);
    assert_eq!(opened.head(), head, "what was fetched stays");
    // A branch that was deleted beside others is gone.
    world.people.git(&["push", "--quiet", "origin", "HEAD:other"]);
    opened.refresh(None).await;
    opened.source.head().expect_err("the branch is gone");
}

#[tokio::test]
async fn many_small_pushes_do_not_fill_the_disk() {
    let world = World::new();
    world.people.import([("big.yaml".to_owned(), noise(200_000))], &[]);
    world.people.git(&["push", "--quiet", "origin", "main"]);
    let opened = world.open(Some(5)).await;
    for at in 0..crate::limits::MOVES_PER_HOUSEKEEPING + 10 {
        let head = world
            .people
            .import([("small.yaml".to_owned(), format!("n: {at}\n"))], &[]);
        world.people.git(&["push", "--quiet", "origin", "main"]);
        opened.refresh(Revision::parse(head).ok().as_ref()).await;
    }
    let fresh = world.folder.path().join("fresh");
    let url = format!("file://{}", world.bare().display());
    git(
        world.folder.path(),
        &[
            "clone",
            "--quiet",
            "--bare",
            "--depth=5",
            &url,
            &fresh.display().to_string(),
        ],
    );
    let (kept, fresh) = (bytes(&world.copy().join("objects")), bytes(&fresh.join("objects")));
    assert!(kept < 3 * fresh, "{kept} bytes beside {fresh} of a fresh copy");
}

/// Text that hardly packs.
fn noise(length: usize) -> String {
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:016x}", seed ^ (seed >> 29))
    };
    (0..length / 16).map(|_| next()).collect()
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
