//! One list of like things: cells that are more than one field.

use serde_json::Value;

use super::age;

/// Makes a cell of an object.
pub(super) type Cell = fn(&Value) -> Value;

const NONE: &str = "<none>";

pub(super) fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

pub(super) fn created(object: &Value) -> Value {
    object["metadata"]["creationTimestamp"].clone()
}

pub(super) fn data(object: &Value) -> Value {
    let count = |name: &str| object[name].as_object().map_or(0, serde_json::Map::len);
    (count("data") + count("binaryData")).into()
}

/// A number of the status; 0 when it is not there.
pub(super) fn count(object: &Value, field: &str) -> Value {
    object["status"][field].as_i64().unwrap_or(0).into()
}

pub(super) fn ready_of_wanted(object: &Value) -> Value {
    let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(0);
    format!("{ready}/{wanted}").into()
}

fn joined(items: &Value, field: &str) -> Value {
    let items = items.as_array().into_iter().flatten();
    let words: Vec<_> = items.filter_map(|item| item[field].as_str()).collect();
    words.join(",").into()
}

pub(super) fn containers(object: &Value) -> Value {
    joined(&object["spec"]["template"]["spec"]["containers"], "name")
}

pub(super) fn images(object: &Value) -> Value {
    joined(&object["spec"]["template"]["spec"]["containers"], "image")
}

fn labels(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<_> = pairs
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        NONE.into()
    } else {
        pairs.join(",").into()
    }
}

pub(super) fn selector(object: &Value) -> Value {
    labels(&object["spec"]["selector"]["matchLabels"])
}

pub(super) fn service_selector(object: &Value) -> Value {
    labels(&object["spec"]["selector"])
}

pub(super) fn pod_selector(object: &Value) -> Value {
    labels(&object["spec"]["podSelector"]["matchLabels"])
}

pub(super) fn node_selector(object: &Value) -> Value {
    labels(&object["spec"]["template"]["spec"]["nodeSelector"])
}

fn or_none(value: &Value) -> Value {
    match value {
        Value::Null => NONE.into(),
        Value::String(text) if text.is_empty() => NONE.into(),
        other => other.clone(),
    }
}

pub(super) fn pod_ready(object: &Value) -> Value {
    let statuses = object["status"]["containerStatuses"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let wanted = object["spec"]["containers"].as_array().map_or(0, Vec::len);
    format!("{ready}/{wanted}").into()
}

pub(super) fn pod_status(object: &Value) -> Value {
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    match (&object["status"]["reason"], &object["status"]["phase"]) {
        (Value::String(reason), _) => reason.as_str().into(),
        (_, Value::String(phase)) if phase == "Succeeded" => "Completed".into(),
        (_, phase) => phase.clone(),
    }
}

pub(super) fn pod_restarts(object: &Value) -> Value {
    let statuses = object["status"]["containerStatuses"].as_array().into_iter().flatten();
    let restarts: i64 = statuses.filter_map(|status| status["restartCount"].as_i64()).sum();
    restarts.to_string().into()
}

pub(super) fn pod_ip(object: &Value) -> Value {
    or_none(&object["status"]["podIP"])
}

pub(super) fn pod_node(object: &Value) -> Value {
    or_none(&object["spec"]["nodeName"])
}

pub(super) fn cluster_ip(object: &Value) -> Value {
    or_none(&object["spec"]["clusterIP"])
}

pub(super) fn external_ip(object: &Value) -> Value {
    match object["spec"]["type"].as_str() {
        Some("LoadBalancer") => match &object["status"]["loadBalancer"]["ingress"][0]["ip"] {
            Value::Null => "<pending>".into(),
            ip => ip.clone(),
        },
        Some("ExternalName") => object["spec"]["externalName"].clone(),
        _ => NONE.into(),
    }
}

pub(super) fn ports(object: &Value) -> Value {
    let ports = object["spec"]["ports"].as_array().into_iter().flatten().map(|port| {
        let node = port["nodePort"]
            .as_i64()
            .map(|node| format!(":{node}"))
            .unwrap_or_default();
        format!("{}{node}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))
    });
    let ports: Vec<_> = ports.collect();
    if ports.is_empty() {
        NONE.into()
    } else {
        ports.join(",").into()
    }
}

pub(super) fn node_status(object: &Value) -> Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .any(|ready| ready["status"] == "True");
    let word = if ready { "Ready" } else { "NotReady" };
    if object["spec"]["unschedulable"] == true {
        format!("{word},SchedulingDisabled").into()
    } else {
        word.into()
    }
}

pub(super) fn node_roles(object: &Value) -> Value {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<_> = labels
        .filter_map(|(name, _)| name.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    if roles.is_empty() {
        NONE.into()
    } else {
        roles.join(",").into()
    }
}

pub(super) fn job_status(object: &Value) -> Value {
    let has = |kind: &str| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .filter(|condition| condition["type"] == kind)
            .any(|condition| condition["status"] == "True")
    };
    let word = match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if object["metadata"].get("deletionTimestamp").is_some() => "Terminating",
        () if has("Suspended") => "Suspended",
        () => "Running",
    };
    word.into()
}

pub(super) fn completions(object: &Value) -> Value {
    let done = object["status"]["succeeded"].as_i64().unwrap_or(0);
    format!("{done}/{}", object["spec"]["completions"].as_i64().unwrap_or(1)).into()
}

pub(super) fn job_duration(object: &Value) -> Value {
    let time = |field: &str| -> Option<i64> {
        let time: jiff::Timestamp = object["status"][field].as_str()?.parse().ok()?;
        Some(time.as_second())
    };
    match (time("startTime"), time("completionTime")) {
        (Some(start), Some(end)) => age::duration(end - start).into(),
        (Some(_), None) => age::since(object["status"]["startTime"].as_str().unwrap_or_default()).into(),
        _ => "".into(),
    }
}

pub(super) fn time_zone(object: &Value) -> Value {
    or_none(&object["spec"]["timeZone"])
}

pub(super) fn suspend(object: &Value) -> Value {
    let suspended = object["spec"]["suspend"] == true;
    if suspended { "True".into() } else { "False".into() }
}

pub(super) fn active(object: &Value) -> Value {
    object["status"]["active"]
        .as_array()
        .map_or(0, Vec::len)
        .to_string()
        .into()
}

pub(super) fn last_schedule(object: &Value) -> Value {
    match object["status"]["lastScheduleTime"].as_str() {
        Some(time) => age::since(time).into(),
        None => NONE.into(),
    }
}

pub(super) fn ingress_class(object: &Value) -> Value {
    or_none(&object["spec"]["ingressClassName"])
}

pub(super) fn hosts(object: &Value) -> Value {
    match joined(&object["spec"]["rules"], "host") {
        Value::String(hosts) if hosts.is_empty() => "*".into(),
        hosts => hosts,
    }
}

pub(super) fn address(object: &Value) -> Value {
    joined(&object["status"]["loadBalancer"]["ingress"], "ip")
}

pub(super) fn ingress_ports(object: &Value) -> Value {
    if object["spec"]["tls"].as_array().is_some_and(|tls| !tls.is_empty()) {
        "80, 443".into()
    } else {
        "80".into()
    }
}

pub(super) fn reference(object: &Value) -> Value {
    let target = &object["spec"]["scaleTargetRef"];
    let word = |field: &str| target[field].as_str().unwrap_or_default();
    format!("{}/{}", word("kind"), word("name")).into()
}

pub(super) fn min_pods(object: &Value) -> Value {
    match &object["spec"]["minReplicas"] {
        Value::Null => "<unset>".into(),
        number => number.to_string().into(),
    }
}

fn or_not_said(value: &Value) -> Value {
    match value {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        number => number.to_string().into(),
    }
}

pub(super) fn min_available(object: &Value) -> Value {
    or_not_said(&object["spec"]["minAvailable"])
}

pub(super) fn max_unavailable(object: &Value) -> Value {
    or_not_said(&object["spec"]["maxUnavailable"])
}

pub(super) fn access_modes(object: &Value) -> Value {
    let modes = object["spec"]["accessModes"].as_array().into_iter().flatten();
    let short = modes.filter_map(Value::as_str).map(|mode| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    });
    short.collect::<Vec<_>>().join(",").into()
}

pub(super) fn role(object: &Value) -> Value {
    let word = |field: &str| object["roleRef"][field].as_str().unwrap_or_default();
    format!("{}/{}", word("kind"), word("name")).into()
}

pub(super) fn global_default(object: &Value) -> Value {
    (object["globalDefault"] == true).into()
}

pub(super) fn webhooks(object: &Value) -> Value {
    object["webhooks"].as_array().map_or(0, Vec::len).into()
}

pub(super) fn last_seen(object: &Value) -> Value {
    let time = ["lastTimestamp", "eventTime", "firstTimestamp"]
        .iter()
        .find_map(|field| object[*field].as_str());
    time.map_or_else(|| "<unknown>".into(), |time| age::since(time).into())
}

pub(super) fn event_object(object: &Value) -> Value {
    let word = |field: &str| object["involvedObject"][field].as_str().unwrap_or_default();
    format!("{}/{}", word("kind").to_lowercase(), word("name")).into()
}

pub(super) fn nominated_node(object: &Value) -> Value {
    or_none(&object["status"]["nominatedNodeName"])
}

pub(super) fn readiness_gates(object: &Value) -> Value {
    match object["spec"]["readinessGates"].as_array() {
        Some(gates) => format!("0/{}", gates.len()).into(),
        None => NONE.into(),
    }
}

fn node_address(object: &Value, kind: &str) -> Value {
    let addresses = object["status"]["addresses"].as_array().into_iter().flatten();
    let mut found = addresses.filter(|address| address["type"] == kind);
    found
        .next()
        .map_or_else(|| NONE.into(), |address| address["address"].clone())
}

pub(super) fn internal_ip(object: &Value) -> Value {
    node_address(object, "InternalIP")
}

pub(super) fn node_external_ip(object: &Value) -> Value {
    node_address(object, "ExternalIP")
}

pub(super) fn job_containers(object: &Value) -> Value {
    containers(&object["spec"]["jobTemplate"])
}

pub(super) fn job_images(object: &Value) -> Value {
    images(&object["spec"]["jobTemplate"])
}

pub(super) fn job_selector(object: &Value) -> Value {
    selector(&object["spec"]["jobTemplate"])
}

/// No metrics are known here.
pub(super) fn targets(object: &Value) -> Value {
    let metrics = object["spec"]["metrics"].as_array().map_or(0, Vec::len);
    if metrics == 0 {
        NONE.into()
    } else {
        vec!["<unknown>"; metrics].join(", ").into()
    }
}

pub(super) fn volume_attributes(object: &Value) -> Value {
    match &object["spec"]["volumeAttributesClassName"] {
        Value::Null => "<unset>".into(),
        name => name.clone(),
    }
}

pub(super) fn subjects(object: &Value, kind: &str) -> Value {
    let subjects = object["subjects"].as_array().into_iter().flatten();
    let names = subjects
        .filter(|subject| subject["kind"] == kind)
        .filter_map(|subject| {
            let name = subject["name"].as_str()?;
            Some(match subject["namespace"].as_str() {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.to_owned(),
            })
        });
    names.collect::<Vec<_>>().join(", ").into()
}

pub(super) fn first_seen(object: &Value) -> Value {
    let time = object["firstTimestamp"]
        .as_str()
        .or_else(|| object["eventTime"].as_str());
    time.map_or_else(|| "<unknown>".into(), |time| age::since(time).into())
}
