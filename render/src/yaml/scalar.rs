//! Scalars by YAML 1.1 as kubectl reads them: its table of words, its integers and its floats.

use serde_json::{Number, Value};

/// What a plain scalar is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    Text,
}

/// Why a scalar has no value in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("an infinity or not-a-number has no form in JSON; quote it if text is meant")]
    NotFinite,
    #[error("an integer of more than 64 bits would lose digits; quote it if text is meant")]
    IntegerTooLarge,
}

impl Scalar {
    pub(super) fn into_value(self, text: &str) -> Value {
        match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Number(number) => Value::Number(number),
            Scalar::Text => Value::String(text.to_owned()),
        }
    }
}

/// What a plain scalar without a tag is.
pub(super) fn resolve(text: &str) -> Result<Scalar, Unreadable> {
    match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => Ok(word(text)),
        Some(b'.' | b'+' | b'-') if is_not_finite(text) => Err(Unreadable::NotFinite),
        Some(b'.') => Ok(float(text).map_or(Scalar::Text, Scalar::Number)),
        Some(b'0'..=b'9' | b'+' | b'-') => number(text),
        Some(_) => Ok(Scalar::Text),
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        _ => Scalar::Text,
    }
}

fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn number(text: &str) -> Result<Scalar, Unreadable> {
    // A date stays text, and most of what starts with a digit and has a letter is decided here.
    let plain: std::borrow::Cow<'_, str> = if text.contains('_') {
        text.replace('_', "").into()
    } else {
        text.into()
    };
    if let Some(number) = integer(&plain) {
        return Ok(Scalar::Number(number));
    }
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    if digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0') {
        return Err(Unreadable::IntegerTooLarge);
    }
    Ok(float(&plain).map_or(Scalar::Text, Scalar::Number))
}

/// An integer in any base that Go's `ParseInt` with base 0 takes.
fn integer(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        let value = 0_i64.checked_sub_unsigned(magnitude)?;
        Some(Number::from(value))
    } else {
        Some(Number::from(magnitude))
    }
}

/// A float; one without a fraction becomes the integer that kubectl sends for it.
fn float(text: &str) -> Option<Number> {
    if !is_float(text) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if !value.is_finite() {
        return None;
    }
    whole(value).or_else(|| Number::from_f64(value))
}

fn whole(value: f64) -> Option<Number> {
    // 2^63 is the first float that is no i64.
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
    (value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0).then(|| Number::from(value as i64))
}

fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && is_digits(exponent))
}

/// Whether a number's text says more than the number: an exponent, blanks or a zero that would be lost
/// where text was meant, as in the image tag `706798e8`.
pub(super) fn is_misleading(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hexadecimal = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let decimal_with_zero = unsigned.len() > 1
        && unsigned.starts_with('0')
        && unsigned.bytes().all(|byte| byte.is_ascii_digit())
        && unsigned.bytes().any(|byte| byte > b'7');
    let exponent = !hexadecimal && !unsigned.contains('.') && unsigned.contains(['e', 'E']);
    exponent || unsigned.contains('_') || decimal_with_zero
}

/// The text of a scalar key, as kubectl makes it; `None` for null, which is no key.
pub(super) fn key_text(scalar: &Scalar, text: &str) -> Option<String> {
    match scalar {
        Scalar::Null => None,
        Scalar::Bool(value) => Some(value.to_string()),
        Scalar::Number(number) if is_float_key(text) => Some(go_float(number.as_f64()?)),
        Scalar::Number(number) => Some(number.to_string()),
        Scalar::Text => Some(text.to_owned()),
    }
}

fn is_float_key(text: &str) -> bool {
    let plain = text.replace('_', "");
    integer(&plain).is_none()
}

/// A float as Go's `FormatFloat(f, 'g', -1, 32)` writes it, which kubectl uses for keys.
fn go_float(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "kubectl keeps 32 bits of a float key")]
    let value = value as f32;
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
