//! The files of a revision that are manifests, each read, with what stands in for those that are broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document::Item;
use super::file::{self, ReadFile};
use super::ignored::IgnoreRules;
use super::index::objects;
use super::memo::LoadMemo;
use super::pattern::{Selection, is_hidden};
use super::{charts, rendered, symlink};
use crate::finding::Finding;
use crate::tree::{Previous, SourceEntry, SourceFile, SourceTree};

/// Where a file's content comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// This revision.
    Present,
    /// An earlier one, since this one's cannot be read.
    LastGood,
    /// An earlier one: the file is gone, perhaps into a file that cannot be read.
    Vanished,
}

/// One file that was read.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) file: Arc<ReadFile>,
    pub(super) origin: Origin,
    /// Read for a path feed that names it, and for nobody else.
    pub(super) hidden: bool,
}

/// Every manifest file of a revision.
#[derive(Debug)]
pub(super) struct Catalog<'a> {
    pub(super) tree: &'a SourceTree,
    pub(super) previous: &'a Previous,
    ignored: IgnoreRules,
    /// What the hub rendered was merged into source, and stands beside it.
    has_rendered: bool,
    pub(super) files: BTreeMap<Arc<str>, Loaded>,
    /// Files whose earlier content is wanted.
    pub(super) unreadable: BTreeSet<Arc<str>>,
    /// Unreadable files for which nothing stands in.
    pub(super) unknown: BTreeSet<Arc<str>>,
    /// Folders of charts that a HelmChart names; each ends with a slash.
    charts: BTreeSet<String>,
    pub(super) findings: Vec<Finding>,
}

impl<'a> Catalog<'a> {
    pub(super) fn read(tree: &'a SourceTree, previous: &'a Previous, memo: &mut LoadMemo) -> Self {
        let (ignored, mut findings) = IgnoreRules::read(tree);
        let rendered = rendered::find(tree);
        let has_rendered = rendered.is_some();
        findings.extend(rendered);
        let mut catalog = Self {
            tree,
            previous,
            ignored,
            has_rendered,
            files: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            unknown: BTreeSet::new(),
            charts: BTreeSet::new(),
            findings,
        };
        for (path, entry) in &tree.files {
            if matches!(entry, SourceEntry::BadName) || catalog.is_read(path) {
                catalog.add(path, entry, false, memo);
            }
        }
        catalog.add_vanished(memo);
        catalog.leave_out_charts();
        catalog
    }

    /// Leaves out the files of charts that a HelmChart names: they are the chart's, and no manifests of their own. A
    /// folder without Chart.yaml is no chart, so that a mistake takes nothing away.
    pub(super) fn leave_out_charts(&mut self) {
        self.charts = charts::named(self.tree, self.files.values());
        if self.charts.is_empty() {
            return;
        }
        let own: Vec<_> = self
            .files
            .keys()
            .filter(|path| self.is_of_chart(path))
            .cloned()
            .collect();
        self.unreadable.retain(|path| !is_below(&self.charts, path));
        self.unknown.retain(|path| !is_below(&self.charts, path));
        self.findings.retain(|finding| !is_below(&self.charts, &finding.file));
        for path in own {
            self.files.remove(&path);
        }
    }

    /// Whether a path is a file of a chart that a HelmChart names. A HelmChart inside its own chart is none.
    pub(super) fn is_of_chart(&self, path: &str) -> bool {
        let orders = |loaded: &Loaded| objects(&loaded.file.items).any(|object| charts::ordered(object).is_some());
        is_below(&self.charts, path) && !self.files.get(path).is_some_and(orders)
    }

    /// Whether a file is read without being asked for.
    pub(super) fn is_read(&self, path: &str) -> bool {
        file::is_manifest(path) && !is_hidden(path) && !self.leaves_out(path) && self.chart_of(path).is_none()
    }

    pub(super) fn leaves_out(&self, path: &str) -> bool {
        self.ignored.leaves_out(path) || (self.has_rendered && rendered::is_part(path))
    }

    /// Folders whose rules of what is left out cannot be read.
    pub(super) fn unread_rules(&self) -> &[String] {
        self.ignored.unread()
    }

    /// The folder of the Helm chart of which this file is a template; templates are no manifests.
    pub(super) fn chart_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let mut chart = |(at, _): (usize, &str)| {
            let folder = &path[..at];
            let is_chart = folder.is_empty() || folder.ends_with('/');
            let described = is_chart && self.tree.files.contains_key(format!("{folder}Chart.yaml").as_str());
            described.then_some(folder)
        };
        path.match_indices("templates/").find_map(&mut chart)
    }

    /// Reads the hidden files that a path feed names.
    pub(super) fn read_hidden(&mut self, selection: &Selection, memo: &mut LoadMemo) {
        if !selection.pattern.names_hidden() {
            return;
        }
        let tree = self.tree;
        for (path, entry) in paths(tree, selection) {
            if file::is_manifest(path) && !self.leaves_out(path) && !self.files.contains_key(path) {
                self.add(path, entry, true, memo);
            }
        }
    }

    fn add(&mut self, path: &Arc<str>, entry: &SourceEntry, hidden: bool, memo: &mut LoadMemo) {
        let file = match entry {
            SourceEntry::File(file) => memo.read(path, file),
            SourceEntry::TooLarge(bytes) => Arc::new(file::too_large(path, *bytes)),
            SourceEntry::BadName => {
                let message = "the name of this file or folder cannot be a path, so it is not read";
                let finding = Finding::error("BadName", message)
                    .at(&**path, 0)
                    .hint("give it a name in UTF-8");
                Arc::new(ReadFile::unreadable(finding))
            }
            // A submodule is a folder, whatever its name.
            SourceEntry::Submodule => return,
            SourceEntry::Symlink(_) => match symlink::follow(self.tree, path) {
                // The file itself is read under its own path.
                Ok((target, _)) if self.is_read(target) => return,
                Ok((_, file)) => memo.read(path, file),
                Err(error) => {
                    let finding = Finding::error(error.reason(), error.to_string())
                        .at(&**path, 0)
                        .hint("commit the file itself in its place, or leave it out with a .flotillaignore");
                    Arc::new(ReadFile::unreadable(finding))
                }
            },
        };
        self.findings.extend(file.findings.iter().cloned());
        let loaded = if file.wants_last_good() {
            self.unreadable.insert(path.clone());
            self.stand_in(path, file, hidden, memo)
        } else {
            Loaded {
                file,
                origin: Origin::Present,
                hidden,
            }
        };
        self.files.insert(path.clone(), loaded);
    }

    /// What stands for a file that is broken, wholly or in some declarations.
    fn stand_in(&mut self, path: &Arc<str>, broken: Arc<ReadFile>, hidden: bool, memo: &mut LoadMemo) -> Loaded {
        let last_good = self.previous.last_good.get(path).map(|file| memo.read(path, file));
        let last_good = last_good.filter(|file| file.unreadable.is_none());
        let (file, origin) = match (broken.unreadable.is_some(), last_good) {
            (true, Some(last_good)) => (last_good, Origin::LastGood),
            (true, None) => {
                self.unknown.insert(path.clone());
                (broken, Origin::Present)
            }
            (false, Some(last_good)) => (Arc::new(restored(&broken, &last_good)), Origin::Present),
            (false, None) => (broken, Origin::Present),
        };
        Loaded { file, origin, hidden }
    }

    fn add_vanished(&mut self, memo: &mut LoadMemo) {
        let previous = self.previous;
        for (path, file) in &previous.vanished {
            if self.tree.files.contains_key(path) || !self.is_read(path) {
                continue;
            }
            let file = memo.read(path, file);
            if file.unreadable.is_none() {
                let loaded = Loaded {
                    file,
                    origin: Origin::Vanished,
                    hidden: false,
                };
                self.files.insert(path.clone(), loaded);
            }
        }
    }

    /// The bytes that a path's items were read from.
    pub(super) fn source(&self, path: &str) -> Option<&SourceFile> {
        match self.files.get(path).map(|loaded| loaded.origin) {
            Some(Origin::LastGood) => self.previous.last_good.get(path),
            Some(Origin::Vanished) => self.previous.vanished.get(path),
            _ => symlink::follow(self.tree, path).ok().map(|(_, file)| file),
        }
    }
}

fn is_below(folders: &BTreeSet<String>, path: &str) -> bool {
    let mut above = path.match_indices('/').map(|(end, _)| &path[..=end]);
    above.any(|folder| folders.contains(folder))
}

/// The paths that a feed selects, in order, whatever stands there.
pub(super) fn paths<'t>(
    tree: &'t SourceTree,
    selection: &Selection,
) -> impl Iterator<Item = (&'t Arc<str>, &'t SourceEntry)> {
    tree.files
        .range::<str, _>((selection.pattern.start(), std::ops::Bound::Unbounded))
        .take_while(|(path, _)| selection.pattern.reaches(path))
        .filter(|(path, _)| selection.matches(path))
}

/// A file whose broken declarations are replaced by what they were. Objects and units are those of now.
fn restored(broken: &ReadFile, last_good: &ReadFile) -> ReadFile {
    let mut file = broken.clone();
    let present: BTreeSet<_> = keys(&broken.items).collect();
    let wanted: BTreeSet<_> = broken.broken.iter().filter_map(|broken| broken.key.as_ref()).collect();
    let any = broken.broken.iter().any(|broken| broken.key.is_none());
    for item in &last_good.items {
        if let Item::Declared { key, .. } = item
            && !present.contains(key)
            && (any || wanted.contains(key))
        {
            file.items.push(item.clone());
        }
    }
    file.broken.retain(|broken| {
        !broken
            .key
            .as_ref()
            .is_some_and(|key| keys(&file.items).any(|known| known == key))
    });
    file
}

fn keys(items: &[Item]) -> impl Iterator<Item = &super::declaration::DeclarationKey> {
    items.iter().filter_map(|item| match item {
        Item::Declared { key, .. } => Some(key),
        Item::Object(_) | Item::Neither(_) => None,
    })
}
