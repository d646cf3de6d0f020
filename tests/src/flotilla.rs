//! The `flotilla` binary as a child process.

use std::ffi::OsStr;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::{Child, Output, Site, scratch};

/// A running `flotilla`: a hub, an agent, or another command that stays.
///
/// It is started in a folder of its own. Killed on drop, as a crash would end it; [`Child::terminate`] ends it in good order. A failing test prints
/// the end of its log.
#[derive(Debug)]
pub struct Flotilla {
    child: Child,
}

impl Flotilla {
    /// Starts `flotilla hub`.
    pub fn hub<S: AsRef<OsStr>>(arguments: &[S]) -> Self {
        Self::start("hub", &["hub"], arguments, &[])
    }

    /// As [`Self::hub`], with more environment (name, value).
    pub fn hub_in<S: AsRef<OsStr>>(environment: &[(&str, &OsStr)], arguments: &[S]) -> Self {
        Self::start("hub", &["hub"], arguments, environment)
    }

    /// Starts `flotilla agent`.
    pub fn agent<S: AsRef<OsStr>>(arguments: &[S]) -> Self {
        Self::start("agent", &["agent"], arguments, &[])
    }

    /// As [`Self::agent`], in a site, with more environment (name, value).
    pub fn agent_at<S: AsRef<OsStr>>(site: &Site, environment: &[(&str, &str)], arguments: &[S]) -> Self {
        let mut process = flotilla();
        process.arg("agent").args(arguments).envs(environment.iter().copied());
        Self {
            child: Child::start("agent", &scratch::folder("agent"), &mut site.command(&process)),
        }
    }

    /// As [`Self::run`], in a site, with more environment (name, value).
    pub fn run_at<S: AsRef<OsStr>>(site: &Site, environment: &[(&str, &str)], arguments: &[S]) -> Output {
        let mut process = flotilla();
        process.args(arguments).envs(environment.iter().copied());
        Output::of(&mut site.command(&process))
    }

    fn start<S: AsRef<OsStr>>(name: &str, command: &[&str], arguments: &[S], environment: &[(&str, &OsStr)]) -> Self {
        let folder = scratch::folder(name);
        let mut process = flotilla();
        process.args(command).args(arguments).envs(environment.iter().copied());
        // Keys and tokens that no flag names are made where it is started, which is not the tree.
        process.current_dir(&folder);
        Self {
            child: Child::start(name, &folder, &mut process),
        }
    }

    /// Runs `flotilla` to its end.
    pub fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
        Output::of(flotilla().args(arguments))
    }
}

impl Deref for Flotilla {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Flotilla {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Flotilla {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.child.log_tail());
        }
    }
}

/// A command that runs `flotilla` with no setting from this process's environment.
pub fn flotilla() -> Command {
    let mut command = Command::new(binary("flotilla"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FLOTILLA_") {
            command.env_remove(name);
        }
    }
    for name in ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    command.env_remove("KUBECONFIG").env("RUST_BACKTRACE", "1");
    command
}

/// The binary `name` of this workspace: from the folder `FLOTILLA_BIN` if that is set, else from where cargo
/// puts it, beside the folder of the test's own executable.
///
/// # Panics
/// If it is missing, of another checkout, or older than a source it is made from, with the command that builds it. (Cargo builds
/// binaries for the tests of their own package only.)
pub fn binary(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| match std::env::var_os("FLOTILLA_BIN") {
        Some(folder) => PathBuf::from(folder),
        None => own_folder(),
    });
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing; {BUILD}", path.display());
    if let Some(reason) = why_stale(&path) {
        panic!("{} is {reason}; {BUILD}", path.display());
    }
    path
}

const BUILD: &str = if cfg!(debug_assertions) {
    "build it with `cargo build --workspace --all-targets`, or let tests/run do it"
} else {
    "build it with `cargo build --release`"
};

fn own_folder() -> PathBuf {
    let own = std::env::current_exe().expect("a process knows its executable");
    let folder = own.parent().expect("an executable is in a folder");
    let folder = if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    };
    folder.to_owned()
}

/// What is wrong with a binary by the sources that cargo lists in `NAME.d`; nothing if there is no such list.
fn why_stale(binary: &Path) -> Option<String> {
    let listed = fs::read_to_string(binary.with_extension("d")).ok()?;
    let (_, sources) = listed.split_once(": ")?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    if !sources
        .split_whitespace()
        .all(|source| Path::new(source).starts_with(own))
    {
        return Some("made from another checkout".to_owned());
    }
    let linked = changed(binary)?;
    let newer = |source: &&str| changed(Path::new(source)).is_some_and(|time| time > linked);
    sources
        .split_whitespace()
        .find(newer)
        .map(|source| format!("older than {source}"))
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
