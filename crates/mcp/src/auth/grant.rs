//! The result of a sign-in, in the form of `mcp-auth.json`.
//!
//! The entries are OpenCode's, with one more object that says where the tokens are renewed. A token belongs to the address
//! of its server.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// Tokens are renewed this long before they expire, or after half of their life if that is shorter.
const MARGIN: Duration = Duration::from_secs(60);

/// The tokens of a server, and everything that renews them.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// The address that the tokens are sent to.
    pub server_url: String,
    pub access: String,
    pub refresh: Option<String>,
    /// In milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// The time at which the tokens should be renewed.
    pub renew_ms: Option<u64>,
    pub scope: Option<String>,
    pub client_id: String,
    pub client_secret: Option<String>,
    /// The name of the server that issued the tokens.
    pub issuer: Option<String>,
    /// Its address for tokens. `None` if another program signed in, which does not store it.
    pub token_endpoint: Option<String>,
    /// The resource that the tokens are for.
    pub resource: Option<String>,
    /// The ways in which a client can prove its identity at the token endpoint.
    pub methods: Vec<String>,
    /// The sign-in server that the user's configuration named, which may be on a local network.
    pub sign_in_server: Option<String>,
}

impl Grant {
    /// Reads an entry of the file. `None` if it has no tokens.
    #[must_use]
    pub fn read(entry: &Value) -> Option<Self> {
        let text = |path: &str| entry.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let ms = |path: &str| {
            let seconds = entry.pointer(path).and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
            // A conversion of a float to an integer saturates.
            seconds.map(|seconds| (seconds * 1000.0) as u64)
        };
        let expires_ms = ms("/tokens/expiresAt");
        let margin_ms = MARGIN.as_millis() as u64;
        let methods = entry.pointer("/authorization/methods").and_then(Value::as_array);
        let methods = methods.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Some(Self {
            server_url: text("/serverUrl")?,
            access: text("/tokens/accessToken")?,
            refresh: text("/tokens/refreshToken").filter(|token| !token.is_empty()),
            expires_ms,
            renew_ms: ms("/authorization/renewAt").or(expires_ms.map(|at| at.saturating_sub(margin_ms))),
            scope: text("/tokens/scope"),
            client_id: text("/clientInfo/clientId").unwrap_or_default(),
            client_secret: text("/clientInfo/clientSecret").filter(|secret| !secret.is_empty()),
            issuer: text("/authorization/issuer"),
            token_endpoint: text("/authorization/tokenEndpoint"),
            resource: text("/authorization/resource"),
            methods: methods.collect(),
            sign_in_server: text("/authorization/server"),
        })
    }

    /// The entry of the file.
    #[must_use]
    pub fn entry(&self) -> Value {
        let mut tokens = Map::from_iter([("accessToken".to_owned(), json!(self.access))]);
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                tokens.insert(name.to_owned(), value);
            }
        };
        let seconds = |ms: u64| json!(ms as f64 / 1000.0);
        put("refreshToken", self.refresh.as_deref().map(Value::from));
        put("expiresAt", self.expires_ms.map(seconds));
        put("scope", self.scope.as_deref().map(Value::from));
        let mut client = json!({ "clientId": self.client_id });
        if let Some(secret) = &self.client_secret {
            client["clientSecret"] = json!(secret);
        }
        let mut authorization = json!({
            "issuer": self.issuer, "tokenEndpoint": self.token_endpoint, "resource": self.resource,
            "methods": self.methods, "renewAt": self.renew_ms.map(seconds),
        });
        if let Some(server) = &self.sign_in_server {
            authorization["server"] = json!(server);
        }
        json!({
            "tokens": tokens, "clientInfo": client, "serverUrl": self.server_url, "authorization": authorization,
        })
    }

    /// Takes new tokens from the answer of a token endpoint.
    pub(super) fn take(&mut self, answer: &Value, now_ms: u64) -> Option<()> {
        let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        self.access = text("access_token")?.to_owned();
        self.refresh = text("refresh_token").map(str::to_owned).or(self.refresh.take());
        self.scope = text("scope").map(str::to_owned).or(self.scope.take());
        let life_ms = answer.get("expires_in").and_then(Value::as_u64).map(|life| life.saturating_mul(1000));
        self.expires_ms = life_ms.map(|life| now_ms.saturating_add(life));
        let margin = |life: u64| (MARGIN.as_millis() as u64).min(life / 2);
        self.renew_ms = life_ms.map(|life| now_ms.saturating_add(life - margin(life)));
        Some(())
    }

    /// Whether the tokens should be renewed.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.renew_ms.is_some_and(|at| at <= now_ms)
    }

    /// Whether the server no longer accepts the access token.
    #[must_use]
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at <= now_ms)
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("server_url", &self.server_url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_opencode_is_read() {
        let entry = json!({
            "tokens": {"accessToken": "a", "refreshToken": "r", "expiresAt": 1_795_484_863.689, "scope": "s"},
            "clientInfo": {"clientId": "c"}, "serverUrl": "http://h/mcp",
        });
        let grant = Grant::read(&entry).unwrap();
        assert_eq!((grant.access.as_str(), grant.refresh.as_deref()), ("a", Some("r")));
        assert_eq!((grant.expires_ms, grant.renew_ms), (Some(1_795_484_863_689), Some(1_795_484_803_689)));
        assert!(!grant.is_due(1_795_484_803_688) && grant.is_due(1_795_484_803_689));
        assert!(Grant::read(&json!({"serverUrl": "http://h/mcp", "codeVerifier": "x"})).is_none());
        assert_eq!(format!("{grant:?}"), "Grant { server_url: \"http://h/mcp\", .. }");
    }

    #[test]
    fn an_entry_is_written_as_it_is_read() {
        let entry = json!({"tokens": {"accessToken": "a"}, "serverUrl": "http://h/mcp"});
        let mut grant = Grant::read(&entry).unwrap();
        grant.take(&json!({"access_token": "b", "refresh_token": "r", "expires_in": 20}), 1_000_000).unwrap();
        assert_eq!((grant.expires_ms, grant.renew_ms), (Some(1_020_000), Some(1_010_000)));
        grant.token_endpoint = Some("https://h/token".to_owned());
        assert_eq!(Grant::read(&grant.entry()).as_ref(), Some(&grant));
        // Not every answer contains a new refresh token.
        grant.take(&json!({"access_token": "c"}), 0).unwrap();
        assert_eq!((grant.refresh.as_deref(), grant.expires_ms), (Some("r"), None));
    }
}
