//! Sign-ins with tokens of an identity provider.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use codewright_testkit::Script;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

use super::Team;

/// A key of a provider.
struct Key {
    id: &'static str,
    pair: Pair,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Key {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self { id, pair: Pair::Ec(pair.unwrap()) }
    }

    fn ed25519(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, pair: Pair::Ed(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()) }
    }

    /// `None` without `openssl`.
    fn rsa(id: &'static str) -> Option<Self> {
        let arguments =
            ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-outform", "DER"];
        let made = Command::new("openssl").args(arguments).output().ok()?;
        // The form depends on the version.
        let pair =
            RsaKeyPair::from_pkcs8(&made.stdout).or_else(|_| RsaKeyPair::from_der(&made.stdout)).unwrap();
        Some(Self { id, pair: Pair::Rsa(Box::new(pair)) })
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Ec(_) => "ES256",
            Pair::Ed(_) => "EdDSA",
            Pair::Rsa(_) => "RS256",
        }
    }

    fn public(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Ec(pair) => {
                let point = pair.public_key().as_ref();
                let [x, y] = [&point[1..33], &point[33..]].map(|half| BASE64.encode(half));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y})
            }
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(pair.public_key().as_ref())})
            }
            Pair::Rsa(pair) => {
                let numbers = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                let [n, e] = [numbers.n, numbers.e].map(|number| BASE64.encode(number));
                json!({"kty": "RSA", "n": n, "e": e})
            }
        };
        key["use"] = json!("sig");
        key["alg"] = json!(self.algorithm());
        key["kid"] = json!(self.id);
        key
    }

    fn sign(&self, claims: &Value) -> String {
        let text = unsigned(&json!({"alg": self.algorithm(), "typ": "JWT", "kid": self.id}), claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Ec(pair) => pair.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
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
fn forged_tokens_do_not_keep_a_new_key_out() -> Result<()> {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let provider = Provider::start(vec![old.public()])?;
    let team = Team::with(Script::new(), |config| {
        config["auth"]["oidc"] =
            json!({"issuer": provider.url, "audience": "codewright", "roles": {"dev": "member"}});
    })?;
    let now = codewright_proto::Clock::system().now_ms() / 1000;
    let claims = json!({
        "iss": provider.url, "aud": "codewright", "sub": "u-1", "groups": ["dev"], "exp": now + 600,
    });
    let status = |token: &str| team.with_token(token, "/users/me").unwrap().0;
    assert_eq!(status(&old.sign(&claims)), 200);
    for (at, id) in ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().enumerate() {
        let text = unsigned(&json!({"alg": "ES256", "kid": id}), &claims);
        let signature = BASE64.encode([u8::try_from(at)?; 64]);
        assert_eq!(status(&format!("{text}.{signature}")), 401);
    }
    provider.keys.lock().unwrap().0 = vec![old.public(), new.public()];
    assert_eq!(status(&new.sign(&claims)), 200, "the new key is found");
    // A flood of forged tokens causes few fetches, and those with another issuer none.
    for at in 0..60 {
        let text = unsigned(&json!({"alg": "ES256", "kid": format!("flood-{at}")}), &claims);
        assert_eq!(status(&format!("{text}.{}", BASE64.encode([1; 64]))), 401);
    }
    let fetches = provider.fetches();
    assert!(fetches <= 20, "{fetches}");
    assert_eq!(status(&new.sign(&claims)), 200);
    Ok(())
}

#[test]
fn tokens_may_be_signed_with_each_kind_of_key() -> Result<()> {
    let (ec, ed, rsa) = (Key::new("ec"), Key::ed25519("ed"), Key::rsa("rsa"));
    if rsa.is_none() {
        drop(
            std::io::stderr()
                .write_all(b"skipped: `openssl` is not installed, so no token is signed with RSA\n"),
        );
    }
    let keys: Vec<_> = [Some(ec), Some(ed), rsa].into_iter().flatten().collect();
    let provider = Provider::start(keys.iter().map(Key::public).collect())?;
    let team = Team::with(Script::new(), |config| {
        config["auth"]["oidc"] =
            json!({"issuer": provider.url, "audience": "codewright", "roles": {"dev": "member"}});
    })?;
    let now = codewright_proto::Clock::system().now_ms() / 1000;
    let claims = json!({
        "iss": provider.url, "aud": "codewright", "sub": "u-1", "groups": ["dev"], "exp": now + 600,
    });
    for key in &keys {
        let token = key.sign(&claims);
        let (status, text) = team.with_token(&token, "/users/me")?;
        assert_eq!(status, 200, "{}: {text}", key.algorithm());
        // A signature of another text, and a key that is named for another algorithm.
        let (text, signature) = token.rsplit_once('.').context("a token has three parts")?;
        let other = key.sign(&json!({"sub": "other"}));
        let (other, _) = other.rsplit_once('.').context("a token has three parts")?;
        assert_eq!(team.with_token(&format!("{other}.{signature}"), "/users/me")?.0, 401);
        for algorithm in
            ["ES256", "EdDSA", "RS256", "HS256"].into_iter().filter(|one| *one != key.algorithm())
        {
            let header = json!({"alg": algorithm, "kid": key.id}).to_string();
            let (_, claims) = text.split_once('.').context("a token has three parts")?;
            let forged = format!("{}.{claims}.{signature}", BASE64.encode(header));
            assert_eq!(team.with_token(&forged, "/users/me")?.0, 401, "{} as {algorithm}", key.algorithm());
        }
    }
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
