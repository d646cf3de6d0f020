//! HelmCharts: one described form for both groups, with values.

use serde_json::{Map, Value};

use crate::localize::problem::Problem;
use crate::model::FLEET_API_VERSION;

/// Gives a HelmChart of either group the form in which it is described.
pub(super) fn describe(chart: &mut Value) {
    chart["apiVersion"] = Value::from(FLEET_API_VERSION);
}

/// Puts override values over those that the chart has so far, as Helm does with a further file of values: maps merge,
/// and everything else is replaced. A null stays, and Helm takes value and default away by it.
pub(super) fn merge_values(chart: &mut Value, over: &Value) -> Result<(), Problem> {
    let values = &mut chart["spec"]["values"];
    if values.is_null() {
        *values = Value::Object(Map::new());
    }
    match (values, over) {
        (Value::Object(values), Value::Object(over)) => {
            coalesce(values, over);
            Ok(())
        }
        _ => Err(Problem::ValuesNotAMapping),
    }
}

fn coalesce(values: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, item) in over {
        match (values.get_mut(key), item) {
            (Some(Value::Object(values)), Value::Object(over)) => coalesce(values, over),
            _ => {
                values.insert(key.clone(), item.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(values: Value, over: Value, expected: Value) {
        let mut chart = json!({"spec": {"values": values}});
        merge_values(&mut chart, &over).expect("both are mappings");
        assert_eq!(chart["spec"]["values"], expected);
    }

    #[test]
    fn maps_merge_and_everything_else_is_replaced() {
        check(Value::Null, json!({"a": 1}), json!({"a": 1}));
        check(
            json!({"a": {"b": 1, "c": [1, 2]}}),
            json!({"a": {"c": [3]}}),
            json!({"a": {"b": 1, "c": [3]}}),
        );
        check(json!({"a": {"b": 1}}), json!({"a": 2}), json!({"a": 2}));
        check(json!({"a": 2}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}}));
    }

    #[test]
    fn a_null_is_passed_on_to_helm() {
        check(json!({"a": 1, "b": 2}), json!({"a": null}), json!({"a": null, "b": 2}));
        check(json!({"a": null}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}}));
        check(
            json!({}),
            json!({"a": null, "b": {"c": null}}),
            json!({"a": null, "b": {"c": null}}),
        );
    }
}
