//! Kubernetes quantities: `1000m` and `1`, `1Gi` and `1024Mi`.

use serde_json::Value;

use crate::capacity::thousandths;

/// A Kubernetes quantity in thousandths; `None` for what is none, or has more digits than that.
pub fn quantity(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    thousandths(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_compared_by_what_they_mean() {
        assert_eq!(quantity(&json!("1000m")), quantity(&json!(1)));
        assert_eq!(quantity(&json!("1Gi")), quantity(&json!("1024Mi")));
        assert!(quantity(&json!("2Gi")) > quantity(&json!("1G")));
        for none in [json!("web:1.0"), json!("v1"), json!(true), json!(null)] {
            assert_eq!(quantity(&none), None, "{none}");
        }
    }
}
