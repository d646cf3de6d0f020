//! The differences of one placement, as the hub tells them, and as people read them.

use serde_json::{Value, json};

use crate::cli::output;
use crate::wire::{FieldDrift, ObjectDrift};

/// Characters of a value in a table.
const CELL_CHARS_MAX: usize = 40;

/// A unit on a cluster where others changed fields.
pub(super) struct Drifted {
    pub(super) namespace: String,
    pub(super) unit: String,
    pub(super) cluster: String,
    pub(super) objects: Vec<ObjectDrift>,
    /// How many objects differ; the report tells of the first few.
    count: usize,
}

impl Drifted {
    /// A unit on cluster `paris` with these differences.
    #[cfg(test)]
    pub(super) fn of(unit: &str, objects: Vec<ObjectDrift>) -> Self {
        Self {
            namespace: "shop".to_owned(),
            unit: unit.to_owned(),
            cluster: "paris".to_owned(),
            count: objects.len(),
            objects,
        }
    }

    /// Reads a placement; `None` for one without differences.
    pub(super) fn read(placement: &Value) -> Option<Self> {
        let text = |pointer: &str| {
            let text = placement.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let count = placement.pointer("/status/objects/drifted").and_then(Value::as_u64);
        let count = usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX);
        let objects = placement.pointer("/status/drift").cloned().unwrap_or(json!([]));
        let drifted = Self {
            namespace: text("/metadata/namespace"),
            unit: text("/spec/subscription"),
            cluster: text("/spec/cluster"),
            objects: serde_json::from_value(objects).unwrap_or_default(),
            count,
        };
        (drifted.count > 0 || !drifted.objects.is_empty()).then_some(drifted)
    }

    /// As `flotilla get placements -o name` has it.
    pub(super) fn name(&self) -> String {
        format!("placement.fleet.flotilla.dev/{}.{}\n", self.unit, self.cluster)
    }

    /// What the report does not tell, in a sentence; `None` where it tells all.
    pub(super) fn left_out(&self) -> Option<String> {
        let objects = self.count.saturating_sub(self.objects.len());
        let fields: usize = self.objects.iter().map(|object| object.more).sum();
        let mut parts = Vec::new();
        if objects > 0 {
            parts.push(output::counted(objects, "more object"));
        }
        if fields > 0 {
            parts.push(output::counted(fields, "more field"));
        }
        let place = format!("{}/{} on {}", self.namespace, self.unit, self.cluster);
        (!parts.is_empty()).then(|| {
            let parts = parts.join(" and ");
            format!(
                "note: {} differs in {parts}, of which its report does not tell\n",
                output::visible(&place)
            )
        })
    }

    fn value(&self) -> Value {
        let mut value = json!({
            "namespace": self.namespace,
            "subscription": self.unit,
            "cluster": self.cluster,
            "drifted": self.count,
            "objects": [],
        });
        if let Ok(objects) = serde_json::to_value(&self.objects) {
            value["objects"] = objects;
        }
        value
    }
}

/// All of it, as data.
pub(super) fn value(drifted: &[Drifted]) -> Value {
    json!({ "items": drifted.iter().map(Drifted::value).collect::<Vec<_>>() })
}

/// A line for each field, and one for each fight.
pub(super) fn table(drifted: &[Drifted], wide: bool) -> String {
    if drifted.is_empty() {
        return String::new();
    }
    let mut header = vec!["UNIT", "CLUSTER", "OBJECT", "FIELD", "WANTED", "FOUND"];
    if wide {
        header.push("MANAGER");
    }
    let mut rows = vec![header.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let mut fights = String::new();
    for placement in drifted {
        for object in &placement.objects {
            rows.extend(object.fields.iter().map(|field| row(placement, object, field, wide)));
            if !object.message.is_empty() {
                let line = format!("{} on {}: {}", label(object), placement.cluster, object.message);
                fights.push_str(&format!("{}\n", output::visible(&line)));
            }
        }
    }
    output::columns(&rows) + &fights
}

fn row(placement: &Drifted, object: &ObjectDrift, field: &FieldDrift, wide: bool) -> Vec<String> {
    let mut row = vec![
        format!("{}/{}", placement.namespace, placement.unit),
        placement.cluster.clone(),
        label(object),
        field.path.clone(),
        cell(field, field.wanted.as_ref(), wide),
        cell(field, field.found.as_ref(), wide),
    ];
    if wide {
        row.push(if field.manager.is_empty() { "-" } else { &field.manager }.to_owned());
    }
    row.iter().map(|text| output::visible(text)).collect()
}

fn cell(field: &FieldDrift, value: Option<&Value>, wide: bool) -> String {
    let text = match value {
        None if field.hidden => return "(not shown)".to_owned(),
        None => return "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) if !wide => format!("{}…", &text[..end]),
        _ => text,
    }
}

/// `Kind/name`, with its namespace where it has one.
pub(super) fn label(object: &ObjectDrift) -> String {
    let key = &object.object;
    if key.namespace.is_empty() {
        format!("{} {}", key.kind, key.name)
    } else {
        format!("{} {}/{}", key.kind, key.namespace, key.name)
    }
}

#[cfg(test)]
mod tests {
    use render::ObjectKey;

    use super::*;

    fn placement() -> Value {
        json!({"metadata": {"namespace": "shop", "name": "web.paris"},
            "spec": {"subscription": "web", "cluster": "paris"},
            "status": {"objects": {"drifted": 12}, "drift": [
                {"object": ObjectKey::new("apps/v1", "Deployment", "shop", "web"), "apiVersion": "apps/v1",
                    "more": 2, "message": "fights with manager operator over /spec/replicas; it is put right at most once a minute",
                    "fields": [{"path": "/spec/replicas", "wanted": 3, "found": 1, "manager": "operator"}]},
                {"object": ObjectKey::new("v1", "Secret", "", "db"), "apiVersion": "v1",
                    "fields": [{"path": "/data/token", "hidden": true, "manager": "kubectl\u{1b}[31m"}]}]}})
    }

    #[test]
    fn a_table_has_a_line_for_each_field_and_says_what_it_lacks() {
        let drifted: Vec<_> = Drifted::read(&placement()).into_iter().collect();
        let expected = "\
UNIT       CLUSTER   OBJECT                FIELD            WANTED        FOUND         MANAGER
shop/web   paris     Deployment shop/web   /spec/replicas   3             1             operator
shop/web   paris     Secret db             /data/token      (not shown)   (not shown)   kubectl\\u{1b}[31m
Deployment shop/web on paris: fights with manager operator over /spec/replicas; it is put right at most once a minute
";
        assert_eq!(table(&drifted, true), expected);
        assert!(!table(&drifted, false).contains("MANAGER"));
        let left_out = drifted[0].left_out().expect("it is not all");
        assert_eq!(
            left_out,
            "note: shop/web on paris differs in 10 more objects and 2 more fields, of which its report does not tell\n"
        );
        assert_eq!(drifted[0].name(), "placement.fleet.flotilla.dev/web.paris\n");
    }

    #[test]
    fn a_placement_without_differences_is_not_shown() {
        assert!(Drifted::read(&json!({"status": {"objects": {"drifted": 0}}})).is_none());
        assert_eq!(table(&[], false), "");
    }
}
