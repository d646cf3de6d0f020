//! Archives of charts on disk, so that an agent without network can install again what it had.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use render::Digest;
use serde_json::json;
use tracing::debug;

use crate::apply::helm::wanted::Repository;
use crate::limits::{CHARTS_KEPT_BYTES_MAX, CHARTS_KEPT_MAX};

/// What stands before an archive.
const DIGEST_BYTES: usize = 32;

/// The archives that are kept; nothing is, where there is no folder.
#[derive(Clone, Debug)]
pub(in crate::apply::helm) struct Kept {
    folder: Option<PathBuf>,
}

impl Kept {
    /// In a folder.
    pub(in crate::apply::helm) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// The archive that was last fetched for exactly this.
    pub(super) async fn read(&self, repository: &Repository) -> Option<Vec<u8>> {
        let path = self.folder.as_ref()?.join(name(repository));
        tokio::task::spawn_blocking(move || read(&path)).await.ok().flatten()
    }

    /// Keeps an archive. A disk that does not take it costs the next fetch.
    pub(super) async fn keep(&self, repository: &Repository, archive: &[u8]) {
        let Some(folder) = self.folder.clone() else { return };
        let (name, archive) = (name(repository), archive.to_vec());
        let kept = tokio::task::spawn_blocking(move || {
            write(&folder, &name, &archive)?;
            shrink(&folder, CHARTS_KEPT_MAX, CHARTS_KEPT_BYTES_MAX)
        });
        if let Ok(Err(error)) = kept.await {
            debug!(%error, "Failed to keep a chart.");
        }
    }
}

fn name(repository: &Repository) -> String {
    let Repository {
        url, chart, version, ..
    } = repository;
    let digest = Digest::of_value(&json!({"repo": url, "chart": chart, "version": version}));
    format!("{}.tgz", digest.short(32))
}

/// The digest stands before the archive: half an archive is none.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut digest = fs::read(path).ok()?;
    if digest.len() < DIGEST_BYTES {
        return None;
    }
    let archive = digest.split_off(DIGEST_BYTES);
    (Digest::of_bytes(&archive).as_bytes() == digest.as_slice()).then_some(archive)
}

fn write(folder: &Path, name: &str, archive: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".{name}"));
    let mut bytes = Digest::of_bytes(archive).as_bytes().to_vec();
    bytes.extend_from_slice(archive);
    fs::write(&beside, bytes)?;
    fs::rename(beside, folder.join(name))
}

/// Takes the oldest away until there are few enough.
fn shrink(folder: &Path, count_max: usize, bytes_max: u64) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let about = file.metadata()?;
        files.push((about.modified()?, about.len(), file.path()));
    }
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, size, _)| size).sum();
    let mut count = files.len();
    for (_, size, path) in files {
        if count <= count_max && bytes <= bytes_max {
            break;
        }
        fs::remove_file(path)?;
        (count, bytes) = (count - 1, bytes.saturating_sub(size));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(version: &str) -> Repository {
        Repository {
            url: "https://a.example".to_owned(),
            chart: "redis".to_owned(),
            version: version.to_owned(),
            digest: None,
            plain_http: false,
            secret: None,
        }
    }

    #[tokio::test]
    async fn what_was_fetched_is_there_without_network() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::new(Some(folder.path().join("charts")));
        assert_eq!(kept.read(&repository("1.0.0")).await, None);
        kept.keep(&repository("1.0.0"), b"archive").await;
        assert_eq!(kept.read(&repository("1.0.0")).await.as_deref(), Some(&b"archive"[..]));
        assert_eq!(kept.read(&repository("1.0.1")).await, None);
        let path = folder.path().join("charts").join(name(&repository("1.0.0")));
        let bytes = fs::read(&path).expect("it is there");
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("it is writable");
        assert_eq!(kept.read(&repository("1.0.0")).await, None, "half an archive is none");
    }

    #[test]
    fn the_oldest_go_first() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "b", "c"] {
            write(folder.path(), name, &[0; 68]).expect("it is writable");
        }
        let old = SystemTime::UNIX_EPOCH;
        let file = fs::File::options()
            .write(true)
            .open(folder.path().join("b"))
            .expect("it is there");
        file.set_modified(old).expect("its time can be set");
        shrink(folder.path(), 2, 1_000).expect("it is a folder");
        assert!(!folder.path().join("b").exists());
        shrink(folder.path(), 2, 100).expect("it is a folder");
        assert_eq!(fs::read_dir(folder.path()).expect("it is a folder").count(), 1);
    }
}
