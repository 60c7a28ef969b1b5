//! Decides when a failed request is sent again.

use std::time::Duration;

/// The number of attempts at a step.
pub(crate) const MAX_ATTEMPTS: u32 = 10;
/// The number of empty answers after which one is accepted.
pub(crate) const MAX_SILENT: u32 = 4;
/// The number of attempts at a server that cannot be connected to, and the time within which all of them end.
const UNREACHABLE_ATTEMPTS: u32 = 3;
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(15);
const UNREACHABLE_WAIT: Duration = Duration::from_secs(1);
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

/// Returns the delay after attempt number `attempt` (from 1) at a server that cannot be connected to; `None` to give up.
///
/// A server that is not started or a wrong address is the usual reason, and the user should learn it soon. `spent` is
/// the time since the first attempt began; the next attempt is expected to take as long as the average one.
pub(crate) fn wait_unreachable(attempt: u32, spent: Duration) -> Option<Duration> {
    let wait = UNREACHABLE_WAIT * attempt;
    let expected = spent + wait + spent / attempt.max(1);
    (attempt < UNREACHABLE_ATTEMPTS && expected <= UNREACHABLE_LIMIT).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_server_is_tried_three_times_within_fifteen_seconds() {
        let wait =
            |attempt, spent| wait_unreachable(attempt, Duration::from_millis(spent)).map(|it| it.as_secs());
        assert_eq!([wait(1, 5), wait(2, 1010), wait(3, 3020)], [Some(1), Some(2), None]);
        assert_eq!([wait(1, 4000), wait(2, 9000), wait(3, 15_000)], [Some(1), None, None]);
        assert_eq!(wait(1, 10_000), None);
    }

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
