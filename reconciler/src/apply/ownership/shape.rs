//! The manifest as it is sent when some of its fields are left to others.
//!
//! A field that its last owner stops applying is removed by the API server, or set to its default. So what
//! is left out and is nobody's but ours is sent as it is in the cluster: it stays, whoever changes it next
//! gets it, and from then on it is not sent any more.

use render::model::IgnoreRule;
use serde_json::Value;

use super::fields::{self, Owners, below, is_leaf, leaves};
use super::path::{Path, Step, point, put, remove, value_at};

/// `manifest` without `paths`, and with their live values where nobody else owns them.
pub(in crate::apply) fn leave_out(manifest: &Value, live: &Value, owners: Owners<'_>, paths: &[Path]) -> Value {
    let mut shape = manifest.clone();
    for path in paths {
        let ours = owners.ours().map(|ours| leaves(ours, path)).unwrap_or_default();
        let whole = ours.first().filter(|leaf| leaf.len() < path.len());
        remove(&mut shape, whole.map_or(path.as_slice(), Vec::as_slice));
        for leaf in ours {
            if owners.others_of(&leaf).next().is_some() {
                continue;
            }
            if let Some(value) = value_at(live, &leaf) {
                put(&mut shape, &leaf, value.clone());
            }
        }
    }
    shape
}

/// The fields of a manifest that rules leave to others, once the object is there.
pub(in crate::apply) fn left_by_rules(manifest: &Value, owners: Owners<'_>, rules: &[IgnoreRule]) -> Vec<Path> {
    let mut left = Vec::new();
    for rule in rules {
        for path in rule.paths.iter().filter_map(|pointer| place(pointer, manifest, owners)) {
            let by_anybody = rule.managers.is_empty();
            let is_theirs = || {
                owners
                    .others_of(&path)
                    .any(|entry| names(rule, entry.manager.as_deref()))
            };
            if (by_anybody || is_theirs()) && !left.contains(&path) {
                left.push(path);
            }
        }
    }
    left
}

/// Whether a rule leaves fields to this manager.
pub(super) fn names(rule: &IgnoreRule, manager: Option<&str>) -> bool {
    manager.is_some_and(|manager| rule.managers.iter().any(|named| named == manager))
}

/// The field that a JSON pointer means, with items of lists named as the API server names them. A part of a
/// list that is one value is that list.
fn place(pointer: &str, manifest: &Value, owners: Owners<'_>) -> Option<Path> {
    let steps = point(pointer, manifest)?;
    let all = || {
        owners
            .ours()
            .into_iter()
            .chain(owners.others().map(|(_, fields)| fields))
    };
    let mut path = Path::new();
    for (step, item) in steps {
        let Some(item) = item else {
            path.push(step);
            continue;
        };
        match all().find_map(|fields| named(node(fields, &path)?, &item)) {
            Some(step) => path.push(step),
            None => return Some(path),
        }
    }
    Some(path)
}

fn node<'a>(fields: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(
        fields,
        |node, step| if is_leaf(node) { None } else { below(node, step) },
    )
}

/// How an owner of a list names this item of it.
fn named(list: &Value, item: &Value) -> Option<Step> {
    let elements = list.as_object()?.keys();
    elements
        .filter_map(|element| fields::parse(element))
        .find(|step| match step {
            Step::Key(keys) => super::path::has_keys(item, keys),
            Step::Value(value) => value == item,
            Step::Field(_) | Step::Index(_) => false,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture::metadata;
    use super::*;
    use crate::apply::FIELD_MANAGER;

    fn rule(paths: &[&str], managers: &[&str]) -> IgnoreRule {
        IgnoreRule {
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
            managers: managers.iter().map(|&manager| manager.to_owned()).collect(),
            ..IgnoreRule::default()
        }
    }

    #[track_caller]
    fn check(manifest: &Value, live: &Value, entries: &[(&str, &str, Value)], rules: &[IgnoreRule], expected: &Value) {
        let metadata = metadata(entries);
        let owners = Owners::of(&metadata);
        let left = left_by_rules(manifest, owners, rules);
        assert_eq!(&leave_out(manifest, live, owners, &left), expected);
    }

    #[test]
    fn a_field_of_our_own_that_is_left_out_keeps_its_live_value() {
        let manifest = json!({"spec": {"replicas": 2, "paused": false}});
        let live = json!({"spec": {"replicas": 3, "paused": false}});
        let ours = (
            FIELD_MANAGER,
            "Apply",
            json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}),
        );
        let rules = [rule(&["/spec/replicas"], &[])];
        let kept = json!({"spec": {"replicas": 3, "paused": false}});
        check(&manifest, &live, std::slice::from_ref(&ours), &rules, &kept);
        // What somebody else owns too stays without us.
        let theirs = ("scaler", "Update", json!({"f:spec": {"f:replicas": {}}}));
        let left = json!({"spec": {"paused": false}});
        check(&manifest, &live, &[ours, theirs.clone()], &rules, &left);
        let rest = (FIELD_MANAGER, "Apply", json!({"f:spec": {"f:paused": {}}}));
        check(&manifest, &live, &[rest, theirs], &rules, &left);
    }

    #[test]
    fn a_whole_map_can_be_left_to_others() {
        let manifest = json!({"data": {"a": "1", "b": "1"}});
        let live = json!({"data": {"a": "2", "b": "2", "c": "2"}});
        let ours = (FIELD_MANAGER, "Apply", json!({"f:data": {".": {}, "f:a": {}}}));
        let theirs = ("job", "Update", json!({"f:data": {"f:b": {}, "f:c": {}}}));
        let expected = json!({"data": {"a": "2"}});
        check(&manifest, &live, &[ours, theirs], &[rule(&["/data"], &[])], &expected);
    }

    #[test]
    fn an_item_of_a_list_is_named_as_its_owner_names_it() {
        let manifest = json!({"spec": {"containers": [{"name": "web", "image": "web:1"}], "command": ["a", "b"]}});
        let live = json!({"spec": {"containers": [{"name": "proxy"}, {"name": "web", "image": "web:2"}], "command": ["a", "c"]}});
        let ours = (
            FIELD_MANAGER,
            "Apply",
            json!({"f:spec": {"f:command": {}, "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}}}),
        );
        let rules = [rule(
            &["/spec/containers/0/image", "/spec/command/1", "/spec/nothing"],
            &[],
        )];
        let expected = json!({"spec": {"containers": [{"name": "web", "image": "web:2"}], "command": ["a", "c"]}});
        check(&manifest, &live, &[ours], &rules, &expected);
    }

    #[test]
    fn a_rule_for_a_manager_leaves_out_what_that_manager_owns() {
        let manifest = json!({"spec": {"replicas": 2}, "data": {"a": "1"}});
        let theirs = ("scaler", "Update", json!({"f:spec": {"f:replicas": {}}}));
        let left = json!({"data": {"a": "1"}});
        let paths = ["/spec/replicas", "/data/a"];
        check(
            &manifest,
            &json!({}),
            std::slice::from_ref(&theirs),
            &[rule(&paths, &["scaler"])],
            &left,
        );
        check(&manifest, &json!({}), &[theirs], &[rule(&paths, &["other"])], &manifest);
    }
}
