//! Renewals over days, with a scripted sign-in server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use codewright_mcp::Boxed;
use codewright_mcp::auth::{Grant, Web};
use codewright_proto::Clock;
use serde_json::json;
use tokio_util::task::TaskTracker;
use url::{Url, form_urlencoded};

use super::{Token, Tokens};
use crate::mcp::vault::TokenFile;

const MINUTE_MS: u64 = 60 * 1000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// A sign-in server whose tokens live for an hour. Each refresh token is valid once.
#[derive(Default)]
struct Rotating {
    renewals: AtomicU64,
}

impl Web for Rotating {
    fn send<'a>(
        &'a self,
        request: http::Request<Vec<u8>>,
        _own: &'a [Url],
    ) -> Boxed<'a, Result<http::Response<Vec<u8>>, String>> {
        Box::pin(async move {
            let count = self.renewals.fetch_add(1, Ordering::Relaxed);
            let form: Vec<_> = form_urlencoded::parse(request.body()).into_owned().collect();
            let has = |name: &str, value: &str| form.iter().any(|(key, found)| key == name && found == value);
            // The resource is sent as the server wrote it, without the slash of a parsed address.
            let is_valid = request.uri().path() == "/token"
                && has("refresh_token", &format!("refresh-{count}"))
                && has("resource", "http://127.0.0.1:1")
                && has("client_id", "c");
            let next = count + 1;
            let body = json!({"access_token": format!("access-{next}"), "refresh_token": format!("refresh-{next}"),
                              "token_type": "Bearer", "expires_in": "3600"});
            let (status, body) =
                if is_valid { (200, body) } else { (400, json!({"error": "invalid_grant"})) };
            let mut answer = http::Response::new(body.to_string().into_bytes());
            *answer.status_mut() = http::StatusCode::from_u16(status).map_err(|why| why.to_string())?;
            Ok(answer)
        })
    }
}

fn grant(url: &Url) -> Grant {
    let entry = json!({
        "tokens": {"accessToken": "access-0", "refreshToken": "refresh-0", "expiresAt": 1},
        "clientInfo": {"clientId": "c"}, "serverUrl": url.as_str(),
        "authorization": {"tokenEndpoint": "http://127.0.0.1:1/token", "resource": "http://127.0.0.1:1"},
    });
    Grant::read(&entry).unwrap()
}

#[tokio::test]
async fn a_sign_in_survives_thirty_days_of_hourly_tokens() {
    let directory = tempfile::tempdir().unwrap();
    let file = || TokenFile::new(directory.path().join("own.json"), directory.path().join("original.json"));
    let url = Url::parse("http://127.0.0.1:1/mcp").unwrap();
    file().store("s", &url, &grant(&url)).unwrap();
    let web = Arc::new(Rotating::default());
    // The clock advances with every reading.
    let start_ms = 1000 * DAY_MS;
    let clock = Clock::stepping(start_ms, 7 * MINUTE_MS);
    // Two processes share the file.
    let two = [(); 2].map(|()| Tokens::new(file(), web.clone(), clock.clone(), TaskTracker::new()));
    let mut day = start_ms;
    while day < start_ms + 30 * DAY_MS {
        let [one, other] = &two;
        let both = tokio::join!(one.token("s", &url, None), other.token("s", &url, None));
        for token in [both.0, both.1] {
            assert!(matches!(token, Ok(Token::Valid(_))), "{token:?}");
        }
        day = clock.now_ms();
    }
    let renewals = web.renewals.load(Ordering::Relaxed);
    assert!((300..800).contains(&renewals), "{renewals}");
    // A token that the server does not accept any more is renewed early, once for everybody.
    let current = format!("access-{renewals}");
    let again = tokio::join!(
        two[0].token("s", &url, Some(&current)),
        two[0].token("s", &url, Some(&current)),
        two[1].token("s", &url, Some(&current)),
    );
    let next = format!("access-{}", renewals + 1);
    assert_eq!(again.0, Ok(Token::Valid(next.clone())));
    assert_eq!((again.1, again.2), (Ok(Token::Valid(next.clone())), Ok(Token::Valid(next))));
    // A refresh token that is used twice ends the sign-in.
    web.renewals.fetch_add(1, Ordering::Relaxed);
    let token = two[0].token("s", &url, Some(&format!("access-{}", renewals + 1))).await;
    assert_eq!(token, Ok(Token::Refused("The sign-in cannot be renewed: invalid_grant.".to_owned())));
    assert_eq!(two[1].token("s", &url, None).await, Ok(Token::Missing));
}
