//! What an explanation says of replicas and room, as text.

use serde_json::Value;

use super::text::{list, named, object_name, of};
use crate::cli::output::{counted, visible, write};

/// Whether the unit is shared out by room. Of others, the room that clusters have is told by `-o json` alone.
pub(super) fn is_by_room(explanation: &Value) -> bool {
    explanation["scheduling"]
        .as_str()
        .is_some_and(|text| text.contains("Dynamic"))
}

/// What found no place, in numbers.
pub(super) fn write_unplaced(text: &mut String, explanation: &Value) {
    for (object, unplaced) in fields(&explanation["unplaced"]) {
        let (object, replicas, of) = (object_name(&visible(object)), &unplaced["replicas"], &unplaced["of"]);
        write(text, format_args!("  Unplaced: {replicas} of {of} of {object}\n"));
    }
}

/// A cluster's score where it was left out by it, what moves, and the room that it has.
pub(super) fn write_cluster(body: &mut String, cluster: &Value, by_room: bool) {
    let score = &cluster["score"];
    if cluster["decision"] == "LeftOut" && score.is_object() {
        let (total, preferred, taint, place) = (&score["total"], &score["preferred"], &score["taint"], &score["place"]);
        let rule = of(cluster, "rule");
        let parts = format!("score {total} (preferred {preferred}, taints {taint}), place {place}");
        write(body, format_args!("    {parts}, left out by {rule}\n"));
    }
    for (object, replicas) in fields(&cluster["replicas"]) {
        if let Some(had) = cluster["had"].get(object).filter(|had| *had != replicas) {
            let object = object_name(&visible(object));
            write(body, format_args!("    {object}: {had} -> {replicas} replicas\n"));
        }
    }
    let capacity = &cluster["capacity"];
    if !by_room || !capacity.is_object() {
        return;
    }
    let said = said(capacity);
    let frozen = of(capacity, "frozen");
    if !frozen.is_empty() {
        write(
            body,
            format_args!("    room is not known, so that it gets no more: {frozen}{said}\n"),
        );
    }
    for (object, room) in fields(&capacity["objects"]) {
        let at_most = if room["atMost"] == true { "at most " } else { "" };
        let (object, replicas) = (object_name(&visible(object)), &room["replicas"]);
        let nodes = room["nodes"].as_u64().and_then(|nodes| usize::try_from(nodes).ok());
        let nodes = counted(nodes.unwrap_or_default(), "node");
        let refused = fields(&room["refused"]).map(|(reason, count)| match reason.as_str() {
            // It could take some, and has none left for one more.
            "nothing left" => format!(", {count} full then"),
            reason => format!(", {count} refuse: {}", visible(reason)),
        });
        let refused: String = refused.collect();
        write(
            body,
            format_args!("    room for {at_most}{replicas} of {object} on {nodes}{refused}{said}\n"),
        );
    }
    write_predicted(body, capacity);
}

/// What a predictor said, and when; or why it said nothing.
fn write_predicted(body: &mut String, capacity: &Value) {
    for (object, word) in fields(&capacity["predicted"]) {
        let object = object_name(&visible(object));
        match word["more"].as_u64() {
            Some(more) => write(
                body,
                format_args!("    room for {more} more of {object} by its predictor\n"),
            ),
            None => {
                let trouble = of(word, "trouble");
                write(body, format_args!("    no more of {object}: {trouble}\n"));
            }
        }
    }
}

/// How old the report is, and what it has counted.
fn said(capacity: &Value) -> String {
    let age = capacity["ageSeconds"]
        .as_i64()
        .map(|seconds| format!("; said {seconds}s ago"));
    let sequence = capacity["sequence"]
        .as_u64()
        .map(|sequence| format!(" with sequence {sequence}"));
    [age, sequence].into_iter().flatten().collect()
}

/// What the objects ask for, once for the clusters on which that is the same.
pub(super) fn write_inventory(text: &mut String, explanation: &Value) {
    for inventory in list(explanation, "feedInventory") {
        let names: Vec<_> = list(inventory, "clusters")
            .filter_map(Value::as_str)
            .map(visible)
            .collect();
        write(text, format_args!("\nAsks for on {}\n", named(&names)));
        for object in list(inventory, "objects") {
            let name = object_name(&of(object, "object"));
            write(
                text,
                format_args!("  {name}: {} replicas of {}\n", object["replicas"], asked(object)),
            );
        }
    }
}

/// What one replica asks for.
fn asked(object: &Value) -> String {
    let amount = |(name, amount): (&String, &Value)| {
        format!("{} {}", visible(name), visible(amount.as_str().unwrap_or_default()))
    };
    let requests = fields(&object["requests"]).filter(|(name, _)| *name != "pods");
    let mut parts: Vec<String> = requests.map(amount).collect();
    if parts.is_empty() {
        parts.push("no requests".to_owned());
    }
    let label =
        |(key, value): (&String, &Value)| format!("{}={}", visible(key), visible(value.as_str().unwrap_or_default()));
    let labels: Vec<_> = fields(&object["nodeSelector"]).map(label).collect();
    if !labels.is_empty() {
        parts.push(format!("on nodes {}", labels.join(",")));
    }
    let keys = |field: &str| {
        list(object, field)
            .map(|entry| of(entry, "topologyKey"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let tolerations: Vec<_> = list(object, "tolerations").map(toleration).collect();
    let more = [
        ("tolerates", tolerations.join(", ")),
        ("apart by", keys("antiAffinity")),
        ("spread over", keys("topologySpread")),
    ];
    parts.extend(
        more.into_iter()
            .filter(|(_, what)| !what.is_empty())
            .map(|(word, what)| format!("{word} {what}")),
    );
    if list(object, "nodeAffinity").next().is_some() {
        parts.push("with node affinity".to_owned());
    }
    if object["asksMore"] == true {
        parts.push("and what nodes do not tell".to_owned());
    }
    parts.join(", ")
}

fn toleration(toleration: &Value) -> String {
    let key = match of(toleration, "key") {
        key if key.is_empty() => "every taint".to_owned(),
        key => key,
    };
    let value = of(toleration, "value");
    let value = if value.is_empty() { value } else { format!("={value}") };
    let effect = of(toleration, "effect");
    let effect = if effect.is_empty() {
        effect
    } else {
        format!(":{effect}")
    };
    format!("{key}{value}{effect}")
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::cli::explain::text::text;

    #[test]
    fn room_is_told_for_every_cluster_and_what_objects_ask_for_once() {
        let web = "apps/Deployment/shop/web";
        let room =
            |replicas: u64| json!({ "replicas": replicas, "nodes": 3, "refused": { "nothing left": 3, "taint": 2 } });
        let explanation = json!({
            "unit": "shop/web", "declaredIn": "web.yaml:1", "scheduling": "Dividing (Dynamic, Spread)", "objects": 1,
            "unplaced": { web: { "replicas": 4, "of": 30 } },
            "clusters": [
                { "cluster": "a", "decision": "Chosen", "reasons": [], "had": { web: 5 }, "replicas": { web: 8 },
                    "capacity": { "ageSeconds": 9, "sequence": 7, "objects": { web: room(8) } } },
                { "cluster": "b", "decision": "LeftOut", "rule": "ClustersMax", "reasons": ["2 better clusters are enough"],
                    "score": { "total": -70, "placed": 0, "preferred": 30, "taint": -100, "place": 3 },
                    "capacity": { "frozen": "it is not heard of", "predicted": { web: { "trouble": "its predictor failed: late" } } } },
            ],
            "feedInventory": [{ "clusters": ["a", "b"], "objects": [{ "object": web, "replicas": 30,
                "requests": { "cpu": "500m", "memory": "1Gi", "pods": "1" }, "nodeSelector": { "disk": "ssd" },
                "tolerations": [{ "key": "gpu", "effect": "NoSchedule" }], "asksMore": true }] }],
        });
        let text = text(&explanation);
        for line in [
            "  Unplaced: 4 of 30 of Deployment shop/web\n",
            "    Deployment shop/web: 5 -> 8 replicas\n",
            "    room for 8 of Deployment shop/web on 3 nodes, 3 full then, 2 refuse: taint; said 9s ago with sequence 7\n",
            "    score -70 (preferred 30, taints -100), place 3, left out by ClustersMax\n",
            "    room is not known, so that it gets no more: it is not heard of\n",
            "    no more of Deployment shop/web: its predictor failed: late\n",
            "\nAsks for on a, b\n",
            "  Deployment shop/web: 30 replicas of cpu 500m, memory 1Gi, on nodes disk=ssd, tolerates gpu:NoSchedule, and \
             what nodes do not tell\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in:\n{text}");
        }
    }
}
