//! The JSON paths of printer columns: fields, indexes, and filters by equality.

use serde_json::Value;

/// What a path such as `.status.conditions[?(@.type=="Ready")].status` finds first.
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            at = pick(at, inside)?;
            rest = after;
        } else {
            rest = rest.trim_start_matches('.');
            let (name, after) = field(rest);
            at = at.get(name.replace("\\.", "."))?;
            rest = after;
        }
    }
    Some(at)
}

/// A field's name up to a dot or bracket that is not escaped, and the rest.
fn field(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => escaped = true,
            '.' | '[' if !escaped => return text.split_at(at),
            _ => escaped = false,
        }
    }
    (text, "")
}

fn pick<'a>(list: &'a Value, inside: &str) -> Option<&'a Value> {
    if let Some(filter) = inside.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (path, wanted) = filter.split_once("==")?;
        let path = path.trim().trim_start_matches('@');
        let wanted = wanted.trim().trim_matches(['"', '\'']);
        let fits = |item: &&Value| match find(item, path) {
            Some(Value::String(text)) => text == wanted,
            Some(other) => *other.to_string() == *wanted,
            None => false,
        };
        return list.as_array()?.iter().find(fits);
    }
    match inside.trim_matches(['"', '\'']) {
        "*" => list.get(0),
        text => match text.parse::<usize>() {
            Ok(index) => list.get(index),
            Err(_) => list.get(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<Value>) {
        let object = json!({"status": {"conditions": [{"type": "A", "status": "x"}, {"type": "Ready", "status": "True"}]},
            "metadata": {"annotations": {"a.b/c": "d"}}});
        assert_eq!(find(&object, path), expected.as_ref(), "{path}");
    }

    #[test]
    fn paths_of_printer_columns_are_followed() {
        check(".status.conditions[?(@.type==\"Ready\")].status", Some(json!("True")));
        check(".status.conditions[?(@.type=='Ready')].status", Some(json!("True")));
        check(".status.conditions[0].status", Some(json!("x")));
        check(".metadata.annotations.a\\.b/c", Some(json!("d")));
        check(".spec.nothing", None);
    }
}
