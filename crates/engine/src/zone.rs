//! The local date.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time zone.
///
/// The system's zone is read once, from `TZ` or a zone file, without the C library: that reads the environment in a way
/// that is not thread-safe. A process keeps its zone, so that earlier dates of a conversation do not change.
#[derive(Debug, Clone)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    /// Returns the time zone of a zone file, or else the one that the system names, or else UTC.
    pub(crate) fn of_system(file: Option<&[u8]>) -> Self {
        let zone = file.and_then(|file| TimeZone::tzif("local", file).ok());
        Self(zone.unwrap_or_else(TimeZone::system))
    }

    /// Returns UTC.
    pub(crate) fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Formats a day in the form that existing prompts use: `Sat Nov 21 2026`. A time that no calendar contains is
    /// empty.
    pub(crate) fn date(&self, millis: u64) -> String {
        let time = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
        time.map(|time| time.to_zoned(self.0.clone()).strftime("%a %b %d %Y").to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The zone of Japan without its history.
    const ZONE_FILE: &[u8] =
        b"TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0~\x90\
        \0\0JST\0TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\
        \0\0~\x90\0\0JST\0\nJST-9\n";

    #[track_caller]
    fn check(zone: &str, millis: u64, expected: &str) {
        assert_eq!(Zone(TimeZone::posix(zone).unwrap()).date(millis), expected, "{zone}");
    }

    #[test]
    fn the_date_has_the_form_of_existing_prompts() {
        check("UTC0", 1_795_293_417_297, "Sat Nov 21 2026");
        check("UTC0", 0, "Thu Jan 01 1970");
        check("UTC0", 951_782_400_000, "Tue Feb 29 2000");
        check("UTC0", 1_735_689_599_999, "Tue Dec 31 2024");
        check("UTC0", u64::MAX, "");
    }

    #[test]
    fn a_zone_file_decides_if_it_is_valid() {
        let zone = Zone::of_system(Some(ZONE_FILE));
        // 2026-11-21 20:36 in UTC.
        assert_eq!(zone.date(1_795_293_417_297), "Sun Nov 22 2026");
        for file in [None, Some(&b""[..]), Some(&ZONE_FILE[..60])] {
            assert_eq!(Zone::of_system(file).0, TimeZone::system());
        }
    }

    #[test]
    fn the_date_is_local() {
        // 2026-11-21 20:36 in UTC.
        check("JST-9", 1_795_293_417_297, "Sun Nov 22 2026");
        check("<-12>12", 1_795_293_417_297, "Sat Nov 21 2026");
        // One second before midnight in UTC, in summer.
        check("EET-2EEST,M3.5.0/3,M10.5.0/4", 1_782_863_999_000, "Wed Jul 01 2026");
        check("PST8PDT,M3.2.0,M11.1.0", 0, "Wed Dec 31 1969");
    }
}
