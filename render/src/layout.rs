//! The form of a decision as files of a commit, the same in `rendered` and `released`.
//!
//! ```text
//! release.yaml                           what led to it
//! placements/<namespace>/<name>.yaml     cluster → variant, replicas, reasons
//! units/<namespace>/<name>/<variant>/…   one file per object, the files of a chart in a folder beside it, and
//!                                        apply.yaml where the unit says how it is applied
//! ```
//!
//! Files elsewhere are somebody else's and are left alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::chart::{ChartFiles, InvalidChartFiles, folder_of};
use crate::describe::{
    CarriedStep, Content, DescribedObject, Description, InvalidDescription, is_chart, is_encrypted, key_of,
};
use crate::limits::FILE_NAME_BYTES_MAX;
use crate::model::{ApplyPolicy, FLEET_API_VERSION};
use crate::name::{ObjectKey, UnitKey, VariantName};
use crate::published::{Published, ReleaseRecord, UnitPlacement};
use crate::yaml;

/// Path of the record.
pub const RELEASE_FILE: &str = "release.yaml";
/// Folder of the placements.
pub const PLACEMENTS_FOLDER: &str = "placements";
/// Folder of the contents.
pub const UNITS_FOLDER: &str = "units";

/// How a content is applied; an object's file has `_` in its name.
const APPLY_FILE: &str = "apply.yaml";

const OVERRIDES_SUFFIX: &str = ".overrides.yaml";
const CHART_SUFFIX: &str = ".chart";

/// A commit whose files are not in this form. Nothing may be concluded from it.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A file is not readable YAML of its kind.
    #[error("failed to read {path}: {message}")]
    Read {
        /// Its path.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// A placement file's name is not a unit's.
    #[error("{path} is not named after a unit")]
    Unit {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: crate::name::InvalidName,
    },
    /// A placement names a variant that it does not define.
    #[error("{path} places cluster {cluster} with variant {variant}, which it does not define")]
    Variant {
        /// The placement's path.
        path: String,
        /// The cluster.
        cluster: String,
        /// The variant.
        variant: String,
    },
    /// The files of a content are not one.
    #[error("the files are not one description")]
    Content(#[source] InvalidDescription),
    /// The files of a chart are none.
    #[error("failed to read the chart in {path}")]
    Chart {
        /// Their folder.
        path: String,
        /// What is wrong.
        #[source]
        source: InvalidChartFiles,
    },
    /// Placements without `release.yaml`, or the other way round.
    #[error("{RELEASE_FILE} is missing beside placements")]
    NoRecord,
}

/// Folder of a variant's content.
pub fn unit_folder(unit: &UnitKey, variant: &VariantName) -> String {
    format!("{UNITS_FOLDER}/{}/{}/{variant}", unit.namespace(), unit.name())
}

/// Path and text of `release.yaml`.
pub fn release_file(record: &ReleaseRecord) -> (String, String) {
    (
        RELEASE_FILE.to_owned(),
        yaml::write(&with_kind("Release", None, record)),
    )
}

/// Path of a unit's placement.
pub fn placement_path(unit: &UnitKey) -> String {
    format!("{PLACEMENTS_FOLDER}/{}/{}.yaml", unit.namespace(), unit.name())
}

/// Path and text of a unit's placement.
pub fn placement_file(unit: &UnitKey, placement: &UnitPlacement) -> (String, String) {
    (
        placement_path(unit),
        yaml::write(&with_kind("Placement", Some(unit), placement)),
    )
}

fn with_kind(kind: &str, unit: Option<&UnitKey>, body: &impl Serialize) -> Value {
    let body = serde_json::to_value(body).expect("records have text keys and plain fields");
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), FLEET_API_VERSION.into());
    object.insert("kind".to_owned(), kind.into());
    if let Some(unit) = unit {
        object.insert(
            "metadata".to_owned(),
            json!({"namespace": unit.namespace(), "name": unit.name()}),
        );
    }
    if let Value::Object(fields) = body {
        object.extend(fields);
    }
    Value::Object(object)
}

/// Reads the record and every placement. Contents are not looked at.
pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Published, LayoutError> {
    let mut published = Published::default();
    for (path, bytes) in files {
        if path == RELEASE_FILE {
            published.record = Some(parse(path, bytes)?);
        } else if let Some(unit) = path
            .strip_prefix(PLACEMENTS_FOLDER)
            .and_then(|rest| rest.strip_prefix('/'))
            .and_then(|rest| rest.strip_suffix(".yaml"))
        {
            let unit: UnitKey = unit.parse().map_err(|source| LayoutError::Unit {
                path: path.to_owned(),
                source,
            })?;
            published.units.insert(unit, read_placement(path, bytes)?);
        }
    }
    if published.record.is_none() && !published.units.is_empty() {
        return Err(LayoutError::NoRecord);
    }
    Ok(published)
}

/// Reads one placement file.
pub fn read_placement(path: &str, bytes: &[u8]) -> Result<UnitPlacement, LayoutError> {
    let placement: UnitPlacement = parse(path, bytes)?;
    match placement
        .clusters
        .iter()
        .find(|(_, entry)| !placement.variants.contains_key(&entry.variant))
    {
        Some((cluster, entry)) => Err(LayoutError::Variant {
            path: path.to_owned(),
            cluster: cluster.to_string(),
            variant: entry.variant.to_string(),
        }),
        None => Ok(placement),
    }
}

fn parse<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, LayoutError> {
    serde_json::from_value(document(path, bytes)?).map_err(|error| unreadable(path, error))
}

fn document(path: &str, bytes: &[u8]) -> Result<Value, LayoutError> {
    let text = std::str::from_utf8(bytes).map_err(|error| unreadable(path, error))?;
    let mut documents = yaml::read(text).map_err(|error| unreadable(path, error))?;
    match documents.len() {
        1 => Ok(documents.remove(0).value),
        count => Err(unreadable(
            path,
            format!("it has {count} documents, and one is expected"),
        )),
    }
}

fn unreadable(path: &str, message: impl ToString) -> LayoutError {
    LayoutError::Read {
        path: path.to_owned(),
        message: message.to_string(),
    }
}

/// File names and bytes of a content, sorted by name. A chart's files are in a folder beside its HelmChart, as they are
/// in the repository, so that a change of one reads as such.
pub fn description_files(description: &Description) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::with_capacity(description.objects.len());
    for object in &description.objects {
        let stem = file_stem(&object.key);
        match &object.content {
            Content::Plain { object } => files.push((format!("{stem}.yaml"), yaml::write(object).into_bytes())),
            Content::Chart { object, files: chart } => {
                files.push((format!("{stem}.yaml"), yaml::write(object).into_bytes()));
                let path = |path: &str| format!("{stem}{CHART_SUFFIX}/{path}");
                files.extend(chart.iter().map(|(name, bytes)| (path(name), bytes.to_vec())));
            }
            Content::Encrypted {
                original, overrides, ..
            } => {
                files.push((format!("{stem}.yaml"), original.as_bytes().to_vec()));
                if !overrides.is_empty() {
                    let carried = Carried {
                        overrides: overrides.clone(),
                    };
                    let text = yaml::write(&with_kind("CarriedOverrides", None, &carried));
                    files.push((format!("{stem}{OVERRIDES_SUFFIX}"), text.into_bytes()));
                }
            }
        }
    }
    if !description.apply.is_default() {
        let text = yaml::write(&with_kind("ApplyPolicy", None, &description.apply));
        files.push((APPLY_FILE.to_owned(), text.into_bytes()));
    }
    files.sort();
    files
}

#[derive(Serialize, Deserialize)]
struct Carried {
    overrides: Vec<CarriedStep>,
}

/// Reads a content back. The caller compares its digest with the one that was promised.
pub fn description_from_files<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Description, LayoutError> {
    let files: BTreeMap<&str, &[u8]> = files.into_iter().collect();
    let mut objects = Vec::with_capacity(files.len());
    let mut apply = ApplyPolicy::default();
    for (name, bytes) in &files {
        if *name == APPLY_FILE {
            apply = parse(name, bytes)?;
            continue;
        }
        let is_object = !name.ends_with(OVERRIDES_SUFFIX) && !name.contains('/');
        let Some(stem) = name.strip_suffix(".yaml").filter(|_| is_object) else {
            continue;
        };
        let value = document(name, bytes)?;
        let key = key_of(&value).ok_or_else(|| unreadable(name, "it has no apiVersion, kind and metadata.name"))?;
        let content = if is_encrypted(&value) {
            let carried = format!("{stem}{OVERRIDES_SUFFIX}");
            let overrides = match files.get(carried.as_str()) {
                Some(bytes) => parse::<Carried>(&carried, bytes)?.overrides,
                None => Vec::new(),
            };
            let original = std::str::from_utf8(bytes).map_err(|error| unreadable(name, error))?;
            Content::Encrypted {
                key: key.clone(),
                original: original.into(),
                overrides,
            }
        } else if is_chart(&key) && folder_of(&value).is_some() {
            Content::Chart {
                object: Arc::new(value),
                files: Arc::new(chart_files(&files, format!("{stem}{CHART_SUFFIX}"))?),
            }
        } else {
            Content::Plain {
                object: Arc::new(value),
            }
        };
        objects.push(DescribedObject {
            key,
            content,
            provenance: Vec::new(),
        });
    }
    Description::governed(objects, apply).map_err(LayoutError::Content)
}

/// The files of the chart in a folder.
fn chart_files(files: &BTreeMap<&str, &[u8]>, folder: String) -> Result<ChartFiles, LayoutError> {
    let below = format!("{folder}/");
    let of_chart = files.range(below.as_str()..).map_while(|(path, bytes)| {
        let path = path.strip_prefix(&below)?;
        Some((Arc::from(path), Arc::from(*bytes)))
    });
    ChartFiles::new(of_chart.collect()).map_err(|source| LayoutError::Chart { path: folder, source })
}

/// File name of an object in its variant's folder.
pub fn object_file(key: &ObjectKey) -> String {
    format!("{}.yaml", file_stem(key))
}

/// `Kind.group_namespace_name`, with the parts that are empty left out. Whatever is not a letter, a digit,
/// `.` or `-` is escaped, so that `_` only separates; a long name is cut and told apart by a digest.
fn file_stem(key: &ObjectKey) -> String {
    let mut stem = escaped(&key.kind);
    if !key.group.is_empty() {
        stem = format!("{stem}.{}", escaped(&key.group));
    }
    if !key.namespace.is_empty() {
        stem = format!("{stem}_{}", escaped(&key.namespace));
    }
    stem = format!("{stem}_{}", escaped(&key.name));
    if stem.len() > FILE_NAME_BYTES_MAX {
        let digest = crate::Digest::of_bytes(key.to_string().as_bytes()).short(16);
        stem.truncate(FILE_NAME_BYTES_MAX - digest.len() - 1);
        stem = format!("{stem}_{digest}");
    }
    stem
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests;
