//! The API server's own words, fit for a report: shortened, and without a Secret's values.

use render::ObjectKey;
use serde_json::Value;

use crate::limits::RESULT_MESSAGE_CHARS_MAX;

/// Stands where a value was.
const MASK: &str = "***";

/// A message for a report about an object that was sent.
pub(super) fn about(key: &ObjectKey, sent: &Value, words: &str) -> String {
    if key.is_secret() {
        shorten(&mask(words, sent))
    } else {
        shorten(words)
    }
}

/// A message about an object that was encrypted: whatever its kind, none of its values stays, but for who it is.
pub(super) fn without_values(words: &str, object: &Value) -> String {
    let mut values = Vec::new();
    for (field, value) in object.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
            collect(value, &mut values);
        }
    }
    for (field, value) in object["metadata"].as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "name" | "namespace") {
            collect(value, &mut values);
        }
    }
    shorten(&masked(words, values))
}

/// At most as many characters as a report takes, in one line.
pub(super) fn shorten(words: &str) -> String {
    shorten_to(words, RESULT_MESSAGE_CHARS_MAX)
}

/// As [`shorten`], with an end that is kept whole.
pub(super) fn shorten_before(words: &str, end: &str) -> String {
    let room = RESULT_MESSAGE_CHARS_MAX.saturating_sub(end.chars().count()).max(1);
    shorten(&format!("{}{end}", shorten_to(words, room)))
}

fn shorten_to(words: &str, max: usize) -> String {
    let mut words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > max
        && let Some((end, _)) = words.char_indices().nth(max - 1)
    {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// API servers quote what they refuse, in quotes, in braces and bare. For a Secret all three go: whatever
/// is quoted (escaped or cut short, it would not be found by its value), and every value that stands bare.
fn mask(words: &str, secret: &Value) -> String {
    let mut values = Vec::new();
    for section in ["data", "stringData"] {
        collect(&secret[section], &mut values);
    }
    masked(words, values)
}

fn masked(words: &str, mut values: Vec<String>) -> String {
    // Longer ones first, so that no rest of a value stays behind a shorter one.
    values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
    let mut masked = without_quoted(words);
    for value in values.iter().filter(|value| !value.is_empty()) {
        masked = without_value(&masked, value);
    }
    masked
}

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => values.push(flag.to_string()),
        Value::Number(number) => values.push(number.to_string()),
        Value::String(text) => {
            values.extend(decoded(text));
            values.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(map) => map.values().for_each(|item| collect(item, values)),
    }
}

fn decoded(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    String::from_utf8(bytes).ok()
}

/// Drops what stands between quotes and braces; what is opened and never closed is dropped to the end.
fn without_quoted(words: &str) -> String {
    let mut kept = String::new();
    let mut rest = words;
    while let Some(start) = rest.find(['"', '`', '{']) {
        let (before, quoted) = rest.split_at(start);
        kept.push_str(before);
        kept.push_str(MASK);
        rest = after_quoted(quoted);
    }
    kept + rest
}

/// What follows a quotation that `text` begins with.
fn after_quoted(text: &str) -> &str {
    let opening = text.chars().next().unwrap_or('"');
    let closing = if opening == '{' { '}' } else { opening };
    let mut depth = 0_usize;
    let mut escaped = false;
    for (index, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if opening == '"' => escaped = true,
            '{' if opening == '{' => depth += 1,
            _ if char == closing && index > 0 => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return &text[index + char.len_utf8()..];
                }
            }
            _ => {}
        }
    }
    ""
}

/// Drops a value. A short one is dropped only where it stands alone, or no number in the text would be left.
fn without_value(words: &str, value: &str) -> String {
    let alone = value.chars().count() < 4;
    let mut kept = String::new();
    let mut rest = words;
    while let Some(start) = rest.find(value) {
        let (before, found) = rest.split_at(start);
        let after = &found[value.len()..];
        let touches = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        let inside = touches(before.chars().next_back()) || touches(after.chars().next());
        kept.push_str(before);
        kept.push_str(if alone && inside { value } else { MASK });
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret() -> Value {
        json!({"kind": "Secret", "data": {"token": "aHVudGVyMg=="},
            "stringData": {"user": "MARK-7f3", "pw": 12345, "pin": 7, "cert": {"a": "MARK-\"9\n"}}})
    }

    #[track_caller]
    fn check(words: &str) {
        let key = ObjectKey::new("v1", "Secret", "shop", "db");
        let said = about(&key, &secret(), words);
        for value in ["MARK", "12345", "hunter2", "aHVudGVyMg", " 7 "] {
            assert!(!said.contains(value), "{value} is still in {said:?}");
        }
    }

    #[test]
    fn no_value_of_a_secret_is_left_in_a_message() {
        check("failed: .stringData.pw: expected string, got &value.valueUnstructured{Value:12345}");
        check("failed: .stringData.pw: expected string, got 12345");
        check(r#"Invalid value: "MARK-7f3": must be base64"#);
        check(r#"Invalid value: "MARK-\"9\n": must be base64"#);
        check(r#"cut short: "MARK-\"9"#);
        check("bare MARK-7f3 and hunter2 and aHVudGVyMg== and 7 .");
        check("a map: {a: {b: MARK-other}} and {unclosed MARK-other");
        check("`MARK-other`");
    }

    #[test]
    fn no_value_of_what_was_encrypted_is_left_whatever_its_kind() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "labels": {"a": "MARK-1"}},
            "data": {"conf": "MARK-2"}, "spec": {"pin": 4711}});
        let said = without_values("web: MARK-1 and MARK-2 and 4711 are wrong in ConfigMap", &object);
        assert_eq!(said, "web: *** and *** and *** are wrong in ConfigMap");
    }

    #[test]
    fn what_helps_is_kept() {
        let key = ObjectKey::new("v1", "Secret", "shop", "db");
        let words = "error at line 17: .stringData.pin: expected string, got 7";
        assert_eq!(
            about(&key, &secret(), words),
            "error at line 17: .stringData.pin: expected string, got ***"
        );
        let key = ObjectKey::new("v1", "ConfigMap", "shop", "db");
        let words = r#"Invalid value: "MARK-7f3""#;
        assert_eq!(
            about(&key, &secret(), words),
            words,
            "other kinds keep the server's words"
        );
    }

    #[test]
    fn messages_have_a_length() {
        let said = shorten(&"ü ".repeat(2_000));
        assert_eq!(said.chars().count(), RESULT_MESSAGE_CHARS_MAX);
        assert!(said.ends_with('…'));
        assert_eq!(shorten("two\n lines"), "two lines");
        let said = shorten_before(&"ü ".repeat(2_000), "; hint: do so");
        assert_eq!(said.chars().count(), RESULT_MESSAGE_CHARS_MAX);
        assert!(said.ends_with("…; hint: do so"), "{said}");
    }
}
