//! Label selectors with Kubernetes' rules.

mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A label selector: every part must match; an empty one matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be there with this value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Expressions that must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// One expression of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What must hold for it.
    pub operator: Operator,
    /// Values of In and NotIn; empty for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What an expression asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Present with one of the values.
    In,
    /// Absent, or present with none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether it selects these labels.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.matches(labels))
    }

    /// Whether it asks for nothing, and so matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

impl Requirement {
    /// Whether it holds for these labels.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => !value.is_some_and(|value| self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(operator: Operator, values: &[&str], labels: &[(&str, &str)], expected: bool) {
        let requirement = Requirement {
            key: "env".to_owned(),
            operator,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let selector = LabelSelector {
            match_expressions: vec![requirement],
            ..LabelSelector::default()
        };
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(
            selector.matches(&labels),
            expected,
            "{operator:?} {values:?} on {labels:?}"
        );
    }

    #[test]
    fn expressions_match_as_kubernetes_says() {
        check(Operator::In, &["a", "b"], &[("env", "b")], true);
        check(Operator::In, &["a"], &[], false);
        check(Operator::NotIn, &["a"], &[], true);
        check(Operator::NotIn, &["a"], &[("env", "a")], false);
        check(Operator::Exists, &[], &[("env", "")], true);
        check(Operator::DoesNotExist, &[], &[("env", "")], false);
    }

    #[test]
    fn an_empty_selector_matches_everything() {
        assert!(LabelSelector::default().matches(&BTreeMap::new()));
    }
}
