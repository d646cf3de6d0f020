//! How long ago something was, as tables say it.

use jiff::Timestamp;

/// `5m`, `3h12m`, `2d4h`: as the real server shortens it; `<unknown>` for what is no time.
pub(super) fn since(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    duration(Timestamp::now().as_second() - time.as_second())
}

/// Seconds in words.
pub(super) fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let pair = |big: i64, big_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{big_unit}"),
        small => format!("{big}{big_unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds / HOUR, "h", seconds / MINUTE % 60, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, "d", seconds / HOUR % 24, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds / (365 * DAY), "y", seconds / DAY % 365, "d"),
        _ => format!("{}y", seconds / (365 * DAY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shortened_as_kubernetes_does() {
        for (seconds, expected) in [
            (-1, "0s"),
            (7, "7s"),
            (119, "119s"),
            (120, "2m"),
            (135, "2m15s"),
            (700, "11m"),
            (11_400, "3h10m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (900_000, "10d"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }
}
