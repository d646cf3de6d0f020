//! The message of a commit, for people above and for tools in its trailers.

use render::published::{Cause, ReleaseRecord};

/// `subject`, then `body` if there is any, then the trailers of `record`. Only the last paragraph of a message
/// is trailers, so that nothing in subject or body can pass for one.
pub fn message(subject: &str, body: &str, record: &ReleaseRecord) -> String {
    let mut paragraphs = vec![subject.split_whitespace().collect::<Vec<_>>().join(" ")];
    if !body.trim().is_empty() {
        paragraphs.push(body.trim().to_owned());
    }
    paragraphs.push(trailers(record));
    paragraphs.join("\n\n")
}

fn trailers(record: &ReleaseRecord) -> String {
    let mut lines = format!("Source-Revision: {}\nCause: {}\n", record.source, cause(record.cause));
    if let Some(rendered) = &record.rendered {
        lines.push_str(&format!("Rendered-Revision: {rendered}\n"));
    }
    if let Some(sequence) = record.sequence {
        lines.push_str(&format!("Sequence: {sequence}\n"));
    }
    lines.push_str(&format!("Render-Version: {}\n", record.render_version));
    lines
}

/// As `release.yaml` spells it.
fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::SourceCommit => "sourceCommit",
        Cause::MergedProposal => "mergedProposal",
        Cause::Placement => "placement",
        Cause::Failover => "failover",
        Cause::Rebalance => "rebalance",
    }
}
