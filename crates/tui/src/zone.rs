//! Local times.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time zone.
///
/// The system's zone is read once from `TZ` or a zone file, without the C library, because that reads the environment
/// in a way that is not thread-safe.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// Returns the time zone of a zone file, or else the one that the system names, or else UTC.
    #[must_use]
    pub fn of_system(file: Option<&[u8]>) -> Self {
        let zone = file.and_then(|file| TimeZone::tzif("local", file).ok());
        Self(zone.unwrap_or_else(TimeZone::system))
    }

    /// Returns UTC.
    #[must_use]
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    fn at(&self, millis: u64) -> Option<Zoned> {
        let time = Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
        Some(time.to_zoned(self.0.clone()))
    }

    /// Returns the time of day in hours and minutes.
    pub(crate) fn clock(&self, millis: u64) -> String {
        self.at(millis).map(|time| format!("{:02}:{:02}", time.hour(), time.minute())).unwrap_or_default()
    }

    /// Returns the day: today, yesterday or a date.
    pub(crate) fn day(&self, millis: u64, now: u64) -> String {
        let (Some(time), Some(now)) = (self.at(millis), self.at(now)) else { return String::new() };
        if time.date() >= now.date() {
            return "Today".to_owned();
        }
        match now.date().yesterday() {
            Ok(yesterday) if yesterday == time.date() => "Yesterday".to_owned(),
            Ok(_) | Err(_) => time.date().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    /// 2026-11-21 20:26:40 in UTC.
    const NOW: u64 = 1_795_292_800_000;

    #[track_caller]
    fn check(zone: &str, millis: u64, clock: &str, day: &str) {
        let zone = Zone(TimeZone::posix(zone).unwrap());
        assert_eq!((zone.clock(millis).as_str(), zone.day(millis, NOW).as_str()), (clock, day));
    }

    #[test]
    fn times_are_local() {
        check("UTC0", NOW, "20:26", "Today");
        check("UTC0", NOW - 21 * HOUR, "23:26", "Yesterday");
        check("UTC0", NOW - 72 * HOUR, "20:26", "2026-11-18");
        // East of UTC the next day has begun, and the zone defines summer time.
        check("EET-2EEST,M3.5.0/3,M10.5.0/4", NOW, "22:26", "Today");
        check("EET-2EEST,M3.5.0/3,M10.5.0/4", NOW - 150 * 24 * HOUR, "23:26", "2026-06-24");
        check("JST-9", NOW - 6 * HOUR, "23:26", "Yesterday");
        check("<+0545>-5:45", NOW, "02:11", "Today");
    }

    #[test]
    fn an_invalid_time_is_empty() {
        assert_eq!(Zone::utc().clock(u64::MAX), "");
        assert_eq!(Zone::utc().day(u64::MAX, 0), "");
    }
}
