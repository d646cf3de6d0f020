//! Revisions as people read them.

use render::Revision;

/// `main@sha1:<hex>`, as Flux prints it; the branch is left out where it is not known.
pub fn shown_revision(branch: &str, revision: &Revision) -> String {
    with_branch(branch, revision, revision.as_str())
}

/// As [`shown_revision`], with the first few digits only; for tables.
pub fn short_revision(branch: &str, revision: &Revision) -> String {
    with_branch(branch, revision, revision.short())
}

fn with_branch(branch: &str, revision: &Revision, digits: &str) -> String {
    // Git's two hashes differ in length.
    let hash = if revision.as_str().len() == 40 {
        "sha1"
    } else {
        "sha256"
    };
    if branch.is_empty() {
        format!("{hash}:{digits}")
    } else {
        format!("{branch}@{hash}:{digits}")
    }
}
