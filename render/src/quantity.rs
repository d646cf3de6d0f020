//! Kubernetes quantities: `1000m` and `1`, `1Gi` and `1024Mi`.

use serde_json::Value;

/// A Kubernetes quantity in thousandths; `None` for what is none, or has more digits than that.
pub fn quantity(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.' && char != '-');
    let (digits, suffix) = text.split_at(end.unwrap_or(text.len()));
    scaled(digits, suffix)
}

fn scaled(digits: &str, suffix: &str) -> Option<i128> {
    let thousandths = match suffix {
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_i128.pow(2),
        "M" => 1_000_i128.pow(3),
        "G" => 1_000_i128.pow(4),
        "T" => 1_000_i128.pow(5),
        "P" => 1_000_i128.pow(6),
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        "Ti" => 1_000 << 40,
        "Pi" => 1_000 << 50,
        _ => return None,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= 9)?;
    let unit = 10_i128.pow(places);
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = number.checked_mul(thousandths)?;
    (scaled % unit == 0).then_some(scaled / unit)
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
