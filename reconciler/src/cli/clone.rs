//! A person's clone of the fleet repository, edited as one commit.
//!
//! In: files to write or remove, and what to say of it. Out: one commit on the branch that is checked out,
//! made by the person's own git, or nothing at all. What stands in the clone besides is left as it is, and
//! nothing is ever sent anywhere but by `--push`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use render::Revision;

use super::git::{Git, Shown};
use super::output;
use super::rooted::Rooted;

/// How a command edits the clone.
#[derive(Debug, Args)]
pub(super) struct CloneOptions {
    /// The clone of the fleet repository to commit in, or a folder below it.
    #[arg(short = 'C', long = "directory", value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Print what would be committed as a diff, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Push the commit to where the branch is pushed to.
    #[arg(long, conflicts_with = "dry_run")]
    push: bool,
    /// Commit although other changes are staged; they stay staged and are no part of the commit.
    #[arg(long)]
    allow_staged: bool,
}

/// What becomes of a file.
#[derive(Debug)]
pub(super) struct Edit {
    /// From the clone's root, with `/` between parts.
    pub(super) path: String,
    /// What it says; `None`: it is removed.
    pub(super) content: Option<Vec<u8>>,
}

/// One commit to be.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) edits: Vec<Edit>,
    /// Its first line.
    pub(super) subject: String,
    /// Paragraphs for people; may be empty.
    pub(super) body: String,
    /// `Token: value`, for tools.
    pub(super) trailers: Vec<(&'static str, String)>,
}

/// A clone with a branch checked out.
pub(super) struct Clone {
    root: Rooted,
    git: Git,
    branch: String,
}

impl CloneOptions {
    /// Finds the clone, and says why it is none that could be committed in.
    pub(super) fn open(&self) -> anyhow::Result<Clone> {
        let git = Git::at(&self.folder);
        let root = git.ask(&["rev-parse", "--show-toplevel"]).with_context(|| {
            format!(
                "{} is in no clone of the fleet repository; hint: change into one, or name it with -C",
                self.folder.display()
            )
        })?;
        let git = Git::at(Path::new(&root));
        let branch = git.ask(&["symbolic-ref", "--short", "HEAD"]);
        let branch = branch.context("no branch is checked out; git switch to the one that the hub follows")?;
        Ok(Clone {
            root: Rooted::at(root),
            git,
            branch,
        })
    }

    /// Whether nothing is to be changed.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Makes the commit, or shows it. The id of the commit goes to stdout.
    pub(super) fn commit(&self, clone: &Clone, change: &Change) -> anyhow::Result<ExitCode> {
        if self.dry_run {
            clone.check(change, self.allow_staged)?;
            clone.show(change)?;
            return Ok(ExitCode::SUCCESS);
        }
        let commit = clone.commit(change, self.allow_staged)?;
        output::print(&format!("{commit}\n"));
        output::tell(&format!("Committed on {}: {}\n", clone.branch, change.subject));
        for edit in &change.edits {
            let done = if edit.content.is_some() { "wrote" } else { "removed" };
            output::tell(&format!("  {done} {}\n", edit.path));
        }
        if self.push {
            clone
                .git
                .run(&["push"], Shown::Aside)
                .context("the commit is made and was not pushed")?;
        } else {
            output::tell("next: git push\n");
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Clone {
    /// The folder of its files.
    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The branch that is checked out.
    pub(super) fn branch(&self) -> &str {
        &self.branch
    }

    /// Whether a commit is in the clone.
    pub(super) fn knows(&self, commit: &Revision) -> anyhow::Result<bool> {
        self.git.knows(commit)
    }

    /// Whether a revision is a commit, or builds on it. False where the commit is not in the clone.
    pub(super) fn contains(&self, commit: &Revision, of: &str) -> anyhow::Result<bool> {
        self.git.contains(commit, of)
    }

    /// Commits of a range in a line each, newest first.
    pub(super) fn log(&self, range: &str) -> anyhow::Result<Vec<String>> {
        let shown = self
            .git
            .ask(&["log", "--oneline", "--no-decorate", "--no-color", range])?;
        Ok(shown.lines().map(str::to_owned).collect())
    }

    /// The text of a file of the clone.
    pub(super) fn read(&self, path: &str) -> anyhow::Result<String> {
        fs::read_to_string(self.root.place(path)?).with_context(|| format!("failed to read {path}"))
    }

    /// Whether a path is there, committed or not.
    pub(super) fn has(&self, path: &str) -> anyhow::Result<bool> {
        Ok(fs::symlink_metadata(self.root.place(path)?).is_ok())
    }

    fn commit(&self, change: &Change, allow_staged: bool) -> anyhow::Result<String> {
        self.check(change, allow_staged)?;
        let before = self.write(change)?;
        let committed = self.record(change);
        if let Err(error) = committed {
            self.undo(change, before);
            return Err(error.context("nothing was changed"));
        }
        self.git.ask(&["rev-parse", "HEAD"])
    }

    /// Refuses to commit what is not this change alone, and as nobody.
    fn check(&self, change: &Change, allow_staged: bool) -> anyhow::Result<()> {
        for ident in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            self.git
                .ask(&["var", ident])
                .context("git does not know who you are; say so with git config --global user.name and user.email")?;
        }
        if !allow_staged && !self.git.holds(&["diff", "--cached", "--quiet"])? {
            bail!(
                "other changes are staged in {}; commit them, unstage them with git restore --staged, or leave \
                 them out of this commit with --allow-staged",
                self.root().display()
            );
        }
        for edit in &change.edits {
            self.root.place(&edit.path)?;
            let status = self
                .git
                .ask(&["status", "--porcelain", "--ignored", "--", &edit.path])?;
            if !status.is_empty() {
                bail!(
                    "{} has changes that are not committed; commit or remove them first",
                    edit.path
                );
            }
        }
        Ok(())
    }

    /// Writes the files. What stood there before is given back.
    fn write(&self, change: &Change) -> anyhow::Result<Vec<Option<Vec<u8>>>> {
        let mut before = Vec::with_capacity(change.edits.len());
        for edit in &change.edits {
            let path = self.root.place(&edit.path)?;
            before.push(match fs::read(&path) {
                Ok(content) => Some(content),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => {
                    self.undo(change, before);
                    return Err(error).with_context(|| format!("failed to read {}", edit.path));
                }
            });
            let written = match &edit.content {
                Some(content) => self.root.write(&edit.path, content),
                None => fs::remove_file(&path).with_context(|| format!("failed to remove {}", edit.path)),
            };
            if let Err(error) = written {
                self.undo(change, before);
                return Err(error);
            }
        }
        Ok(before)
    }

    fn record(&self, change: &Change) -> anyhow::Result<()> {
        let paths: Vec<_> = change.edits.iter().map(|edit| edit.path.as_str()).collect();
        if !paths.is_empty() {
            self.git.ask(&[&["add", "--all", "--"], paths.as_slice()].concat())?;
        }
        let message = message(change);
        let mut arguments = vec!["commit", "--quiet", "--cleanup=verbatim", "-m", &message, "--only"];
        if paths.is_empty() {
            arguments.push("--allow-empty");
        }
        arguments.push("--");
        arguments.extend(paths);
        self.git.run(&arguments, Shown::Aside)
    }

    /// Puts back what stood there. What cannot be put back stays as it is, and git shows it.
    fn undo(&self, change: &Change, before: Vec<Option<Vec<u8>>>) {
        for (edit, before) in change.edits.iter().zip(before) {
            let restored = match before {
                Some(content) => self.root.write(&edit.path, &content),
                None => self.root.place(&edit.path).and_then(|path| Ok(fs::remove_file(path)?)),
            };
            if restored.is_ok() {
                drop(self.git.ask(&["reset", "--quiet", "--", &edit.path]));
            }
        }
    }

    /// Shows what would be committed, as git shows it: through an index and objects of its own, so that the
    /// clone is left alone.
    fn show(&self, change: &Change) -> anyhow::Result<()> {
        output::tell(&format!("Would commit on {}:\n\n", self.branch));
        for line in message(change).lines() {
            output::tell(&format!("    {line}\n"));
        }
        output::tell("\n");
        let aside = tempfile_folder()?;
        let objects = self
            .git
            .ask(&["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
        let shown = self.shown(change, &aside, objects.into());
        drop(fs::remove_dir_all(&aside));
        shown
    }

    fn shown(&self, change: &Change, aside: &Path, objects: PathBuf) -> anyhow::Result<()> {
        let git = Git::at(self.root())
            .with("GIT_INDEX_FILE", aside.join("index"))
            .with("GIT_OBJECT_DIRECTORY", aside.join("objects"))
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        fs::create_dir(aside.join("objects")).context("failed to make a folder for the diff")?;
        git.ask(&["read-tree", "HEAD"])?;
        for edit in &change.edits {
            self.root.place(&edit.path)?;
            match &edit.content {
                Some(content) => {
                    let id = git.ask_with(&["hash-object", "-w", "--stdin"], content)?;
                    let entry = format!("100644,{id},{}", edit.path);
                    git.ask(&["update-index", "--add", "--cacheinfo", &entry])?
                }
                None => git.ask(&["update-index", "--force-remove", "--", &edit.path])?,
            };
        }
        git.run(&["--no-pager", "diff", "--cached", "HEAD"], Shown::Answer)
    }
}

/// Subject, body, trailers.
fn message(change: &Change) -> String {
    let trailers: String = change
        .trailers
        .iter()
        .map(|(token, value)| format!("{token}: {value}\n"))
        .collect();
    let parts = [change.subject.trim(), change.body.trim(), trailers.trim()];
    let mut message = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    message.push('\n');
    message
}

/// A folder that nobody else can enter, removed by whoever made it.
fn tempfile_folder() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let base = std::env::temp_dir();
    for attempt in 0..100 {
        let folder = base.join(format!("flotilla-{}-{attempt}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("failed to make {}", folder.display())),
        }
    }
    bail!("failed to make a folder in {}", base.display())
}
