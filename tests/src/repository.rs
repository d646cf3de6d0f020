//! A Git repository as people have it: a bare one that is pushed to, and a work clone. Real `git` does it all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Output, scratch};

/// A bare repository and one work clone of it, both on branch `main`.
#[derive(Debug)]
pub struct Repository {
    bare: PathBuf,
    work: PathBuf,
}

impl Repository {
    /// An empty repository.
    pub fn empty() -> Self {
        let folder = scratch::folder("repository");
        let (bare, work) = (folder.join("fleet.git"), folder.join("work"));
        git(
            &folder,
            &["init", "--quiet", "--bare", "--initial-branch=main", "fleet.git"],
        )
        .expect_ok();
        git(&folder, &["clone", "--quiet", "fleet.git", "work"]).expect_ok();
        git(&work, &["symbolic-ref", "HEAD", "refs/heads/main"]).expect_ok();
        Self { bare, work }
    }

    /// A repository with one commit of these files (path, content), pushed.
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let repository = Self::empty();
        files.iter().for_each(|(path, content)| repository.write(path, content));
        repository.commit("first commit");
        repository.push();
        repository
    }

    /// The bare repository, which the hub reads.
    pub fn bare(&self) -> &Path {
        &self.bare
    }

    /// The work clone's folder.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Writes a file of the work clone, with the folders above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the work clone is writable");
        fs::write(path, content).expect("the work clone is writable");
    }

    /// Copies a folder from elsewhere into the work clone, unchanged.
    pub fn copy(&self, from: &Path, to: &str) {
        let to = self.work.join(to);
        fs::create_dir_all(&to).expect("the work clone is writable");
        Output::of(Command::new("cp").arg("-R").arg(from.join(".")).arg(&to)).expect_ok();
    }

    /// Removes a file or a folder from the work clone.
    pub fn remove(&self, path: &str) {
        self.git(&["rm", "-r", "--quiet", "--", path]);
    }

    /// Commits everything in the work clone and returns the commit's id.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Pushes `main`.
    #[track_caller]
    pub fn push(&self) {
        self.git(&["push", "--quiet", "origin", "main"]);
    }

    /// Pushes `main` whatever the bare repository has.
    #[track_caller]
    pub fn force_push(&self) {
        self.git(&["push", "--quiet", "--force", "origin", "main"]);
    }

    /// Writes files, commits and pushes: a change as one step. Returns the commit's id.
    #[track_caller]
    pub fn push_files(&self, message: &str, files: &[(&str, &str)]) -> String {
        files.iter().for_each(|(path, content)| self.write(path, content));
        let commit = self.commit(message);
        self.push();
        commit
    }

    /// Runs `git` in the work clone and returns what it printed, trimmed.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.work, arguments).expect_ok().trim().to_owned()
    }

    /// Runs `git` in the bare repository.
    pub fn git_bare(&self, arguments: &[&str]) -> Output {
        git(&self.bare, arguments)
    }

    /// The commit a ref of the bare repository points at: `main`, `flotilla/rendered`, `refs/…`.
    pub fn head(&self, reference: &str) -> Option<String> {
        let commit = format!("{reference}^{{commit}}");
        let output = self.git_bare(&["rev-parse", "--verify", "--quiet", &commit]);
        output.status.success().then(|| output.stdout.trim().to_owned())
    }

    /// A file at a ref of the bare repository.
    pub fn read(&self, reference: &str, path: &str) -> Option<String> {
        self.git_bare(&["cat-file", "blob", &format!("{reference}:{path}")])
            .ok()
            .ok()
    }

    /// Every path at a ref of the bare repository, in order.
    #[track_caller]
    pub fn files(&self, reference: &str) -> Vec<String> {
        let listed = self
            .git_bare(&["ls-tree", "-r", "--name-only", "-z", reference])
            .expect_ok();
        listed
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// How many commits a ref of the bare repository has; 0 if there is no such ref.
    #[track_caller]
    pub fn commits(&self, reference: &str) -> usize {
        if self.head(reference).is_none() {
            return 0;
        }
        let counted = self.git_bare(&["rev-list", "--count", reference]).expect_ok();
        counted.trim().parse().expect("git counts in digits")
    }

    /// The message of the commit a ref points at.
    #[track_caller]
    pub fn message(&self, reference: &str) -> String {
        self.git_bare(&["log", "-1", "--format=%B", reference]).expect_ok()
    }
}

/// Runs `git` in `folder` as a person whose settings are the defaults.
pub fn git(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    for (role, name) in [("AUTHOR", "Ada"), ("COMMITTER", "Ada")] {
        command
            .env(format!("GIT_{role}_NAME"), name)
            .env(format!("GIT_{role}_EMAIL"), "ada@example.com");
    }
    Output::of(command.args(arguments))
}
