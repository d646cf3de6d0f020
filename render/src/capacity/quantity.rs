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

/// An amount as Kubernetes writes it, exactly: `cpu` comes in thousandths, bytes in the largest unit that they fill.
pub(super) fn written(name: &str, amount: i64) -> String {
    if name == "cpu" {
        return match amount % 1_000 {
            0 => (amount / 1_000).to_string(),
            _ => format!("{amount}m"),
        };
    }
    let are_bytes = matches!(name, "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let units = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let fills = |(_, bits): &(&str, u32)| amount != 0 && amount % (1 << bits) == 0;
    match units.into_iter().find(fills).filter(|_| are_bytes) {
        Some((unit, bits)) => format!("{}{unit}", amount >> bits),
        None => amount.to_string(),
    }
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

    #[test]
    fn amounts_are_written_so_that_they_read_as_the_same() {
        for (name, amount, expected) in [
            ("cpu", 8_000, "8"),
            ("cpu", 1_500, "1500m"),
            ("cpu", 0, "0"),
            ("memory", 3 << 29, "1536Mi"),
            ("memory", 16 << 30, "16Gi"),
            ("memory", 1_000, "1000"),
            ("memory", -(1 << 30), "-1Gi"),
            ("hugepages-2Mi", 4 << 20, "4Mi"),
            ("pods", 1_024, "1024"),
            ("nvidia.com/gpu", 2, "2"),
        ] {
            let text = written(name, amount);
            assert_eq!(text, expected, "{name}");
            let unit = if name == "cpu" { 1 } else { 1_000 };
            assert_eq!(thousandths(&text), Some(i128::from(amount) * unit), "{text}");
        }
    }
}
