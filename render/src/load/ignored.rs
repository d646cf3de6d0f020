//! `.flotillaignore`: gitignore rules, per folder, for files that are no manifests.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::finding::Finding;
use crate::tree::{SourceEntry, SourceTree};

const NAME: &str = ".flotillaignore";

/// The rules of one revision.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    /// By folder (empty for the root, else ending with a slash), the deepest first.
    folders: Vec<(String, Gitignore)>,
}

impl IgnoreRules {
    pub(super) fn read(tree: &SourceTree) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut folders = Vec::new();
        for (path, entry) in &tree.files {
            let Some(folder) = path
                .strip_suffix(NAME)
                .filter(|folder| folder.is_empty() || folder.ends_with('/'))
            else {
                continue;
            };
            if let SourceEntry::File(file) = entry {
                let text = String::from_utf8_lossy(&file.bytes);
                folders.push((folder.to_owned(), rules(path, &text, &mut findings)));
            }
        }
        folders.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.len()));
        (Self { folders }, findings)
    }

    /// Whether a file is left out. The rules of the nearest folder that say anything decide.
    pub(super) fn leaves_out(&self, path: &str) -> bool {
        for (folder, rules) in &self.folders {
            let Some(rest) = path.strip_prefix(folder.as_str()) else {
                continue;
            };
            match rules.matched_path_or_any_parents(rest, false) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn rules(path: &str, text: &str, findings: &mut Vec<Finding>) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        if builder.add_line(None, line).is_err() {
            let number = u32::try_from(index + 1).unwrap_or(0);
            let finding = Finding::warning("IgnoreRuleInvalid", "this line is no gitignore rule").at(path, number);
            findings.push(finding);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
