//! Requests to standard OAuth token servers.

use serde_json::{Map, Value};

use super::answer::{field, seconds, secret, token_error};
use crate::transport::exchange::Payload;
use crate::vault::Tokens;
use crate::{Client, Error, Secret};

/// A token server and our client id there.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) client_id: String,
    /// For servers that require one, although it is public.
    pub(super) client_secret: Option<&'static str>,
    /// The lifetime of tokens if the server does not send one.
    pub(super) life_seconds: u64,
}

/// The code of a redirect.
pub(super) struct Grant<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a Secret,
    pub(super) redirect: &'a str,
}

/// Exchanges a code for tokens; `extra` is stored with them.
pub(super) async fn exchange(
    client: &Client,
    server: &Server,
    grant: &Grant<'_>,
    extra: Map<String, Value>,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", server.client_id.as_str()),
        ("code", grant.code),
        ("redirect_uri", grant.redirect),
        ("code_verifier", grant.verifier.expose()),
    ];
    let (status, answer) = server.post(client, &form).await?;
    if status != 200 {
        return Err(token_error("the sign-in", status, &answer, &[grant.code, grant.verifier.expose()]));
    }
    server.tokens(&answer, None, extra, now_ms)
}

/// Refreshes tokens. Missing fields keep their old values.
pub(super) async fn refresh(
    client: &Client,
    server: &Server,
    old: &Tokens,
    now_ms: u64,
) -> Result<Tokens, Error> {
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", server.client_id.as_str()),
        ("refresh_token", old.refresh.expose()),
    ];
    let (status, answer) = server.post(client, &form).await?;
    if status != 200 {
        return Err(token_error(
            "the token refresh",
            status,
            &answer,
            &[old.refresh.expose(), old.access.expose()],
        ));
    }
    server.tokens(&answer, Some(old), old.extra.clone(), now_ms)
}

impl Server {
    async fn post(&self, client: &Client, form: &[(&str, &str)]) -> Result<(u16, Value), Error> {
        let payload = match self.client_secret {
            Some(secret) => Payload::AuthorizedForm(form, &self.client_id, secret),
            None => Payload::Form(form),
        };
        client.exchange(&self.url, payload).await
    }

    /// Parses the server's tokens.
    pub(super) fn tokens(
        &self,
        answer: &Value,
        old: Option<&Tokens>,
        extra: Map<String, Value>,
        now_ms: u64,
    ) -> Result<Tokens, Error> {
        let access = secret(field(answer, "access_token")?);
        let refresh = match (field(answer, "refresh_token"), old) {
            (Ok(refresh), _) => secret(refresh),
            (Err(_), Some(old)) => old.refresh.clone(),
            (Err(error), None) => return Err(error),
        };
        let life = seconds(answer, "expires_in").filter(|life| *life > 0).unwrap_or(self.life_seconds);
        let expires_ms = now_ms.saturating_add(life.saturating_mul(1000));
        Ok(Tokens { access, refresh, expires_ms, extra })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_fields_of_a_refresh_keep_their_values() {
        let server =
            Server { url: String::new(), client_id: String::new(), client_secret: None, life_seconds: 7200 };
        let mut extra = Map::new();
        extra.insert("enterpriseUrl".to_owned(), "https://git".into());
        let old = Tokens { access: "a1".into(), refresh: "r1".into(), expires_ms: 1, extra };
        let read = |answer: Value, old: Option<&Tokens>| {
            server.tokens(&answer, old, old.map(|old| old.extra.clone()).unwrap_or_default(), 1000)
        };
        let new = read(json!({"access_token": "a2"}), Some(&old)).unwrap();
        assert_eq!((new.access.expose(), new.refresh.expose()), ("a2", "r1"));
        assert_eq!((new.expires_ms, &new.extra), (1000 + 7_200_000, &old.extra));
        let new = read(json!({"access_token": "a3", "refresh_token": "r3", "expires_in": "60"}), Some(&old));
        assert_eq!(new.unwrap().expires_ms, 61_000);
        let error = read(json!({"access_token": "a"}), None).unwrap_err();
        assert!(error.to_string().contains("`refresh_token`"));
    }
}
