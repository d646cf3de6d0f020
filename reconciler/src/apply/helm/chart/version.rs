//! Which of a chart's versions is meant: an exact one, a range, or the newest.

use semver::{Version, VersionReq};

/// Whether a text names one version, which then never means another.
pub(super) fn is_exact(text: &str) -> bool {
    parse(text).is_some()
}

/// The place of the version that is meant among those that there are; why none is.
pub(super) fn choose<'a>(wanted: &str, there: impl Iterator<Item = &'a str> + Clone) -> Result<usize, String> {
    let named = there.clone().position(|version| version == wanted);
    if let Some(place) = named.filter(|_| !wanted.is_empty()) {
        return Ok(place);
    }
    if let Some(wanted) = parse(wanted) {
        let same = there
            .into_iter()
            .position(|version| parse(version).as_ref() == Some(&wanted));
        return same.ok_or_else(|| format!("has no version {wanted}"));
    }
    let range = range(wanted)?;
    let fitting = there
        .enumerate()
        .filter_map(|(place, version)| Some((place, parse(version)?)));
    let newest = fitting
        .filter(|(_, version)| range.matches(version))
        .max_by(|a, b| a.1.cmp(&b.1));
    newest.map(|(place, _)| place).ok_or_else(|| match wanted {
        "" => "has no version that is released".to_owned(),
        _ => format!("has no version in {wanted}"),
    })
}

/// Helm takes a leading `v` along.
fn parse(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

/// Helm's ranges: parts stand behind each other with blanks or commas, and `1.2` means any `1.2.x`.
fn range(text: &str) -> Result<VersionReq, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(VersionReq::STAR);
    }
    let mut parts = String::new();
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        let joined = parts.is_empty() || parts.ends_with(['<', '>', '=', '~', '^']);
        parts.push_str(if joined { "" } else { ", " });
        let is_bare = word.starts_with(|c: char| c.is_ascii_digit()) && joined && !word.contains(['x', 'X', '*']);
        parts.push_str(if is_bare && parts.is_empty() { "~" } else { "" });
        parts.push_str(word);
    }
    VersionReq::parse(&parts).map_err(|_| format!("is asked for version {text:?}, which is none, and no range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: [&str; 6] = ["1.2.0", "v1.2.10", "1.3.0", "2.0.0-rc.1", "1.2.9", "odd"];

    #[track_caller]
    fn check(wanted: &str, expected: Option<&str>) {
        let chosen = choose(wanted, THERE.into_iter()).ok().map(|place| THERE[place]);
        assert_eq!(chosen, expected, "{wanted:?}");
    }

    #[test]
    fn an_exact_version_is_that_one_or_none() {
        check("1.2.9", Some("1.2.9"));
        check("1.2.10", Some("v1.2.10"));
        check("2.0.0-rc.1", Some("2.0.0-rc.1"));
        check("odd", Some("odd"));
        check("1.2.1", None);
        assert!(is_exact("v1.2.1") && !is_exact("") && !is_exact("1.2") && !is_exact("~1.2.1"));
    }

    #[test]
    fn the_newest_is_one_that_is_released() {
        check("", Some("1.3.0"));
    }

    #[test]
    fn ranges_are_helms() {
        check("~1.2", Some("v1.2.10"));
        check("1.2", Some("v1.2.10"));
        check("1.x", Some("1.3.0"));
        check("^1.2.0", Some("1.3.0"));
        check(">=1.2.0 <1.3.0", Some("v1.2.10"));
        check(">= 1.2.0, < 1.2.10", Some("1.2.9"));
        check(">9", None);
        check("nonsense", None);
    }
}
