//! Decides when a failed request is sent again.

use std::time::Duration;

/// The number of attempts at a step.
pub(crate) const MAX_ATTEMPTS: u32 = 10;
/// The number of empty answers after which one is accepted.
pub(crate) const MAX_SILENT: u32 = 4;
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A longer delay requested by a provider counts as a failure.
const LONGEST_ASKED: Duration = Duration::from_secs(10 * 60);

/// Returns the delay after attempt number `attempt` (from 1); `None` to give up.
///
/// The delay doubles from two seconds up to thirty, unless the provider sets one.
pub(crate) fn wait(attempt: u32, asked: Option<Duration>) -> Option<Duration> {
    if attempt >= MAX_ATTEMPTS {
        return None;
    }
    match asked {
        Some(asked) if asked > LONGEST_ASKED => None,
        Some(asked) => Some(asked),
        None => Some((FIRST_WAIT * 2u32.pow(attempt.saturating_sub(1).min(8))).min(LONGEST_WAIT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_thirty_seconds_and_ends() {
        let waits: Vec<_> = (1..=10).map(|attempt| wait(attempt, None).map(|wait| wait.as_secs())).collect();
        let expected = [2, 4, 8, 16, 30, 30, 30, 30, 30].map(Some);
        assert_eq!(waits[..9], expected);
        assert_eq!(waits[9], None);
    }

    #[test]
    fn the_provider_may_name_the_wait_within_reason() {
        assert_eq!(wait(1, Some(Duration::from_millis(10))), Some(Duration::from_millis(10)));
        assert_eq!(wait(3, Some(Duration::from_secs(90))), Some(Duration::from_secs(90)));
        assert_eq!(wait(1, Some(Duration::from_secs(3600))), None);
        assert_eq!(wait(10, Some(Duration::from_millis(1))), None);
    }
}
