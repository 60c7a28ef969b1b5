//! Time stamps in AWS formats.

use crate::retry_after::days_since_1970;

const MS_A_DAY: u64 = 86_400_000;

/// Formats `20150830T123600Z`. The first eight characters are the day.
pub(super) fn compact(ms: u64) -> String {
    let (year, month, day) = date(ms / MS_A_DAY);
    let seconds = ms % MS_A_DAY / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Formats `2015-08-30T12:36:00Z`, as Amazon's own tools store it.
pub(super) fn plain(ms: u64) -> String {
    let text = compact(ms);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let date = [part(0, 4), part(4, 6), part(6, 8)].join("-");
    let clock = [part(9, 11), part(11, 13), part(13, 15)].join(":");
    format!("{date}T{clock}Z")
}

/// Parses `2026-11-21T23:59:59Z`, optionally with a fraction or an offset such as `+00:00`.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (date, clock) = text.trim().split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let mut next = || date.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (clock, offset_minutes) = split_offset(clock)?;
    let clock = clock.split('.').next()?;
    let mut clock = clock.splitn(3, ':').map(str::parse::<u64>);
    let mut next = || clock.next()?.ok().filter(|value| *value < 61);
    let seconds = next()? * 3600 + next()? * 60 + next()?;
    let ms = (days_since_1970(year, month, day) * 86_400 + seconds) * 1000;
    ms.checked_add_signed(-offset_minutes * 60_000)
}

/// Splits off the offset from UTC in minutes.
fn split_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix('Z').or_else(|| clock.strip_suffix("UTC")) {
        return Some((clock, 0));
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0)) };
    let (hours, minutes) = clock[at + 1..].split_once(':')?;
    let minutes = hours.parse::<u8>().ok()? as i64 * 60 + minutes.parse::<u8>().ok()? as i64;
    Some((&clock[..at], if clock[at..].starts_with('-') { -minutes } else { minutes }))
}

/// Returns the date of a day since 1970. Computes with years that begin in March.
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_are_formatted() {
        for (ms, expected) in [
            (0, "19700101T000000Z"),
            (1_440_938_160_000, "20150830T123600Z"),
            (1_709_208_000_999, "20240229T120000Z"),
            (1_709_251_200_000, "20240301T000000Z"),
            (1_767_225_599_000, "20251231T235959Z"),
        ] {
            assert_eq!(compact(ms), expected);
        }
    }

    #[test]
    fn every_format_is_parsed() {
        for (text, expected) in [
            ("2015-08-30T12:36:00Z", Some(1_440_938_160_000)),
            ("2015-08-30T12:36:00.123Z", Some(1_440_938_160_000)),
            ("2015-08-30T12:36:00+00:00", Some(1_440_938_160_000)),
            ("2015-08-30T14:36:00+02:00", Some(1_440_938_160_000)),
            ("2015-08-30T12:36:00UTC", Some(1_440_938_160_000)),
            ("2015-08-30", None),
            ("soon", None),
            ("2015-13-30T12:36:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn stored_stamps_are_parsed(seconds in 0u64..253_402_300_799) {
            prop_assert_eq!(parse(&plain(seconds * 1000)), Some(seconds * 1000));
        }

        #[test]
        fn formatted_stamps_are_parsed(seconds in 0u64..253_402_300_799) {
            let text = compact(seconds * 1000);
            let spread = format!(
                "{}-{}-{}T{}:{}:{}Z", &text[..4], &text[4..6], &text[6..8], &text[9..11], &text[11..13], &text[13..15]
            );
            prop_assert_eq!(parse(&spread), Some(seconds * 1000));
        }

        #[test]
        fn no_input_panics(text in "\\PC{0,40}") {
            parse(&text);
        }
    }
}
