//! Which differences a unit's rules leave out.

use render::model::IgnoreRule;

use crate::wire::FieldDrift;

/// Whether a rule about the object leaves a field to others.
pub(in crate::apply) fn is_ignored(field: &FieldDrift, rules: &[&IgnoreRule]) -> bool {
    rules.iter().any(|rule| {
        let is_below = |path: &String| {
            let rest = field.path.strip_prefix(path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let of_path = rule.paths.is_empty() || rule.paths.iter().any(is_below);
        let of_manager = rule.managers.is_empty() || rule.managers.contains(&field.manager);
        of_path && of_manager && !(rule.paths.is_empty() && rule.managers.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], managers: &[&str], expected: bool) {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let rule = IgnoreRule {
            paths: owned(paths),
            managers: owned(managers),
            ..IgnoreRule::default()
        };
        let field = FieldDrift {
            path: "/data/token".to_owned(),
            wanted: None,
            found: None,
            hidden: false,
            manager: "job".to_owned(),
        };
        assert_eq!(is_ignored(&field, &[&rule]), expected, "{paths:?} {managers:?}");
    }

    #[test]
    fn a_rule_leaves_out_what_is_at_or_below_its_paths_and_its_managers() {
        check(&["/data"], &[], true);
        check(&["/data/token"], &[], true);
        check(&["/dat"], &[], false);
        check(&["/data/token/deeper"], &[], false);
        check(&[], &["job"], true);
        check(&["/data"], &["job"], true);
        check(&["/data"], &["other"], false);
        check(&[], &["other"], false);
        check(&[], &[], false);
    }
}
