//! AWS Signature Version 4, which authenticates requests.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use ring::{digest, hmac};

use super::keys::Keys;
use super::stamp;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The characters that are escaped in paths and in signed requests.
pub(crate) const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The inputs of a signature.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) keys: &'a Keys,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) now_ms: u64,
}

/// Returns the headers to add to a request that has the headers `signed` and the host of `url`.
pub(super) fn headers(
    scope: &Scope,
    method: &str,
    url: &Url,
    signed: &[(&str, &str)],
    body: &[u8],
) -> Vec<(&'static str, String)> {
    let time = stamp::compact(scope.now_ms);
    let token = scope.keys.session_token.as_ref().map(|token| token.expose().to_owned());
    let host = host(url);
    let mut signed: Vec<(&str, &str)> = signed.to_vec();
    signed.extend([("host", host.as_str()), ("x-amz-date", time.as_str())]);
    signed.extend(token.as_deref().map(|token| ("x-amz-security-token", token)));
    signed.sort_unstable();

    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = signed.iter().fold(String::new(), |lines, (name, value)| {
        lines + name + ":" + &value.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"
    });
    let path = url.path().split('/').map(escaped).collect::<Vec<_>>().join("/");
    let canonical = format!("{method}\n{path}\n{}\n{lines}\n{names}\n{}", query(url), sha256_hex(body));

    let (region, service) = (scope.region, scope.service);
    let day = &time[..8];
    let whole = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{time}\n{whole}\n{}", sha256_hex(canonical.as_bytes()));
    let secret = format!("AWS4{}", scope.keys.secret_access_key.expose());
    let key = [day, region, service, "aws4_request"]
        .into_iter()
        .fold(secret.into_bytes(), |key, part| keyed_hash(&key, part));
    let signature = hex(&keyed_hash(&key, &text));
    let id = &scope.keys.access_key_id;
    let proof = format!("{ALGORITHM} Credential={id}/{whole}, SignedHeaders={names}, Signature={signature}");

    let mut added = vec![("authorization", proof), ("x-amz-date", time)];
    added.extend(token.map(|token| ("x-amz-security-token", token)));
    added
}

/// Returns the `host` header as the HTTP client writes it.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn query(url: &Url) -> String {
    let mut pairs: Vec<(String, String)> =
        url.query_pairs().map(|(name, value)| (escaped(&name), escaped(&value))).collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// The canonical path is escaped twice, as all services except one require.
fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn keyed_hash(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// Returns the SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_440_938_160_000;
    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    fn keys(token: Option<&str>) -> Keys {
        Keys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: token.map(Into::into),
            expires_ms: None,
        }
    }

    struct Vector {
        service: &'static str,
        method: &'static str,
        url: &'static str,
        content_type: Option<&'static str>,
        body: &'static str,
        token: Option<&'static str>,
        names: &'static str,
        signature: &'static str,
    }

    const VANILLA: Vector = Vector {
        service: "service",
        method: "GET",
        url: "https://example.amazonaws.com/",
        content_type: None,
        body: "",
        token: None,
        names: "host;x-amz-date",
        signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    };

    /// Requests of Amazon's published test suite, with their names.
    fn vectors() -> Vec<(&'static str, Vector)> {
        vec![
            ("get-vanilla", VANILLA),
            (
                "post-vanilla",
                Vector {
                    method: "POST",
                    signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
                    ..VANILLA
                },
            ),
            (
                "get-vanilla-query-order-key-case",
                Vector {
                    url: "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                    signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
                    ..VANILLA
                },
            ),
            (
                "post-x-www-form-urlencoded",
                Vector {
                    method: "POST",
                    content_type: Some("application/x-www-form-urlencoded"),
                    body: "Param1=value1",
                    names: "content-type;host;x-amz-date",
                    signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
                    ..VANILLA
                },
            ),
            (
                "post-sts-token",
                Vector {
                    method: "POST",
                    token: Some(TOKEN),
                    names: "host;x-amz-date;x-amz-security-token",
                    signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
                    ..VANILLA
                },
            ),
            (
                "the guide's ListUsers",
                Vector {
                    service: "iam",
                    url: "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
                    content_type: Some("application/x-www-form-urlencoded; charset=utf-8"),
                    names: "content-type;host;x-amz-date",
                    signature: "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
                    ..VANILLA
                },
            ),
        ]
    }

    #[test]
    fn published_requests_get_their_published_signatures() {
        for (name, vector) in vectors() {
            let keys = keys(vector.token);
            let scope = Scope { keys: &keys, region: "us-east-1", service: vector.service, now_ms: NOW_MS };
            let url = Url::parse(vector.url).unwrap();
            let signed: Vec<(&str, &str)> =
                vector.content_type.into_iter().map(|kind| ("content-type", kind)).collect();
            let added = headers(&scope, vector.method, &url, &signed, vector.body.as_bytes());
            let (service, names, signature) = (vector.service, vector.names, vector.signature);
            let proof = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, \
                 SignedHeaders={names}, Signature={signature}"
            );
            let mut expected = vec![("authorization", proof), ("x-amz-date", "20150830T123600Z".to_owned())];
            expected.extend(vector.token.map(|token| ("x-amz-security-token", token.to_owned())));
            assert_eq!(added, expected, "{name}");
        }
    }

    #[test]
    fn an_escaped_path_is_escaped_again_and_a_port_is_part_of_the_host() {
        let url = Url::parse("http://127.0.0.1:81/model/a%3A0/x").unwrap();
        assert_eq!(url.path().split('/').map(escaped).collect::<Vec<_>>().join("/"), "/model/a%253A0/x");
        assert_eq!(host(&url), "127.0.0.1:81");
        assert_eq!(host(&Url::parse("https://h:443/").unwrap()), "h");
    }
}
