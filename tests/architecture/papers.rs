//! What the papers point at is there.

use std::path::{Component, Path, PathBuf};

use super::sources;

/// The targets of a text's links: `[words](target)`.
fn links(text: &str) -> Vec<&str> {
    let targets = text
        .match_indices("](")
        .filter_map(|(at, mark)| text[at + mark.len()..].split([')', '\n']).next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// `path` without `..`: links may go up, but not out of the repository.
fn resolve(from: &str, target: &str) -> Option<PathBuf> {
    let mut resolved = Path::new(from).parent()?.to_owned();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir if resolved.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(resolved)
}

#[test]
fn every_link_in_the_papers_leads_somewhere() {
    for path in sources::files_named(".md") {
        let text = sources::read(&path);
        for link in links(&text) {
            let (target, wanted) = link.split_once('#').unwrap_or((link, ""));
            let file = if target.is_empty() {
                Some(PathBuf::from(&path))
            } else {
                resolve(&path, target)
            };
            let file = file.unwrap_or_else(|| panic!("{path}: {link} leads out of the repository"));
            let found = sources::root().join(&file);
            assert!(found.exists(), "{path}: {link} leads nowhere");
            if !wanted.is_empty() {
                let headings = sources::read(&file.display().to_string());
                let mut anchors = headings.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(
                    anchors.any(|candidate| candidate == wanted),
                    "{path}: {link} names no heading"
                );
            }
        }
    }
}

#[test]
fn every_paper_a_visitor_looks_for_is_there() {
    for paper in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "LICENSE",
    ] {
        assert!(sources::read(paper).len() > 200, "{paper} says something");
    }
}
