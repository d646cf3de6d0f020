//! One list of like things: the columns that each kind's tables have.

use serde_json::{Value, json};

use super::cells::{self, Cell};
use super::{age, json_path};
use crate::kinds::Kind;

/// A column.
pub(super) struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    source: Source,
}

enum Source {
    Path(String),
    Date(String),
    Made(Cell),
}

impl Column {
    pub(super) fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description,
            "priority": self.priority})
    }

    pub(super) fn cell(&self, object: &Value) -> Value {
        match &self.source {
            Source::Made(cell) => cell(object),
            Source::Date(path) => match json_path::find(object, path).and_then(Value::as_str) {
                Some(time) => age::since(time).into(),
                None if path == CREATED => "<unknown>".into(),
                None => Value::Null,
            },
            Source::Path(path) => match (json_path::find(object, path), self.kind.as_str()) {
                (None, _) => Value::Null,
                (Some(Value::String(text)), _) => text.as_str().into(),
                (Some(value), "integer" | "number" | "boolean") => value.clone(),
                (Some(value), _) => value.to_string().into(),
            },
        }
    }
}

const CREATED: &str = ".metadata.creationTimestamp";

fn made(name: &str, kind: &str, priority: i64, cell: Cell) -> Column {
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: if name == "Name" {
            "name".to_owned()
        } else {
            String::new()
        },
        description: String::new(),
        priority,
        source: Source::Made(cell),
    }
}

fn name() -> Column {
    made("Name", "string", 0, cells::name)
}

fn age() -> Column {
    Column {
        source: Source::Date(CREATED.to_owned()),
        ..made("Age", "string", 0, cells::name)
    }
}

fn path(name: &str, kind: &str, path: &str) -> Column {
    Column {
        source: Source::Path(path.to_owned()),
        ..made(name, kind, 0, cells::name)
    }
}

fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

/// The columns of a kind.
pub(super) fn of(kind: &Kind) -> Vec<Column> {
    if let Some(custom) = &kind.custom {
        return of_custom(&custom.columns);
    }
    let mut rest = between(kind);
    if kind.is("", "Event") {
        return rest;
    }
    // Roles and definitions show when they were made, and no age.
    let has_age = rest.iter().any(|column| matches!(&*column.name, "Age" | "Created At"));
    if !has_age {
        let wide = rest.iter().position(|column| column.priority > 0).unwrap_or(rest.len());
        rest.insert(wide, age());
    }
    rest.insert(0, name());
    rest
}

/// What stands between name and age, and after the age what is shown on request.
fn between(kind: &Kind) -> Vec<Column> {
    let text = |name: &str, cell: Cell| made(name, "string", 0, cell);
    let number = |name: &str, at: &str| path(name, "integer", at);
    match &*kind.kind {
        "Namespace" => vec![path("Status", "string", ".status.phase")],
        "ConfigMap" => vec![made("Data", "string", 0, cells::data)],
        "Secret" => vec![path("Type", "string", ".type"), made("Data", "string", 0, cells::data)],
        "Pod" => vec![
            text("Ready", cells::pod_ready),
            text("Status", cells::pod_status),
            text("Restarts", cells::pod_restarts),
            wide(text("IP", cells::pod_ip)),
            wide(text("Node", cells::pod_node)),
            wide(text("Nominated Node", cells::nominated_node)),
            wide(text("Readiness Gates", cells::readiness_gates)),
        ],
        "Service" => vec![
            path("Type", "string", ".spec.type"),
            text("Cluster-IP", cells::cluster_ip),
            text("External-IP", cells::external_ip),
            text("Port(s)", cells::ports),
            wide(text("Selector", cells::service_selector)),
        ],
        "Node" => vec![
            text("Status", cells::node_status),
            text("Roles", cells::node_roles),
            age(),
            path("Version", "string", ".status.nodeInfo.kubeletVersion"),
            wide(text("Internal-IP", cells::internal_ip)),
            wide(text("External-IP", cells::node_external_ip)),
            wide(path("OS-Image", "string", ".status.nodeInfo.osImage")),
            wide(path("Kernel-Version", "string", ".status.nodeInfo.kernelVersion")),
            wide(path(
                "Container-Runtime",
                "string",
                ".status.nodeInfo.containerRuntimeVersion",
            )),
        ],
        "Deployment" => vec![
            text("Ready", cells::ready_of_wanted),
            made("Up-to-date", "integer", 0, |object| {
                cells::count(object, "updatedReplicas")
            }),
            made("Available", "integer", 0, |object| {
                cells::count(object, "availableReplicas")
            }),
            wide(text("Containers", cells::containers)),
            wide(text("Images", cells::images)),
            wide(text("Selector", cells::selector)),
        ],
        "StatefulSet" => vec![
            text("Ready", cells::ready_of_wanted),
            wide(text("Containers", cells::containers)),
            wide(text("Images", cells::images)),
        ],
        "ReplicaSet" => vec![
            number("Desired", ".spec.replicas"),
            made("Current", "integer", 0, |object| cells::count(object, "replicas")),
            made("Ready", "integer", 0, |object| cells::count(object, "readyReplicas")),
            wide(text("Containers", cells::containers)),
            wide(text("Images", cells::images)),
            wide(text("Selector", cells::selector)),
        ],
        "DaemonSet" => vec![
            made("Desired", "integer", 0, |object| {
                cells::count(object, "desiredNumberScheduled")
            }),
            made("Current", "integer", 0, |object| {
                cells::count(object, "currentNumberScheduled")
            }),
            made("Ready", "integer", 0, |object| cells::count(object, "numberReady")),
            made("Up-to-date", "integer", 0, |object| {
                cells::count(object, "updatedNumberScheduled")
            }),
            made("Available", "integer", 0, |object| {
                cells::count(object, "numberAvailable")
            }),
            text("Node Selector", cells::node_selector),
            wide(text("Containers", cells::containers)),
            wide(text("Images", cells::images)),
            wide(text("Selector", cells::selector)),
        ],
        "Job" => vec![
            text("Status", cells::job_status),
            text("Completions", cells::completions),
            text("Duration", cells::job_duration),
            wide(text("Containers", cells::containers)),
            wide(text("Images", cells::images)),
            wide(text("Selector", cells::selector)),
        ],
        "CronJob" => vec![
            path("Schedule", "string", ".spec.schedule"),
            text("Timezone", cells::time_zone),
            text("Suspend", cells::suspend),
            text("Active", cells::active),
            text("Last Schedule", cells::last_schedule),
            wide(text("Containers", cells::job_containers)),
            wide(text("Images", cells::job_images)),
            wide(text("Selector", cells::job_selector)),
        ],
        "Ingress" => vec![
            text("Class", cells::ingress_class),
            text("Hosts", cells::hosts),
            text("Address", cells::address),
            text("Ports", cells::ingress_ports),
        ],
        "HorizontalPodAutoscaler" => vec![
            text("Reference", cells::reference),
            text("Targets", cells::targets),
            text("MinPods", cells::min_pods),
            number("MaxPods", ".spec.maxReplicas"),
            made("Replicas", "integer", 0, |object| {
                cells::count(object, "currentReplicas")
            }),
        ],
        "PodDisruptionBudget" => vec![
            text("Min Available", cells::min_available),
            text("Max Unavailable", cells::max_unavailable),
            made("Allowed Disruptions", "integer", 0, |object| {
                cells::count(object, "disruptionsAllowed")
            }),
        ],
        "PersistentVolumeClaim" => vec![
            path("Status", "string", ".status.phase"),
            path("Volume", "string", ".spec.volumeName"),
            path("Capacity", "string", ".status.capacity.storage"),
            text("Access Modes", cells::access_modes),
            path("StorageClass", "string", ".spec.storageClassName"),
            text("VolumeAttributesClass", cells::volume_attributes),
            wide(path("VolumeMode", "string", ".spec.volumeMode")),
        ],
        "NetworkPolicy" => vec![text("Pod-Selector", cells::pod_selector)],
        "Lease" => vec![path("Holder", "string", ".spec.holderIdentity")],
        "RoleBinding" | "ClusterRoleBinding" => vec![
            text("Role", cells::role),
            wide(text("Users", |object| cells::subjects(object, "User"))),
            wide(text("Groups", |object| cells::subjects(object, "Group"))),
            wide(text("ServiceAccounts", |object| {
                cells::subjects(object, "ServiceAccount")
            })),
        ],
        "Role" | "ClusterRole" | "CustomResourceDefinition" => {
            vec![made("Created At", "date", 0, cells::created)]
        }
        "StorageClass" => vec![
            path("Provisioner", "string", ".provisioner"),
            path("ReclaimPolicy", "string", ".reclaimPolicy"),
            path("VolumeBindingMode", "string", ".volumeBindingMode"),
        ],
        "PriorityClass" => vec![
            number("Value", ".value"),
            made("Global-Default", "boolean", 0, cells::global_default),
        ],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![made("Webhooks", "integer", 0, cells::webhooks)]
        }
        "Event" => vec![
            text("Last Seen", cells::last_seen),
            path("Type", "string", ".type"),
            path("Reason", "string", ".reason"),
            text("Object", cells::event_object),
            wide(path("Subobject", "string", ".involvedObject.fieldPath")),
            wide(path("Source", "string", ".source.component")),
            path("Message", "string", ".message"),
            wide(text("First Seen", cells::first_seen)),
            wide(number("Count", ".count")),
            wide(name()),
        ],
        _ => Vec::new(),
    }
}

/// What a definition says, or the age.
fn of_custom(columns: &[Value]) -> Vec<Column> {
    let mut all = vec![name()];
    for column in columns {
        let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let at = text("jsonPath");
        all.push(Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column["priority"].as_i64().unwrap_or(0),
            source: if column["type"] == "date" {
                Source::Date(at)
            } else {
                Source::Path(at)
            },
        });
    }
    if columns.is_empty() {
        all.push(age());
    }
    all
}
