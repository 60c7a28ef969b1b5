//! Sign-ins with tokens of an identity provider.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use codewright_testkit::Script;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::Team;

/// A key of a provider.
struct Key {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self { id, pair: pair.unwrap() }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|half| BASE64.encode(half));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y})
    }

    fn sign(&self, claims: &Value) -> String {
        let text = unsigned(&json!({"alg": "ES256", "typ": "JWT", "kid": self.id}), claims);
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", BASE64.encode(signature))
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()))
}

/// A provider that serves discovery and keys, and counts the requests for keys.
struct Provider {
    url: String,
    keys: Arc<Mutex<(Vec<Value>, usize)>>,
}

impl Provider {
    fn start(keys: Vec<Value>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let keys = Arc::new(Mutex::new((keys, 0)));
        let (own, shared) = (url.clone(), Arc::clone(&keys));
        // Ends with the process of the tests.
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or_default();
                let body = if String::from_utf8_lossy(&head[..read]).contains("openid-configuration") {
                    json!({"issuer": own, "jwks_uri": format!("{own}/keys")})
                } else {
                    let mut shared = shared.lock().unwrap();
                    shared.1 += 1;
                    json!({"keys": shared.0})
                };
                let body = body.to_string();
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                     Connection: close\r\n\r\n"
                );
                drop(stream.write_all(format!("{head}{body}").as_bytes()));
            }
        });
        Ok(Self { url, keys })
    }

    fn fetches(&self) -> usize {
        self.keys.lock().unwrap().1
    }
}

#[test]
fn a_token_of_the_provider_counts_only_if_it_is_meant_for_this_server() -> Result<()> {
    let (first, second, foreign) = (Key::new("one"), Key::new("two"), Key::new("one"));
    let unusable = json!({"kty": "future", "kid": "x"});
    let provider = Provider::start(vec![unusable, first.public()])?;
    let team = Team::with(Script::new(), |config| {
        config["auth"]["oidc"] = json!({
            "issuer": provider.url, "audience": "codewright", "roles": {"ops": "admin", "dev": "member"},
        });
    })?;
    let now = codewright_proto::Clock::system().now_ms() / 1000;
    let claims = |change: Value| {
        let mut claims = json!({
            "iss": provider.url, "aud": ["other", "codewright"], "sub": "u-1", "groups": ["dev"], "exp": now + 600,
        });
        for (key, value) in change.as_object().unwrap() {
            claims[key] = value.clone();
        }
        claims
    };
    let status = |token: &str| team.with_token(token, "/users/me").unwrap().0;
    let (code, text) = team.with_token(&first.sign(&claims(json!({}))), "/users/me")?;
    assert_eq!(code, 200, "{text}");
    crate::support::check_has(&text, &[r#"{"name":"u-1","role":"member","teams":["dev"]}"#]);
    assert_eq!(status(&first.sign(&claims(json!({"groups": "ops"})))), 200);
    for (why, change) in [
        ("another audience", json!({"aud": "other"})),
        ("no audience", json!({"aud": null})),
        ("another issuer", json!({"iss": "https://evil.example"})),
        ("expired", json!({"exp": now - 120})),
        ("no expiry", json!({"exp": null})),
        ("not valid yet", json!({"nbf": now + 600})),
        ("no role", json!({"groups": ["others"]})),
        ("no name", json!({"sub": null})),
        ("a name that is not plain", json!({"sub": "a b"})),
        ("the name of a user of the configuration", json!({"sub": "alice"})),
    ] {
        assert_eq!(status(&first.sign(&claims(change))), 401, "{why}");
    }
    assert_eq!(status(&first.sign(&claims(json!({"exp": now - 20})))), 200, "within the skew");
    assert_eq!(status(&foreign.sign(&claims(json!({})))), 401, "another key with a known id");
    for algorithm in ["none", "None", "HS256", "RS256"] {
        let text = unsigned(&json!({"alg": algorithm, "kid": "one"}), &claims(json!({})));
        // The public key is no shared secret.
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, first.public().to_string().as_bytes());
        let signature = BASE64.encode(ring::hmac::sign(&key, text.as_bytes()));
        assert_eq!(status(&format!("{text}.{signature}")), 401, "{algorithm}");
        assert_eq!(status(&format!("{text}.")), 401, "{algorithm}");
    }
    assert_eq!(provider.fetches(), 1, "known keys are kept");
    // A new key is fetched when a token names it.
    provider.keys.lock().unwrap().0 = vec![second.public()];
    assert_eq!(status(&second.sign(&claims(json!({})))), 200);
    assert_eq!(provider.fetches(), 2);
    assert_eq!(status(&first.sign(&claims(json!({})))), 401, "a key that was withdrawn");
    for _ in 0..20 {
        assert_eq!(status(&Key::new("forged").sign(&claims(json!({})))), 401);
    }
    assert!(provider.fetches() <= 4, "{}", provider.fetches());
    assert_eq!(status(&second.sign(&claims(json!({})))), 200);
    Ok(())
}

#[test]
fn a_provider_without_encryption_or_audience_is_refused_at_the_start() -> Result<()> {
    let stage = crate::support::Stage::plain(Script::new())?;
    for (issuer, audience, expected) in [
        ("http://idp.example", "codewright", "`https://`"),
        ("https://idp.example", "", "`auth.oidc.audience`"),
    ] {
        Team::configure(&stage, |config| {
            config["auth"]["oidc"] = json!({"issuer": issuer, "audience": audience});
        })?;
        let done = crate::support::program(&stage.project, ["serve"]).finish()?;
        crate::support::check_code(&done, 1);
        crate::support::check_has(&done.stderr, &[expected]);
    }
    Ok(())
}
