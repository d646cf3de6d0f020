//! The chart of a release as files on this machine.
//!
//! In: a [`Source`]. Out: a path that helm takes: a folder, or an archive. Reading order: [`address`] (who may
//! see a credential) → [`http`] → [`index`] and [`registry`] → [`kept`] (what an agent without network uses).
//! Helm itself fetches nothing: it hands credentials to another port of the same host, and checks no digest of
//! an index.

mod address;
mod credentials;
mod http;
mod index;
mod kept;
mod registry;
mod version;

use std::path::{Path, PathBuf};

use ::http::Uri;
use kube::Client;
use render::chart::ChartFiles;

use self::http::{Fetcher, Refused};
use super::wanted::{Repository, Source};
use crate::limits::{CHART_BYTES_MAX, CHART_INDEX_BYTES_MAX};

pub(super) use self::credentials::CredentialError;
pub(super) use self::kept::Kept;

/// Why there is no chart.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChartError {
    /// The Secret of the repository is of no use.
    #[error("failed to read the repository's Secret")]
    Credential(#[source] CredentialError),
    /// The repository gave nothing.
    #[error("failed to fetch {address}")]
    Fetch {
        /// What was asked for.
        address: String,
        /// Why.
        #[source]
        source: Refused,
    },
    /// The repository has no such chart or version, or what it has makes no sense.
    #[error("{0}")]
    Absent(String),
    /// The chart is not the one that the repository names.
    #[error("{address} has digest {found}, and the repository says {expected}")]
    Tampered {
        /// What was fetched.
        address: String,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
    },
    /// A path of the chart folder leaves it.
    #[error("the chart has a file {0:?}, which is no path inside it")]
    Outside(String),
    /// It could not be put on this machine.
    #[error("failed to write the chart")]
    Write(#[source] std::io::Error),
}

/// Puts the chart into `folder`, and gives its path.
pub(super) async fn bring(source: &Source, client: &Client, kept: &Kept, folder: &Path) -> Result<PathBuf, ChartError> {
    match source {
        Source::Folder(files) => {
            let (files, place) = (files.clone(), folder.join("chart"));
            write(move || write_folder(&files, &place)).await
        }
        Source::Repository(repository) => {
            let archive = archive(repository, client, kept).await?;
            let place = folder.join("chart.tgz");
            write(move || {
                std::fs::write(&place, &archive).map_err(ChartError::Write)?;
                Ok(place)
            })
            .await
        }
    }
}

/// Files are written where waiting for a disk stops nobody.
async fn write(work: impl FnOnce() -> Result<PathBuf, ChartError> + Send + 'static) -> Result<PathBuf, ChartError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(written) => written,
        Err(join) => Err(ChartError::Write(std::io::Error::other(join))),
    }
}

fn write_folder(files: &ChartFiles, place: &Path) -> Result<PathBuf, ChartError> {
    for (path, bytes) in files.iter() {
        let file = inside(place, path).ok_or_else(|| ChartError::Outside(path.to_owned()))?;
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(ChartError::Write)?;
        }
        std::fs::write(file, bytes).map_err(ChartError::Write)?;
    }
    Ok(place.to_owned())
}

/// A path below a folder, and never beside it.
fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    let is_name = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\']);
    path.split('/').all(is_name).then(|| folder.join(path))
}

/// The archive of a chart: as it was kept, or as its repository has it.
async fn archive(repository: &Repository, client: &Client, kept: &Kept) -> Result<Vec<u8>, ChartError> {
    let is_pinned = version::is_exact(&repository.version);
    if is_pinned && let Some(archive) = kept.read(repository).await {
        return Ok(archive);
    }
    match fetch(repository, client).await {
        Ok((address, archive)) => {
            if let Some(expected) = repository.digest {
                check(&address, &archive, &expected.to_string())?;
            }
            kept.keep(repository, &archive).await;
            Ok(archive)
        }
        Err(error @ ChartError::Fetch { .. }) => kept.read(repository).await.ok_or(error),
        Err(error) => Err(error),
    }
}

/// The archive, and where it was.
async fn fetch(repository: &Repository, client: &Client) -> Result<(String, Vec<u8>), ChartError> {
    let credentials = match &repository.secret {
        Some(secret) => credentials::read(client, secret)
            .await
            .map_err(ChartError::Credential)?,
        None => credentials::Credentials::default(),
    };
    if let Some(path) = repository.url.strip_prefix("oci://") {
        let scheme = if repository.plain_http { "http" } else { "https" };
        return registry::fetch(scheme, path, repository, credentials).await;
    }
    let base: Uri = address::parse(&format!("{}/", repository.url)).map_err(ChartError::Absent)?;
    let fetcher = Fetcher::new(&base, credentials).map_err(|source| failed(&base, source))?;
    let index = address::join(&base, "index.yaml").map_err(ChartError::Absent)?;
    let text = fetcher
        .file(&index, CHART_INDEX_BYTES_MAX)
        .await
        .map_err(|source| failed(&index, source))?;
    let entry = index::choose(&text, &repository.chart, &repository.version).map_err(ChartError::Absent)?;
    drop(text);
    let place = address::join(&base, &entry.url).map_err(ChartError::Absent)?;
    let archive = fetcher
        .file(&place, CHART_BYTES_MAX)
        .await
        .map_err(|source| failed(&place, source))?;
    let place = address::shown(&place);
    if let Some(expected) = entry.digest {
        check(&place, &archive, &expected)?;
    }
    Ok((place, archive))
}

fn failed(address: &Uri, source: Refused) -> ChartError {
    ChartError::Fetch {
        address: address::shown(address),
        source,
    }
}

/// Whether bytes have the digest that their repository says.
fn check(address: &str, bytes: &[u8], expected: &str) -> Result<(), ChartError> {
    let expected = expected.trim_start_matches("sha256:").to_ascii_lowercase();
    let found = render::Digest::of_bytes(bytes).short(64);
    if found == expected {
        return Ok(());
    }
    Err(ChartError::Tampered {
        address: address.to_owned(),
        found,
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_of_a_chart_leaves_its_folder() {
        let folder = Path::new("/tmp/run");
        assert_eq!(
            inside(folder, "templates/a.yaml"),
            Some(folder.join("templates/a.yaml"))
        );
        for bad in [
            "../a",
            "/etc/passwd",
            "a/../../b",
            "",
            "a//b",
            "./a",
            "a\\..\\b",
            "a/\0",
        ] {
            assert_eq!(inside(folder, bad), None, "{bad:?}");
        }
    }

    #[test]
    fn another_digest_is_another_chart() {
        let address = "https://a.example/x.tgz";
        let digest = render::Digest::of_bytes(b"chart").short(64);
        assert!(check(address, b"chart", &digest).is_ok());
        assert!(check(address, b"chart", &format!("sha256:{}", digest.to_uppercase())).is_ok());
        assert!(matches!(
            check(address, b"other", &digest),
            Err(ChartError::Tampered { .. })
        ));
    }
}
