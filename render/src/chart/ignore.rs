//! `.helmignore`, by Helm's own rules, which are not Git's.
//!
//! A pattern without a slash is compared with a file's name, one with a slash with its whole path; `*` and `?` stop at
//! a slash. A pattern that ends with a slash is for folders alone. A pattern behind `!` leaves out all that does not
//! match it. There is no `**`.

use globset::{GlobBuilder, GlobMatcher};

/// The rules of one chart.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    glob: GlobMatcher,
    /// Compared with the last part of the path alone.
    by_name: bool,
    negated: bool,
    folders_only: bool,
}

impl IgnoreRules {
    /// The rules of a `.helmignore`, or of none; the second part are lines that are no rules.
    pub(crate) fn read(text: &str) -> (Self, Vec<usize>) {
        // Helm has this one in every chart: hidden files among templates are an editor's.
        let mut rules: Vec<Rule> = Rule::parse("templates/.?*").into_iter().collect();
        let mut wrong = Vec::new();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match Rule::parse(line) {
                Some(rule) => rules.push(rule),
                None => wrong.push(index + 1),
            }
        }
        (Self { rules }, wrong)
    }

    /// Whether a file of the chart is left out: itself, or a folder above it.
    pub(crate) fn leaves_out(&self, path: &str) -> bool {
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.any(|folder| self.matches(folder, true)) || self.matches(path, false)
    }

    fn matches(&self, path: &str, is_folder: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.rules.iter().any(|rule| {
            let matches = rule.glob.is_match(if rule.by_name { name } else { path });
            match (rule.negated, rule.folders_only && !is_folder) {
                (false, false) => matches,
                (false, true) => false,
                (true, false) => !matches,
                (true, true) => true,
            }
        })
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        if line.contains("**") || line == "!" || line == "/" {
            return None;
        }
        let (negated, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let by_name = !line.contains('/');
        let line = line.strip_prefix('/').unwrap_or(line);
        // Braces mean nothing to Helm.
        let line = line.replace('{', "[{]").replace('}', "[}]");
        let glob = GlobBuilder::new(&line).literal_separator(true).build().ok()?;
        Some(Self {
            glob: glob.compile_matcher(),
            by_name,
            negated,
            folders_only,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &str, left_out: bool) {
        let (rules, wrong) = IgnoreRules::read(text);
        assert_eq!(wrong, [] as [usize; 0], "{text:?}");
        assert_eq!(rules.leaves_out(path), left_out, "{text:?} {path}");
    }

    #[test]
    fn patterns_are_compared_as_helm_compares_them() {
        check("", "templates/a.yaml", false);
        check("", "templates/.swp", true);
        check("", "templates/sub/.swp", false);
        check("# *.yaml\n\n", "values.yaml", false);
        check("*.swp", "templates/a.swp", true);
        check("*.swp", "a.swp/b", true);
        check("ci/", "ci/values.yaml", true);
        check("ci/", "ci", false);
        check("/ci.yaml", "ci.yaml", true);
        check("/ci.yaml", "templates/ci.yaml", false);
        check("templates/*.txt", "templates/a.txt", true);
        check("templates/*.txt", "templates/sub/a.txt", false);
        check("templates/*", "templates/sub/a.txt", true);
        check("{a}", "a", false);
        check("{a}", "{a}", true);
        check("[ab].txt", "b.txt", true);
    }

    #[test]
    fn behind_an_exclamation_mark_all_else_is_left_out() {
        check("!*.yaml", "Chart.yaml", false);
        check("!*.yaml", "README.md", true);
        check("!*.yaml", "templates/a.yaml", true);
    }

    #[test]
    fn what_helm_refuses_is_no_rule() {
        let (rules, wrong) = IgnoreRules::read("a\ncharts/**\n[a\n");
        assert_eq!(wrong, [2, 3]);
        assert!(rules.leaves_out("a"));
    }
}
