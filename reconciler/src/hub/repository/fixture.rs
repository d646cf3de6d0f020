//! Repositories for tests, made and judged by the real `git`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository with a worktree in a folder of its own, removed when dropped.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        fixture.git(&["init", "--quiet", "--initial-branch=main", "."]);
        fixture
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.file(path);
        std::fs::create_dir_all(file.parent().expect("a file has a folder")).expect("folders can be made");
        std::fs::write(file, content).expect("files can be written");
    }

    /// Commits the worktree as it is and says the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head()
    }

    /// Commits changes on main without touching the worktree: `(path, content)`, whatever their number, in
    /// one pack.
    pub(crate) fn import(&self, changes: impl IntoIterator<Item = (String, String)>, moved: &[(&str, &str)]) -> String {
        let mut stream = "commit refs/heads/main\ncommitter Ann <a@example.com> 1700000000 +0000\ndata 0\n".to_owned();
        if self.file(".git/refs/heads/main").exists() {
            stream.push_str("from refs/heads/main^0\n");
        }
        for (from, to) in moved {
            stream.push_str(&format!("R {from} {to}\n"));
        }
        for (path, content) in changes {
            stream.push_str(&format!("M 644 inline {path}\ndata {}\n{content}\n", content.len()));
        }
        std::fs::write(self.file("stream"), stream).expect("files can be written");
        let input = std::fs::File::open(self.file("stream")).expect("just written");
        let status = Command::new("git")
            .current_dir(self.path())
            .args(["fast-import", "--quiet"])
            .stdin(input)
            .status()
            .expect("git is installed");
        assert!(status.success(), "git fast-import failed");
        self.head()
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(self.path(), arguments)
    }

    /// Removes a loose object's file.
    pub(crate) fn lose(&self, id: &str) {
        std::fs::remove_file(self.loose(id)).expect("the object is loose");
    }

    pub(crate) fn loose(&self, id: &str) -> PathBuf {
        self.file(".git/objects").join(&id[..2]).join(&id[2..])
    }
}

/// Runs `git` in a folder, with nothing of the machine's own configuration, and gives its trimmed output.
#[track_caller]
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ann")
        .env("GIT_AUTHOR_EMAIL", "ann@example.com")
        .env("GIT_COMMITTER_NAME", "Ann")
        .env("GIT_COMMITTER_EMAIL", "ann@example.com")
        .output()
        .expect("git is installed");
    if !output.status.success() {
        panic!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
