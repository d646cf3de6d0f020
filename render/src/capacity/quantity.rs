//! Kubernetes' quantities: `100m`, `1.5Gi`, `2e3`.

/// A quantity in thousandths; `None` for what is none, or is finer than that.
///
/// The suffixes are those of `k8s.io/apimachinery/pkg/api/resource`: `m`, none, `k` to `E`, `Ki` to `Ei`, and a
/// decimal exponent.
pub fn thousandths(text: &str) -> Option<i128> {
    let is_number = |char: char| char.is_ascii_digit() || matches!(char, '.' | '-' | '+');
    let end = text.find(|char| !is_number(char)).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let thousandths = match suffix {
        "n" => return finer(digits, 1_000_000),
        "u" => return finer(digits, 1_000),
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_i128.pow(2),
        "M" => 1_000_i128.pow(3),
        "G" => 1_000_i128.pow(4),
        "T" => 1_000_i128.pow(5),
        "P" => 1_000_i128.pow(6),
        "E" => 1_000_i128.pow(7),
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        "Ti" => 1_000 << 40,
        "Pi" => 1_000 << 50,
        "Ei" => 1_000 << 60,
        exponent => {
            let exponent: u32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            10_i128.checked_pow(exponent.checked_add(3)?)?
        }
    };
    scaled(digits, thousandths)
}

/// Millionths and billionths, where they are whole thousandths.
fn finer(digits: &str, in_a_thousandth: i128) -> Option<i128> {
    let number = scaled(digits, 1)?;
    (number % in_a_thousandth == 0).then_some(number / in_a_thousandth)
}

fn scaled(digits: &str, thousandths: i128) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= 9)?;
    let unit = 10_i128.pow(places);
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = number.checked_mul(thousandths)?;
    (scaled % unit == 0).then_some(scaled / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("1", Some(1_000)),
            ("100m", Some(100)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1k", Some(1_000_000)),
            ("2e3", Some(2_000_000)),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("3000000n", Some(3)),
            ("5u", None),
            ("0.0001", None),
            ("-1", Some(-1_000)),
            ("", None),
            ("Gi", None),
            ("1.2.3", None),
            ("1KiB", None),
            ("1e99999999999", None),
        ] {
            assert_eq!(thousandths(text), expected, "{text:?}");
        }
    }
}
