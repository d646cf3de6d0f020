//! Which versions of the two programs go together: those of one minor version, and of the next to it.
//!
//! What is on the wire has a version of its own; this is about what the programs do with it, which is tested no further
//! apart than an upgrade that takes its time.

/// Why two programs do not go together, for both sides; `None` if they do. A version that is no `MAJOR.MINOR…` is
/// judged by nobody: who builds a program says what it goes with.
pub(super) fn too_far_apart(ours: &str, theirs: &str) -> Option<&'static str> {
    let ((our_major, our_minor), (their_major, their_minor)) = (parse(ours)?, parse(theirs)?);
    if our_major != their_major || our_minor.abs_diff(their_minor) > 1 {
        return Some("these go together within one minor version");
    }
    None
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').splitn(3, '.');
    let (major, minor) = (parts.next()?, parts.next()?);
    let minor = minor.split(['-', '+']).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_minor_version_of_skew_works_in_both_directions_and_more_does_not() {
        let versions = ["0.9.9", "1.0.0", "1.1.0", "1.2.7", "1.3.0", "2.2.0"];
        for (at, ours) in versions.into_iter().enumerate() {
            for (other, theirs) in versions.into_iter().enumerate() {
                let is_same_major = (1..=4).contains(&at) == (1..=4).contains(&other) && (at == 5) == (other == 5);
                let fits = at == other || is_same_major && at.abs_diff(other) == 1;
                assert_eq!(too_far_apart(ours, theirs).is_none(), fits, "{ours} with {theirs}");
            }
        }
    }

    #[test]
    fn builds_and_patches_are_no_skew_and_other_texts_are_not_judged() {
        for (ours, theirs) in [
            ("1.2.0", "v1.2.9"),
            ("1.2.0-rc.1", "1.3"),
            ("1.2+git", "1.1.0"),
            ("1.2.0", "dev"),
            ("", "9"),
        ] {
            assert_eq!(too_far_apart(ours, theirs), None, "{ours} with {theirs}");
        }
    }
}
