//! Google's credentials for Vertex AI.
//!
//! Access tokens come from a key file or from the metadata server of a machine in Google's cloud.
//! They are valid for an hour. One request fetches a token while the others wait, and it is
//! replaced a minute before it expires. The caller reads the files; this module does not access the
//! disk.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use codewright_proto::Clock;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Error, Secret};

/// The OAuth scope of the tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The token server, unless the key file names another.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// The lifetime of an assertion; the maximum that Google allows.
const ASSERTION_SECONDS: u64 = 3600;
/// The metadata server of machines in Google's cloud.
const METADATA_HOST: &str = "metadata.google.internal";

/// Credentials that access tokens can be fetched with. Clones share the token.
#[derive(Clone)]
pub struct GoogleCredentials(Arc<Inner>);

struct Inner {
    source: Source,
    clock: Clock,
    /// Locked while a token is fetched, so that concurrent requests fetch only one.
    token: tokio::sync::Mutex<Option<Token>>,
}

/// An access token, and the time at which it must be replaced.
pub(crate) struct Token {
    pub(crate) text: Secret,
    pub(crate) stale: Instant,
}

/// The source of access tokens.
pub(crate) enum Source {
    /// The key in a file of this name.
    Key { name: String, key: Key },
    /// The metadata server at this host.
    Machine { host: String },
}

pub(crate) enum Key {
    ServiceAccount { email: String, key_id: Option<String>, pair: Box<RsaKeyPair>, token_uri: String },
    User { client_id: String, client_secret: Secret, refresh_token: Secret, token_uri: String },
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    r#type: String,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
}

impl GoogleCredentials {
    /// Parses a credentials file; `name` is the file's name, for error messages.
    ///
    /// # Errors
    ///
    /// Fails if the text is not the key of a service account or of a signed-in user.
    pub fn from_file(text: &str, name: &str, clock: Clock) -> Result<Self, Error> {
        let bad =
            |what: &str| Error::rejected(format!("`{name}` is not a usable Google credentials file: {what}"));
        // The parser's message may quote the file, which is secret.
        let file: File = serde_json::from_str(text).map_err(|_| bad("it is not valid JSON"))?;
        let token_uri = file.token_uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        let needs = |value: Option<String>, field: &str| {
            value.filter(|text| !text.is_empty()).ok_or_else(|| bad(&format!("`{field}` is missing")))
        };
        let key = match file.r#type.as_str() {
            "service_account" => {
                let email = needs(file.client_email, "client_email")?;
                let pem = needs(file.private_key, "private_key")?;
                let pair = rsa_key(&pem).ok_or_else(|| bad("`private_key` cannot be read"))?;
                Key::ServiceAccount { email, key_id: file.private_key_id, pair: Box::new(pair), token_uri }
            }
            "authorized_user" => Key::User {
                client_id: needs(file.client_id, "client_id")?,
                client_secret: needs(file.client_secret, "client_secret")?.into(),
                refresh_token: needs(file.refresh_token, "refresh_token")?.into(),
                token_uri,
            },
            other => {
                return Err(bad(&format!(
                    "its `type` is `{other}`, and only `service_account` and `authorized_user` are supported"
                )));
            }
        };
        Ok(Self::of(Source::Key { name: name.to_owned(), key }, clock))
    }

    /// Returns the credentials of a machine in Google's cloud. Uses the metadata server at `host`,
    /// or at its usual name.
    #[must_use]
    pub fn of_machine(host: Option<&str>, clock: Clock) -> Self {
        Self::of(Source::Machine { host: host.unwrap_or(METADATA_HOST).to_owned() }, clock)
    }

    fn of(source: Source, clock: Clock) -> Self {
        Self(Arc::new(Inner { source, clock, token: tokio::sync::Mutex::new(None) }))
    }

    pub(crate) fn source(&self) -> &Source {
        &self.0.source
    }

    /// Returns the seconds since 1970, for assertions.
    pub(crate) fn now_seconds(&self) -> u64 {
        self.0.clock.now_ms() / 1000
    }

    /// Locks the cached token. The caller may replace it.
    pub(crate) async fn token(&self) -> tokio::sync::MutexGuard<'_, Option<Token>> {
        self.0.token.lock().await
    }

    /// Discards the cached token after a server rejected it.
    pub(crate) fn forget(&self) {
        // If the lock is held, a new token is being fetched.
        if let Ok(mut token) = self.0.token.try_lock() {
            *token = None;
        }
    }
}

impl PartialEq for GoogleCredentials {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GoogleCredentials {}

impl std::fmt::Debug for GoogleCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.source {
            Source::Key { name, .. } => f.debug_tuple("GoogleCredentials").field(name).finish(),
            Source::Machine { host } => f.debug_tuple("GoogleCredentials").field(host).finish(),
        }
    }
}

impl Key {
    /// Returns the URL of the token server.
    pub(crate) fn token_uri(&self) -> &str {
        match self {
            Self::ServiceAccount { token_uri, .. } | Self::User { token_uri, .. } => token_uri,
        }
    }

    /// Returns the form fields of a token request.
    pub(crate) fn form(&self, now_seconds: u64) -> Result<Vec<(&'static str, String)>, Error> {
        match self {
            Self::ServiceAccount { .. } => Ok(vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
                ("assertion", self.assertion(now_seconds)?),
            ]),
            Self::User { client_id, client_secret, refresh_token, .. } => Ok(vec![
                ("grant_type", "refresh_token".to_owned()),
                ("client_id", client_id.clone()),
                ("client_secret", client_secret.expose().to_owned()),
                ("refresh_token", refresh_token.expose().to_owned()),
            ]),
        }
    }

    /// Returns the signed assertion of a service account.
    fn assertion(&self, now_seconds: u64) -> Result<String, Error> {
        let Self::ServiceAccount { email, key_id, pair, token_uri } = self else { return Ok(String::new()) };
        let mut header = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(key_id) = key_id {
            header["kid"] = json!(key_id);
        }
        let claims = json!({
            "iss": email,
            "scope": SCOPE,
            "aud": token_uri,
            "iat": now_seconds,
            "exp": now_seconds.saturating_add(ASSERTION_SECONDS),
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; pair.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
            .map_err(|_| Error::rejected(format!("the key of `{email}` cannot sign")))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Parses an RSA key in PKCS#1 or PKCS#8 format.
fn rsa_key(pem: &str) -> Option<RsaKeyPair> {
    let body: String = pem.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).ok()?;
    if pem.contains("BEGIN RSA PRIVATE KEY") {
        return RsaKeyPair::from_der(&der).ok();
    }
    RsaKeyPair::from_pkcs8(&der).ok()
}

#[cfg(test)]
mod tests {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    /// A key generated for this test. It gives access to nothing.
    const PEM: &str = include_str!("google/key.pem");

    fn service_account() -> Value {
        json!({
            "type": "service_account",
            "client_email": "a@b.example",
            "private_key_id": "k1",
            "private_key": PEM,
            "token_uri": "http://127.0.0.1:9/token",
        })
    }

    fn read(file: &Value) -> Result<GoogleCredentials, Error> {
        GoogleCredentials::from_file(&file.to_string(), "/k.json", Clock::stepping(1_000_000, 0))
    }

    #[test]
    fn an_assertion_names_the_account_and_is_signed() {
        let credentials = read(&service_account()).unwrap();
        let Source::Key { key, .. } = credentials.source() else { panic!("a key") };
        let form = key.form(credentials.now_seconds()).unwrap();
        assert_eq!(form[0].1, "urn:ietf:params:oauth:grant-type:jwt-bearer");
        let (signed, signature) = form[1].1.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let open =
            |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        assert_eq!(open(header), json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
        assert_eq!(
            open(claims),
            json!({"iss": "a@b.example", "scope": SCOPE, "aud": "http://127.0.0.1:9/token", "iat": 1000, "exp": 4600})
        );
        let Key::ServiceAccount { pair, .. } = key else { panic!("an account") };
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref().to_vec());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }

    #[test]
    fn a_signed_in_user_sends_the_refresh_token() {
        let file =
            json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"});
        let credentials = read(&file).unwrap();
        let Source::Key { key, .. } = credentials.source() else { panic!("a key") };
        assert_eq!(key.token_uri(), "https://oauth2.googleapis.com/token");
        let form: Vec<_> =
            key.form(0).unwrap().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(form, ["grant_type=refresh_token", "client_id=c", "client_secret=s", "refresh_token=r"]);
    }

    #[test]
    fn a_bad_file_is_named_without_its_content() {
        for (file, expected) in [
            (json!("sk-secret"), "it is not valid JSON"),
            (json!({"type": "service_account", "private_key": "sk-secret"}), "`client_email` is missing"),
            (
                json!({"type": "service_account", "client_email": "a", "private_key": "sk-secret"}),
                "`private_key` cannot be read",
            ),
            (
                json!({"type": "authorized_user", "client_id": "c", "client_secret": "sk-secret"}),
                "`refresh_token` is missing",
            ),
            (
                json!({"type": "external_account"}),
                "its `type` is `external_account`, and only `service_account` and `authorized_user` are supported",
            ),
        ] {
            let error = read(&file).unwrap_err().to_string();
            assert_eq!(error, format!("`/k.json` is not a usable Google credentials file: {expected}"));
        }
    }

    #[test]
    fn no_secret_is_printed() {
        let text = format!("{:?}", read(&service_account()).unwrap());
        assert_eq!(text, "GoogleCredentials(\"/k.json\")");
    }
}
