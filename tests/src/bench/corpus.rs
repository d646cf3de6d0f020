//! Fleets of any size, as files of a source revision.

use std::fmt::Write as _;

use render::{Digest, Revision, SourceTree};

/// How large a fleet is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Subscriptions, each with a feed folder of its own. Each goes to every cluster.
    pub(super) units: usize,
    /// Clusters.
    pub(super) clusters: usize,
    /// ConfigMaps of a unit, together in one file.
    pub(super) objects: usize,
    /// Bytes of that file, about.
    pub(super) bytes: usize,
    /// Every which unit has a Localization, in one of the clusters; 0 for none.
    pub(super) localized_every: usize,
}

/// A fleet's files, one of which may be changed.
#[derive(Clone, Debug)]
pub(super) struct Corpus {
    size: Size,
    tree: SourceTree,
    changes: u64,
}

impl Corpus {
    /// A fleet as it was first committed.
    pub(super) fn new(size: Size) -> Self {
        let mut files = vec![("fleet.yaml".to_owned(), FLEET.to_owned())];
        files.extend((0..size.clusters).map(|number| (format!("clusters/c{number:04}.yaml"), cluster(number))));
        for unit in 0..size.units {
            files.push((format!("subscriptions/bench/u{unit:04}.yaml"), subscription(unit)));
            files.push((feed(unit), objects(size, unit, 0)));
            if size.localized_every > 0 && unit % size.localized_every == 0 {
                files.push((format!("localizations/u{unit:04}.yaml"), localization(size, unit)));
            }
        }
        Self {
            size,
            tree: SourceTree::from_files(revision(0), files),
            changes: 0,
        }
    }

    /// The files, and the revision they stand for.
    pub(super) fn tree(&self) -> &SourceTree {
        &self.tree
    }

    /// Changes one value in the file of one unit, as the next revision.
    pub(super) fn touch(&mut self, unit: usize) {
        self.changes += 1;
        let file = objects(self.size, unit, self.changes);
        let changed = SourceTree::from_files(revision(self.changes), [(feed(unit), file)]);
        self.tree.revision = changed.revision;
        self.tree.files.extend(changed.files);
    }
}

const FLEET: &str = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: fleet\n";

fn revision(number: u64) -> Revision {
    // As hard to compress as a commit's id.
    let id = Digest::of_bytes(&number.to_be_bytes()).short(40);
    Revision::parse(id).expect("forty hex digits")
}

fn feed(unit: usize) -> String {
    format!("feeds/u{unit:04}/objects.yaml")
}

fn cluster(number: usize) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata:\n  name: c{number:04}\n  \
         labels:\n    zone: z{}\n",
        number % 7
    )
}

fn subscription(unit: usize) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata:\n  name: u{unit:04}\n  \
         namespace: bench\nspec:\n  subscribers:\n    - clusterAffinity: {{}}\n  feeds:\n    - path: \
         feeds/u{unit:04}/**\n"
    )
}

fn localization(size: Size, unit: usize) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Localization\nmetadata:\n  name: u{unit:04}\n  \
         namespace: c{:04}\nspec:\n  feed:\n    apiVersion: v1\n    kind: ConfigMap\n    namespace: bench\n    \
         name: u{unit:04}-0\n  overrides:\n    - name: place\n      type: MergePatch\n      value: |\n        \
         data:\n          place: here\n",
        unit % size.clusters
    )
}

/// A unit's file. `change` makes its first object another one.
fn objects(size: Size, unit: usize, change: u64) -> String {
    let mut text = String::with_capacity(size.bytes + 512);
    for object in 0..size.objects {
        let number = if object == 0 { change } else { 0 };
        let until = size.bytes * (object + 1) / size.objects;
        let _written = write!(
            text,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: u{unit:04}-{object}\n  namespace: bench\n  \
             labels:\n    app: u{unit:04}\ndata:\n  change: \"{number}\"\n"
        );
        let mut line = 0;
        while text.len() < until {
            let _written = writeln!(text, "  setting-{line}: the value of setting {line} of unit {unit}");
            line += 1;
        }
    }
    text
}
