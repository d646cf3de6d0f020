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
            (Some(Value::Array(old)), Value::Array(new)) => {
                let order = patch.get(&format!("{ORDER}{name}")).and_then(Value::as_array);
                Some(lists(
                    old,
                    new,
                    shape.child(name),
                    strategy,
                    order.map_or(new, |order| order),
                ))
            }
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

/// A list merged by key. What the patch names comes in the order that it gives; what only the server has
/// keeps its place as far as both are known, and else comes after.
fn lists(old: &[Value], new: &[Value], shape: &Shape, strategy: Option<&Patch>, order: &[Value]) -> Value {
    let merges = strategy.is_some_and(|strategy| strategy.merge);
    if !merges || new.iter().any(|item| item["$patch"] == "replace") {
        return clean(&Value::Array(new.to_vec()));
    }
    let key = strategy.and_then(|strategy| strategy.key.as_deref());
    let same = |one: &Value, other: &Value| match key {
        Some(key) => one.get(key) == other.get(key),
        None => one == other,
    };
    let (of, _) = shape.items();
    let at = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let mut merged = old.to_vec();
    for item in new {
        match (at(&merged, item), item["$patch"] == "delete") {
            (Some(at), true) => drop(merged.remove(at)),
            (None, true) => {}
            (Some(at), false) => merged[at] = merge(&merged[at], item, of),
            (None, false) => merged.push(clean(item)),
        }
    }
    let (mut named, others): (Vec<_>, Vec<_>) = merged.into_iter().partition(|item| at(order, item).is_some());
    named.sort_by_key(|item| at(order, item).unwrap_or(order.len()));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut sorted = Vec::new();
    while let (Some(next), Some(other)) = (named.peek(), others.peek()) {
        let first = matches!((at(old, other), at(old, next)), (Some(other), Some(next)) if other < next);
        sorted.extend(if first { others.next() } else { named.next() });
    }
    sorted.extend(named);
    sorted.extend(others);
    Value::Array(sorted)
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
            && !patch.contains_key(name)
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
