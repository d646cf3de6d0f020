//! The query of a request: read here alone, for who judges by it and for who answers it.
//!
//! An API server decodes keys and values, takes the first value of a key that is said twice, and drops what it cannot
//! decode. What others could read otherwise is [`Unclear`], where it decides what is asked.

use super::request::Unclear;

/// All pairs of a query, decoded, in their order.
///
/// # Errors
/// A key or a value cannot be decoded, or a key is written in a way that nobody needs.
pub fn pairs(query: Option<&str>) -> Result<Vec<(String, String)>, Unclear> {
    check_keys(query)?;
    let decoded = |text: &str| decoded(text).ok_or(Unclear("its query cannot be decoded"));
    split(query)
        .map(|(key, value)| Ok((decoded(key)?, decoded(value)?)))
        .collect()
}

/// Whether a value stands for yes, as an API server reads it: whatever is not `false` or `0`.
pub fn is_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// The fields that a selector wants to be equal to something, in its order; `None` where it wants anything else, or says it
/// in a way that could be read otherwise.
pub fn equal_fields(selector: &str) -> Option<Vec<(&str, &str)>> {
    let terms = selector.split(',').filter(|term| !term.is_empty());
    let equal = |term: &str| {
        let at = term.find(['=', '!'])?;
        let sign = if term[at..].starts_with("==") { 2 } else { 1 };
        let is_plain = !term.contains(['\\', '!']) && !term[at + sign..].contains('=');
        is_plain.then_some((at, at + sign))
    };
    terms
        .map(|term| equal(term).map(|(end, begin)| (&term[..end], &term[begin..])))
        .collect()
}

/// Whether each key is written as it is read: a letter or digit needs no escape.
pub(super) fn check_keys(query: Option<&str>) -> Result<(), Unclear> {
    let escapes = |key: &str| {
        let escaped = key.match_indices('%').filter_map(|(at, _)| key.get(at + 1..at + 3));
        let mut bytes = escaped.filter_map(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.any(|byte| byte.is_ascii_alphanumeric())
    };
    match split(query).any(|(key, _)| escapes(key)) {
        true => Err(Unclear("its query escapes what needs no escape")),
        false => Ok(()),
    }
}

/// Whether a query asks for a watch.
pub(super) fn watches(query: Option<&str>) -> Result<bool, Unclear> {
    Ok(said(query, "watch")?.is_some_and(|value| is_true(&value)))
}

/// The one object that a list or a watch is narrowed to by `fieldSelector`, as `kubectl get pod a --watch` asks. What
/// could be meant otherwise narrows nothing.
pub(super) fn selected_name(query: Option<&str>) -> Result<Option<String>, Unclear> {
    let selector = said(query, "fieldSelector")?.unwrap_or_default();
    let terms = selector.split(',').filter_map(|term| {
        let fields = equal_fields(term)?;
        fields.into_iter().find(|(field, _)| *field == "metadata.name")
    });
    let mut names = terms.map(|(_, name)| name);
    let (first, second) = (names.next(), names.next());
    if second.is_some() {
        return Err(Unclear("its field selector has two names"));
    }
    let is_name = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains(['/', '%', '\\']);
    let is_escaped = selector.contains('\\');
    Ok(first.filter(is_name).filter(|_| !is_escaped).map(str::to_owned))
}

/// The value of a key that decides something.
fn said(query: Option<&str>, key: &str) -> Result<Option<String>, Unclear> {
    let mut all = split(query).filter(|(own, _)| *own == key);
    let (Some((_, value)), second) = (all.next(), all.next()) else {
        return Ok(None);
    };
    if second.is_some() {
        return Err(Unclear("its query says one thing twice"));
    }
    // Between programs of some age it separates pairs; an API server drops the pair.
    if value.contains(';') {
        return Err(Unclear("its query has a semicolon"));
    }
    match decoded(value) {
        Some(value) => Ok(Some(value)),
        None => Err(Unclear("its query cannot be decoded")),
    }
}

fn split(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// A key or a value, if it is UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
                rest = &behind[2..];
                u8::from_str_radix(digits, 16)
                    .ok()
                    .filter(|_| !digits.starts_with('+'))?
            }
            byte => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_names_one_object_or_none() {
        let named = |selector: &str| selected_name(Some(&format!("fieldSelector={selector}")));
        for (selector, name) in [
            ("metadata.name%3Dweb", "web"),
            ("metadata.name==web", "web"),
            ("spec.nodeName%3Dn%2Cmetadata.name%3Dweb", "web"),
            ("status.phase!=Running,metadata.name=web", "web"),
        ] {
            assert_eq!(named(selector), Ok(Some(name.to_owned())), "{selector}");
        }
        for other in [
            "metadata.name!=web",
            "metadata.namespace=web",
            "metadata.name=..",
            "metadata.name=a%2Fb",
            "metadata.name=a%5C,b",
            "metadata.name=a=b",
            "metadata.name=",
        ] {
            assert_eq!(named(other), Ok(None), "{other}");
        }
        for unclear in [
            "metadata.name=web&fieldSelector=metadata.name=b",
            "metadata.name=a,metadata.name=b",
            "metadata.name=%",
            "metadata.name=%ff",
            "metadata.name=a;b",
        ] {
            assert!(named(unclear).is_err(), "{unclear}");
        }
    }

    #[test]
    fn pairs_are_decoded_or_refused() {
        let found = pairs(Some("a=b%20c+d&watch&e=%C3%A9&&a=2")).expect("it is clear");
        let found: Vec<_> = found
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, [("a", "b c d"), ("watch", ""), ("e", "\u{e9}"), ("a", "2")]);
        for wrong in ["w%61tch=1", "a=%", "a=%f", "a=%+1", "a=%ff"] {
            assert!(pairs(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_false_is_true() {
        for (value, expected) in [("", true), ("1", true), ("yes", true), ("0", false), ("FALSE", false)] {
            assert_eq!(is_true(value), expected, "{value:?}");
        }
    }
}
