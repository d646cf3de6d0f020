//! Finds objects by name and by label, without looking at each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::catalog::{Catalog, Origin};
use super::document::Item;
use super::gather::removal_held;
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::model::OverrideFeed;
use crate::name::ObjectKey;
use crate::selector::LabelSelector;

/// An object with where its file comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) object: &'a Arc<ManifestObject>,
    pub(super) origin: Origin,
}

/// Every object that is not in a hidden file.
#[derive(Debug, Default)]
pub(super) struct Index<'a> {
    entries: Vec<Entry<'a>>,
    /// (kind, name) → positions.
    by_name: BTreeMap<(&'a str, &'a str), Vec<usize>>,
    labels: Vec<BTreeMap<String, String>>,
    /// (label, value) → positions.
    by_label: BTreeMap<(String, String), Vec<usize>>,
    pub(super) findings: Vec<Finding>,
    /// Objects that vanished from one file and stand in another.
    moved: BTreeSet<&'a ObjectKey>,
}

/// Asks for one object by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub(super) api_version: &'w str,
    pub(super) kind: &'w str,
    /// Empty: any.
    pub(super) namespace: &'w str,
    pub(super) name: &'w str,
}

impl<'w> Wanted<'w> {
    pub(super) fn of(feed: &'w OverrideFeed) -> Self {
        Self {
            api_version: &feed.api_version,
            kind: &feed.kind,
            namespace: &feed.namespace,
            name: &feed.name,
        }
    }

    pub(super) fn is(&self, key: &ObjectKey) -> bool {
        key.is_named(self.api_version, self.kind, self.namespace, self.name)
    }
}

impl<'a> Index<'a> {
    /// `with_labels` is whether any feed selects by label.
    pub(super) fn new(catalog: &'a Catalog<'_>, with_labels: bool) -> Self {
        let mut index = Self::default();
        for vanished in [false, true] {
            let present: BTreeSet<&ObjectKey> = if vanished && !catalog.previous.vanished.is_empty() {
                index.entries.iter().map(|entry| &entry.object.key).collect()
            } else {
                BTreeSet::new()
            };
            for loaded in catalog.files.values() {
                if (loaded.origin == Origin::Vanished) != vanished || loaded.hidden {
                    continue;
                }
                for object in objects(&loaded.file.items) {
                    index.add(object, loaded.origin, present.contains(&object.key));
                }
            }
        }
        if with_labels {
            index.add_labels();
        }
        index
    }

    fn add(&mut self, object: &'a Arc<ManifestObject>, origin: Origin, is_present: bool) {
        if is_present {
            self.moved.insert(&object.key);
            return;
        }
        if origin == Origin::Vanished {
            let label = format!("{} {}", object.key.kind, object.key.name);
            self.findings.push(removal_held(&label, &object.file, object.line));
        }
        let name = (object.key.kind.as_str(), object.key.name.as_str());
        self.by_name.entry(name).or_default().push(self.entries.len());
        self.entries.push(Entry { object, origin });
    }

    fn add_labels(&mut self) {
        for (position, entry) in self.entries.iter().enumerate() {
            let labels = entry.object.labels();
            for pair in &labels {
                let pair = (pair.0.clone(), pair.1.clone());
                self.by_label.entry(pair).or_default().push(position);
            }
            self.labels.push(labels);
        }
    }

    /// Objects of this group, kind and name, in the namespace if one is given.
    pub(super) fn named<'w>(&'w self, wanted: Wanted<'w>) -> impl Iterator<Item = Entry<'a>> + 'w {
        self.same_name(wanted).filter(move |entry| wanted.is(&entry.object.key))
    }

    /// A hint at an object of this kind and name in another group or namespace.
    pub(super) fn near(&self, wanted: Wanted<'_>) -> Option<String> {
        let object = self.same_name(wanted).next()?.object;
        let (kind, namespace) = (&object.key.kind, &object.key.namespace);
        let place = format!("{}:{}", object.file, object.line);
        Some(format!(
            "{place} declares {} {kind} in namespace {namespace:?}",
            object.api_version
        ))
    }

    fn same_name<'w>(&'w self, wanted: Wanted<'w>) -> impl Iterator<Item = Entry<'a>> + 'w {
        let positions = self.by_name.get(&(wanted.kind, wanted.name));
        positions.into_iter().flatten().map(|position| self.entries[*position])
    }

    /// Objects whose labels match.
    pub(super) fn selected<'w>(&'w self, selector: &'w LabelSelector) -> impl Iterator<Item = Entry<'a>> + 'w {
        let candidates: Vec<usize> = match selector.match_labels.iter().next() {
            Some((label, value)) => {
                let pair = (label.clone(), value.clone());
                self.by_label.get(&pair).cloned().unwrap_or_default()
            }
            None => (0..self.labels.len()).collect(),
        };
        candidates
            .into_iter()
            .filter(|position| selector.matches(&self.labels[*position]))
            .map(|position| self.entries[position])
    }

    /// Whether an object of a vanished file stands in another file now.
    pub(super) fn has_moved(&self, object: &ManifestObject) -> bool {
        self.moved.contains(&object.key)
    }
}

/// The objects among a file's items.
pub(super) fn objects(items: &[Item]) -> impl Iterator<Item = &Arc<ManifestObject>> {
    items.iter().filter_map(|item| match item {
        Item::Object(object) => Some(object),
        Item::Declared { .. } | Item::Neither(_) => None,
    })
}
