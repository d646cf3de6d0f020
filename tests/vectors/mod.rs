//! What Clusternet answers to given inputs, put to our own functions.
//!
//! Every vector of the areas listed here is either answered as upstream does, or stands among the
//! deviations with our answer and why it is right. A deviation that no longer deviates fails too.

mod deviations;
mod feeds;
mod fields;
mod fleet;
mod overrides;
mod schedule;

use std::path::Path;

use serde_json::Value;

use crate::inputs::with_inputs;

/// The vectors of these areas at the time of writing; what a run without inputs leaves out.
const VECTORS: usize = 54;

/// One question to upstream, and its answer.
struct Vector {
    id: String,
    area: String,
    input: Value,
    expected: Value,
}

/// How an area is answered here: our answer to an input, in the form of upstream's.
type Answer = fn(&Value) -> Value;

/// Each area's answer, by the beginning of its name; the longest beginning wins.
const AREAS: [(&str, Answer); 23] = [
    ("bind-order", schedule::bind_order),
    ("feed-changed", schedule::feed_changed),
    ("feed-contains", feeds::contains),
    ("feed-format", feeds::format),
    ("feed-key", feeds::key),
    ("feed-obsolete", feeds::obsolete),
    ("field-lookup", fields::lookup),
    ("field-patch", fields::patch),
    ("json-patch", overrides::json_patch),
    ("override", overrides::steps),
    ("override-derived", overrides::steps),
    ("override-order", overrides::order),
    ("spec-hash", schedule::spec_hash),
    ("static-assign", schedule::assign),
    ("static-divide", schedule::divide),
    ("static-divide-derived", schedule::divide),
    ("static-weight-order", no_such_thing),
    ("taint-add", no_such_thing),
    ("taint-remove", no_such_thing),
    ("taint-filter", schedule::taint_filter),
    ("taint-score", schedule::taint_score),
    ("trim", feeds::trim),
    ("trim-derived", feeds::trim),
];

/// For what upstream computes and Flotilla has no need of.
fn no_such_thing(_input: &Value) -> Value {
    Value::Null
}

fn answer_of(area: &str) -> Option<Answer> {
    let beginnings = AREAS.iter().filter(|(beginning, _)| area.starts_with(beginning));
    beginnings
        .max_by_key(|(beginning, _)| beginning.len())
        .map(|(_, answer)| *answer)
}

fn read(file: &Path) -> Vec<Vector> {
    let bytes = std::fs::read(file).expect("the vectors lie beside the inputs");
    let list: Vec<Value> = serde_json::from_slice(&bytes).expect("the vectors are a JSON list");
    let text = |value: &Value| value.as_str().expect("id and area are text").to_owned();
    list.into_iter()
        .map(|vector| Vector {
            id: text(&vector["id"]),
            area: text(&vector["area"]),
            input: vector["input"].clone(),
            expected: vector["expected"].clone(),
        })
        .collect()
}

#[test]
fn clusternets_vectors_are_answered_alike_or_deviate_by_name() {
    with_inputs(VECTORS, |root| {
        let vectors = read(&root.with_file_name("vectors").join("clusternet.json"));
        let mut answered = 0;
        let mut wrong = Vec::new();
        for vector in &vectors {
            let Some(answer) = answer_of(&vector.area) else {
                continue;
            };
            answered += 1;
            wrong.extend(mistake(vector, &answer(&vector.input)));
        }
        for deviation in deviations::ALL {
            if !vectors.iter().any(|vector| vector.id == deviation.id) {
                wrong.push(format!("{}: there is no such vector to deviate from", deviation.id));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(answered >= VECTORS, "only {answered} vectors were answered");
    });
}

/// What is wrong with our answer, if anything is.
fn mistake(vector: &Vector, ours: &Value) -> Option<String> {
    let Vector { id, expected, .. } = vector;
    match deviations::ALL.iter().find(|deviation| deviation.id == *id) {
        None if ours == expected => None,
        None => Some(format!("{id}: upstream answers {expected}, we answer {ours}")),
        Some(_) if ours == expected => Some(format!("{id}: stands among the deviations and is none")),
        Some(deviation) => {
            let stated: Value = serde_json::from_str(deviation.ours).expect("a deviation states JSON");
            let why = deviation.because;
            (stated != *ours).then(|| format!("{id}: we answer {ours}, and not {stated} ({why})"))
        }
    }
}
