//! What holds for every kind: generations, and the conditions that controllers agree on.

use serde_json::Value;

use super::Verdict;

/// Not yet seen by its controller: whatever its status says is about an older content.
pub(super) fn generation_lags(object: &Value) -> Option<Verdict> {
    let generation = object["metadata"]["generation"].as_i64()?;
    let observed = object["status"]["observedGeneration"].as_i64()?;
    (observed != generation)
        .then(|| Verdict::in_progress(format!("generation is {generation}, and {observed} was observed")))
}

/// An object of a kind without rules of its own.
pub(super) fn generic(object: &Value) -> Verdict {
    if is(object, "Stalled", "True") {
        return Verdict::failed(message(object, "Stalled"));
    }
    if is(object, "Reconciling", "True") {
        return Verdict::in_progress(message(object, "Reconciling"));
    }
    for name in ["Ready", "Available"] {
        match status(object, name) {
            Some("True") => return Verdict::current(),
            Some(_) => return Verdict::in_progress(message(object, name)),
            None => {}
        }
    }
    Verdict::current()
}

/// Whether a condition has this status.
pub(super) fn is(object: &Value, name: &str, expected: &str) -> bool {
    status(object, name) == Some(expected)
}

/// The status of a condition; `None` when the object has no such condition.
pub(super) fn status<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    find(object, name)?["status"].as_str()
}

/// The reason of a condition.
pub(super) fn reason<'a>(object: &'a Value, name: &str) -> &'a str {
    find(object, name)
        .and_then(|condition| condition["reason"].as_str())
        .unwrap_or_default()
}

/// The message of a condition, with its reason.
pub(super) fn message(object: &Value, name: &str) -> String {
    let words = find(object, name).and_then(|condition| condition["message"].as_str());
    match (reason(object, name), words.unwrap_or_default()) {
        ("", "") => format!("condition {name} says so"),
        ("", words) => words.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, words) => format!("{reason}: {words}"),
    }
}

fn find<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)
}
