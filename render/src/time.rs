//! Points in time as people write them in a fleet repository, and as seconds since 1970. No clock is read here.

const DAY_SECONDS: i64 = 86_400;

/// The seconds since 1970 of an RFC 3339 time such as `2026-12-01T09:00:00Z` or `2026-12-01T10:00:00+01:00`.
/// A fraction of a second is left out. `None` where it is no such time.
pub fn seconds(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, zone) = time.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let zone = match zone.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => zone,
    };
    // A leap second is the first one of the next minute, as for everybody who counts without them.
    let fits = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let days = days_from_epoch(year, month, day);
    fits.then_some(days * DAY_SECONDS + hour * 3_600 + minute * 60 + second - offset(zone)?)
}

/// The time as RFC 3339 has it, in UTC.
pub fn rfc3339(seconds: i64) -> String {
    let (day, rest) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (year, month, date) = date_of(day);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// How a length of time is written, for hints.
pub const DURATION_FORMS: &str = "as in 90s, 10m or 1h30m";

/// The whole seconds of a length of time as Go writes it (`90s`, `1h30m`), in hours, minutes and seconds. `None` where
/// it is none.
pub fn duration_seconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut seconds = 0_u64;
    // Each unit at most once, the larger first, as Go prints them.
    let mut units = [('h', 3_600_u64), ('m', 60), ('s', 1)].iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].chars().next()?;
        let (_, of_unit) = units.find(|(name, _)| *name == unit)?;
        seconds = seconds.checked_add(number.checked_mul(*of_unit)?)?;
        rest = &rest[digits + 1..];
    }
    (!text.is_empty()).then_some(seconds)
}

fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let [hours, minutes] = numbers(&zone[1..], ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Numbers of exactly so many digits each.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let parts: Vec<_> = text.split(between).collect();
    let mut found = [0; N];
    if parts.len() != N {
        return None;
    }
    for ((part, digits), number) in parts.iter().zip(digits).zip(&mut found) {
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    Some(found)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar. Years begin in March, so that the odd day comes last.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days_from_epoch`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(seconds(text), expected, "{text}");
    }

    #[test]
    fn times_are_read_as_rfc_3339_has_them() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2026-11-29T22:30:00Z", Some(1_795_991_400));
        check("2026-11-29T23:30:00.25+01:00", Some(1_795_991_400));
        check("2026-11-29 17:30:00-05:00", Some(1_795_991_400));
        check("2000-02-29T12:00:00Z", Some(951_825_600));
        check("1969-12-31T23:59:59Z", Some(-1));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "tomorrow",
            "2026-11-29",
            "2026-11-29T22:30Z",
            "2026-11-29T22:30:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-29T24:00:00Z",
            "2026-11-29T22:30:00+25:00",
            "2026-11-29T22:30:00Zulu",
            "+026-11-29T22:30:00Z",
            "2026-11-29T22:30:0é",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_written_and_read_back() {
        for day in -1_000..146_097 {
            let at = day * DAY_SECONDS + day.rem_euclid(DAY_SECONDS);
            assert_eq!(seconds(&rfc3339(at)), Some(at), "{}", rfc3339(at));
        }
    }

    #[test]
    fn lengths_of_time_are_read_as_go_writes_them() {
        let read = [
            ("90s", 90),
            ("10m", 600),
            ("1h30m", 5_400),
            ("1h0m1s", 3_601),
            ("0s", 0),
        ];
        for (text, seconds) in read {
            assert_eq!(duration_seconds(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "5",
            "m",
            "1m1h",
            "1.5h",
            "-1s",
            "5 m",
            "1d",
            "99999999999999999999s",
        ] {
            assert_eq!(duration_seconds(text), None, "{text:?}");
        }
    }
}
