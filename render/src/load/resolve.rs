//! From feeds to a Base: what a unit delivers, and what holds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::{Catalog, Loaded, Origin, paths};
use super::charts::Charts;
use super::declaration::UnitDeclaration;
use super::document::Item;
use super::file::is_manifest;
use super::index::{Entry, Index, Wanted, objects};
use super::lines::Lines;
use super::pattern::Selection;
use super::symlink;
use crate::access::ACCESS_FOLDER;
use crate::finding::Finding;
use crate::fleet::{Base, ManifestObject, Unit};
use crate::limits::FINDINGS_PER_FILE_MAX;
use crate::model::Feed;
use crate::name::ObjectKey;
use crate::selector::LabelSelector;
use crate::tree::SourceEntry;

/// What feeds are resolved against.
pub(super) struct Context<'a> {
    pub(super) catalog: &'a Catalog<'a>,
    pub(super) index: &'a Index<'a>,
    pub(super) charts: &'a Charts,
}

/// Resolves one unit's feeds. Findings that hold nothing are added to `notices`.
pub(super) fn resolve(
    context: &Context<'_>,
    declaration: &UnitDeclaration,
    lines: &mut Lines<'_>,
    notices: &mut Vec<Finding>,
) -> Unit {
    let subscription = &declaration.subscription;
    let mut selecting = Selecting {
        context,
        objects: Vec::new(),
        seen: BTreeMap::new(),
        errors: Vec::new(),
        more: 0,
        notices: Vec::new(),
        field: String::new(),
    };
    for (position, feed) in subscription.feeds.iter().enumerate() {
        selecting.field = format!("spec.feeds[{position}]");
        selecting.feed(feed, declaration.selections.get(position).and_then(Option::as_ref));
    }
    for object in &mut selecting.objects {
        match context.charts.complete(object, lines) {
            Ok(complete) => *object = complete,
            Err(finding) => selecting.errors.push(*finding),
        }
    }
    let mut place = |finding: Finding| {
        let finding = finding.unit(&subscription.key);
        if !finding.file.is_empty() {
            return finding;
        }
        let line = lines.find(&subscription.file, subscription.line, &finding.field);
        finding.at(&*subscription.file, line)
    };
    notices.extend(selecting.notices.into_iter().map(&mut place));
    if selecting.more > 0 {
        let message = format!("and {} more errors of this unit", selecting.more);
        selecting.errors.push(Finding::error("MoreFindings", message));
    }
    let errors = selecting.errors;
    let blocked = declaration
        .problems
        .iter()
        .cloned()
        .chain(errors.into_iter().map(&mut place))
        .collect();
    Unit {
        subscription: subscription.clone(),
        base: Arc::new(Base::new(selecting.objects)),
        blocked,
    }
}

/// One unit's objects so far.
struct Selecting<'a> {
    context: &'a Context<'a>,
    objects: Vec<Arc<ManifestObject>>,
    /// Key → position in `objects`.
    seen: BTreeMap<ObjectKey, usize>,
    /// At most [`FINDINGS_PER_FILE_MAX`].
    errors: Vec<Finding>,
    /// Errors beyond them.
    more: usize,
    notices: Vec<Finding>,
    /// The feed that is resolved now.
    field: String,
}

impl Selecting<'_> {
    fn error(&mut self, reason: &str, message: impl Into<String>, hint: impl Into<String>) {
        let finding = Finding::error(reason, message).field(self.field.as_str()).hint(hint);
        self.push(finding);
    }

    fn push(&mut self, finding: Finding) {
        // One broken file may meet a unit by several feeds.
        if self.errors.contains(&finding) {
            return;
        }
        if self.errors.len() < FINDINGS_PER_FILE_MAX {
            self.errors.push(finding);
        } else {
            self.more += 1;
        }
    }

    fn feed(&mut self, feed: &Feed, selection: Option<&Selection>) {
        match feed {
            Feed::Path { path, .. } => {
                if let Some(selection) = selection {
                    self.path(path, selection);
                }
            }
            Feed::Object {
                api_version,
                kind,
                namespace,
                name,
            } => self.object(Wanted {
                api_version,
                kind,
                namespace,
                name,
            }),
            Feed::Selector {
                selector,
                kind,
                api_version,
                namespace,
            } => self.selector(selector, kind, api_version, namespace),
        }
    }

    fn object(&mut self, wanted: Wanted<'_>) {
        let index = self.context.index;
        let found: Vec<_> = index.named(wanted).collect();
        match found.as_slice() {
            [] => self.nothing(wanted),
            [one] => {
                if one.object.api_version != wanted.api_version {
                    let message = format!(
                        "the feed says {} and the manifest {} ({}:{}); the manifest is delivered as it is",
                        wanted.api_version, one.object.api_version, one.object.file, one.object.line
                    );
                    let finding = Finding::warning("FeedVersionDiffers", message);
                    self.notices.push(finding.field(self.field.as_str()));
                }
                self.add(*one);
            }
            [first, second, ..] => {
                let message = format!(
                    "{} {} is declared {} times: in {}:{} and in {}:{}",
                    wanted.kind,
                    wanted.name,
                    found.len(),
                    first.object.file,
                    first.object.line,
                    second.object.file,
                    second.object.line
                );
                self.error(
                    "FeedAmbiguous",
                    message,
                    "give the feed a namespace, or remove one of the manifests",
                );
            }
        }
    }

    fn nothing(&mut self, wanted: Wanted<'_>) {
        let slash = if wanted.namespace.is_empty() { "" } else { "/" };
        let message = format!(
            "no manifest declares {} {} {}{slash}{}; the unit keeps what it had",
            wanted.api_version, wanted.kind, wanted.namespace, wanted.name
        );
        let near = self.context.index.near(wanted);
        let hint = near.unwrap_or_else(|| "correct the feed; to stop delivering it, remove the feed".to_owned());
        self.error("FeedMatchesNothing", message, hint);
    }

    fn selector(&mut self, selector: &LabelSelector, kind: &str, api_version: &str, namespace: &str) {
        self.hold_for_unread_rules(|_| true);
        self.hold_for_unknown(|_| true);
        let index = self.context.index;
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let found: Vec<_> = index
            .selected(selector)
            .filter(|entry| {
                fits(kind, &entry.object.key.kind)
                    && fits(api_version, &entry.object.api_version)
                    && fits(namespace, &entry.object.key.namespace)
            })
            .collect();
        if found.is_empty() {
            let message = "no manifest has labels that match; the unit keeps what it had";
            self.error(
                "FeedMatchesNothing",
                message,
                "correct the feed; to stop delivering, remove it",
            );
        }
        for entry in found {
            self.add(entry);
        }
    }

    /// An unreadable file that nothing stands in for may hold what the feed would select.
    fn hold_for_unknown(&mut self, could_select: impl Fn(&str) -> bool) {
        let catalog = self.context.catalog;
        for path in catalog.unknown.iter().filter(|path| could_select(path)) {
            let message = format!("{path} cannot be read, and the feed could select what it holds");
            self.error("FeedUnreadable", message, format!("correct or remove {path}"));
        }
    }

    /// Without the rules of a folder nobody knows which of its files the feed should have.
    fn hold_for_unread_rules(&mut self, could_select: impl Fn(&str) -> bool) {
        let catalog = self.context.catalog;
        for folder in catalog.unread_rules().iter().filter(|folder| could_select(folder)) {
            let message = format!("{folder}.flotillaignore cannot be read, and the feed selects files of its folder");
            self.error(
                "FeedUnreadable",
                message,
                format!("correct or remove {folder}.flotillaignore"),
            );
        }
    }

    fn path(&mut self, path: &str, selection: &Selection) {
        let before = self.objects.len() + self.errors.len();
        let tree = self.context.catalog.tree;
        self.hold_for_unread_rules(|folder| paths(tree, selection).any(|(path, _)| path.starts_with(folder)));
        // A symlink that leads nowhere is said below, with the reason.
        let is_symlink = |path: &str| matches!(tree.files.get(path), Some(SourceEntry::Symlink(_)));
        self.hold_for_unknown(|unknown| selection.matches(unknown) && !is_symlink(unknown));
        let mut found = false;
        let catalog = self.context.catalog;
        for (path, entry) in paths(catalog.tree, selection) {
            if !catalog.leaves_out(path) {
                found |= self.selected_path(path, entry);
            }
        }
        for path in catalog.previous.vanished.keys().filter(|path| selection.matches(path)) {
            match catalog.files.get(path) {
                Some(loaded) if loaded.origin == Origin::Vanished => found |= self.file(loaded),
                _ => {}
            }
        }
        if !found && before == self.objects.len() + self.errors.len() {
            let message = format!("no object was found in {path:?}; the unit keeps what it had");
            let hint = match path.starts_with(ACCESS_FOLDER) {
                true => "roles and bindings of access/ are no feed's; remove it",
                false => "correct the feed; to stop delivering, remove it",
            };
            self.error("FeedMatchesNothing", message, hint);
        }
    }

    /// Takes what stands at one path; whether there was anything to deliver.
    fn selected_path(&mut self, path: &str, entry: &SourceEntry) -> bool {
        let catalog = self.context.catalog;
        if catalog.is_of_chart(path) {
            return false;
        }
        if matches!(entry, SourceEntry::Submodule) {
            let message = format!("{path} is a submodule, and its content is not in this repository");
            self.error(
                "Submodule",
                message,
                format!("exclude {path}, or commit the manifests here"),
            );
            return false;
        }
        let target = match entry {
            SourceEntry::Symlink(_) => match symlink::follow(catalog.tree, path) {
                Ok((target, _)) => target,
                Err(error) => {
                    self.error(error.reason(), format!("{path}: {error}"), format!("exclude {path}"));
                    return false;
                }
            },
            _ => path,
        };
        if !is_manifest(path) {
            return false;
        }
        if let Some(chart) = catalog.chart_of(target) {
            let message = format!("{chart:?} is a Helm chart, and its templates are no manifests");
            self.error(
                "ChartInFeed",
                message,
                format!("exclude {chart}**, or deliver the chart as a HelmChart"),
            );
            return false;
        }
        if is_kustomization(path) {
            let message = format!("{path} is for kustomize, and a feed takes finished manifests");
            self.error(
                "Kustomization",
                message,
                "build it in CI and commit the result, or exclude the file",
            );
            return false;
        }
        // A symlink to a file that is read anyway stands for that file.
        match catalog.files.get(path).or_else(|| catalog.files.get(target)) {
            Some(loaded) => self.file(loaded),
            None => false,
        }
    }

    fn file(&mut self, loaded: &Loaded) -> bool {
        let origin = loaded.origin;
        let mut found = false;
        for item in &loaded.file.items {
            match item {
                Item::Declared { .. } => {}
                Item::Neither(finding) => self.push((**finding).clone()),
                Item::Object(object) if origin == Origin::Vanished && self.context.index.has_moved(object) => {}
                Item::Object(object) => {
                    found = true;
                    self.add(Entry { object, origin });
                }
            }
        }
        // What the broken file says now may be less, more or other than what stands in for it.
        if origin == Origin::LastGood && objects(&loaded.file.items).next().is_none() {
            self.error(
                "FeedUnreadable",
                "a file of the feed cannot be read",
                "correct or remove it",
            );
        }
        found
    }

    fn add(&mut self, entry: Entry<'_>) {
        let object = entry.object;
        if let Some(position) = self.seen.get(&object.key) {
            let first = self.objects[*position].clone();
            if first.file != object.file || first.line != object.line {
                let message = format!(
                    "{} {} would be delivered twice: from {}:{} and from {}:{}",
                    object.key.kind, object.key.name, first.file, first.line, object.file, object.line
                );
                self.error("ObjectTwice", message, "remove one, or exclude its file");
            }
            return;
        }
        if entry.origin == Origin::LastGood {
            let message = format!("{} cannot be read, so the whole unit keeps what it had", object.file);
            self.error("FeedUnreadable", message, format!("correct or remove {}", object.file));
        }
        self.seen.insert(object.key.clone(), self.objects.len());
        self.objects.push(object.clone());
    }
}

fn is_kustomization(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "kustomization.yaml" | "kustomization.yml")
}
