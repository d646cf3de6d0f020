//! Sets of field paths, and their written form (FieldsV1).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::schema::{ListRule, Shape};

/// A path: each element as FieldsV1 writes it (`f:name`, `k:{…}`, `v:…`).
pub(crate) type Path = Vec<Box<str>>;

/// Paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(pub BTreeSet<Path>);

impl Set {
    /// The fields that an applied configuration names.
    pub(crate) fn of(value: &Value, shape: &Shape) -> Self {
        let mut set = Self::default();
        set.add(value, shape, &mut Vec::new());
        set
    }

    fn add(&mut self, value: &Value, shape: &Shape, path: &mut Path) {
        match value {
            Value::Object(_) | Value::Array(_) if shape.is_atomic() => self.insert(path),
            Value::Object(map) => {
                for (name, child) in map {
                    path.push(field_element(name));
                    self.add(child, shape.child(name), path);
                    let empty = child.is_null() || child.as_object().is_some_and(Map::is_empty);
                    // The entries of a map are owned as such, beside what is in them.
                    if empty || shape.field(name).is_none() {
                        self.insert(path);
                    }
                    path.pop();
                }
            }
            Value::Array(items) => match shape.items() {
                (_, ListRule::Atomic) => self.insert(path),
                (of, rule) => {
                    for item in items {
                        path.push(item_element(of, rule, item));
                        self.add(item, of, path);
                        self.insert(path);
                        path.pop();
                    }
                }
            },
            _ => self.insert(path),
        }
    }

    pub(crate) fn insert(&mut self, path: &Path) {
        if !path.is_empty() {
            self.0.insert(path.clone());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    /// Without what lies at or below these paths. Metadata as such, which every object has, is nobody's.
    pub(crate) fn without(&self, prefixes: &[Path]) -> Self {
        let is_metadata = |path: &Path| matches!(&path[..], [only] if &**only == "f:metadata");
        let below = |path: &Path| is_metadata(path) || prefixes.iter().any(|prefix| path.starts_with(prefix));
        Self(self.0.iter().filter(|path| !below(path)).cloned().collect())
    }

    /// With every path above its paths.
    pub(crate) fn with_parents(&self) -> Self {
        let mut all = BTreeSet::new();
        for path in &self.0 {
            for length in 1..=path.len() {
                all.insert(path[..length].to_vec());
            }
        }
        Self(all)
    }

    /// As FieldsV1.
    pub(crate) fn fields_v1(&self) -> Value {
        let mut root = Map::new();
        for path in &self.0 {
            let below = self
                .0
                .range(path.clone()..)
                .nth(1)
                .is_some_and(|next| next.starts_with(path));
            let mut at = &mut root;
            for element in path {
                let child = at
                    .entry(element.to_string())
                    .or_insert_with(|| Value::Object(Map::new()));
                at = match child {
                    Value::Object(map) => map,
                    _ => return Value::Object(Map::new()),
                };
            }
            if below {
                at.insert(".".to_owned(), Value::Object(Map::new()));
            }
        }
        Value::Object(root)
    }

    /// From FieldsV1.
    pub(crate) fn from_fields_v1(fields: &Value) -> Self {
        let mut set = Self::default();
        set.read(fields, &mut Vec::new());
        set
    }

    fn read(&mut self, fields: &Value, path: &mut Path) {
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                self.insert(path);
                continue;
            }
            path.push(element.as_str().into());
            if below.as_object().is_none_or(Map::is_empty) {
                self.insert(path);
            } else {
                self.read(below, path);
            }
            path.pop();
        }
    }
}

pub(super) fn field_element(name: &str) -> Box<str> {
    format!("f:{name}").into()
}

/// The element for an item of a list that is a set or a map.
pub(super) fn item_element(of: &Shape, rule: &ListRule, item: &Value) -> Box<str> {
    match rule {
        ListRule::Keys(keys) => format!("k:{}", Value::Object(of.key_of(keys, item))).into(),
        ListRule::Set | ListRule::Atomic => format!("v:{item}").into(),
    }
}

/// A path as the API server writes it for people: `.spec.containers[name="web"].image`.
pub(crate) fn display(path: &Path) -> String {
    let mut text = String::new();
    for element in path {
        match element.split_at(2) {
            ("f:", name) => {
                text.push('.');
                text.push_str(name);
            }
            ("k:", key) => {
                let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
                let pairs: Vec<_> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
                text.push_str(&format!("[{}]", pairs.join(",")));
            }
            (_, value) => text.push_str(&format!("[={value}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    fn deployment() -> Value {
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 80}], "args": ["x"]}],
                "tolerations": [{"key": "x"}]}}}})
    }

    #[test]
    fn an_applied_configuration_owns_what_the_real_server_says() {
        let set = Set::of(&deployment(), &builtin("apps.v1.Deployment"));
        let expected = json!({"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:args": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                "f:tolerations": {}}}}});
        assert_eq!(set.fields_v1(), expected);
        assert_eq!(Set::from_fields_v1(&expected), set, "what is written is read back");
    }

    #[test]
    fn paths_are_told_as_the_real_server_tells_them() {
        let path: Path = vec!["f:spec".into(), "k:{\"name\":\"web\"}".into(), "v:\"x\"".into()];
        assert_eq!(display(&path), ".spec[name=\"web\"][=\"x\"]");
    }
}
