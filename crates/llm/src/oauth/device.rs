//! Waiting until the user has typed a code somewhere else.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::Error;

/// The longest a sign-in is waited for, whatever the server allows.
const USER_WAIT: Duration = Duration::from_secs(15 * 60);
/// How often servers are asked that do not say.
const USUAL_INTERVAL_SECONDS: u64 = 5;
/// What a server may ask for; slower would outlast the code.
const INTERVAL_LIMIT_SECONDS: u64 = 60;
/// How much slower a server is asked that complains without a number (RFC 8628).
const SLOWER_SECONDS: u64 = 5;

/// What a server says to the question whether the user is done.
pub(super) enum Said<T> {
    Done(T),
    Pending,
    /// Asked too often; perhaps with the seconds it wants.
    Slower(Option<u64>),
}

/// Asks until the user is done, as often as the server likes.
pub(super) async fn poll<T, F>(
    interval: Option<u64>,
    expires: Option<u64>,
    mut ask: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Said<T>, Error>>,
{
    let wait = expires.map_or(USER_WAIT, Duration::from_secs).min(USER_WAIT);
    let asking = async {
        let mut every = seconds(interval.unwrap_or(USUAL_INTERVAL_SECONDS));
        loop {
            sleep(Duration::from_secs(every)).await;
            match ask().await {
                Ok(Said::Done(value)) => return Ok(value),
                Ok(Said::Slower(wanted)) => every = slower(every, wanted),
                // The network may come back before the code ends.
                Ok(Said::Pending) | Err(Error::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    };
    let late = || {
        let minutes = wait.as_secs().div_ceil(60);
        Error::rejected(format!("nobody entered the code within {minutes} minutes; start again"))
    };
    timeout_at(Instant::now() + wait, asking).await.unwrap_or_else(|_| Err(late()))
}

fn seconds(wanted: u64) -> u64 {
    wanted.clamp(1, INTERVAL_LIMIT_SECONDS)
}

fn slower(every: u64, wanted: Option<u64>) -> u64 {
    seconds(wanted.filter(|wanted| *wanted > every).unwrap_or(every + SLOWER_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_complains_is_asked_less_often() {
        for (every, wanted, expected) in
            [(5, None, 10), (5, Some(7), 7), (5, Some(1), 10), (58, None, 60), (60, Some(900), 60)]
        {
            assert_eq!(slower(every, wanted), expected, "{every} {wanted:?}");
        }
        assert_eq!(seconds(0), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_code_that_nobody_enters_ends() {
        let began = Instant::now();
        let mut asked = 0;
        let result: Result<(), Error> = poll(Some(5), Some(30), || {
            asked += 1;
            let said = if asked == 1 { Said::Slower(None) } else { Said::Pending };
            std::future::ready(Ok(said))
        })
        .await;
        assert!(result.unwrap_err().to_string().contains("nobody entered the code"));
        assert_eq!(began.elapsed(), Duration::from_secs(30));
        assert_eq!(asked, 3, "after 5, 15 and 25 seconds");
        let never: Result<(), Error> =
            poll(Some(60), Some(u64::MAX), || std::future::ready(Ok(Said::Pending))).await;
        never.unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(30) + USER_WAIT);
    }
}
