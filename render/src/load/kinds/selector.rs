//! Label selectors inside a declaration.

use super::super::fields::Fields;
use super::labels;
use crate::selector::{LabelSelector, Operator, Requirement};

const OPERATORS: &[(&str, Operator)] = &[
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
];

/// Reads a selector; what is wrong in it is reported, and the rest is given.
pub(super) fn read(mut fields: Fields<'_>) -> LabelSelector {
    let match_labels = fields.text_map("matchLabels");
    labels::check(&fields, "matchLabels", &match_labels);
    let expressions = fields.objects("matchExpressions").unwrap_or_default();
    let match_expressions = expressions.into_iter().filter_map(requirement).collect();
    fields.finish();
    LabelSelector {
        match_labels,
        match_expressions,
    }
}

fn requirement(mut fields: Fields<'_>) -> Option<Requirement> {
    let key = fields.required_text("key").map(str::to_owned);
    let operator = fields.choice("operator", OPERATORS);
    let values = fields.texts("values").unwrap_or_default();
    match operator {
        Some(Operator::In | Operator::NotIn) if values.is_empty() => {
            fields.error("values", "FieldMissing", "In and NotIn need values", "");
        }
        Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
            fields.error("values", "FieldInvalid", "Exists and DoesNotExist take no values", "");
        }
        None => fields.require("operator"),
        Some(_) => {}
    }
    if let Some(problem) = key.as_deref().and_then(labels::wrong_key) {
        fields.error("key", "FieldInvalid", problem, "");
    }
    for (index, problem) in values.iter().map(|value| labels::wrong_value(value)).enumerate() {
        if let Some(problem) = problem {
            fields.error(&format!("values[{index}]"), "FieldInvalid", problem, "");
        }
    }
    fields.finish();
    Some(Requirement {
        key: key?,
        operator: operator?,
        values,
    })
}
