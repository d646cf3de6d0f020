//! Files below one folder: the one function through which a path in somebody's clone is made.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};

/// A folder that nothing written through it can leave.
pub(super) struct Rooted {
    root: PathBuf,
}

impl Rooted {
    /// That folder.
    pub(super) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.root
    }

    /// Where a path from the root is. Refused are paths that lead out, into `.git`, or through a symlink, and
    /// those that stand for something that is no file.
    pub(super) fn place(&self, path: &str) -> anyhow::Result<PathBuf> {
        let mut at = self.root.clone();
        let mut names = Path::new(path).components().peekable();
        if names.peek().is_none() {
            bail!("an empty path names no file");
        }
        while let Some(name) = names.next() {
            let Component::Normal(name) = name else {
                bail!("{path:?} leads out of {}", self.root.display());
            };
            if name.eq_ignore_ascii_case(".git") {
                bail!("{path:?} is Git's own");
            }
            at.push(name);
            match fs::symlink_metadata(&at) {
                Ok(found) if found.is_symlink() => bail!("{} is a symlink, and is not written through", at.display()),
                Ok(found) if found.is_dir() != names.peek().is_some() => {
                    let is = if found.is_dir() { "a folder" } else { "no folder" };
                    bail!("{} is {is}", at.display())
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("failed to look at {}", at.display())),
            }
        }
        Ok(at)
    }

    /// Writes a file, with the folders above it. It is whole or as it was.
    pub(super) fn write(&self, path: &str, content: &[u8]) -> anyhow::Result<()> {
        let target = self.place(path)?;
        let written = || {
            let folder = target.parent().unwrap_or(&self.root);
            fs::create_dir_all(folder)?;
            // Beside it, so that the rename cannot cross file systems; it takes the place of what is there.
            let aside = folder.join(format!(".flotilla-{}.tmp", std::process::id()));
            fs::write(&aside, content)
                .and_then(|()| fs::rename(&aside, &target))
                .inspect_err(|_| drop(fs::remove_file(&aside)))
        };
        written().with_context(|| format!("failed to write {}", target.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_its_root() {
        let (folder, other) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let root = Rooted::at(folder.path());
        fs::create_dir(folder.path().join("feeds")).expect("it is writable");
        fs::write(folder.path().join("file"), "").expect("it is writable");
        std::os::unix::fs::symlink(other.path(), folder.path().join("out")).expect("it is writable");
        std::os::unix::fs::symlink(other.path().join("x"), folder.path().join("link.yaml")).expect("it is writable");
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "feeds/../../x",
            ".",
            "./x/..",
            "out/x",
            "link.yaml",
            ".git/config",
            "feeds/.GIT/hooks/x",
            "feeds",
            "file/x",
        ] {
            assert!(root.place(path).is_err(), "{path:?}");
            assert!(root.write(path, b"x").is_err(), "{path:?}");
        }
        assert_eq!(fs::read_dir(other.path()).expect("it is readable").count(), 0);
    }

    #[test]
    fn a_file_is_written_whole_with_its_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Rooted::at(folder.path());
        for text in ["one", "two"] {
            root.write("a/b/c.yaml", text.as_bytes()).expect("it is writable");
            let read = fs::read_to_string(folder.path().join("a/b/c.yaml")).expect("it is there");
            assert_eq!(read, text);
        }
        let left = fs::read_dir(folder.path().join("a/b")).expect("it is readable").count();
        assert_eq!(left, 1, "nothing is left beside it");
    }
}
