//! What `git` prints for programs: refs of a remote, and the outcome of a push.

use std::collections::BTreeMap;

/// Ref → commit.
pub(super) type Refs = BTreeMap<String, String>;

/// One ref of a push.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PushedRef {
    /// Its full name at the remote.
    pub(super) name: String,
    /// Whether it was refused.
    pub(super) is_refused: bool,
    /// What became of it, as Git says it.
    pub(super) summary: String,
}

/// Reads `<id>\t<ref>` or `<id> <ref>` lines, and keeps the refs that are asked for. Git takes a pattern for the
/// end of a name as well.
pub(super) fn refs(output: &str, wanted: impl Fn(&str) -> bool) -> Refs {
    let line = |line: &str| {
        let (id, name) = line.split_once(['\t', ' '])?;
        let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_id && wanted(name)).then(|| (name.to_owned(), id.to_owned()))
    };
    output.lines().filter_map(line).collect()
}

/// Reads what `git push --porcelain` prints: a flag, the refs and a summary, with tabs between.
pub(super) fn pushed(output: &str) -> Vec<PushedRef> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (flag, refs, summary) = (parts.next()?, parts.next()?, parts.next()?);
        let (_, name) = refs.rsplit_once(':')?;
        Some(PushedRef {
            name: name.to_owned(),
            is_refused: flag == "!",
            summary: summary.to_owned(),
        })
    };
    output.lines().filter_map(line).collect()
}
