//! The rules that people write themselves: CEL over an object.

use render::ObjectKey;
use render::expression::{Expression, Unevaluated};
use render::model::HealthCheck;
use serde_json::Value;

use super::conditions::{self, Conditions};
use super::{SILENT, Verdict};
use crate::wire::Health;

/// A rule that was read. One that cannot be read was an Error when it was planned; a content of an older time may have it
/// all the same, and then nobody knows.
#[derive(Debug)]
pub(in crate::apply) struct Check {
    rule: HealthCheck,
    failed: Option<Result<Expression, String>>,
    in_progress: Option<Result<Expression, String>>,
    current: Result<Expression, String>,
}

impl Check {
    pub(in crate::apply) fn new(rule: &HealthCheck) -> Self {
        let read = |text: &str| Expression::parse(text).map_err(|error| error.to_string());
        let optional = |text: &str| (!text.is_empty()).then(|| read(text));
        Self {
            failed: optional(&rule.failed),
            in_progress: optional(&rule.in_progress),
            current: read(&rule.current),
            rule: rule.clone(),
        }
    }

    /// Whether it judges an object.
    pub(in crate::apply) fn concerns(&self, key: &ObjectKey) -> bool {
        self.rule.concerns(key)
    }

    /// What stands for the health of an object that it has not judged yet.
    pub(in crate::apply) fn pending() -> Verdict {
        Verdict::in_progress("its health check has not looked at it yet")
    }

    /// Judges an object.
    pub(in crate::apply) fn health(&self, object: &Value) -> Verdict {
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Verdict::new(Health::Terminating, "it is being deleted");
        }
        if let Some(verdict) = conditions::generation_lags(object) {
            return verdict;
        }
        let verdict = self.judged(object);
        verdict.unwrap_or_else(|error| Verdict::new(Health::Unknown, format!("its health check says nothing: {error}")))
    }

    fn judged(&self, object: &Value) -> Result<Verdict, String> {
        if holds(self.failed.as_ref(), object)? {
            return Ok(Verdict::failed(words(object, "its health check calls it failed")));
        }
        if holds(self.in_progress.as_ref(), object)? {
            return Ok(Verdict::in_progress(words(
                object,
                "its health check calls it in progress",
            )));
        }
        if holds(Some(&self.current), object)? {
            return Ok(Verdict::current());
        }
        if self.in_progress.is_some() {
            return Err("none of its expressions holds".to_owned());
        }
        let nothing = if object["status"].is_null() {
            SILENT
        } else {
            "its health check does not call it current"
        };
        Ok(Verdict::in_progress(words(object, nothing)))
    }
}

fn holds(expression: Option<&Result<Expression, String>>, object: &Value) -> Result<bool, String> {
    match expression {
        None => Ok(false),
        Some(Err(error)) => Err(error.clone()),
        Some(Ok(expression)) => expression.holds(object).map_err(|error: Unevaluated| error.to_string()),
    }
}

/// The object's own words where it has any, since an expression has none.
fn words(object: &Value, otherwise: &str) -> String {
    let conditions = Conditions::of(object);
    match conditions.status("Ready") {
        Some("False" | "Unknown") => conditions.message("Ready"),
        _ => otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(in_progress: &str, failed: &str) -> Check {
        Check::new(&HealthCheck {
            api_version: "example.dev/v1".to_owned(),
            kind: "Database".to_owned(),
            current: "object.status.phase == 'Running'".to_owned(),
            in_progress: in_progress.to_owned(),
            failed: failed.to_owned(),
        })
    }

    fn judge(check: &Check, phase: &str) -> Health {
        let object = json!({"metadata": {"generation": 1}, "status": {"phase": phase}});
        check.health(&object).health
    }

    #[test]
    fn a_kind_is_judged_as_its_rule_says() {
        let rule = check("", "object.status.phase == 'Lost'");
        let judged = ["Running", "Lost", "Starting"].map(|phase| judge(&rule, phase));
        assert_eq!(judged, [Health::Current, Health::Failed, Health::InProgress]);
        let empty = rule.health(&json!({"metadata": {"generation": 1}}));
        assert_eq!(
            (empty.health, empty.message.as_str()),
            (Health::InProgress, SILENT),
            "an empty status is never current"
        );
        let old = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "phase": "Running"}});
        assert_eq!(rule.health(&old).health, Health::InProgress);
    }

    #[test]
    fn with_three_expressions_what_none_of_them_knows_is_unknown() {
        let rule = check("object.status.phase == 'Starting'", "object.status.phase == 'Lost'");
        assert_eq!(judge(&rule, "Starting"), Health::InProgress);
        assert_eq!(judge(&rule, "Else"), Health::Unknown);
    }

    #[test]
    fn an_expression_that_says_nothing_is_told() {
        let rule = check("", "object.status.phase");
        let verdict = rule.health(&json!({"status": {"phase": "Running"}}));
        assert_eq!(verdict.health, Health::Unknown);
        assert_eq!(
            verdict.message,
            "its health check says nothing: the expression gives a string and no boolean"
        );
        let broken = check("", "object.");
        assert_eq!(judge(&broken, "Running"), Health::Unknown);
    }
}
