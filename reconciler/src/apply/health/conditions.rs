//! What holds for every kind: generations, and the conditions that controllers agree on.

use serde_json::Value;

use super::Verdict;

/// Conditions of an object, or of a part of it.
pub(super) struct Conditions<'a> {
    conditions: &'a [Value],
    generation: Option<i64>,
}

/// The generation that an object's status should be about.
pub(super) fn generation(object: &Value) -> Option<i64> {
    object["metadata"]["generation"].as_i64()
}

/// Not yet seen by its controller: whatever its status says is about an older content.
pub(super) fn generation_lags(object: &Value) -> Option<Verdict> {
    let generation = generation(object)?;
    let observed = object["status"]["observedGeneration"].as_i64()?;
    (observed != generation)
        .then(|| Verdict::in_progress(format!("generation is {generation}, and {observed} was observed")))
}

/// An object of a kind without rules of its own.
pub(super) fn generic(object: &Value) -> Verdict {
    let conditions = Conditions::of(object);
    if conditions.is("Stalled", "True") {
        return Verdict::failed(conditions.message("Stalled"));
    }
    if conditions.is("Reconciling", "True") {
        return Verdict::in_progress(conditions.message("Reconciling"));
    }
    for name in ["Ready", "Available"] {
        match conditions.status(name) {
            Some("True") => return Verdict::current(),
            Some(_) => return Verdict::in_progress(conditions.message(name)),
            None => {}
        }
    }
    Verdict::current()
}

impl<'a> Conditions<'a> {
    /// Those of an object's status.
    pub(super) fn of(object: &'a Value) -> Self {
        Self::new(&object["status"]["conditions"], generation(object))
    }

    /// A list of conditions about an object of this generation.
    pub(super) fn new(conditions: &'a Value, generation: Option<i64>) -> Self {
        let conditions = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
        Self { conditions, generation }
    }

    /// Whether a condition has this status.
    pub(super) fn is(&self, name: &str, expected: &str) -> bool {
        self.status(name) == Some(expected)
    }

    /// The status of a condition; `None` when there is no such condition, and `Unknown` for one about an older
    /// generation.
    pub(super) fn status(&self, name: &str) -> Option<&'a str> {
        let condition = self.find(name)?;
        let status = condition["status"].as_str()?;
        Some(if self.is_old(condition) { "Unknown" } else { status })
    }

    /// The reason of a condition.
    pub(super) fn reason(&self, name: &str) -> &'a str {
        let condition = self.find(name);
        condition
            .and_then(|condition| condition["reason"].as_str())
            .unwrap_or_default()
    }

    /// The message of a condition, with its reason.
    pub(super) fn message(&self, name: &str) -> String {
        let condition = self.find(name);
        if condition.is_some_and(|condition| self.is_old(condition)) {
            return format!("condition {name} is about an older generation");
        }
        let words = condition.and_then(|condition| condition["message"].as_str());
        match (self.reason(name), words.unwrap_or_default()) {
            ("", "") => format!("condition {name} says so"),
            ("", words) => words.to_owned(),
            (reason, "") => reason.to_owned(),
            (reason, words) => format!("{reason}: {words}"),
        }
    }

    fn is_old(&self, condition: &Value) -> bool {
        let observed = condition["observedGeneration"].as_i64();
        observed
            .zip(self.generation)
            .is_some_and(|(observed, generation)| observed < generation)
    }

    fn find(&self, name: &str) -> Option<&'a Value> {
        self.conditions.iter().find(|condition| condition["type"] == name)
    }
}
