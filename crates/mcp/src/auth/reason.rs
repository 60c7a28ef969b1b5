//! The errors of the SDK as one sentence for the user.
//!
//! Answers of servers can repeat what we sent, so secrets are removed from every sentence.

use rmcp::transport::auth::AuthError;

use super::guard::Guard;
use crate::error::{Failure, cut};

/// The shortest text that is treated as a secret.
const MIN_SECRET_CHARS: usize = 6;

/// Returns the failure in one sentence, without the secrets.
pub(super) fn failure(error: &AuthError, guard: &Guard, secrets: &[&str]) -> Failure {
    Failure::failed(without(&sentence(error, guard), secrets))
}

fn sentence(error: &AuthError, guard: &Guard) -> String {
    let last = guard.last();
    let cause = || match (&last.failure, last.status) {
        (Some(failure), _) => failure.clone(),
        (None, Some(status)) if !status.is_success() => match &last.code {
            Some(code) => format!("the server answered {status}, `{code}`"),
            None => format!("the server answered {status}"),
        },
        (None, _) => "the answer has another form".to_owned(),
    };
    match error {
        AuthError::PkceUnsupported => {
            "The sign-in server does not support PKCE with S256, which is required.".to_owned()
        }
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => format!(
            "The sign-in server calls itself `{}`, but `{}` was expected.",
            cut(received_issuer),
            cut(expected_issuer)
        ),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("The sign-in server does not say that it is `{}`.", cut(expected_issuer))
        }
        AuthError::ProtectedResourceMetadataInvalid { reason, .. } => {
            format!(
                "What the server publishes about its sign-in belongs to another server: {}.",
                cut(&reason.to_string())
            )
        }
        AuthError::AuthorizationServersUnavailable { authorization_servers, .. } => {
            let named = authorization_servers.first().map(|name| cut(name)).unwrap_or_default();
            format!("The server names the sign-in server `{named}`, which cannot be used.")
        }
        AuthError::DiscoveryRequestFailed { source, .. } => {
            let reason = last.failure.unwrap_or_else(|| innermost(source.as_ref()));
            format!("Cannot find out how to sign in: {}.", cut(&reason))
        }
        AuthError::RegistrationFailed(_) => {
            format!("The sign-in server did not register this program: {}.", cause())
        }
        AuthError::TokenExchangeFailed(text) => {
            format!("The sign-in failed: {}.", answered(&last, text, cause()))
        }
        AuthError::TokenRefreshFailed(text) | AuthError::TokenRefreshRejected(text) => {
            format!("The sign-in cannot be renewed: {}.", answered(&last, text, cause()))
        }
        // The enum of the SDK can grow.
        other => format!("The sign-in failed: {}.", cut(&other.to_string()).trim_end_matches('.')),
    }
}

/// The description of a server that answered with an error code, or else the cause.
fn answered(last: &super::guard::Last, text: &str, cause: String) -> String {
    let description = text.split_once(": ").map(|(_, description)| cut(description));
    match description {
        Some(description) if last.code.is_some() && !description.is_empty() => {
            description.trim_end_matches('.').to_owned()
        }
        _ => cause,
    }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn without(text: &str, secrets: &[&str]) -> String {
    let secrets = secrets.iter().filter(|secret| secret.len() >= MIN_SECRET_CHARS);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
}
