//! Cordon: the taints with which people take a cluster out of use, as an edit of its file.
//!
//! In: the file, the cluster that it declares, and what is asked. Out: the file as it should be. What a taint does to a
//! placement is `schedule`'s; committing is a shell's.

use serde_json::Value;

use crate::model::{Cluster, TaintEffect};
use crate::yaml::{Document, Item, ListAt, read, splice};

/// Nothing new comes; what is there stays, and gets no more replicas.
pub const TAINT_CORDONED: &str = "fleet.flotilla.dev/cordoned";

/// What is there leaves, once others have it.
pub const TAINT_DRAINED: &str = "fleet.flotilla.dev/drained";

/// What is asked for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Nothing new shall come.
    Cordon {
        /// The value of the taint; empty leaves the one that is there.
        reason: &'a str,
    },
    /// What is there shall leave too.
    Drain {
        /// As of [`Asked::Cordon`].
        reason: &'a str,
    },
    /// Neither any more.
    Uncordon,
}

/// A file in which a list of a cluster cannot be changed without touching something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line} is written in a way that cannot be edited without touching the rest; {advice}")]
pub struct NotEditable {
    file: String,
    line: u32,
    advice: String,
}

impl NotEditable {
    /// Of the file of a cluster, with what a person does instead.
    pub(crate) fn new(cluster: &Cluster, advice: String) -> Self {
        Self {
            file: cluster.file.to_string(),
            line: cluster.line,
            advice,
        }
    }
}

/// Whether a cluster has one of the two taints, so that nothing new comes.
pub fn is_cordoned(cluster: &Cluster) -> bool {
    let mut taints = cluster.taints.iter();
    taints.any(|taint| is_ours(&taint.key) && taint.effect != TaintEffect::PreferNoSchedule)
}

/// The file of a cluster as asked; `None` where it says so already.
///
/// # Errors
///
/// Where only a person can write it.
pub fn edited(text: &str, cluster: &Cluster, asked: Asked<'_>) -> Result<Option<String>, NotEditable> {
    let not_editable = |advice| NotEditable::new(cluster, advice);
    let documents = read(text).map_err(|error| not_editable(error.to_string()))?;
    let declared = declaration(&documents, cluster)?;
    let taints: Vec<_> = declared["spec"]["taints"]
        .as_array()
        .into_iter()
        .flatten()
        .map(Known::of)
        .collect();
    let change = Change::of(&taints, asked);
    if change.without.is_empty() && change.with.is_empty() {
        return Ok(None);
    }
    let at = ListAt {
        line: cluster.line,
        outer: "spec",
        list: "taints",
    };
    let with: Vec<_> = change.with.iter().cloned().map(Item::Map).collect();
    let edited = splice(text, at, &change.without, &with);
    edited.map(Some).ok_or_else(|| not_editable(change.advice()))
}

/// The document that declares a cluster. A cluster of which the file says something wrong stands by an earlier form of it;
/// on its line another one may begin by now.
///
/// # Errors
///
/// Where no such document begins on its line.
pub(crate) fn declaration<'a>(documents: &'a [Document], cluster: &Cluster) -> Result<&'a Value, NotEditable> {
    let found = documents.iter().find(|document| document.line == cluster.line);
    let found = found
        .map(|document| &document.value)
        .filter(|value| value["kind"] == "ManagedCluster" && value["metadata"]["name"] == cluster.name.as_str());
    found.ok_or_else(|| {
        NotEditable::new(
            cluster,
            format!("mend the file first: cluster {} does not begin there", cluster.name),
        )
    })
}

fn is_ours(key: &str) -> bool {
    [TAINT_CORDONED, TAINT_DRAINED].contains(&key)
}

/// A taint as it is written.
#[derive(Clone, Copy)]
struct Known<'a> {
    key: &'a str,
    value: &'a str,
    effect: &'a str,
}

impl<'a> Known<'a> {
    fn of(value: &'a Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        Self {
            key: text("key"),
            value: text("value"),
            effect: text("effect"),
        }
    }
}

/// Taints that go, by their places, and taints that come.
#[derive(Default)]
struct Change<'a> {
    without: Vec<usize>,
    with: Vec<Vec<(&'a str, &'a str)>>,
}

impl<'a> Change<'a> {
    fn of(taints: &[Known<'_>], asked: Asked<'a>) -> Self {
        const CORDONED: (&str, &str) = (TAINT_CORDONED, TaintEffect::NoSchedule.as_str());
        const DRAINED: (&str, &str) = (TAINT_DRAINED, TaintEffect::NoExecute.as_str());
        let mut change = Self::default();
        let (wanted, reason) = match asked {
            Asked::Cordon { reason } => (&[CORDONED][..], reason),
            Asked::Drain { reason } => (&[CORDONED, DRAINED][..], reason),
            Asked::Uncordon => {
                let ours = taints.iter().enumerate().filter(|(_, taint)| is_ours(taint.key));
                change.without.extend(ours.map(|(place, _)| place));
                return change;
            }
        };
        for (key, effect) in wanted {
            let found = taints
                .iter()
                .position(|taint| taint.key == *key && taint.effect == *effect);
            match found {
                Some(place) if reason.is_empty() || taints[place].value == reason => continue,
                found => change.without.extend(found),
            }
            let value = (!reason.is_empty()).then_some(("value", reason));
            let item = [Some(("key", *key)), value, Some(("effect", *effect))];
            change.with.push(item.into_iter().flatten().collect::<Vec<_>>());
        }
        change
    }

    /// What a person writes instead.
    fn advice(&self) -> String {
        let item = |item: &Vec<(&str, &str)>| {
            let fields: Vec<_> = item.iter().map(|(key, value)| format!("{key}: {value:?}")).collect();
            format!("{{{}}}", fields.join(", "))
        };
        match self.with.as_slice() {
            [] => format!("take {TAINT_CORDONED} and {TAINT_DRAINED} out of its spec.taints"),
            with => format!(
                "put into its spec.taints: {}",
                with.iter().map(item).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const PLAIN: &str =
        "kind: ManagedCluster # paris\nmetadata: {name: paris}\nspec:\n  # by the harbour\n  clusterId: a\n";

    #[track_caller]
    fn ask(text: &str, asked: Asked<'_>) -> Option<String> {
        let cluster = Cluster {
            line: 1,
            ..fixture::cluster("paris", &[])
        };
        edited(text, &cluster, asked).expect("it can be edited")
    }

    #[test]
    fn a_cluster_is_cordoned_and_drained_and_is_then_as_it_was() {
        let cordoned = ask(PLAIN, Asked::Cordon { reason: "" }).expect("it was not");
        assert_eq!(
            cordoned,
            "kind: ManagedCluster # paris\nmetadata: {name: paris}\nspec:\n  taints:\n    - key: fleet.flotilla.dev/cordoned\n      effect: NoSchedule\n  # by the harbour\n  clusterId: a\n"
        );
        assert_eq!(ask(&cordoned, Asked::Cordon { reason: "" }), None, "it is so already");
        let drained = ask(&cordoned, Asked::Drain { reason: "" }).expect("it was not");
        assert!(
            drained.contains("    - key: fleet.flotilla.dev/drained\n      effect: NoExecute\n"),
            "{drained}"
        );
        assert_eq!(
            ask(&drained, Asked::Cordon { reason: "" }),
            None,
            "whoever is drained is cordoned"
        );
        assert_eq!(ask(&drained, Asked::Uncordon).as_deref(), Some(PLAIN));
        assert_eq!(ask(PLAIN, Asked::Uncordon), None);
    }

    #[test]
    fn a_reason_is_the_value_and_another_one_takes_its_place() {
        let first = ask(PLAIN, Asked::Cordon { reason: "repair" }).expect("it was not");
        assert!(first.contains("      value: repair\n"), "{first}");
        assert_eq!(ask(&first, Asked::Cordon { reason: "" }), None, "the reason stays");
        let second = ask(&first, Asked::Cordon { reason: "2026" }).expect("another reason");
        assert!(
            second.contains("      value: \"2026\"\n") && !second.contains("repair"),
            "{second}"
        );
    }

    #[test]
    fn taints_of_others_stay() {
        let text = "kind: ManagedCluster\nmetadata: {name: paris}\nspec: {taints: [{key: gpu, effect: NoSchedule}]}\n";
        let drained = ask(text, Asked::Drain { reason: "" }).expect("it was not");
        assert_eq!(ask(&drained, Asked::Uncordon).as_deref(), Some(text));
    }

    #[test]
    fn whoever_cannot_be_edited_is_told_what_to_write() {
        let cluster = fixture::cluster("paris", &[]);
        let text = "kind: ManagedCluster\nmetadata: {name: paris}\nspec: {taints: &t []}\n";
        let cluster = Cluster { line: 1, ..cluster };
        let error = edited(text, &cluster, Asked::Cordon { reason: "" }).expect_err("it has an anchor");
        assert!(
            error
                .to_string()
                .ends_with("put into its spec.taints: {key: \"fleet.flotilla.dev/cordoned\", effect: \"NoSchedule\"}"),
            "{error}"
        );
    }
}
