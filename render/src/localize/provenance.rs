//! Which override set which field.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::describe::{Provenance, SERVER_POINTERS};
use crate::localize::problem::Place;

/// The last writer of every field that a step changed.
#[derive(Default)]
pub(super) struct Writers(BTreeMap<String, (String, String)>);

impl Writers {
    /// Notes what changed between two states of an object.
    pub(super) fn note(&mut self, before: &Value, after: &Value, place: Place<'_>) {
        let mut changed = Vec::new();
        compare(before, after, &mut String::new(), &mut changed);
        self.note_fields(changed, place);
    }

    /// Notes that these fields were written.
    pub(super) fn note_fields(&mut self, fields: Vec<String>, place: Place<'_>) {
        let by = place.item.label();
        let at = format!("{}:{}", place.item.file, place.line());
        for field in fields {
            self.forget(&field);
            self.0.insert(field, (by.clone(), at.clone()));
        }
    }

    /// Forgets what was known above and below a field: a leaf that became a map is no leaf any more, and
    /// what stood in a removed map is gone.
    fn forget(&mut self, field: &str) {
        let below = format!("{field}/");
        let inside: Vec<String> = self
            .0
            .range(below.clone()..)
            .take_while(|(known, _)| known.starts_with(&below))
            .map(|(known, _)| known.clone())
            .collect();
        for known in inside {
            self.0.remove(&known);
        }
        for (end, _) in field.match_indices('/') {
            self.0.remove(&field[..end]);
        }
    }

    /// Sorted by field. Fields that are stripped from every object are left out.
    pub(super) fn finish(self) -> Vec<Provenance> {
        let stripped = |field: &str| {
            let inside = |pointer: &str| {
                field
                    .strip_prefix(pointer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            SERVER_POINTERS.iter().any(|pointer| inside(pointer))
        };
        self.0
            .into_iter()
            .filter(|(field, _)| !stripped(field))
            .map(|(field, (by, at))| Provenance { field, by, at })
            .collect()
    }
}

/// Pointers of the leaves that differ; of what was removed, the topmost.
pub(super) fn compare(before: &Value, after: &Value, path: &mut String, changed: &mut Vec<String>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, item) in new {
                let old = old.get(key).unwrap_or(&Value::Null);
                if old.is_null() && item.is_null() {
                    continue;
                }
                within(path, key, |path| compare(old, item, path, changed));
            }
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                within(path, key, |path| changed.push(path.clone()));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, item) in new.iter().enumerate() {
                let old = old.get(index).unwrap_or(&Value::Null);
                within(path, &index.to_string(), |path| compare(old, item, path, changed));
            }
            for index in new.len()..old.len() {
                within(path, &index.to_string(), |path| changed.push(path.clone()));
            }
        }
        (_, after) => leaves(after, path, changed),
    }
}

/// Pointers of all leaves of a value; an empty map or list is one.
pub(super) fn leaves(value: &Value, path: &mut String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, item) in map {
                within(path, key, |path| leaves(item, path, found));
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                within(path, &index.to_string(), |path| leaves(item, path, found));
            }
        }
        _ => found.push(path.clone()),
    }
}

fn within(path: &mut String, key: &str, visit: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    visit(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: &[&str]) {
        let mut changed = Vec::new();
        compare(&before, &after, &mut String::new(), &mut changed);
        changed.sort();
        assert_eq!(changed, expected, "{before} to {after}");
    }

    #[test]
    fn changes_are_told_by_leaf() {
        check(json!({"a": 1}), json!({"a": 1}), &[]);
        check(
            json!({"a": 1}),
            json!({"a": 2, "b": {"c": 1, "d/e": []}}),
            &["/a", "/b/c", "/b/d~1e"],
        );
        check(json!({"a": {"b": 1, "c": 2}}), json!({}), &["/a"]);
        check(json!({"a": [1, 2, 3]}), json!({"a": [1, 9]}), &["/a/1", "/a/2"]);
        check(json!({"a": 1}), json!({"a": {"b": 1}}), &["/a/b"]);
        check(json!({"a": {"b": 1}}), json!({"a": null}), &["/a"]);
    }
}
