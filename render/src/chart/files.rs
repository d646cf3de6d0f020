//! The files of a chart: few enough, small enough, and at paths that stay inside their folder.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::CHART_FILE;
use crate::digest::Digest;
use crate::limits::{CHART_BYTES_MAX, CHART_FILES_MAX, FILE_NAME_BYTES_MAX};
use crate::yaml;

/// The files of one chart by their path in its folder, sorted. `Chart.yaml` is among them.
///
/// In JSON a map from path to base64: a packed subchart is no text.
#[derive(Clone, PartialEq, Eq)]
pub struct ChartFiles {
    files: BTreeMap<Arc<str>, Arc<[u8]>>,
    digest: Digest,
}

/// Why files are no chart that could travel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChartFiles {
    /// More files than travel.
    #[error("it has {0} files, and at most {CHART_FILES_MAX} are taken")]
    TooMany(usize),
    /// More bytes than travel.
    #[error("its files have {0} bytes, and at most {CHART_BYTES_MAX} are taken")]
    TooLarge(usize),
    /// A path that leaves the folder, or that some file system refuses.
    #[error("{0:?} cannot be the path of a chart's file")]
    Path(String),
    /// A path that another file needs as a folder.
    #[error("{0:?} is a file and a folder")]
    FileAndFolder(String),
    /// Not base64.
    #[error("{0:?} is not base64")]
    Encoding(String),
    /// No chart.
    #[error("it has no {CHART_FILE}")]
    NoChartFile,
}

impl ChartFiles {
    /// A chart of these files.
    ///
    /// # Errors
    ///
    /// Any error means that none of them is to be used.
    pub fn new(files: BTreeMap<Arc<str>, Arc<[u8]>>) -> Result<Self, InvalidChartFiles> {
        if files.len() > CHART_FILES_MAX {
            return Err(InvalidChartFiles::TooMany(files.len()));
        }
        let bytes = files.values().map(|bytes| bytes.len()).sum();
        if bytes > CHART_BYTES_MAX {
            return Err(InvalidChartFiles::TooLarge(bytes));
        }
        if let Some(path) = files.keys().find(|path| !is_plain_path(path)) {
            return Err(InvalidChartFiles::Path(path.to_string()));
        }
        let is_file = |folder: &&str| files.contains_key(*folder);
        if let Some(folder) = files.keys().flat_map(|path| folders_above(path)).find(is_file) {
            return Err(InvalidChartFiles::FileAndFolder(folder.to_owned()));
        }
        if !files.contains_key(CHART_FILE) {
            return Err(InvalidChartFiles::NoChartFile);
        }
        let mut listed = Vec::with_capacity(files.len() * 96);
        for (path, bytes) in &files {
            listed.extend_from_slice(path.as_bytes());
            listed.push(0);
            listed.extend_from_slice(Digest::of_bytes(bytes).as_bytes());
        }
        let digest = Digest::of_bytes(&listed);
        Ok(Self { files, digest })
    }

    /// The files by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_ref(), bytes.as_ref()))
    }

    /// One file.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(AsRef::as_ref)
    }

    /// Over every path and every byte: what tells two charts apart.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Text of a field of `Chart.yaml`; `None` where it is not there or no text.
    pub fn said(&self, field: &str) -> Option<String> {
        let text = yaml::decode(self.file(CHART_FILE)?).ok()?;
        let documents = yaml::read(&text).ok()?;
        documents.first()?.value.get(field)?.as_str().map(str::to_owned)
    }
}

/// Whether a path stays inside its folder on every system that it is written to.
fn is_plain_path(path: &str) -> bool {
    let plain = |part: &str| {
        !matches!(part, "" | "." | "..") && part.len() <= FILE_NAME_BYTES_MAX && !part.contains(['\\', '\0'])
    };
    path.split('/').all(plain)
}

fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// Without what they say, which may be a Secret.
impl fmt::Debug for ChartFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChartFiles")
            .field("files", &self.files.len())
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl Serialize for ChartFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(path, bytes)| (path, STANDARD.encode(bytes))))
    }
}

impl<'de> Deserialize<'de> for ChartFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = BTreeMap::<String, String>::deserialize(deserializer)?;
        let mut files = BTreeMap::new();
        for (path, text) in encoded {
            let bytes = STANDARD.decode(text);
            let bytes = bytes.map_err(|_| serde::de::Error::custom(InvalidChartFiles::Encoding(path.clone())))?;
            files.insert(Arc::from(path), Arc::from(bytes));
        }
        Self::new(files).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> BTreeMap<Arc<str>, Arc<[u8]>> {
        let file = |path: &&str| (Arc::from(*path), Arc::from(path.as_bytes()));
        paths.iter().map(file).collect()
    }

    #[track_caller]
    fn check(paths: &[&str], expected: Result<(), InvalidChartFiles>) {
        let mut files = files(paths);
        files.insert(CHART_FILE.into(), Arc::from(&b"name: web\n"[..]));
        assert_eq!(ChartFiles::new(files).map(drop), expected, "{paths:?}");
    }

    #[test]
    fn a_path_of_a_chart_stays_inside_its_folder() {
        let bad = |path: &str| Err(InvalidChartFiles::Path(path.to_owned()));
        check(&["templates/a.yaml", "templates/_b.tpl", ".helmignore"], Ok(()));
        for path in ["../a", "/a", "a//b", "a/./b", "a/../../b", "a\\b", "a\0", "a/"] {
            check(&[path], bad(path));
        }
        check(&["a", "a/b"], Err(InvalidChartFiles::FileAndFolder("a".to_owned())));
        assert_eq!(
            ChartFiles::new(files(&["values.yaml"])).expect_err("it is no chart"),
            InvalidChartFiles::NoChartFile
        );
    }

    #[test]
    fn a_chart_is_bounded_in_files_and_in_bytes() {
        let many: Vec<String> = (0..CHART_FILES_MAX).map(|number| format!("files/{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&many, Err(InvalidChartFiles::TooMany(CHART_FILES_MAX + 1)));
        check(&many[1..], Ok(()));
        let mut large = files(&[CHART_FILE]);
        large.insert("big".into(), vec![0; CHART_BYTES_MAX].into());
        let refused = ChartFiles::new(large).expect_err("it is too large");
        assert_eq!(refused, InvalidChartFiles::TooLarge(CHART_BYTES_MAX + CHART_FILE.len()));
    }

    #[test]
    fn files_read_back_from_json_with_every_byte() {
        let mut bytes = files(&["templates/a.yaml"]);
        bytes.insert(CHART_FILE.into(), Arc::from(&b"name: web\nversion: 1.0.0\n"[..]));
        bytes.insert("charts/sub.tgz".into(), Arc::from(&[0x1f, 0x8b, 0, 255][..]));
        let chart = ChartFiles::new(bytes).expect("it is a chart");
        assert_eq!(chart.said("version").as_deref(), Some("1.0.0"));
        let text = serde_json::to_string(&chart).expect("it is JSON");
        let read: ChartFiles = serde_json::from_str(&text).expect("what is written is read");
        assert_eq!((read.digest(), &read), (chart.digest(), &chart));
        for wrong in [r#"{"Chart.yaml":"?"}"#, r#"{"Chart.yaml":"","../a":""}"#, "{}"] {
            assert!(serde_json::from_str::<ChartFiles>(wrong).is_err(), "{wrong}");
        }
    }
}
