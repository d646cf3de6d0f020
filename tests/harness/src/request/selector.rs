//! Which objects of a collection are meant: label and field selectors.

use std::collections::BTreeMap;

use render::selector::{LabelSelector, Operator, Requirement};
use serde_json::Value;

use super::Query;
use crate::failure::Failure;
use crate::kinds::Kind;

/// What is selected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

/// Fields by which built-in kinds can be selected, beside name and namespace.
const FIELDS: [(&str, &[&str]); 7] = [
    (
        "Pod",
        &[
            "spec.nodeName",
            "status.phase",
            "spec.restartPolicy",
            "spec.serviceAccountName",
        ],
    ),
    (
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "type",
        ],
    ),
    ("Secret", &["type"]),
    ("Namespace", &["status.phase"]),
    ("Node", &["spec.unschedulable"]),
    ("Job", &["status.successful"]),
    ("ReplicaSet", &["status.replicas"]),
];

impl Selection {
    pub(crate) fn of(query: &Query, kind: &Kind) -> Result<Self, Failure> {
        let labels = labels(query.text("labelSelector").unwrap_or_default())?;
        let mut fields = Vec::new();
        for part in split(query.text("fieldSelector").unwrap_or_default()) {
            let (path, value, equal) = requirement(&part).ok_or_else(|| {
                Failure::bad_request(format!("invalid selector: '{part}'; can't understand '{part}'"))
            })?;
            let known = ["metadata.name", "metadata.namespace"].contains(&path.as_str());
            let of_kind = FIELDS
                .iter()
                .find(|(name, _)| kind.type_name.is_some() && *kind.kind == **name);
            if !known && !of_kind.is_some_and(|(_, fields)| fields.contains(&path.as_str())) {
                return Err(Failure::bad_request(format!("field label not supported: {path}")));
            }
            fields.push(FieldRequirement { path, value, equal });
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        if !self.labels.is_empty() {
            let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
            let labels: BTreeMap<_, _> = labels
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect();
            if !self.labels.matches(&labels) {
                return false;
            }
        }
        self.fields.iter().all(|field| {
            let value = field.path.split('.').fold(object, |value, name| &value[name]);
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            (text == field.value) == field.equal
        })
    }

    /// With only the object of this name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.fields.push(FieldRequirement {
            path: "metadata.name".to_owned(),
            value: name.to_owned(),
            equal: true,
        });
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

fn requirement(part: &str) -> Option<(String, String, bool)> {
    for (sign, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((path, value)) = part.split_once(sign) {
            return Some((path.trim().to_owned(), value.trim().to_owned(), equal));
        }
    }
    None
}

/// Parts between commas outside of parentheses.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match (c, depth, parts.last_mut()) {
            (',', 0, _) => parts.push(String::new()),
            (c, _, Some(part)) => part.push(c),
            _ => {}
        }
    }
    parts
        .into_iter()
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

fn labels(text: &str) -> Result<LabelSelector, Failure> {
    let refused = |error: String| Failure::bad_request(format!("unable to parse requirement: {error}"));
    let mut selector = LabelSelector::default();
    for part in split(text) {
        if part.contains(['<', '>']) {
            return Err(Failure::lacking("label selectors with gt and lt"));
        }
        selector.match_expressions.push(expression(&part).map_err(refused)?);
    }
    Ok(selector)
}

fn expression(part: &str) -> Result<Requirement, String> {
    let (key, operator, values) = if let Some(key) = part.strip_prefix('!') {
        (key.trim().to_owned(), Operator::DoesNotExist, Vec::new())
    } else if let Some((head, values)) = part.split_once('(') {
        let mut words = head.split_whitespace();
        let (key, word) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let operator = match word {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            _ => return Err(format!("found '{word}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = values.strip_suffix(')').filter(|values| !values.contains(['(', ')']));
        let values = values
            .ok_or_else(|| "found '', expected: ',' or ')'".to_owned())?
            .split(',')
            .map(|value| value.trim().to_owned());
        (key.to_owned(), operator, values.collect())
    } else if let Some((key, value, equal)) = requirement(part) {
        let operator = if equal { Operator::In } else { Operator::NotIn };
        (key, operator, vec![value])
    } else {
        (part.to_owned(), Operator::Exists, Vec::new())
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if key.is_empty() || !key.chars().all(fits) {
        return Err(format!("invalid label key {key:?}"));
    }
    Ok(Requirement { key, operator, values })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: bool) {
        let selection = Selection {
            labels: labels(selector).expect("a valid selector"),
            fields: Vec::new(),
        };
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        assert_eq!(selection.matches(&object), expected, "{selector}");
    }

    #[test]
    fn every_form_of_a_label_selector_is_read() {
        check("", true);
        check("app", true);
        check("!app", false);
        check("app=web,tier==front", true);
        check("app!=web", false);
        check("other!=web", true);
        check("app in (web, api)", true);
        check("app notin (web),tier", false);
    }

    #[track_caller]
    fn check_refused(selector: &str, code: u16) {
        let refused = labels(selector).expect_err("it cannot be read");
        assert_eq!(refused.status()["code"], code, "{selector}");
    }

    #[test]
    fn what_is_no_label_selector_is_refused_and_what_is_not_done_is_named() {
        for selector in [
            "app near (web)",
            "a b",
            "a in (b",
            "a in (b,c",
            "a in b)",
            "a in ((b)",
            "a in (b))",
        ] {
            check_refused(selector, 400);
        }
        for selector in ["size>1", "app=web,size<3"] {
            check_refused(selector, 501);
        }
    }
}
