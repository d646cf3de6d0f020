//! Commands that commit in a person's clone, judged by real `git`.
//!
//! Enters: a pushed fleet repository with a clone ([`Work`]). Leaves: a judgement of the commit that a command
//! made, or of the clone that it left alone. Deliberately not here: what the hub makes of such a commit, which
//! the journeys follow.

mod accept;
mod add;
mod commits;
mod cordon;
mod reconcile;
mod suspend;
mod verify;

use std::time::Duration;

use flotilla_tests::{Flotilla, Output, Repository, eventually, ports, scratch};

const FILES: [(&str, &str); 4] = [
    (
        "fleet.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {approval: none}\n",
    ),
    (
        "clusters/oslo.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: oslo}\n",
    ),
    (
        "subscriptions/shop/web.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {namespace: shop, name: web}\n\
         spec:\n  subscribers: [{clusterAffinity: {}}]\n  feeds: [{path: 'feeds/web/**'}]\n",
    ),
    (
        "feeds/web/greeting.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: greeting}\n",
    ),
];

/// How long a hub may take to do something on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A hub of a repository, whose clusters nobody serves.
struct Hub {
    child: Flotilla,
    api: String,
}

impl Hub {
    /// Starts it and waits until it answers. It looks at its repository once, and then when it is asked to or when
    /// the system tells of a moved ref.
    fn start(work: &Work) -> Self {
        let key = scratch::folder("hub-key").join("hub.key").display().to_string();
        let [listen, api] = [0; 2].map(|_| format!("127.0.0.1:{}", ports::free()));
        let bare = work.repository.bare().display().to_string();
        let own = ["--repository", &bare, "--key", &key, "--listen", &listen, "--api", &api];
        let child = Flotilla::hub(&[&own[..], &["--recovery-grace-seconds", "0"]].concat());
        let hub = Self {
            child,
            api: format!("http://{api}"),
        };
        eventually(LIMIT, "the hub has released", || {
            let released = work.repository.head("flotilla/released");
            released.map(drop).ok_or_else(|| hub.child.log())
        });
        hub
    }

    /// Waits until a commit of main is accepted.
    #[track_caller]
    fn until_accepted(&self, work: &Work, commit: &str) {
        eventually(LIMIT, &format!("{commit} is accepted"), || {
            let shown = work.run(&["get", "fleet", "-o", "json", "--server", &self.api]).stdout;
            let found = shown.contains(&format!("\"accepted\": \"main@sha1:{commit}\""));
            found.then_some(()).ok_or(shown)
        });
    }

    /// Waits until the Fleet's condition SourceVerified has this reason.
    #[track_caller]
    fn until(&self, work: &Work, reason: &str) {
        eventually(LIMIT, &format!("source is {reason}"), || {
            let shown = work.run(&["get", "fleet", "-o", "json", "--server", &self.api]).stdout;
            let found = shown.contains(&format!("\"reason\": \"{reason}\""));
            found.then_some(()).ok_or(shown)
        });
    }
}

/// A fleet repository and Ada's clone of it.
struct Work {
    repository: Repository,
}

impl Work {
    fn new() -> Self {
        let repository = Repository::with_files(&FILES);
        repository.git(&["config", "user.name", "Ada"]);
        repository.git(&["config", "user.email", "ada@example.com"]);
        Self { repository }
    }

    /// Runs a command in the clone, as a person with no settings but the clone's.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = flotilla_tests::flotilla::flotilla();
        command
            .current_dir(self.repository.work())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
            command.env_remove(format!("GIT_{name}"));
        }
        Output::of(command.args(arguments))
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.repository.git(arguments)
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The paths that the newest commit changed, as `A path`.
    fn changed(&self) -> Vec<String> {
        let shown = self.git(&["diff-tree", "--no-commit-id", "--name-status", "-r", "HEAD"]);
        shown.lines().map(|line| line.replace('\t', " ")).collect()
    }

    /// Runs a command that must refuse with these words, and leave the clone as it was.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], words: &str) {
        let picture = || (self.head(), self.git(&["status", "--porcelain", "--ignored"]));
        let before = picture();
        let output = self.run(arguments);
        assert_eq!(output.code(), Some(1), "{output:?}");
        assert!(output.stderr.contains(words), "{words:?} is not in {}", output.stderr);
        assert_eq!(output.stdout, "", "what failed says nothing to programs");
        assert_eq!(picture(), before, "nothing was changed");
    }
}
