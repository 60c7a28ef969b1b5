//! The delay before a retry that a server requests.
//!
//! Headers contain it in three formats and Google's error details in a fourth. Errors inside a
//! stream have no headers and contain it as text.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// Parses `retry-after-ms` and `retry-after`, which contains seconds or a date.
///
/// A date is compared with the answer's `date` header, because our clock may differ from the
/// server's.
pub(crate) fn retry_after(headers: &BTreeMap<String, String>) -> Option<Duration> {
    if let Some(ms) = headers.get("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let text = headers.get("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    if let Some(span) = span(text) {
        return Some(span);
    }
    let now = http_date(headers.get("date")?)?;
    Some(Duration::from_secs(http_date(text)?.saturating_sub(now)))
}

/// Finds the time in an error body: Google's `RetryInfo`, or text such as `try again in 1.5s`.
pub(crate) fn retry_delay(body: &str) -> Option<Duration> {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let details =
        ["/error/details", "/0/error/details", "/details"].iter().find_map(|path| parsed.pointer(path));
    let delay = details.and_then(Value::as_array).into_iter().flatten().find_map(|detail| {
        let is_retry_info =
            detail["@type"].as_str().is_some_and(|kind| kind.ends_with("google.rpc.RetryInfo"));
        span(detail["retryDelay"].as_str().filter(|_| is_retry_info)?)
    });
    delay.or_else(|| {
        // ASCII lower case keeps all offsets, and the searched words are ASCII.
        let lower = body.to_ascii_lowercase();
        let at = IN_WORDS.iter().find_map(|words| Some(lower.find(words)? + words.len()))?;
        let rest = lower[at..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches('.');
        let unit = rest[end..].trim_start();
        // Some servers write `in 20 seconds` instead of `in 20s`.
        match word.parse::<f64>() {
            Ok(number) if unit.starts_with("second") => Duration::try_from_secs_f64(number).ok(),
            Ok(number) if unit.starts_with("minute") => Duration::try_from_secs_f64(number * 60.0).ok(),
            Ok(_) => None,
            Err(_) => span(word),
        }
    })
}

const IN_WORDS: &[&str] = &["try again in ", "retry in ", "retry after "];

/// Parses a duration with units, such as `1.5s`, `340ms` or `6m0s`.
fn span(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        seconds += number * factor;
        rest = &rest[digits + unit.len()..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT` into seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.trim().split_once(',')?.1.split_ascii_whitespace();
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let mut unit = || clock.next()?.ok().filter(|value| *value < 62);
    let seconds = unit()? * 3600 + unit()? * 60 + unit()?;
    if !(1970..10_000).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + seconds)
}

/// Returns the days from 1970 to a date. Its years begin in March, so that a leap day is the last
/// day.
pub(crate) fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    const DAYS_FROM_YEAR_0_TO_1970: u64 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - DAYS_FROM_YEAR_0_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&str, &str)], expected_ms: Option<u64>) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(retry_after(&headers), expected_ms.map(Duration::from_millis));
    }

    #[test]
    fn every_format_is_parsed() {
        check(&[("retry-after", "2")], Some(2000));
        check(&[("retry-after", " 0.5 ")], Some(500));
        check(&[("retry-after", "1m30s")], Some(90_000));
        check(&[("retry-after", "2"), ("retry-after-ms", "1500")], Some(1500));
        check(
            &[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), ("date", "Wed, 21 Oct 2015 07:28:00 GMT")],
            Some(30_000),
        );
    }

    #[test]
    fn a_delay_in_the_body_is_parsed() {
        let google = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
        for (body, ms) in [
            (google, Some(34_500)),
            (&format!("[{google}]"), Some(34_500)),
            ("Rate limit reached. Please try again in 1.5s. Visit https://x", Some(1500)),
            ("please try again in 6m0s", Some(360_000)),
            ("Try again in 340ms.", Some(340)),
            ("Please retry after 20 seconds.", Some(20_000)),
            ("retry in 2 minutes", Some(120_000)),
            ("try again in a while", None),
            ("try again in 20", None),
            ("try again in 1e400s", None),
            ("", None),
            (r#"{"error":{"details":[{"retryDelay":"3s"}]}}"#, None),
        ] {
            assert_eq!(retry_delay(body), ms.map(Duration::from_millis), "{body}");
        }
    }

    #[test]
    fn invalid_values_are_ignored() {
        check(&[], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after", "1e300")], None);
        check(&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")], None);
        check(&[("retry-after", "x, 99 Oct 2015 07:28:30 GMT"), ("date", "y")], None);
    }

    #[test]
    fn dates_are_converted_correctly() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
        ] {
            assert_eq!(http_date(text), Some(seconds), "{text}");
        }
    }
}
