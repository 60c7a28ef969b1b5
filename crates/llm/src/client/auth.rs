//! Adds the credentials to a request.
//!
//! A key is an ordinary header, so that configured headers can replace it. Tokens that must be
//! fetched and signatures that cover the request are added just before sending.

use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::{Outgoing, gitlab, google};
use crate::transport::Connections;
use crate::{Auth, Error, Model, Request};
use crate::{oauth, protocol};

/// Returns the header with the model's key, if it has one.
pub(super) fn header(model: &Model) -> Option<(&'static str, String)> {
    let key = model.api_key.as_ref()?.expose();
    match auth_of(model) {
        Auth::Header(name) => Some((name, key.to_owned())),
        Auth::Protocol | Auth::Bearer | Auth::Aws(_) => Some(("authorization", format!("Bearer {key}"))),
        Auth::Google(_) | Auth::GitLab(_) | Auth::SignIn { .. } => None,
    }
}

/// Returns the extra headers that servers with a sign-in expect.
pub(super) fn notes(model: &Model, request: &Request) -> Vec<(&'static str, String)> {
    match &model.auth {
        Auth::SignIn { provider, .. } => oauth::notes(provider, request),
        Auth::Protocol
        | Auth::Bearer
        | Auth::Header(_)
        | Auth::Aws(_)
        | Auth::Google(_)
        | Auth::GitLab(_) => Vec::new(),
    }
}

/// Adds the credentials that need the finished request: a fetched token or a signature.
pub(super) async fn authorize(
    model: &Model,
    outgoing: &mut Outgoing,
    connections: &Connections,
) -> Result<(), Error> {
    match auth_of(model) {
        Auth::Aws(aws) if model.api_key.is_none() => {
            aws.sign(&outgoing.url, &mut outgoing.headers, &outgoing.body, connections).await
        }
        Auth::Protocol | Auth::Bearer | Auth::Header(_) | Auth::Aws(_) => Ok(()),
        // A configured token wins, like all configured headers.
        Auth::Google(_) if outgoing.headers.contains_key(AUTHORIZATION) => Ok(()),
        Auth::Google(credentials) => {
            let token = google::token(&credentials, connections).await?;
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut value =
                value.map_err(|_| Error::rejected("Google's token cannot be sent as a header".to_owned()))?;
            value.set_sensitive(true);
            outgoing.headers.insert(AUTHORIZATION, value);
            Ok(())
        }
        Auth::GitLab(_) if outgoing.headers.contains_key(AUTHORIZATION) => Ok(()),
        Auth::GitLab(credentials) => {
            gitlab::authorize(&credentials, &mut outgoing.headers, connections).await
        }
        Auth::SignIn { sign_in, provider } => {
            for (name, value) in sign_in.headers(&provider).await? {
                let bad = || Error::rejected(format!("the token of `{provider}` cannot be sent as a header"));
                let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
                value.set_sensitive(true);
                outgoing.headers.insert(name, value);
            }
            Ok(())
        }
    }
}

fn auth_of(model: &Model) -> Auth {
    match &model.auth {
        Auth::Protocol => protocol::auth(model.protocol),
        auth => auth.clone(),
    }
}

/// Discards credentials that the server rejected. Returns whether new ones can be fetched for
/// another attempt.
pub(super) async fn discard(model: &Model, used: Option<&HeaderValue>) -> bool {
    match (&model.auth, used) {
        (Auth::Google(credentials), _) => {
            credentials.forget();
            false
        }
        (Auth::GitLab(credentials), Some(used)) => {
            credentials.forget(used).await;
            true
        }
        (
            Auth::Protocol
            | Auth::Bearer
            | Auth::Header(_)
            | Auth::Aws(_)
            | Auth::SignIn { .. }
            | Auth::GitLab(_),
            _,
        ) => false,
    }
}

/// Returns whether the value of a header must never be printed.
pub(super) fn is_secret(name: &str) -> bool {
    matches!(
        name,
        "authorization"
            | "x-api-key"
            | "api-key"
            | "x-goog-api-key"
            | "x-amz-security-token"
            | "cf-aig-authorization"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    #[test]
    fn the_key_is_sent_in_the_servers_header() {
        for (protocol, auth, expected) in [
            (Protocol::OpenAiChat, Auth::Protocol, ("authorization", "Bearer k")),
            (Protocol::Anthropic, Auth::Protocol, ("x-api-key", "k")),
            (Protocol::Anthropic, Auth::Bearer, ("authorization", "Bearer k")),
            (Protocol::OpenAiChat, Auth::Header("api-key"), ("api-key", "k")),
        ] {
            let mut model = Model::new("p", "m", protocol, "https://h");
            assert_eq!(header(&model), None);
            model.auth = auth;
            model.api_key = Some("k".into());
            assert_eq!(header(&model), Some((expected.0, expected.1.to_owned())));
        }
    }
}
