//! `cargo demo` as a newcomer uses it: what it prints is pasted into a shell as it stands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flotilla_tests::{Child, Output, eventually, flotilla::binary, parts, scratch};

use super::support::LIMIT;

/// Demos choose their ports when they start; two that start at once might choose the same.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The demo, of a person who never used git before.
fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("flotilla-demo"));
    as_newcomer(command.args(arguments));
    command
}

fn as_newcomer(command: &mut Command) {
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.env_remove("FLOTILLA_SERVER").env_remove("KUBECONFIG");
}

/// A demo that runs, and the shell beside it.
struct Running {
    demo: Child,
    folder: PathBuf,
}

impl Running {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let path = folder.display().to_string();
        let logs = scratch::folder("demo-output");
        let demo = Child::start("demo", &logs, &mut demo(&[&["--folder", &path], more].concat()));
        let running = Self {
            demo,
            folder: folder.to_owned(),
        };
        running.until("Waiting for your push.");
        running
    }

    /// Waits until it has printed these words; all that it printed.
    #[track_caller]
    fn until(&self, words: &str) -> String {
        eventually(LIMIT, &format!("the demo prints {words:?}"), || {
            let said = self.demo.log();
            if said.contains(words) { Ok(said) } else { Err(said) }
        })
    }

    /// The lines to paste that begin with one of these words, from what was printed.
    fn lines(&self, beginnings: &[&str]) -> Vec<String> {
        let said = self.demo.log();
        let lines = said.lines().filter_map(|line| line.strip_prefix("  "));
        let wanted = lines.filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)));
        wanted.map(str::to_owned).collect()
    }

    /// What a shell says to these lines.
    #[track_caller]
    fn shell(&self, lines: &[String]) -> String {
        self.try_shell(lines).unwrap_or_else(|said| panic!("{lines:?}: {said}"))
    }

    fn try_shell(&self, lines: &[String]) -> Result<String, String> {
        let mut shell = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", parts::folder().display()));
        as_newcomer(shell.current_dir("/").args(["-ec", &lines.join("\n")]));
        Output::of(&mut shell).ok()
    }

    #[track_caller]
    fn push(&self, script: &str) {
        let go = format!("cd '{}/fleet'", self.folder.display());
        let push = "git commit --quiet -am 'Change something' && git push --quiet";
        self.shell(&[go, script.to_owned(), push.to_owned()]);
    }

    /// As Ctrl-C ends it; how long that took.
    #[track_caller]
    fn interrupt(mut self) -> (String, Duration) {
        let told = Instant::now();
        self.demo.signal("INT");
        let status = self.demo.wait(LIMIT);
        let took = told.elapsed();
        assert!(status.success(), "{}", self.demo.log_tail());
        (self.demo.log(), took)
    }
}

/// The times of the rows of `--once`, by room.
fn rows(said: &str) -> Vec<(String, f64)> {
    let row = |line: &str| {
        let line = line.strip_prefix("  ")?;
        let (room, rest) = line.split_at_checked(8)?;
        let at = rest.split_whitespace().next()?.parse().ok()?;
        Some((room.trim().to_owned(), at))
    };
    said.lines().filter_map(row).collect()
}

#[track_caller]
fn once(arguments: &[&str], clusters: usize) {
    let said = Output::of(&mut demo(&[&["--once"], arguments].concat())).expect_ok();
    assert!(said.contains(&format!("All {clusters} clusters show")), "{said}");
    let rows = rows(&said);
    let rooms: Vec<_> = rows.iter().map(|(room, _)| room.as_str()).collect();
    let expected = [
        "git push", "source", "plan", "publish", "release", "tunnel", "", "apply", "", "report",
    ];
    assert_eq!(rooms, expected, "every room has its time: {said}");
    let at = |room: &str| rows.iter().find(|(name, _)| name == room).expect("it is there").1;
    let way = ["source", "plan", "publish", "release", "tunnel"].map(at);
    assert!(way.is_sorted(), "a push goes through them in this order: {said}");
    // A report and a watch are two ways back, and either may be the quicker.
    let back = ["apply", "report"].map(at);
    assert!(
        back.iter().all(|time| *time >= at("release")),
        "both follow the release: {said}"
    );
}

#[test]
fn the_demo_makes_one_push_and_shows_it_room_by_room() {
    let _alone = alone();
    once(&[], 3);
    once(&["--clusters", "10"], 10);
}

#[test]
fn a_temporary_demo_leaves_nothing_behind() {
    let _alone = alone();
    let temporary = scratch::folder("tmp");
    let output = Output::of(demo(&["--once"]).env("TMPDIR", &temporary));
    assert!(output.stderr.contains("is removed"), "{output:?}");
    output.expect_ok();
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_demo_of_any_size_has_no_findings() {
    let _alone = alone();
    for clusters in ["2", "3"] {
        let folder = scratch::folder("demo-quiet").join("fleet");
        let demo = Running::start(&folder, &["--clusters", clusters]);
        let look = [
            format!("cd '{}'", folder.display()),
            "./flotilla status || true".to_owned(),
        ];
        let status = demo.shell(&look);
        assert!(status.contains("Findings: 0 errors, 0 warnings"), "{status}");
        demo.interrupt();
    }
}

#[test]
fn what_the_demo_prints_can_be_pasted_and_a_person_sees_their_push_arrive() {
    let _alone = alone();
    let folder = scratch::folder("demo").join("my fleet");
    let demo = Running::start(&folder, &[]);
    let push = demo.lines(&["cd", "echo", "git"]);
    assert_eq!(push.len(), 4, "two ways into the folder, and one push: {push:?}");
    demo.shell(&push[..3]);
    let said = demo.until("\"Leave a note\": released as 2; applied in 3 of 3 clusters after");
    assert!(said.contains("main@sha1:"), "{said}");

    let look = [vec![push[3].clone()], demo.lines(&["./flotilla"])].concat();
    let status = eventually(LIMIT, "all of the fleet is ready", || demo.try_shell(&look));
    assert!(status.contains("lima") && status.contains("hello"), "{status}");
    let kubectl = demo.lines(&["kubectl"]);
    assert_eq!(kubectl.len(), 4, "the hub and three clusters: {kubectl:?}");
    let seen = demo.shell(&kubectl);
    assert_eq!(seen.matches("from my first push").count(), 3, "{seen}");

    demo.push("echo '  broken: [' >> feeds/hello/hello.yaml");
    let said = demo.until("The clusters keep what they have of it");
    assert!(
        said.contains("feeds/hello/hello.yaml:"),
        "file and line are told: {said}"
    );
    let kept = demo.shell(&kubectl[1..2]);
    assert!(kept.contains("from my first push"), "{kept}");
    demo.push("git revert --no-edit --no-commit HEAD && sed 's/Hello from Git/Hello from me/' feeds/hello/hello.yaml > new && mv new feeds/hello/hello.yaml");
    demo.until("Mended");
    demo.until("released as 3; applied in 3 of 3 clusters");
    demo.push("echo '# nothing of it' >> feeds/hello/hello.yaml");
    demo.until("no cluster has to change");
    demo.push("sed 's/containers:/containerz:/' feeds/web/deployment.yaml > new && mv new feeds/web/deployment.yaml");
    demo.until("released as 4; could not be applied in 3 of 3 clusters: Deployment shop/web: ");
    demo.push("git revert --no-edit --no-commit HEAD");
    demo.until("released as 5; applied in 3 of 3 clusters");
    demo.shell(&[format!(
        "cd '{}/fleet' && ../flotilla suspend shop/web --reason fair && git push --quiet",
        demo.folder.display()
    )]);
    demo.push("sed 's/Welcome/Hello/' feeds/web/page.yaml > new && mv new feeds/web/page.yaml");
    demo.until("planned; held by policies/suspend-shop-web.yaml: fair");
    demo.push("git rm --quiet policies/suspend-shop-web.yaml");
    demo.until("released as 6; applied in the 2 clusters of 3 that it changes");
    let compared = demo.shell(&[format!("cd '{}/fleet' && git branch --remotes", demo.folder.display())]);
    assert!(
        compared.contains("origin/flotilla/rendered"),
        "a first plan has something to compare with: {compared}"
    );

    let (said, took) = demo.interrupt();
    assert!(
        took < Duration::from_secs(2),
        "Ctrl-C ends it at once, and took {took:?}"
    );
    assert!(said.contains("Go on with it: cargo demo -- --folder"), "{said}");
    go_on(&folder);
}

/// The same folder again: the same repository and keys, and one more cluster.
#[track_caller]
fn go_on(folder: &Path) {
    let clusters = || {
        let registered = Output::of(
            Command::new("git")
                .args(["-C", &folder.join("fleet.git").display().to_string()])
                .args(["show", "main:clusters/lima.yaml"]),
        );
        registered.expect_ok()
    };
    let before = clusters();
    let demo = Running::start(folder, &["--clusters", "4"]);
    assert_eq!(clusters(), before, "keys are kept");
    let seen = demo.shell(&demo.lines(&["kubectl"]));
    assert_eq!(
        seen.matches("Hello from me").count(),
        4,
        "also the new cluster has it: {seen}"
    );
    let refused = Output::of(&mut self::demo(&["--folder", &folder.display().to_string()]));
    assert_eq!(refused.code(), Some(64));
    assert!(
        refused.stderr.contains("runs in") && refused.stderr.contains("hint:"),
        "{refused:?}"
    );
    demo.shell(&[format!("cd '{}/fleet' && git pull --quiet", folder.display())]);
    let push = demo.lines(&["cd", "echo", "git"]);
    assert!(
        push[1].contains("note-2"),
        "what is there already is not there twice: {push:?}"
    );
    demo.shell(&push[..3]);
    demo.until("applied in 4 of 4 clusters");
    demo.interrupt();
}

#[test]
fn a_folder_of_somebody_else_is_refused_with_what_to_do() {
    let folder = scratch::folder("notes");
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let refused = Output::of(&mut demo(&["--folder", &folder.display().to_string(), "--once"]));
    assert_eq!(refused.code(), Some(64));
    assert!(refused.stderr.contains("no demo made it"), "{refused:?}");
    assert!(
        refused.stderr.contains("hint: name a new or an empty folder"),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    for wrong in [&["--clusters", "0"][..], &["--clusters", "many"], &["--twice"]] {
        assert_eq!(Output::of(&mut demo(wrong)).code(), Some(64), "{wrong:?}");
    }
}

#[test]
fn ports_that_are_in_use_are_left_alone() {
    let _alone = alone();
    // Whoever has one of them already serves this test as well.
    let _taken = [7070, 7071, 7443].map(|port| std::net::TcpListener::bind(("127.0.0.1", port)));
    let folder = scratch::folder("demo");
    let demo = Running::start(&folder, &[]);
    let look = demo.lines(&["./flotilla"]);
    assert!(
        look.iter().all(|line| line.contains("--server http://127.0.0.1:")),
        "{look:?}"
    );
    let look = [vec![format!("cd {}", folder.display())], look].concat();
    let status = eventually(LIMIT, "all of the fleet is ready", || demo.try_shell(&look));
    assert!(status.contains("lima"), "{status}");
    demo.interrupt();
}
