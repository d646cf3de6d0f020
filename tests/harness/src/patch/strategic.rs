//! Strategic merge patches: lists merge by the keys that the built-in types name.

use serde_json::{Map, Value};

use crate::schema::{Patch, Shape};

const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The object with the patch.
pub(super) fn merge(live: &Value, patch: &Value, shape: &Shape) -> Value {
    let (Value::Object(live), Value::Object(patch)) = (live, patch) else {
        return clean(patch);
    };
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        return clean(&Value::Object(patch.clone()));
    }
    let mut merged = live.clone();
    if let Some(Value::Array(keep)) = patch.get("$retainKeys") {
        merged.retain(|name, _| keep.iter().any(|kept| kept == name.as_str()));
    }
    for (name, value) in patch {
        if name.starts_with('$') {
            continue;
        }
        let strategy = shape.field(name).map(|field| &field.patch);
        let merged_value = match (merged.get(name), value) {
            (_, Value::Null) => None,
            (Some(_), Value::Object(map)) if map.get("$patch").is_some_and(|directive| directive == "delete") => None,
            (Some(old), Value::Object(_)) => Some(merge(old, value, shape.child(name))),
            (Some(Value::Array(old)), Value::Array(new)) => Some(lists(old, new, shape.child(name), strategy)),
            _ => Some(clean(value)),
        };
        match merged_value {
            Some(value) => merged.insert(name.clone(), value),
            None => merged.remove(name),
        };
    }
    delete_and_order(&mut merged, patch, shape);
    Value::Object(merged)
}

fn lists(old: &[Value], new: &[Value], shape: &Shape, strategy: Option<&Patch>) -> Value {
    let merges = strategy.is_some_and(|strategy| strategy.merge);
    if !merges || new.iter().any(|item| item["$patch"] == "replace") {
        return clean(&Value::Array(new.to_vec()));
    }
    let key = strategy.and_then(|strategy| strategy.key.as_deref());
    let (of, _) = shape.items();
    let mut merged = old.to_vec();
    for item in new {
        let at = match key {
            Some(key) => merged.iter().position(|old| old.get(key) == item.get(key)),
            None => merged.iter().position(|old| old == item),
        };
        match (at, item["$patch"] == "delete") {
            (Some(at), true) => drop(merged.remove(at)),
            (None, true) => {}
            (Some(at), false) => merged[at] = merge(&merged[at], item, of),
            (None, false) => merged.push(clean(item)),
        }
    }
    Value::Array(merged)
}

fn delete_and_order(merged: &mut Map<String, Value>, patch: &Map<String, Value>, shape: &Shape) {
    for (directive, values) in patch {
        let Some(values) = values.as_array() else { continue };
        if let Some(name) = directive.strip_prefix(DELETE)
            && let Some(items) = merged.get_mut(name).and_then(Value::as_array_mut)
        {
            items.retain(|item| !values.contains(item));
        }
    }
    for (directive, values) in patch {
        let Some(values) = values.as_array() else { continue };
        if let Some(name) = directive.strip_prefix(ORDER)
            && let Some(items) = merged.get_mut(name).and_then(Value::as_array_mut)
        {
            let key = shape.field(name).and_then(|field| field.patch.key.as_deref());
            let place = |item: &Value| {
                let same = |other: &&Value| match key {
                    Some(key) => other.get(key) == item.get(key),
                    None => *other == item,
                };
                values.iter().position(|value| same(&value)).unwrap_or(values.len())
            };
            items.sort_by_key(place);
        }
    }
}

/// Without directives and nulls, for what is taken whole.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map
                .iter()
                .filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), clean(value))).collect())
        }
        Value::Array(items) => {
            let kept = items
                .iter()
                .filter(|item| !matches!(item["$patch"].as_str(), Some("replace" | "delete")));
            Value::Array(kept.map(clean).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    #[track_caller]
    fn check(live: Value, patch: Value, expected: Value) {
        let pod = |spec: Value| json!({ "spec": spec });
        let merged = merge(&pod(live), &pod(patch), &builtin("core.v1.Pod"));
        assert_eq!(merged["spec"], expected);
    }

    #[test]
    fn lists_merge_by_key_and_directives_are_followed() {
        let two = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]});
        check(
            two.clone(),
            json!({"containers": [{"name": "a", "image": "2"}]}),
            json!({"containers": [{"name": "a", "image": "2"}, {"name": "b"}]}),
        );
        check(
            two.clone(),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": [{"name": "b"}]}),
        );
        check(
            two.clone(),
            json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
            json!({"containers": [{"name": "c"}]}),
        );
        check(
            two,
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "tty": true}]}),
            json!({"containers": [{"name": "b"}, {"name": "a", "image": "1", "tty": true}]}),
        );
        check(
            json!({"nodeSelector": {"a": "1", "b": "2"}, "tolerations": [{"key": "x"}]}),
            json!({"nodeSelector": {"a": null}, "tolerations": [{"key": "y"}]}),
            json!({"nodeSelector": {"b": "2"}, "tolerations": [{"key": "y"}]}),
        );
    }
}
