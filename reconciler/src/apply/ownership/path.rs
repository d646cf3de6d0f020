//! A field of a manifest: found by the API server's words or a JSON pointer, taken out, and put in.
//!
//! The words name keys of maps without quotes (`.data.config.yaml`), so that they can only be read beside the
//! manifest that they are about.

use serde_json::{Map, Value};

use super::conflict::quoted;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::apply) enum Step {
    /// A key of a map.
    Field(String),
    /// The item of a list whose fields are these. A manifest may lack some of them, where they have defaults.
    Key(Map<String, Value>),
    /// An item of a set.
    Value(Value),
    /// An item of a list that is one value as a whole.
    Index(usize),
}

/// Steps from an object to a field of it.
pub(in crate::apply) type Path = Vec<Step>;

/// The field of `object` that the API server's words mean; `None` when it has no such field.
pub(in crate::apply) fn locate(words: &str, object: &Value) -> Option<Path> {
    let mut path = Vec::new();
    find(words, object, &mut path).then_some(path)
}

fn find(words: &str, value: &Value, path: &mut Path) -> bool {
    if words.is_empty() {
        return true;
    }
    if let Some(rest) = words.strip_prefix('.') {
        let Value::Object(map) = value else { return false };
        let is_end = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
        let mut keys: Vec<_> = map
            .keys()
            .filter(|key| rest.strip_prefix(key.as_str()).is_some_and(is_end))
            .collect();
        // Of `a` with `b` below it and `a.b`, the longer one is the likelier: dots are what labels have.
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        return keys.into_iter().any(|key| {
            path.push(Step::Field(key.clone()));
            let found = find(&rest[key.len()..], &map[key], path);
            if !found {
                path.pop();
            }
            found
        });
    }
    let Some((step, rest)) = item(words) else { return false };
    let Some(child) = child(value, &step) else { return false };
    path.push(step);
    let found = find(rest, child, path);
    if !found {
        path.pop();
    }
    found
}

/// As [`locate`], as a JSON pointer.
pub(in crate::apply) fn pointer(words: &str, object: &Value) -> Option<String> {
    let mut value = object;
    let mut pointer = String::new();
    for step in locate(words, object)? {
        let token = match (&step, value) {
            (Step::Field(name), _) => name.replace('~', "~0").replace('/', "~1"),
            (_, Value::Array(items)) => index_of(items, &step)?.to_string(),
            _ => return None,
        };
        value = child(value, &step)?;
        pointer = format!("{pointer}/{token}");
    }
    Some(pointer)
}

/// The step of `[name="web",port=80]`, `[="a"]` or `[3]`, and what follows.
fn item(words: &str) -> Option<(Step, &str)> {
    let words = words.strip_prefix('[')?;
    if let Some(rest) = words.strip_prefix('=') {
        let (value, rest) = scalar(rest)?;
        return Some((Step::Value(value), rest.strip_prefix(']')?));
    }
    if let Some((number, rest)) = words.split_once(']')
        && let Ok(index) = number.parse()
    {
        return Some((Step::Index(index), rest));
    }
    let mut keys = Map::new();
    let mut rest = words;
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = scalar(after)?;
        keys.insert(name.to_owned(), value);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some((Step::Key(keys), after.strip_prefix(']')?)),
        }
    }
}

fn scalar(words: &str) -> Option<(Value, &str)> {
    if words.starts_with('"') {
        let (text, rest) = quoted(words)?;
        return Some((text.into(), rest));
    }
    let end = words.find([',', ']'])?;
    let value = serde_json::from_str(&words[..end]).ok()?;
    Some((value, &words[end..]))
}

/// The field of `object` that a JSON pointer means, as far as it goes inside lists by index; `None` when it
/// has no such field.
pub(super) fn point(pointer: &str, object: &Value) -> Option<Vec<(Step, Option<Value>)>> {
    let mut steps = Vec::new();
    let mut value = object;
    for token in pointer.strip_prefix('/')?.split('/') {
        let token = token.replace("~1", "/").replace("~0", "~");
        value = match value {
            Value::Object(map) => {
                let child = map.get(&token)?;
                steps.push((Step::Field(token), None));
                child
            }
            Value::Array(items) => {
                let index = token.parse().ok()?;
                let child = items.get(index)?;
                steps.push((Step::Index(index), Some(child.clone())));
                child
            }
            _ => return None,
        };
    }
    Some(steps)
}

/// Whether an item of a list is the one with these keys; a key that it lacks has its default.
pub(super) fn has_keys(item: &Value, keys: &Map<String, Value>) -> bool {
    let Value::Object(item) = item else { return false };
    let equal = |(name, value): (&String, &Value)| item.get(name).is_none_or(|found| found == value);
    keys.iter().all(equal) && keys.keys().any(|name| item.contains_key(name))
}

/// The index of the item that a step means. The one that has every key counts before one that lacks some.
fn index_of(items: &[Value], step: &Step) -> Option<usize> {
    match step {
        Step::Field(_) => None,
        Step::Index(index) => (*index < items.len()).then_some(*index),
        Step::Value(value) => items.iter().position(|item| item == value),
        Step::Key(keys) => {
            let whole = |item: &Value| keys.iter().all(|(name, value)| item.get(name) == Some(value));
            let exact = items.iter().position(whole);
            exact.or_else(|| items.iter().position(|item| has_keys(item, keys)))
        }
    }
}

fn child<'a>(value: &'a Value, step: &Step) -> Option<&'a Value> {
    match (value, step) {
        (Value::Object(map), Step::Field(name)) => map.get(name),
        (Value::Array(items), _) => items.get(index_of(items, step)?),
        _ => None,
    }
}

/// The part of a value that a path leads to.
pub(super) fn value_at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, child)
}

/// Takes a field out. A key of a list's item cannot go alone, so the whole item goes; what is empty then goes
/// too. Whether it was there.
pub(super) fn remove(value: &mut Value, path: &[Step]) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return false;
    };
    let is_whole = rest.is_empty() || is_key_of(step, rest);
    match (value, step) {
        (Value::Object(map), Step::Field(name)) => {
            if is_whole {
                return map.remove(name).is_some();
            }
            let Some(child) = map.get_mut(name) else { return false };
            let removed = remove(child, rest);
            if removed && is_empty(child) {
                map.remove(name);
            }
            removed
        }
        (Value::Array(items), _) => {
            let Some(index) = index_of(items, step) else {
                return false;
            };
            if is_whole {
                items.remove(index);
                return true;
            }
            let removed = remove(&mut items[index], rest);
            if removed && is_empty(&items[index]) {
                items.remove(index);
            }
            removed
        }
        _ => false,
    }
}

/// Whether `rest` is one of the fields that tell the item from others.
fn is_key_of(step: &Step, rest: &[Step]) -> bool {
    match (step, rest) {
        (Step::Key(keys), [Step::Field(name)]) => keys.contains_key(name),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Puts a field in, with the maps and items on the way to it.
pub(super) fn put(value: &mut Value, path: &[Step], field: Value) {
    let Some((step, rest)) = path.split_first() else {
        *value = field;
        return;
    };
    match step {
        Step::Field(name) => {
            if !value.is_object() {
                *value = Map::new().into();
            }
            put(&mut value[name.as_str()], rest, field);
        }
        Step::Index(_) => {}
        Step::Key(_) | Step::Value(_) => {
            if !value.is_array() {
                *value = Value::Array(Vec::new());
            }
            let Value::Array(items) = value else { return };
            let index = index_of(items, step).unwrap_or_else(|| {
                items.push(match step {
                    Step::Key(keys) => keys.clone().into(),
                    Step::Value(value) => value.clone(),
                    Step::Field(_) | Step::Index(_) => Value::Null,
                });
                items.len() - 1
            });
            put(&mut items[index], rest, field);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({"metadata": {"annotations": {"example.org/a.b": "1", "example.org/a": "2"}, "finalizers": ["x.io/f", "y"]},
            "data": {"config.yaml": "a: 1", "config": {"yaml": "odd"}},
            "spec": {"containers": [
                {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]},
                {"name": "proxy", "image": "proxy:1"}], "command": ["a", "b"]}})
    }

    #[track_caller]
    fn check_removed(words: &str, expected: impl Fn(&mut Value)) {
        let mut object = pod();
        let path = locate(words, &object).unwrap_or_else(|| panic!("{words} is a field"));
        assert!(remove(&mut object, &path), "{words} is removed");
        let mut wanted = pod();
        expected(&mut wanted);
        assert_eq!(object, wanted, "without {words}");
    }

    #[test]
    fn a_field_that_is_refused_is_taken_out_and_nothing_else() {
        check_removed(".spec.containers[name=\"web\"].image", |pod| {
            pod["spec"]["containers"][0]
                .as_object_mut()
                .map(|item| item.remove("image"));
        });
        check_removed(".metadata.annotations.example.org/a.b", |pod| {
            pod["metadata"]["annotations"]
                .as_object_mut()
                .map(|map| map.remove("example.org/a.b"));
        });
        check_removed(".data.config.yaml", |pod| {
            pod["data"].as_object_mut().map(|map| map.remove("config.yaml"));
        });
        check_removed(".metadata.finalizers[=\"x.io/f\"]", |pod| {
            pod["metadata"]["finalizers"] = json!(["y"]);
        });
        // A list that is one value goes as one.
        check_removed(".spec.command", |pod| {
            pod["spec"].as_object_mut().map(|map| map.remove("command"));
        });
    }

    #[test]
    fn a_key_of_an_item_takes_the_whole_item_with_it() {
        check_removed(".spec.containers[name=\"proxy\"].name", |pod| {
            pod["spec"]["containers"].as_array_mut().map(|items| items.remove(1));
        });
        // A key with a default need not be in the manifest, and one that is there counts first.
        check_removed(
            ".spec.containers[name=\"web\"].ports[containerPort=80,protocol=\"TCP\"].containerPort",
            |pod| {
                pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "protocol": "UDP"}]);
            },
        );
        check_removed(
            ".spec.containers[name=\"web\"].ports[containerPort=80,protocol=\"UDP\"]",
            |pod| {
                pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
            },
        );
    }

    #[test]
    fn what_a_manifest_lacks_is_not_found_in_it() {
        for words in [
            ".spec.nothing",
            ".spec.containers[name=\"other\"].image",
            ".spec.containers[name=\"web\"",
            ".metadata.annotations.example.org/a.c",
            ".spec.containers[9]",
            ".metadata.finalizers[=\"z\"]",
            "spec",
            "[",
        ] {
            assert_eq!(locate(words, &pod()), None, "{words}");
        }
    }

    #[test]
    fn what_is_emptied_goes_too() {
        let mut object = json!({"data": {"a": "1"}, "spec": {"items": [{"name": "x", "v": 1}]}});
        let path = locate(".data.a", &object).expect("a field");
        remove(&mut object, &path);
        let path = locate(".spec.items[name=\"x\"]", &object).expect("a field");
        remove(&mut object, &path);
        assert_eq!(object, json!({}));
    }

    #[test]
    fn what_is_put_in_is_found_again() {
        let mut object = json!({});
        let keys = json!({"name": "web"}).as_object().cloned().expect("a map");
        let path = vec![
            Step::Field("spec".to_owned()),
            Step::Field("containers".to_owned()),
            Step::Key(keys),
            Step::Field("image".to_owned()),
        ];
        put(&mut object, &path, json!("web:2"));
        assert_eq!(
            object,
            json!({"spec": {"containers": [{"name": "web", "image": "web:2"}]}})
        );
        assert_eq!(value_at(&object, &path), Some(&json!("web:2")));
    }

    /// Objects of maps, lists of named items, sets and plain values, with keys that have dots.
    fn objects() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let key = prop_oneof![Just("a"), Just("b"), Just("a.b"), Just("x.io/c"), Just("name2")];
            prop_oneof![
                prop::collection::btree_map(key, inner.clone(), 1..4)
                    .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
                prop::collection::btree_map("[p-s]", inner, 1..4).prop_map(|items| items
                    .into_iter()
                    .map(|(name, value)| json!({"name": name, "value": value}))
                    .collect()),
                prop::collection::btree_set("[t-v]", 1..3).prop_map(|set| set.into_iter().map(Value::from).collect()),
            ]
        })
    }

    /// Every field of a value with its words.
    fn all(value: &Value, words: &str, path: &Path, found: &mut Vec<(String, Path)>) {
        if !path.is_empty() {
            found.push((words.to_owned(), path.clone()));
        }
        let mut step = |text: String, step: Step, child: &Value| {
            let path = path.iter().cloned().chain([step]).collect();
            all(child, &format!("{words}{text}"), &path, found);
        };
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, child)| step(format!(".{key}"), Step::Field(key.clone()), child)),
            Value::Array(items) => items.iter().for_each(|item| match item.get("name") {
                Some(name) => {
                    let keys = [("name".to_owned(), name.clone())].into_iter().collect();
                    step(format!("[name={name}]"), Step::Key(keys), item);
                }
                None => step(format!("[={item}]"), Step::Value(item.clone()), item),
            }),
            _ => {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_field_is_found_by_its_words_and_goes_alone(object in objects(), pick in any::<prop::sample::Index>()) {
            let object = json!({"spec": object});
            let mut fields = Vec::new();
            all(&object, "", &Vec::new(), &mut fields);
            let (words, path) = pick.get(&fields);
            let found = locate(words, &object);
            // Two fields can have the same words (`a` with `b` below it, and `a.b`); then it is one of them.
            let same: Vec<_> = fields.iter().filter(|(other, _)| other == words).map(|(_, path)| path.clone()).collect();
            prop_assert!(found.as_ref().is_some_and(|found| same.contains(found)), "{words} in {object}");
            let mut without = object.clone();
            prop_assert!(remove(&mut without, path));
            prop_assert!(value_at(&without, path).is_none());
            // Nothing else changed: what is left is part of what was there, and fields beside it are all there.
            let is_key = matches!(path.last(), Some(Step::Field(name)) if name == "name");
            let gone = if is_key { &path[..path.len() - 1] } else { &path[..] };
            for (_, other) in &fields {
                let leads_there = gone.starts_with(other) || other.starts_with(gone);
                if !leads_there {
                    prop_assert_eq!(value_at(&without, other), value_at(&object, other));
                }
            }
        }

        #[test]
        fn what_was_taken_out_can_be_put_back(object in objects(), pick in any::<prop::sample::Index>()) {
            let object = json!({"spec": object});
            let mut fields = Vec::new();
            all(&object, "", &Vec::new(), &mut fields);
            let (_, path) = pick.get(&fields);
            let value = value_at(&object, path).cloned().unwrap_or_default();
            let mut changed = object.clone();
            remove(&mut changed, path);
            put(&mut changed, path, value.clone());
            prop_assert_eq!(value_at(&changed, path), Some(&value));
        }
    }
}
