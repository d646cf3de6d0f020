//! Keys of clusters that others take the place of, as edits of their files.
//!
//! In: the file, the cluster that it declares, and which key comes and which goes. Out: the file as it should be. Who
//! holds a key, and whether it was proven, is not known here.

use crate::cordon::{NotEditable, declaration};
use crate::model::Cluster;
use crate::yaml::{Item, ListAt, read, splice};

/// What becomes of the keys in one cluster's file. Keys are as the file writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// One comes beside those that are there.
    Add(String),
    /// One goes.
    Remove(String),
}

impl KeyChange {
    /// What is due once the agent that has the key `old` wants `next` in its place: `next` comes, and `old` goes once
    /// somebody was let in with `next`. `None` where nothing is due.
    pub fn due(cluster: &Cluster, (old, next): (&str, &str), is_in_use: bool) -> Option<Self> {
        let has = |key: &str| cluster.public_keys.iter().any(|known| known == key);
        match (has(old), has(next)) {
            (true, false) => Some(Self::Add(next.to_owned())),
            (true, true) if is_in_use => Some(Self::Remove(old.to_owned())),
            // Whoever has neither was taken out by a person.
            _ => None,
        }
    }

    fn advice(&self) -> String {
        match self {
            Self::Add(key) => format!("put into its spec.publicKeys: {key}"),
            Self::Remove(key) => format!("take out of its spec.publicKeys: {key}"),
        }
    }
}

/// The file of a cluster after a change; `None` where it says so already.
///
/// # Errors
///
/// Where only a person can write it.
pub fn edited(text: &str, cluster: &Cluster, change: &KeyChange) -> Result<Option<String>, NotEditable> {
    let documents = read(text).map_err(|error| NotEditable::new(cluster, error.to_string()))?;
    let keys = &declaration(&documents, cluster)?["spec"]["publicKeys"];
    let place = |wanted: &str| keys.as_array().into_iter().flatten().position(|key| key == wanted);
    let (without, with) = match change {
        KeyChange::Add(key) if place(key).is_none() => (Vec::new(), vec![Item::Text(key)]),
        KeyChange::Remove(key) => match place(key) {
            Some(place) => (vec![place], Vec::new()),
            None => return Ok(None),
        },
        KeyChange::Add(_) => return Ok(None),
    };
    let at = ListAt {
        line: cluster.line,
        outer: "spec",
        list: "publicKeys",
    };
    let edited = splice(text, at, &without, &with);
    edited
        .map(Some)
        .ok_or_else(|| NotEditable::new(cluster, change.advice()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn cluster(keys: &[&str]) -> Cluster {
        Cluster {
            line: 1,
            public_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..fixture::cluster("paris", &[])
        }
    }

    #[test]
    fn the_next_key_comes_first_and_the_old_one_goes_once_the_next_is_in_use() {
        let due = |keys: &[&str], is_in_use| KeyChange::due(&cluster(keys), ("a", "b"), is_in_use);
        assert_eq!(due(&["a"], false), Some(KeyChange::Add("b".to_owned())));
        assert_eq!(due(&["a"], true), Some(KeyChange::Add("b".to_owned())));
        assert_eq!(due(&["a", "b"], false), None, "the old one may be all that works");
        assert_eq!(due(&["a", "b"], true), Some(KeyChange::Remove("a".to_owned())));
        assert_eq!(due(&["b"], true), None);
        assert_eq!(due(&["c"], false), None, "a person took it out");
    }

    #[test]
    fn a_file_gets_and_loses_a_key_and_keeps_all_else() {
        let before = "kind: ManagedCluster # paris\nmetadata: {name: paris}\nspec:\n  # by the harbour\n  publicKeys:\n    - ed25519:a # 2025\n";
        let both = edited(before, &cluster(&[]), &KeyChange::Add("ed25519:b".to_owned()));
        let both = both.expect("it can be edited").expect("it was not there");
        assert_eq!(both, format!("{before}    - ed25519:b\n"));
        let again = edited(&both, &cluster(&[]), &KeyChange::Add("ed25519:b".to_owned()));
        assert_eq!(again, Ok(None), "it says so already");
        let after = edited(&both, &cluster(&[]), &KeyChange::Remove("ed25519:a".to_owned()));
        assert_eq!(
            after.expect("it can be edited").as_deref(),
            Some(
                "kind: ManagedCluster # paris\nmetadata: {name: paris}\nspec:\n  # by the harbour\n  publicKeys:\n    - ed25519:b\n"
            )
        );
    }

    #[test]
    fn a_key_comes_into_no_other_clusters_document() {
        let moved = "kind: ManagedCluster\nmetadata: {name: bergen}\nspec: {publicKeys: [c]}\n";
        let error = edited(moved, &cluster(&["a"]), &KeyChange::Add("b".to_owned())).expect_err("it is bergen's");
        assert!(
            error.to_string().contains("cluster paris does not begin there"),
            "{error}"
        );
    }

    #[test]
    fn whoever_cannot_be_edited_is_told_what_to_write() {
        let text = "kind: ManagedCluster\nmetadata: {name: paris}\nspec: {publicKeys: &k [a]}\n";
        let error = edited(text, &cluster(&[]), &KeyChange::Add("b".to_owned())).expect_err("it has an anchor");
        assert!(
            error.to_string().ends_with("put into its spec.publicKeys: b"),
            "{error}"
        );
    }
}
