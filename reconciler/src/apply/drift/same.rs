//! Whether a value that was sent and one that is there mean the same.

use render::quantity::quantity;
use serde_json::Value;

/// Whether `live` is what `sent` asked for. What the server filled in beside it does not count, nor how it writes
/// numbers and quantities (`1000m` and `1`).
pub(super) fn is_same(sent: &Value, live: &Value) -> bool {
    match (sent, live) {
        (Value::Object(sent), Value::Object(live)) => sent
            .iter()
            .filter(|(_, wanted)| !wanted.is_null())
            .all(|(name, wanted)| live.get(name).is_some_and(|value| is_same(wanted, value))),
        (Value::Array(sent), Value::Array(live)) => {
            sent.len() == live.len() && sent.iter().zip(live).all(|(sent, live)| is_same(sent, live))
        }
        (Value::Number(sent), Value::Number(live)) => sent == live || sent.as_f64() == live.as_f64(),
        _ => sent == live || quantity(sent).is_some_and(|sent| Some(sent) == quantity(live)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_is_the_same_however_it_is_written() {
        for (sent, live) in [
            (json!("1000m"), json!("1")),
            (json!(1), json!("1000m")),
            (json!("1Gi"), json!("1024Mi")),
            (json!("0.5"), json!("500m")),
            (json!(1), json!(1.0)),
            (json!({"a": 1}), json!({"a": 1, "protocol": "TCP"})),
            (json!([{"port": 1}]), json!([{"port": 1, "protocol": "TCP"}])),
            (json!({"a": null}), json!({})),
        ] {
            assert!(is_same(&sent, &live), "{sent} and {live}");
        }
        for (sent, live) in [
            (json!("1000m"), json!("2")),
            (json!("1Gi"), json!("1G")),
            (json!("web:1.0"), json!("web:1.1")),
            (json!("v1"), json!("v1.0")),
            (json!([1, 2]), json!([2, 1])),
            (json!([1]), json!([1, 2])),
            (json!({"a": 1}), json!({"b": 1})),
            (json!("true"), json!(true)),
        ] {
            assert!(!is_same(&sent, &live), "{sent} and {live}");
        }
    }
}
