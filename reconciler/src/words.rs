//! Words for people, wherever they are shown.

/// Whether a character steers a terminal or turns the direction of a text around.
pub(crate) fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `1 unit`, `2 units`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// How long ago that was, as kubectl writes it: in one unit, or two while the first is a small number.
pub(crate) fn age(created: Option<i64>, now: i64) -> String {
    let Some(created) = created else {
        return "<unknown>".to_owned();
    };
    // A commit's time is its author's clock, which may be ahead of ours.
    let seconds = (now - created).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, expected: &str) {
        assert_eq!(age(Some(1_000), 1_000 + seconds), expected);
    }

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        check(-5, "0s");
        check(119, "119s");
        check(120, "2m");
        check(301, "5m1s");
        check(900, "15m");
        check(4 * 3_600 + 60, "4h1m");
        check(12 * 3_600, "12h");
        check(3 * 86_400 + 3_600, "3d1h");
        check(30 * 86_400, "30d");
        check(3 * 365 * 86_400, "3y");
        assert_eq!(age(None, 5), "<unknown>", "nothing is made up");
    }
}
