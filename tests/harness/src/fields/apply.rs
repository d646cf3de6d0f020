//! Writes with their owners: a server-side apply, and every other write.

use serde_json::Value;

use super::compare::Difference;
use super::entries::{Entries, Manager, Owned};
use super::merge::{merge, without};
use super::set::{Path, Set, display};
use crate::schema::Shape;

/// A field that others own.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// `"kubectl" using v1`.
    pub manager: String,
    /// `.data.a`.
    pub path: String,
}

/// An applied object.
#[derive(Debug)]
pub(crate) struct Applied {
    pub object: Value,
    pub entries: Entries,
}

/// Fields that nobody owns.
fn nobodys() -> Vec<Path> {
    let top = ["apiVersion", "kind"].map(|name| vec![element(name)]);
    let of_metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let metadata = of_metadata.map(|name| vec![element("metadata"), element(name)]);
    top.into_iter().chain(metadata).collect()
}

fn element(name: &str) -> Box<str> {
    format!("f:{name}").into()
}

/// Paths that a write of this subresource does not touch, on a kind that has these.
pub(crate) fn ignored(subresource: &str, has_status: bool) -> Vec<Path> {
    let mut ignored = nobodys();
    match subresource {
        "status" => ignored.push(vec![element("spec")]),
        _ if has_status => ignored.push(vec![element("status")]),
        _ => {}
    }
    ignored
}

/// Merges a configuration into an object, which is empty when there is none yet.
pub(crate) fn apply(
    live: &Value,
    config: &Value,
    shape: &Shape,
    manager: &Manager,
    options: &ApplyOptions<'_>,
) -> Result<Applied, Vec<Conflict>> {
    let mut entries = Entries::of(live);
    let mut last = Set::default();
    let mut last_time = None;
    entries.0.retain(|other, owned| {
        let ours = other.applies_as(manager);
        if ours {
            last = last.union(&owned.set);
            last_time = owned.time.take();
        }
        !ours
    });
    let set = Set::of(config, shape).without(options.ignored);
    let merged = merge(live, config, shape);
    let object = drop_left(&merged, shape, &last, &entries, &set);
    let difference = Difference::of(live, &object, shape).without(options.ignored);
    let changed = difference.added.union(&difference.modified);
    let mut conflicts = Vec::new();
    for (other, owned) in &entries.0 {
        let overlap = owned.set.intersection(&changed);
        let named = overlap.0.iter().map(|path| Conflict {
            manager: other.display(),
            path: display(path),
        });
        conflicts.extend(named);
    }
    if !options.force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    take_from_others(&mut entries, &changed, &difference.removed, options.now);
    let time = if set == last { last_time } else { None };
    let owned = Owned {
        set,
        time: Some(time.unwrap_or_else(|| options.now.to_owned())),
    };
    if !owned.set.is_empty() {
        entries.0.insert(manager.clone(), owned);
    }
    Ok(Applied { object, entries })
}

/// How an apply goes.
pub(crate) struct ApplyOptions<'a> {
    /// Takes fields from other managers.
    pub force: bool,
    pub now: &'a str,
    /// Paths that nobody owns by this write.
    pub ignored: &'a [Path],
}

/// Without the fields that this manager applied before, does not apply now, and nobody else owns.
fn drop_left(merged: &Value, shape: &Shape, last: &Set, others: &Entries, now: &Set) -> Value {
    let mut kept = now.with_parents();
    for owned in others.0.values() {
        kept = kept.union(&owned.set.with_parents());
    }
    let left = last.difference(&kept);
    if left.is_empty() {
        return merged.clone();
    }
    without(merged, shape, &left)
}

/// A write that is no apply: the writer owns what it changed.
pub(crate) fn update(
    live: &Value,
    object: &Value,
    shape: &Shape,
    manager: &Manager,
    options: &ApplyOptions<'_>,
) -> Entries {
    // Who says nothing of owners, or names them all, keeps them; an empty list forgets them.
    let mut entries = match object["metadata"]["managedFields"].as_array() {
        Some(given)
            if given
                .iter()
                .all(|entry| entry.as_object().is_none_or(serde_json::Map::is_empty)) =>
        {
            Entries::default()
        }
        Some(_) => Entries::of(object),
        None => Entries::of(live),
    };
    let difference = Difference::of(live, object, shape).without(options.ignored);
    let changed = difference.added.union(&difference.modified);
    let ours = entries.0.remove(manager);
    take_from_others(&mut entries, &changed, &difference.removed, options.now);
    let before = ours.as_ref().map(|owned| owned.set.clone()).unwrap_or_default();
    let set = before.difference(&difference.removed).union(&named(&changed, shape));
    let time = ours
        .and_then(|owned| owned.time)
        .filter(|_| set == before && changed.is_empty());
    if !set.is_empty() {
        let time = Some(time.unwrap_or_else(|| options.now.to_owned()));
        entries.0.insert(manager.clone(), Owned { set, time });
    }
    entries
}

fn take_from_others(entries: &mut Entries, changed: &Set, removed: &Set, now: &str) {
    entries.0.retain(|_, owned| {
        let left = owned.set.difference(changed).difference(removed);
        if left != owned.set {
            owned.time = Some(now.to_owned());
            owned.set = left;
        }
        !owned.set.is_empty()
    });
}

/// Without the objects that every object of this shape has by itself, which the real server does not
/// count as added: `spec`, and fields that are required.
fn named(changed: &Set, shape: &Shape) -> Set {
    let counts = |path: &&Path| {
        let below = changed
            .0
            .range((*path).clone()..)
            .nth(1)
            .is_some_and(|next| next.starts_with(path));
        !below || !is_always_there(path, shape)
    };
    Set(changed.0.iter().filter(counts).cloned().collect())
}

fn is_always_there(path: &Path, shape: &Shape) -> bool {
    let mut shape = shape;
    let mut always = false;
    for (depth, element) in path.iter().enumerate() {
        match element.split_at(2) {
            ("f:", name) => {
                let field = shape.field(name);
                let top = depth == 0 && matches!(name, "metadata" | "spec" | "status");
                always = top || field.is_some_and(|field| field.required) || name == "template" || name == "strategy";
                shape = shape.child(name);
            }
            _ => {
                always = false;
                shape = shape.items().0;
            }
        }
    }
    always
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::entries::Operation;
    use super::*;
    use crate::schema::builtin;

    fn manager(name: &str, operation: Operation) -> Manager {
        Manager {
            operation,
            subresource: "".into(),
            name: name.into(),
            api_version: "v1".into(),
        }
    }

    fn options(force: bool) -> ApplyOptions<'static> {
        ApplyOptions {
            force,
            now: "2026-01-01T00:00:00Z",
            ignored: &[],
        }
    }

    fn applied(live: &Value, config: &Value, name: &str, force: bool) -> Result<Value, Vec<Conflict>> {
        let shape = builtin("core.v1.ConfigMap");
        let applied = apply(live, config, &shape, &manager(name, Operation::Apply), &options(force))?;
        let mut object = applied.object;
        applied.entries.write(&mut object);
        Ok(object)
    }

    #[test]
    fn a_field_that_is_no_longer_applied_goes_unless_somebody_else_owns_it() {
        let both = json!({"metadata": {}, "data": {"a": "1", "b": "2"}});
        let object = applied(&json!({"metadata": {}}), &both, "one", false).expect("nobody else owns it");
        let object = applied(&object, &json!({"metadata": {}, "data": {"b": "2"}}), "two", false).expect("same value");
        let object = applied(&object, &json!({"metadata": {}}), "one", false).expect("it only lets go");
        assert_eq!(object["data"], json!({"b": "2"}));
        let object = applied(&object, &json!({"metadata": {}}), "two", false).expect("it only lets go");
        assert!(object.get("data").is_none(), "{object}");
    }

    #[test]
    fn another_value_conflicts_and_force_takes_the_field() {
        let config = |value: &str| json!({"metadata": {}, "data": {"a": value}});
        let object = applied(&json!({"metadata": {}}), &config("1"), "one", false).expect("nobody else owns it");
        let conflicts = applied(&object, &config("2"), "two", false).expect_err("one owns it");
        assert_eq!(conflicts.len(), 1);
        assert_eq!(
            (conflicts[0].manager.as_str(), conflicts[0].path.as_str()),
            ("\"one\"", ".data.a")
        );
        let object = applied(&object, &config("2"), "two", true).expect("it is forced");
        assert_eq!(object["data"]["a"], "2");
        assert_eq!(object["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn an_update_owns_what_it_changes() {
        let shape = builtin("core.v1.ConfigMap");
        let live = applied(
            &json!({"metadata": {}}),
            &json!({"metadata": {}, "data": {"a": "1", "b": "1"}}),
            "one",
            false,
        )
        .expect("nobody else owns it");
        let mut object = live.clone();
        object["data"]["a"] = "2".into();
        let entries = update(
            &live,
            &object,
            &shape,
            &manager("edit", Operation::Update),
            &options(true),
        );
        entries.write(&mut object);
        let fields: Vec<_> = object["metadata"]["managedFields"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(fields[0]["fieldsV1"], json!({"f:data": {"f:b": {}}}));
        assert_eq!(fields[1]["fieldsV1"], json!({"f:data": {"f:a": {}}}));
    }
}
