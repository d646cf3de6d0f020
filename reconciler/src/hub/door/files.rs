//! What is made of small files, and made anew when they change. What cannot be read stands as it was.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fault::line;
use crate::hub::blocking::blocking;
use crate::limits::{DOOR_FILE_BYTES_MAX, DOOR_FILES_LOOK};

/// The newest that could be made of files.
#[derive(Debug)]
pub(super) struct Kept<T>(watch::Receiver<Arc<T>>);

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Files that are of no use.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// One of them could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// One of them is longer than anything of its kind.
    #[error("{} has more than {DOOR_FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// They do not hold what they should.
    #[error("{} cannot be used: {why}", path.display())]
    Content {
        /// The first of them.
        path: PathBuf,
        /// Why, without what they hold.
        why: String,
    },
}

impl<T: Send + Sync + 'static> Kept<T> {
    /// What never changes.
    #[cfg(test)]
    pub(super) fn fixed(value: T) -> Self {
        Self(watch::channel(Arc::new(value)).1)
    }

    /// Reads the files, and begins to follow them until shutdown. `make` gets their contents in order, and says why nothing
    /// can be made of them.
    pub(super) async fn follow<M>(files: Vec<PathBuf>, make: M, shutdown: CancellationToken) -> Result<Self, FileError>
    where
        M: Fn(&[Vec<u8>]) -> Result<T, String> + Send + 'static,
    {
        let mut contents = read(files.clone()).await?;
        let (newest, kept) = watch::channel(Arc::new(made(&files, &contents, &make)?));
        tokio::spawn(async move {
            let mut trouble = None;
            while shutdown
                .run_until_cancelled(tokio::time::sleep(DOOR_FILES_LOOK))
                .await
                .is_some()
            {
                let found = match read(files.clone()).await {
                    Ok(found) if found == contents => {
                        trouble = None;
                        continue;
                    }
                    Ok(found) => {
                        let value = made(&files, &found, &make);
                        contents = found;
                        value
                    }
                    Err(error) => Err(error),
                };
                match found {
                    Ok(value) => {
                        trouble = None;
                        newest.send_replace(Arc::new(value));
                        tracing::info!(path = %named(&files), "Took over changed files.");
                    }
                    // The same trouble is told once.
                    Err(error) => {
                        let error = line(&error);
                        if trouble.as_ref() != Some(&error) {
                            tracing::warn!(
                                error,
                                "Could not take over changed files; what they held before stands."
                            );
                            trouble = Some(error);
                        }
                    }
                }
            }
        });
        Ok(Self(kept))
    }
}

impl<T> Kept<T> {
    /// What is made of the files now.
    pub(super) fn now(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }
}

fn made<T>(
    files: &[PathBuf],
    contents: &[Vec<u8>],
    make: &impl Fn(&[Vec<u8>]) -> Result<T, String>,
) -> Result<T, FileError> {
    make(contents).map_err(|why| FileError::Content {
        path: files.first().cloned().unwrap_or_default(),
        why,
    })
}

fn named(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(", ")
}

async fn read(files: Vec<PathBuf>) -> Result<Vec<Vec<u8>>, FileError> {
    blocking(move || files.iter().map(|file| read_one(file)).collect()).await
}

/// One file, whole, if it is not too large.
pub(super) fn read_one(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |source| FileError::Read {
        path: path.to_owned(),
        source,
    };
    let mut content = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(DOOR_FILE_BYTES_MAX + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > DOOR_FILE_BYTES_MAX {
        return Err(FileError::TooLarge { path: path.to_owned() });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(contents: &[Vec<u8>]) -> Result<u32, String> {
        let text = String::from_utf8_lossy(&contents[0]);
        text.trim().parse().map_err(|_| "it holds no number".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn what_files_hold_is_taken_over_and_what_is_broken_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("number");
        let write = |text: &str| std::fs::write(&file, text).expect("it is writable");
        let shutdown = CancellationToken::new();
        let follow = || Kept::follow(vec![file.clone()], number, shutdown.clone());
        assert!(follow().await.is_err(), "a file that is missing is told at the start");
        write("one");
        let told = follow().await.map(|_| ()).expect_err("it is no number").to_string();
        assert!(told.ends_with("number cannot be used: it holds no number"), "{told}");
        write("1");
        let mut kept = follow().await.expect("it is a number");
        write("2");
        kept.0.changed().await.expect("it is followed");
        assert_eq!(*kept.now(), 2);
        write("two");
        tokio::time::sleep(DOOR_FILES_LOOK * 3).await;
        std::fs::remove_file(&file).expect("it is there");
        tokio::time::sleep(DOOR_FILES_LOOK * 3).await;
        assert_eq!(*kept.now(), 2, "what was there before stands");
        write("3");
        kept.0.changed().await.expect("it is followed");
        assert_eq!(*kept.now(), 3);
    }
}
