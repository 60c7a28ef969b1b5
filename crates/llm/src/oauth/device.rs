//! Polling while the user enters a code on another device.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::Error;

/// Time limit of a sign-in, even if the server allows more.
const USER_WAIT: Duration = Duration::from_secs(15 * 60);
/// The polling interval if the server does not send one.
const USUAL_INTERVAL_SECONDS: u64 = 5;
/// Limit of the polling interval. A longer one would outlast the code.
const INTERVAL_LIMIT_SECONDS: u64 = 60;
/// The added interval if the server requests slower polling without a number (RFC 8628).
const SLOWER_SECONDS: u64 = 5;

/// The server's answer to a poll.
pub(super) enum PollAnswer<T> {
    Done(T),
    Pending,
    /// The polls come too often; perhaps with the required interval in seconds.
    Slower(Option<u64>),
}

/// Polls until the user has finished, in the server's interval.
pub(super) async fn poll<T, F>(
    interval: Option<u64>,
    expires: Option<u64>,
    mut request: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<PollAnswer<T>, Error>>,
{
    let wait = expires.map_or(USER_WAIT, Duration::from_secs).min(USER_WAIT);
    let polling = async {
        let mut every = seconds(interval.unwrap_or(USUAL_INTERVAL_SECONDS));
        loop {
            sleep(Duration::from_secs(every)).await;
            match request().await {
                Ok(PollAnswer::Done(value)) => return Ok(value),
                Ok(PollAnswer::Slower(requested)) => every = slower(every, requested),
                // The network may recover before the code expires.
                Ok(PollAnswer::Pending) | Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    };
    let late = || {
        let minutes = wait.as_secs().div_ceil(60);
        Error::rejected(format!("the user did not enter the code within {minutes} minutes; start again"))
    };
    timeout_at(Instant::now() + wait, polling).await.unwrap_or_else(|_| Err(late()))
}

fn seconds(requested: u64) -> u64 {
    requested.clamp(1, INTERVAL_LIMIT_SECONDS)
}

fn slower(every: u64, requested: Option<u64>) -> u64 {
    seconds(requested.filter(|requested| *requested > every).unwrap_or(every + SLOWER_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_slows_down_when_the_server_asks_for_it() {
        for (every, requested, expected) in
            [(5, None, 10), (5, Some(7), 7), (5, Some(1), 10), (58, None, 60), (60, Some(900), 60)]
        {
            assert_eq!(slower(every, requested), expected, "{every} {requested:?}");
        }
        assert_eq!(seconds(0), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_code_that_is_not_entered_expires() {
        let began = Instant::now();
        let mut polls = 0;
        let result: Result<(), Error> = poll(Some(5), Some(30), || {
            polls += 1;
            let answer = if polls == 1 { PollAnswer::Slower(None) } else { PollAnswer::Pending };
            std::future::ready(Ok(answer))
        })
        .await;
        assert!(result.unwrap_err().to_string().contains("the user did not enter the code"));
        assert_eq!(began.elapsed(), Duration::from_secs(30));
        assert_eq!(polls, 3, "after 5, 15 and 25 seconds");
        let never: Result<(), Error> =
            poll(Some(60), Some(u64::MAX), || std::future::ready(Ok(PollAnswer::Pending))).await;
        never.unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(30) + USER_WAIT);
    }
}
