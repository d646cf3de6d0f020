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
    /// Folders whose rules cannot be read, and so may leave out anything in them.
    unread: Vec<String>,
}

impl IgnoreRules {
    pub(super) fn read(tree: &SourceTree) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let (mut folders, mut unread) = (Vec::new(), Vec::new());
        for (path, entry) in &tree.files {
            let Some(folder) = path
                .strip_suffix(NAME)
                .filter(|folder| folder.is_empty() || folder.ends_with('/'))
            else {
                continue;
            };
            let text = match entry {
                SourceEntry::File(file) => std::str::from_utf8(&file.bytes).ok(),
                _ => None,
            };
            match text {
                Some(text) => folders.push((folder.to_owned(), rules(path, text, &mut findings))),
                None => {
                    findings.push(unreadable(path));
                    unread.push(folder.to_owned());
                }
            }
        }
        folders.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.len()));
        (Self { folders, unread }, findings)
    }

    /// Folders whose rules cannot be read: empty for the root, else ending with a slash.
    pub(super) fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Whether a file is left out: itself, or a folder above it. As in Git, nothing below a folder that is left
    /// out can be taken back in.
    pub(super) fn leaves_out(&self, path: &str) -> bool {
        if self.folders.is_empty() {
            return false;
        }
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.any(|folder| self.matches(folder, true)) || self.matches(path, false)
    }

    /// The rules of the nearest folder that say anything decide.
    fn matches(&self, path: &str, is_folder: bool) -> bool {
        for (folder, rules) in &self.folders {
            let Some(rest) = path.strip_prefix(folder.as_str()) else {
                continue;
            };
            match rules.matched(rest, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn unreadable(path: &str) -> Finding {
    let message = "these rules cannot be read, and units that select files here keep what they have";
    Finding::error("IgnoreRulesUnreadable", message)
        .at(path, 0)
        .hint("make it an ordinary file of UTF-8 text")
}

fn rules(path: &str, text: &str, findings: &mut Vec<Finding>) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        if builder.add_line(None, line).is_err() {
            let number = u32::try_from(index + 1).unwrap_or(0);
            let finding = Finding::warning(
                "IgnoreRuleInvalid",
                "this line is no gitignore rule, and leaves nothing out",
            )
            .at(path, number)
            .hint("put \\ before a bracket that is meant as one");
            findings.push(finding);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
