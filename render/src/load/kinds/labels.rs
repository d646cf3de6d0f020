//! Labels of clusters, and what selectors ask of them, where Kubernetes would refuse them: no cluster could carry
//! them in a hub cluster, and `kubectl -l` could not ask for them.

use std::collections::BTreeMap;

use super::super::fields::Fields;
use crate::name::{wrong_label_key, wrong_label_value};

/// Reports each label of a map that is none.
pub(super) fn check(fields: &Fields<'_>, name: &str, labels: &BTreeMap<String, String>) {
    for (key, value) in labels {
        if let Some(problem) = wrong_key(key).or_else(|| wrong_value(value)) {
            fields.error(&format!("{name}.{key}"), "FieldInvalid", problem, "");
        }
    }
}

/// What is wrong with a label's key.
pub(super) fn wrong_key(key: &str) -> Option<String> {
    wrong_label_key(key).map(|rule| format!("label {key:?} is not valid: {rule}"))
}

/// What is wrong with a label's value.
pub(super) fn wrong_value(value: &str) -> Option<String> {
    wrong_label_value(value).map(|rule| format!("label value {value:?} is not valid: {rule}"))
}
