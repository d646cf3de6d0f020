//! What a proposal says to those who review it: its commit's subject and body.
//!
//! Values are left out: the diff of the branch shows them to whoever may read it, and a message travels further.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use render::plan::{Change, Delta, ObjectChange, Share};
use render::{ClusterName, Digest, ObjectKey, Revision, UnitKey};

use crate::limits::{PROPOSAL_CLUSTERS_MAX, PROPOSAL_COMMITS_MAX, PROPOSAL_OBJECTS_MAX, PROPOSAL_UNITS_MAX};
use crate::words::{counted, steers};

/// Characters of a subject that every host of Git shows whole.
const SUBJECT_CHARS_MAX: usize = 72;

/// A commit of source that a proposal carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCommit {
    /// Which.
    pub revision: Revision,
    /// The first line of its message.
    pub subject: String,
}

/// What a decision changes.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Units that change, sorted.
    pub units: Vec<UnitSummary>,
    /// Commits of source since the last decision, newest first, one more than are shown where there are more.
    pub commits: Vec<SourceCommit>,
    /// The ref that the proposal is merged into, short.
    pub rendered: String,
}

/// What becomes of a unit.
#[derive(Clone, Debug)]
pub struct UnitSummary {
    /// Which.
    pub unit: UnitKey,
    /// Clusters that change alike, with the objects that do.
    pub groups: Vec<GroupSummary>,
}

/// Clusters that change alike.
#[derive(Clone, Debug)]
pub struct GroupSummary {
    from: Option<Share>,
    to: Option<Share>,
    clusters: Vec<ClusterName>,
    objects: Vec<(char, ObjectKey)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Remove,
    Change,
    Bring,
}

impl UnitSummary {
    /// A unit's changes. `objects` gives the changes between two contents.
    pub fn new<E>(
        delta: Delta,
        mut objects: impl FnMut(Option<Digest>, Option<Digest>) -> Result<Vec<ObjectChange>, E>,
    ) -> Result<Self, E> {
        let digest = |share: &Option<Share>| share.as_ref().map(|share| share.digest);
        let groups = delta.alike().into_iter().map(|alike| {
            let changed = objects(digest(&alike.from), digest(&alike.to))?;
            Ok(GroupSummary {
                objects: changed
                    .into_iter()
                    .map(|change| (sign(&change.change), change.object))
                    .collect(),
                clusters: alike.clusters,
                from: alike.from,
                to: alike.to,
            })
        });
        let groups = groups.collect::<Result<Vec<_>, E>>()?;
        Ok(Self {
            unit: delta.unit,
            groups,
        })
    }

    fn clusters(&self) -> usize {
        self.groups.iter().map(|group| group.clusters.len()).sum()
    }

    fn verb(&self) -> Verb {
        let all = |test: fn(&GroupSummary) -> bool| self.groups.iter().all(test);
        if all(|group| group.to.is_none()) {
            Verb::Remove
        } else if all(|group| group.from.is_none()) {
            Verb::Bring
        } else {
            Verb::Change
        }
    }
}

fn sign(change: &Change) -> char {
    match change {
        Change::Added => '+',
        Change::Removed | Change::Kept(_) | Change::MovedTo(_) => '-',
        Change::Changed(_) | Change::EncryptedChanged | Change::MovedFrom { .. } => '~',
    }
}

impl Summary {
    /// `Change shop/web on 2 clusters`.
    pub fn subject(&self) -> String {
        let clusters: BTreeSet<_> = self
            .units
            .iter()
            .flat_map(|unit| unit.groups.iter().flat_map(|group| &group.clusters))
            .collect();
        let on = counted(clusters.len(), "cluster");
        let verbs: BTreeSet<_> = self.units.iter().map(UnitSummary::verb).collect();
        let said = |what: &str| match verbs.iter().collect::<Vec<_>>().as_slice() {
            [Verb::Remove] => format!("Remove {what} from {on}"),
            [Verb::Bring] => format!("Bring {what} to {on}"),
            _ => format!("Change {what} on {on}"),
        };
        if let [unit] = self.units.as_slice() {
            let named = said(&unit.unit.to_string());
            if named.chars().count() <= SUBJECT_CHARS_MAX {
                return named;
            }
        }
        said(&counted(self.units.len(), "unit"))
    }

    /// The units with what happens to them, removals first; the commits of source; what to do.
    pub fn body(&self) -> String {
        let mut text = String::new();
        let parts = [
            (Verb::Remove, "Removed:"),
            (Verb::Change, "Changed:"),
            (Verb::Bring, "Added:"),
        ];
        for (verb, title) in parts {
            let units: Vec<_> = self.units.iter().filter(|unit| unit.verb() == verb).collect();
            write_units(&mut text, title, &units);
        }
        if !self.commits.is_empty() {
            text.push_str("Commits of source, newest first:\n");
            for commit in self.commits.iter().take(PROPOSAL_COMMITS_MAX) {
                let short = commit.revision.short();
                // Writing to a String cannot fail.
                let _written = writeln!(text, "- {short} {}", plain(&commit.subject));
            }
            if self.commits.len() > PROPOSAL_COMMITS_MAX {
                text.push_str("- and earlier ones\n");
            }
            text.push('\n');
        }
        let _written = writeln!(text, "To approve, merge this branch into {}.", self.rendered);
        text
    }
}

fn write_units(text: &mut String, title: &str, units: &[&UnitSummary]) {
    if units.is_empty() {
        return;
    }
    let _written = writeln!(text, "{title}");
    for unit in units.iter().take(PROPOSAL_UNITS_MAX) {
        for group in &unit.groups {
            write_group(text, &unit.unit, group);
        }
    }
    if let Some(more) = units.len().checked_sub(PROPOSAL_UNITS_MAX).filter(|more| *more > 0) {
        let clusters = units.iter().skip(PROPOSAL_UNITS_MAX).map(|unit| unit.clusters()).max();
        let _written = writeln!(
            text,
            "- and {more} more, each on up to {} clusters",
            clusters.unwrap_or_default()
        );
    }
    text.push('\n');
}

fn write_group(text: &mut String, unit: &UnitKey, group: &GroupSummary) {
    let names: Vec<_> = group
        .clusters
        .iter()
        .map(ClusterName::as_str)
        .take(PROPOSAL_CLUSTERS_MAX)
        .collect();
    let preposition = if group.to.is_none() { "from" } else { "on" };
    let _written = writeln!(
        text,
        "- {unit} {preposition} {}{}",
        names.join(", "),
        rest(group.clusters.len(), PROPOSAL_CLUSTERS_MAX)
    );
    // The unit's name says it all where everything in it comes or goes.
    if let (Some(from), Some(to)) = (&group.from, &group.to) {
        for (sign, object) in group.objects.iter().take(PROPOSAL_OBJECTS_MAX) {
            let _written = writeln!(text, "    {sign} {}", plain(&named(object)));
        }
        if group.objects.len() > PROPOSAL_OBJECTS_MAX {
            let _written = writeln!(text, "   {}", rest(group.objects.len(), PROPOSAL_OBJECTS_MAX));
        }
        for (object, count) in &to.replicas {
            if from.replicas.get(object) != Some(count) {
                let _written = writeln!(text, "    ~ replicas of {}: {count}", plain(&named(object)));
            }
        }
    }
}

fn named(object: &ObjectKey) -> String {
    match object.namespace.as_str() {
        "" => format!("{} {}", object.kind, object.name),
        namespace => format!("{} {namespace}/{}", object.kind, object.name),
    }
}

fn rest(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

/// Words of a file or a commit as a part of one line, which steer no terminal and begin no paragraph.
fn plain(text: &str) -> String {
    let kept: String = text.chars().filter(|c| c.is_whitespace() || !steers(*c)).collect();
    let line = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SUBJECT_CHARS_MAX * 2) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use render::VariantName;
    use render::plan::ClusterDelta;

    use super::*;

    fn share(content: &str) -> Option<Share> {
        Some(Share {
            variant: VariantName::default_variant(),
            digest: Digest::of_bytes(content.as_bytes()),
            replicas: Default::default(),
            drift: Default::default(),
        })
    }

    fn unit(name: &str, clusters: &[&str], from: Option<Share>, to: Option<Share>) -> UnitSummary {
        let cluster = |name: &&str| ClusterDelta {
            cluster: ClusterName::parse(*name).expect("a valid name"),
            from: from.clone(),
            to: to.clone(),
        };
        let delta = Delta {
            unit: name.parse().expect("a valid unit"),
            clusters: clusters.iter().map(cluster).collect(),
        };
        let objects = |_, _| {
            let change = |name: &str, change| ObjectChange {
                object: ObjectKey::new("v1", "Secret", "shop", name),
                change,
            };
            let fields = vec![render::plan::FieldChange {
                field: "/data/token".to_owned(),
                from: Some("hidden-one".into()),
                to: Some("hidden-two".into()),
            }];
            Ok::<_, ()>(vec![
                change("a", Change::Changed(fields)),
                change("b\n\nSequence: 9", Change::Removed),
            ])
        };
        UnitSummary::new(delta, objects).expect("contents are at hand")
    }

    fn summary(units: Vec<UnitSummary>, commits: &[&str]) -> Summary {
        let commit = |subject: &&str| SourceCommit {
            revision: Revision::parse("a".repeat(40)).expect("forty hex digits"),
            subject: (*subject).to_owned(),
        };
        Summary {
            units,
            commits: commits.iter().map(commit).collect(),
            rendered: "flotilla/rendered".to_owned(),
        }
    }

    #[test]
    fn a_proposals_message_says_what_changes_where_and_no_value() {
        let units = vec![
            unit("shop/old", &["lyon"], share("1"), None),
            unit("shop/web", &["lyon", "paris"], share("1"), share("2")),
            unit("team/new", &["paris"], None, share("3")),
        ];
        let summary = summary(units, &["Greet \u{1b}[2Jbetter", "Begin"]);
        assert_eq!(summary.subject(), "Change 3 units on 2 clusters");
        let expected = "\
Removed:
- shop/old from lyon

Changed:
- shop/web on lyon, paris
    ~ Secret shop/a
    - Secret shop/b Sequence: 9

Added:
- team/new on paris

Commits of source, newest first:
- aaaaaaaaaaaa Greet [2Jbetter
- aaaaaaaaaaaa Begin

To approve, merge this branch into flotilla/rendered.
";
        assert_eq!(summary.body(), expected);
    }

    #[test]
    fn a_subject_names_the_one_unit_where_it_fits() {
        let subject = |unit| summary(vec![unit], &[]).subject();
        assert_eq!(
            subject(unit("shop/web", &["a", "b"], share("1"), share("2"))),
            "Change shop/web on 2 clusters"
        );
        assert_eq!(
            subject(unit("shop/web", &["a"], None, share("2"))),
            "Bring shop/web to 1 cluster"
        );
        assert_eq!(
            subject(unit("shop/web", &["a"], share("1"), None)),
            "Remove shop/web from 1 cluster"
        );
        let long = format!("{}/{}", "n".repeat(60), "w".repeat(60));
        assert_eq!(
            subject(unit(&long, &["a"], share("1"), share("2"))),
            "Change 1 unit on 1 cluster"
        );
    }

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let many: Vec<String> = (0..60).map(|at| format!("c{at:02}")).collect();
        let names: Vec<&str> = many.iter().map(String::as_str).collect();
        let units = (0..60).map(|at| unit(&format!("shop/u{at:02}"), &names, share("1"), share("2")));
        let commits = ["one"; PROPOSAL_COMMITS_MAX + 1];
        let body = summary(units.collect(), &commits).body();
        assert!(body.contains("- and 10 more, each on up to 60 clusters"), "{body}");
        assert!(
            body.contains(" and 50 more\n") && body.contains("- and earlier ones"),
            "{body}"
        );
        assert!(body.len() < 16 << 10, "{} bytes", body.len());
    }
}
