//! Times as the clock on the user's wall has them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time zone. The system's is read from `TZ` and its files once and without the C library, whose own
/// reading of the environment is not safe beside other threads.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// That of the system; UTC where none is known.
    #[must_use]
    pub fn system() -> Self {
        Self(TimeZone::system())
    }

    /// Universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    fn at(&self, millis: u64) -> Option<Zoned> {
        let time = Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
        Some(time.to_zoned(self.0.clone()))
    }

    /// The time of day, in hours and minutes.
    pub(crate) fn clock(&self, millis: u64) -> String {
        self.at(millis).map(|time| format!("{:02}:{:02}", time.hour(), time.minute())).unwrap_or_default()
    }

    /// The day, as people tell it.
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
    fn times_are_told_as_on_the_wall() {
        check("UTC0", NOW, "20:26", "Today");
        check("UTC0", NOW - 21 * HOUR, "23:26", "Yesterday");
        check("UTC0", NOW - 72 * HOUR, "20:26", "2026-11-18");
        // East of it the next day has begun; summer time is the zone's own affair.
        check("EET-2EEST,M3.5.0/3,M10.5.0/4", NOW, "22:26", "Today");
        check("EET-2EEST,M3.5.0/3,M10.5.0/4", NOW - 150 * 24 * HOUR, "23:26", "2026-06-24");
        check("JST-9", NOW - 6 * HOUR, "23:26", "Yesterday");
        check("<+0545>-5:45", NOW, "02:11", "Today");
    }

    #[test]
    fn a_time_that_is_none_is_left_out() {
        assert_eq!(Zone::utc().clock(u64::MAX), "");
        assert_eq!(Zone::utc().day(u64::MAX, 0), "");
    }
}
