//! What differs between two states of an object, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::{Path, Set, field_element, item_element};
use crate::schema::{ListRule, Shape};

/// What differs.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub added: Set,
    pub removed: Set,
    pub modified: Set,
}

impl Difference {
    /// Between two states of an object.
    pub(super) fn of(before: &Value, after: &Value, shape: &Shape) -> Self {
        let mut difference = Self::default();
        difference.walk(Some(before), Some(after), shape, &mut Vec::new());
        difference
    }

    pub(super) fn without(self, prefixes: &[Path]) -> Self {
        Self {
            added: self.added.without(prefixes),
            removed: self.removed.without(prefixes),
            modified: self.modified.without(prefixes),
        }
    }

    fn walk(&mut self, before: Option<&Value>, after: Option<&Value>, shape: &Shape, path: &mut Path) {
        if before == after {
            return;
        }
        let any = after.or(before);
        let parts = match any {
            Some(Value::Object(_)) => !shape.is_atomic(),
            Some(Value::Array(_)) => *shape.items().1 != ListRule::Atomic,
            _ => false,
        };
        let same_type = match (before, after) {
            (Some(before), Some(after)) => {
                before.is_object() == after.is_object() && before.is_array() == after.is_array()
            }
            _ => true,
        };
        if !parts || !same_type {
            return self.leaf(before, after, path);
        }
        match any {
            Some(Value::Object(_)) => self.walk_map(before, after, shape, path),
            _ => self.walk_list(before, after, shape, path),
        }
        match (before, after) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            _ => {}
        }
    }

    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>, path: &Path) {
        match (before, after) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            _ => self.modified.insert(path),
        }
    }

    fn walk_map(&mut self, before: Option<&Value>, after: Option<&Value>, shape: &Shape, path: &mut Path) {
        let empty = Map::new();
        let map = |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned();
        let (before, after) = (map(before), map(after));
        let (before, after) = (before.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty));
        let only_before = before.keys().filter(|name| !after.contains_key(*name));
        for name in after.keys().chain(only_before) {
            path.push(field_element(name));
            self.walk(before.get(name), after.get(name), shape.child(name), path);
            path.pop();
        }
    }

    fn walk_list(&mut self, before: Option<&Value>, after: Option<&Value>, shape: &Shape, path: &mut Path) {
        let (of, rule) = shape.items();
        let items = |value: Option<&Value>| -> BTreeMap<Box<str>, Value> {
            let items = value.and_then(Value::as_array).into_iter().flatten();
            items.map(|item| (item_element(of, rule, item), item.clone())).collect()
        };
        let (before, after) = (items(before), items(after));
        let only_before = before.keys().filter(|element| !after.contains_key(*element));
        for element in after.keys().chain(only_before) {
            path.push(element.clone());
            self.walk(before.get(element), after.get(element), of, path);
            path.pop();
        }
    }
}
