//! This machine's clock beside another one.

use super::{Step, Verdict};
use crate::limits::CLOCK_SKEW_SECONDS_MAX;

/// `theirs` is what the other one said, in seconds since 1970, and `now` ours at that time.
pub(super) fn beside(whose: &str, theirs: Option<i64>, now: i64) -> Step {
    let Some(theirs) = theirs else {
        return Step::good("clock", format!("{whose} does not say the time"));
    };
    let apart = now.saturating_sub(theirs);
    let seconds = apart.unsigned_abs();
    if seconds <= CLOCK_SKEW_SECONDS_MAX.unsigned_abs() {
        return Step::good("clock", format!("{seconds} s from that of {whose}"));
    }
    let direction = if apart > 0 { "ahead of" } else { "behind" };
    Step {
        name: "clock",
        verdict: Verdict::Odd {
            what: format!("this machine's clock is {seconds} s {direction} that of {whose}"),
            hint: "let both follow a time server; the dates of certificates and of what the agent reports go by it"
                .to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_told_with_its_direction() {
        let at = 1_700_000_000;
        assert_eq!(
            beside("the hub", Some(at), at + 3),
            Step::good("clock", "3 s from that of the hub")
        );
        for (now, words) in [
            (at + 3_600, "3600 s ahead of that of the hub"),
            (at - 90, "90 s behind"),
        ] {
            let Verdict::Odd { what, .. } = beside("the hub", Some(at), now).verdict else {
                unreachable!("it is off");
            };
            assert!(what.contains(words), "{what}");
        }
        assert!(matches!(beside("the hub", None, at).verdict, Verdict::Good(_)));
        assert!(matches!(
            beside("the hub", Some(i64::MIN), at).verdict,
            Verdict::Odd { .. }
        ));
    }
}
