//! Charts that stand in the repository: the folder that a HelmChart names, as the files that travel with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::catalog::{Catalog, Loaded};
use super::index::objects;
use super::lines::Lines;
use super::memo::LoadMemo;
use crate::chart::{CHART_FILE, ChartFiles, IGNORE_FILE, IgnoreRules, InvalidChartFiles, folder_of};
use crate::describe::is_chart;
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::nearest::nearest;
use crate::tree::{SourceEntry, SourceFile, SourceTree};
use crate::yaml;

/// What stands at the beginning of a file that Git LFS took out of the repository.
pub(super) const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The charts of one revision, by the folder that a HelmChart names.
#[derive(Debug, Default)]
pub(super) struct Charts {
    /// Folders end with a slash.
    folders: BTreeMap<String, Result<Arc<ChartFiles>, Problem>>,
}

/// Why a folder is no chart that could be delivered.
#[derive(Clone, Debug)]
struct Problem {
    reason: &'static str,
    message: String,
    hint: String,
}

/// The folder of the chart in this repository that a manifest orders, ending with a slash.
pub(super) fn ordered(object: &ManifestObject) -> Option<String> {
    is_chart(&object.key).then(|| folder_of(&object.value)).flatten()
}

/// Folders of charts that files name, each with a `Chart.yaml`.
pub(super) fn named<'l>(tree: &SourceTree, files: impl Iterator<Item = &'l Loaded>) -> BTreeSet<String> {
    let ordered = files
        .flat_map(|loaded| objects(&loaded.file.items))
        .filter_map(|object| ordered(object));
    let is_chart = |folder: &String| tree.files.contains_key(format!("{folder}{CHART_FILE}").as_str());
    ordered.filter(is_chart).collect()
}

impl Charts {
    /// Reads the folders of every HelmChart.
    pub(super) fn read(catalog: &Catalog<'_>, memo: &mut LoadMemo) -> Self {
        let mut folders = BTreeMap::new();
        for object in catalog.files.values().flat_map(|loaded| objects(&loaded.file.items)) {
            if let Some(folder) = ordered(object) {
                folders
                    .entry(folder)
                    .or_insert_with_key(|folder| read(catalog.tree, folder, memo));
            }
        }
        Self { folders }
    }

    /// The object with its chart's files, or what keeps it from being delivered.
    pub(super) fn complete(
        &self,
        object: &Arc<ManifestObject>,
        lines: &mut Lines<'_>,
    ) -> Result<Arc<ManifestObject>, Box<Finding>> {
        let Some(chart) = ordered(object).and_then(|folder| self.folders.get(&folder)) else {
            return Ok(Arc::clone(object));
        };
        let mut finding = |field: &str, problem: &Problem| {
            let line = lines.find(&object.file, object.line, field);
            let finding = Finding::error(problem.reason, problem.message.as_str()).at(&*object.file, line);
            Box::new(finding.field(field).hint(problem.hint.as_str()))
        };
        let chart = chart.as_ref().map_err(|problem| finding("spec.path", problem))?;
        let wanted = object.value.pointer("/spec/chart").and_then(|name| name.as_str());
        let name = chart.said("name").unwrap_or_default();
        match wanted {
            Some(wanted) if wanted != name => Err(finding(
                "spec.chart",
                &Problem {
                    reason: "ChartNameDiffers",
                    message: format!("the chart in that folder is {name:?}, and not {wanted:?}"),
                    hint: "correct it or leave it out: the name stands in Chart.yaml".to_owned(),
                },
            )),
            _ => Ok(Arc::new(object.with_chart(Arc::clone(chart)))),
        }
    }
}

fn problem(reason: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem {
        reason,
        message: message.into(),
        hint: hint.into(),
    }
}

fn read(tree: &SourceTree, folder: &str, memo: &mut LoadMemo) -> Result<Arc<ChartFiles>, Problem> {
    let entries = || below(tree, folder);
    if entries().next().is_none() {
        let message = format!("there is no folder {folder:?}");
        return Err(problem("ChartMissing", message, meant(tree, folder)));
    }
    let Some(SourceEntry::File(_)) = tree.files.get(format!("{folder}{CHART_FILE}").as_str()) else {
        let message = format!("{folder:?} is no chart: it has no {CHART_FILE}");
        return Err(problem("ChartMissing", message, meant(tree, folder)));
    };
    let rules = ignore_rules(tree, folder)?;
    let mut chosen = BTreeMap::new();
    for (path, entry) in entries() {
        let inside = &path[folder.len()..];
        // Whatever the rules say, a folder without it is no chart.
        if inside != CHART_FILE && rules.leaves_out(inside) {
            continue;
        }
        chosen.insert(Arc::<str>::from(inside), file(folder, path, entry)?);
    }
    let mut ids = Vec::new();
    for (path, file) in &chosen {
        ids.extend_from_slice(path.as_bytes());
        ids.push(0);
        ids.extend_from_slice(file.id.as_bytes());
        ids.push(0);
    }
    memo.chart(Digest::of_bytes(&ids), || {
        let files = chosen.into_iter().map(|(path, file)| (path, Arc::clone(&file.bytes)));
        let chart = ChartFiles::new(files.collect());
        chart
            .map_err(|error| invalid(folder, &error))
            .and_then(|chart| check_chart_file(folder, chart))
    })
}

fn below<'t>(tree: &'t SourceTree, folder: &str) -> impl Iterator<Item = (&'t Arc<str>, &'t SourceEntry)> {
    let from = (std::ops::Bound::Included(folder), std::ops::Bound::Unbounded);
    let prefix = folder.to_owned();
    tree.files
        .range::<str, _>(from)
        .take_while(move |(path, _)| path.starts_with(&prefix))
}

/// A folder of a chart that may have been meant.
fn meant(tree: &SourceTree, folder: &str) -> String {
    let suffix = format!("/{CHART_FILE}");
    let known = tree.files.keys().filter_map(|path| path.strip_suffix(&suffix));
    match nearest(folder.trim_end_matches('/'), known) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("name the folder in which {CHART_FILE} stands, from the root of the repository"),
    }
}

fn ignore_rules(tree: &SourceTree, folder: &str) -> Result<IgnoreRules, Problem> {
    let path = format!("{folder}{IGNORE_FILE}");
    let text = match tree.files.get(path.as_str()) {
        None => "",
        Some(SourceEntry::File(file)) => std::str::from_utf8(&file.bytes)
            .map_err(|_| problem("ChartUnreadable", format!("{path} is no text"), "save it as UTF-8"))?,
        Some(_) => {
            let hint = "make it an ordinary file of UTF-8 text";
            return Err(problem("ChartUnreadable", format!("{path} is no file"), hint));
        }
    };
    let (rules, wrong) = IgnoreRules::read(text);
    match wrong.first() {
        None => Ok(rules),
        Some(line) => {
            let message = format!("line {line} of {path} is no rule of Helm's");
            Err(problem("ChartUnreadable", message, "Helm knows *, ? and [], and no **"))
        }
    }
}

/// The file at a path of a chart, or why the chart cannot travel.
fn file<'t>(folder: &str, path: &str, entry: &'t SourceEntry) -> Result<&'t SourceFile, Problem> {
    let refuse = |reason, message: String, hint: &str| Err(problem(reason, message, hint));
    match entry {
        SourceEntry::File(file) if file.bytes.starts_with(LFS_POINTER) => refuse(
            "LfsPointer",
            format!("{path} is a Git LFS pointer, and its content is not in this repository"),
            "commit the files of a chart as ordinary files",
        ),
        SourceEntry::File(file) => Ok(file),
        SourceEntry::Symlink(_) => refuse(
            "ChartSymlink",
            format!("{path} is a symlink, and a chart travels with its own files alone"),
            "commit the file itself in its place, or leave it out with the chart's .helmignore",
        ),
        SourceEntry::Submodule => refuse(
            "Submodule",
            format!("{path} is a submodule, and its content is not in this repository"),
            "commit the chart here",
        ),
        SourceEntry::TooLarge(bytes) => refuse(
            "ChartTooLarge",
            format!(
                "{path} has {bytes} bytes, and a whole chart may have {}",
                crate::limits::CHART_BYTES_MAX
            ),
            "leave it out with the chart's .helmignore, or deliver the chart from a repository of charts",
        ),
        SourceEntry::BadName => refuse(
            "BadName",
            format!("a file in {folder} has a name that cannot be a path: {path}"),
            "give it a name in UTF-8",
        ),
    }
}

fn invalid(folder: &str, error: &InvalidChartFiles) -> Problem {
    let message = format!("the chart in {folder:?} cannot travel: {error}");
    match error {
        InvalidChartFiles::TooMany(_) | InvalidChartFiles::TooLarge(_) => problem(
            "ChartTooLarge",
            message,
            "leave out what it does not need with its .helmignore, or deliver it from a repository of charts",
        ),
        _ => problem("ChartUnreadable", message, "give the file another name"),
    }
}

/// What `Chart.yaml` must say for helm to take it up at all.
fn check_chart_file(folder: &str, chart: ChartFiles) -> Result<Arc<ChartFiles>, Problem> {
    let path = format!("{folder}{CHART_FILE}");
    let unreadable = |message: String| {
        problem(
            "ChartUnreadable",
            message,
            "correct it: `helm lint` says what a chart needs",
        )
    };
    let bytes = chart.file(CHART_FILE).unwrap_or_default();
    let text = yaml::decode(bytes).map_err(|error| unreadable(format!("{path}: {}", error.message)))?;
    yaml::read(&text).map_err(|error| unreadable(format!("{path}: {error}")))?;
    for field in ["name", "version", "apiVersion"] {
        if chart.said(field).unwrap_or_default().is_empty() {
            return Err(unreadable(format!("{path} has no {field} that is text")));
        }
    }
    if chart.said("type").as_deref() == Some("library") {
        let message = format!("{path} is a library, which other charts use and nobody installs");
        return Err(problem("ChartUnreadable", message, "name the chart that uses it"));
    }
    Ok(Arc::new(chart))
}
