//! How a request shows who asks.
//!
//! A key is one header among the others, so that configured headers can win
//! over it. What must be fetched first, or must see the finished request, is
//! added just before sending.

use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::connections::Connections;
use super::{Outgoing, gitlab, google};
use crate::{Auth, Error, Model, Request};
use crate::{oauth, protocol};

/// The header that carries the model's key, if it has one.
pub(super) fn header(model: &Model) -> Option<(&'static str, String)> {
    let key = model.api_key.as_ref()?.expose();
    match resolved(model) {
        Auth::Header(name) => Some((name, key.to_owned())),
        Auth::Protocol | Auth::Bearer | Auth::Aws(_) => Some(("authorization", format!("Bearer {key}"))),
        Auth::Google(_) | Auth::GitLab(_) | Auth::SignIn { .. } => None,
    }
}

/// What a server that is used by sign-in wants to know of a request.
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

/// Adds what only the finished request can have: a fetched token, or a signature over all of it.
pub(super) async fn authorize(
    model: &Model,
    outgoing: &mut Outgoing,
    connections: &Connections,
) -> Result<(), Error> {
    match resolved(model) {
        Auth::Aws(aws) if model.api_key.is_none() => {
            aws.sign(&outgoing.url, &mut outgoing.headers, &outgoing.body, connections).await
        }
        Auth::Protocol | Auth::Bearer | Auth::Header(_) | Auth::Aws(_) => Ok(()),
        // A token that the configuration gives itself wins, as every header does.
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
        Auth::GitLab(passes) => gitlab::authorize(&passes, &mut outgoing.headers, connections).await,
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

fn resolved(model: &Model) -> Auth {
    match &model.auth {
        Auth::Protocol => protocol::auth(model.protocol),
        auth => auth.clone(),
    }
}

/// What was shown to the server was not good enough, and must not be shown again; whether something else can be.
pub(super) async fn refused(model: &Model, used: Option<&HeaderValue>) -> bool {
    match (&model.auth, used) {
        (Auth::Google(credentials), _) => {
            credentials.forget();
            false
        }
        (Auth::GitLab(passes), Some(used)) => {
            passes.forget(used).await;
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

/// Whether a header's value must never be printed.
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
    fn the_key_goes_where_the_server_looks() {
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
