//! Who owns which field, read from an object's `managedFields`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

use super::path::{Path, Step, has_keys};
use crate::apply::FIELD_MANAGER;

/// The owners of one live object.
#[derive(Clone, Copy)]
pub(in crate::apply) struct Owners<'a> {
    entries: &'a [ManagedFieldsEntry],
}

impl<'a> Owners<'a> {
    /// As its metadata says.
    pub(in crate::apply) fn of(metadata: &'a kube::core::ObjectMeta) -> Self {
        Self {
            entries: metadata.managed_fields.as_deref().unwrap_or_default(),
        }
    }

    /// The fields that we own by our own applies.
    pub(in crate::apply) fn ours(&self) -> Option<&'a Value> {
        let entry = self.entries.iter().find(|entry| is_ours(entry))?;
        entry.fields_v1.as_ref().map(|fields| &fields.0)
    }

    /// Every other entry.
    pub(super) fn others(&self) -> impl Iterator<Item = (&'a ManagedFieldsEntry, &'a Value)> + use<'a> {
        let others = self.entries.iter().filter(|entry| !is_ours(entry));
        others.filter_map(|entry| Some((entry, &entry.fields_v1.as_ref()?.0)))
    }

    /// Who wrote the object itself beside us, by name.
    pub(in crate::apply) fn earlier(&self) -> Vec<&'a str> {
        let writers = self.others().filter(|(entry, _)| entry.subresource.is_none());
        let mut names: Vec<_> = writers
            .filter_map(|(entry, _)| entry.manager.as_deref())
            .filter(|name| *name != FIELD_MANAGER)
            .collect();
        names.dedup();
        names
    }

    /// Whether we own a field, or a part of it.
    pub(super) fn owns(&self, path: &[Step]) -> bool {
        self.ours().is_some_and(|ours| has_any(ours, path))
    }

    /// Who owns a field, or a part of it, beside us.
    pub(super) fn others_of<'p>(&self, path: &'p [Step]) -> impl Iterator<Item = &'a ManagedFieldsEntry> + use<'a, 'p> {
        self.others()
            .filter(|(_, fields)| has_any(fields, path))
            .map(|(entry, _)| entry)
    }
}

/// Whether an entry is that of our own applies.
pub(super) fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.is_none()
}

/// The child of a node of `fieldsV1`.
pub(super) fn below<'a>(node: &'a Value, step: &Step) -> Option<&'a Value> {
    let map = node.as_object()?;
    match step {
        Step::Field(name) => map.get(&format!("f:{name}")),
        Step::Index(index) => map.get(&format!("i:{index}")),
        Step::Key(_) | Step::Value(_) => map
            .iter()
            .find(|(element, _)| match (parse(element), step) {
                (Some(Step::Key(found)), Step::Key(keys)) => has_keys(&keys.clone().into(), &found),
                (Some(Step::Value(found)), Step::Value(value)) => found == *value,
                _ => false,
            })
            .map(|(_, node)| node),
    }
}

/// The step of an element of `fieldsV1`; `None` for `.`, which is the node itself.
pub(super) fn parse(element: &str) -> Option<Step> {
    let (form, rest) = element.split_once(':')?;
    match form {
        "f" => Some(Step::Field(rest.to_owned())),
        "k" => serde_json::from_str(rest).ok().map(Step::Key),
        "v" => serde_json::from_str(rest).ok().map(Step::Value),
        "i" => rest.parse().ok().map(Step::Index),
        _ => None,
    }
}

/// Whether a node has nothing below it: it is one value as a whole.
pub(super) fn is_leaf(node: &Value) -> bool {
    node.as_object().is_none_or(serde_json::Map::is_empty)
}

fn has_any(fields: &Value, path: &[Step]) -> bool {
    let mut node = fields;
    for (at, step) in path.iter().enumerate() {
        if at > 0 && is_leaf(node) {
            // It is owned together with what it is a part of.
            return true;
        }
        match below(node, step) {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}

/// The owned values at a path and below it; what is a part of a value that is owned as a whole is that value.
pub(super) fn leaves(fields: &Value, path: &[Step]) -> Vec<Path> {
    let mut node = fields;
    for (at, step) in path.iter().enumerate() {
        if at > 0 && is_leaf(node) {
            return vec![path[..at].to_vec()];
        }
        match below(node, step) {
            Some(next) => node = next,
            None => return Vec::new(),
        }
    }
    let mut found = Vec::new();
    collect(node, path, &mut found);
    found
}

fn collect(node: &Value, path: &[Step], found: &mut Vec<Path>) {
    if is_leaf(node) {
        found.push(path.to_vec());
        return;
    }
    for (element, child) in node.as_object().into_iter().flatten() {
        if let Some(step) = parse(element) {
            let path: Path = path.iter().cloned().chain([step]).collect();
            collect(child, &path, found);
        }
    }
}

/// `fields` without those of `taken`; `None` when nothing is left.
pub(super) fn without(fields: &Value, taken: &Value) -> Option<Value> {
    let (Some(map), Some(gone)) = (fields.as_object(), taken.as_object()) else {
        return Some(fields.clone());
    };
    if map.is_empty() {
        let is_taken = gone.is_empty() || gone.contains_key(".");
        return (!is_taken).then(|| fields.clone());
    }
    let mut left = serde_json::Map::new();
    for (element, node) in map {
        let kept = match (element.as_str(), gone.get(element)) {
            (".", found) => (found.is_none() && !gone.is_empty()).then(|| node.clone()),
            (_, Some(found)) => without(node, found),
            (_, None) => Some(node.clone()),
        };
        if let Some(kept) = kept {
            left.insert(element.clone(), kept);
        }
    }
    (!left.is_empty()).then(|| left.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_we_own_is_taken_out_of_what_they_own() {
        let theirs = json!({"f:metadata": {"f:annotations": {".": {}, "f:x": {}, "f:y": {}}},
            "f:spec": {"f:replicas": {}, "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}}}}});
        let ours = json!({"f:metadata": {"f:annotations": {"f:y": {}}},
            "f:spec": {"f:replicas": {}, "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}});
        let expected = json!({"f:metadata": {"f:annotations": {".": {}, "f:x": {}}},
            "f:spec": {"f:list": {"k:{\"name\":\"a\"}": {"f:image": {}}}}});
        assert_eq!(without(&theirs, &ours), Some(expected));
        assert_eq!(without(&ours, &theirs), None);
    }

    #[test]
    fn a_part_of_one_value_is_owned_with_the_whole() {
        let fields = json!({"f:spec": {"f:command": {}, "f:list": {"k:{\"name\":\"a\",\"port\":1}": {"f:image": {}}}}});
        let field = |name: &str| Step::Field(name.to_owned());
        let command = [field("spec"), field("command"), Step::Index(1)];
        assert_eq!(leaves(&fields, &command), [command[..2].to_vec()]);
        // A key that the manifest leaves to its default is not known to it.
        let keys = json!({"name": "a"}).as_object().cloned().expect("a map");
        let item = [field("spec"), field("list"), Step::Key(keys)];
        assert_eq!(leaves(&fields, &item).len(), 1);
        assert!(leaves(&fields, &[field("data")]).is_empty());
    }

    fn sets() -> impl Strategy<Value = Value> {
        Just(json!({})).prop_recursive(4, 20, 3, |inner| {
            let element = prop_oneof![Just("f:a"), Just("f:b"), Just("k:{\"name\":\"x\"}"), Just("v:1")];
            (any::<bool>(), prop::collection::btree_map(element, inner, 1..3)).prop_map(|(itself, map)| {
                let children = map.into_iter().map(|(element, node)| (element.to_owned(), node));
                children.chain(itself.then(|| (".".to_owned(), json!({})))).collect()
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_is_owned_twice_after_it_was_taken(theirs in sets(), ours in sets()) {
            let left = without(&theirs, &ours);
            let left = left.map(|left| leaves(&left, &[])).unwrap_or_default();
            for path in leaves(&ours, &[]) {
                prop_assert!(!left.contains(&path));
            }
            for path in left {
                prop_assert!(leaves(&theirs, &[]).contains(&path));
            }
            prop_assert_eq!(without(&theirs, &theirs), None);
        }
    }
}
