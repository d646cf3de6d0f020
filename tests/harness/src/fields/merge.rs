//! An applied configuration merged into an object, and fields taken out of one.

use serde_json::{Map, Value};

use super::set::{Path, Set, field_element, item_element};
use crate::schema::{ListRule, Shape};

/// The object with what the configuration says.
pub(super) fn merge(live: &Value, config: &Value, shape: &Shape) -> Value {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) if !shape.is_atomic() => {
            let mut merged = live.clone();
            for (name, value) in config {
                let old = merged.remove(name);
                let value = old.map_or_else(|| value.clone(), |old| merge(&old, value, shape.child(name)));
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(config)) => match shape.items() {
            (_, ListRule::Atomic) => Value::Array(config.clone()),
            (of, rule) => Value::Array(merge_items(live, config, of, rule)),
        },
        _ => config.clone(),
    }
}

/// The configuration's items in its order; what it does not name stays where it was, as far as that goes.
fn merge_items(live: &[Value], config: &[Value], of: &Shape, rule: &ListRule) -> Vec<Value> {
    let key = |item: &Value| item_element(of, rule, item);
    let named: Vec<_> = config.iter().map(key).collect();
    let mut merged = Vec::with_capacity(live.len() + config.len());
    let mut next = 0;
    let item = |at: usize| {
        let old = live.iter().find(|old| key(old) == named[at]);
        old.map_or_else(|| config[at].clone(), |old| merge(old, &config[at], of))
    };
    for old in live {
        match named.iter().position(|name| *name == key(old)) {
            None => merged.push(old.clone()),
            Some(at) => {
                while next <= at {
                    merged.push(item(next));
                    next += 1;
                }
            }
        }
    }
    merged.extend((next..config.len()).map(item));
    merged
}

/// The object without these paths. Maps and lists that this empties go too.
pub(super) fn without(value: &Value, shape: &Shape, remove: &Set) -> Value {
    prune(value, shape, remove, &mut Vec::new()).unwrap_or_else(|| Value::Object(Map::new()))
}

fn prune(value: &Value, shape: &Shape, remove: &Set, path: &mut Path) -> Option<Value> {
    if !touches(remove, path) {
        return Some(value.clone());
    }
    match value {
        Value::Object(map) if !shape.is_atomic() => {
            let mut kept = Map::new();
            for (name, child) in map {
                path.push(field_element(name));
                if !remove.0.contains(path)
                    && let Some(child) = prune(child, shape.child(name), remove, path)
                {
                    kept.insert(name.clone(), child);
                }
                path.pop();
            }
            (!kept.is_empty() || map.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let (of, rule) = shape.items();
            if *rule == ListRule::Atomic {
                return Some(value.clone());
            }
            let mut kept = Vec::new();
            for item in items {
                path.push(item_element(of, rule, item));
                if !remove.0.contains(path) {
                    kept.extend(prune(item, of, remove, path));
                }
                path.pop();
            }
            (!kept.is_empty() || items.is_empty()).then_some(Value::Array(kept))
        }
        _ => Some(value.clone()),
    }
}

/// Whether something at or below a path is to go.
fn touches(remove: &Set, path: &Path) -> bool {
    remove
        .0
        .range(path.clone()..)
        .next()
        .is_some_and(|next| next.starts_with(path))
}
