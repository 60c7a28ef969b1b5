use super::*;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use codewright_proto::Clock;
use reqwest::header::HeaderValue;

use crate::Aws;

const NOW_MS: u64 = 1_440_938_160_000;

fn connections() -> Connections {
    Connections::new(HeaderValue::from_static("test"), crate::Network::default())
}

/// Sources without anything but the given variables.
fn sources(home: &Path, variables: &[(&str, &str)]) -> Sources {
    let mut all = BTreeMap::from([("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned())]);
    all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Sources { variables: all, home: Some(home.to_owned()), ..Sources::default() }
}

fn home(config: &str, keys: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    std::fs::write(home.path().join(".aws/config"), config).unwrap();
    std::fs::write(home.path().join(".aws/credentials"), keys).unwrap();
    home
}

async fn find(sources: Sources) -> Result<Keys, Error> {
    Aws::new(sources, Clock::stepping(NOW_MS, 0)).0.keys(&connections()).await
}

async fn id(sources: Sources) -> String {
    match find(sources).await {
        Ok(keys) => keys.access_key_id,
        Err(error) => error.to_string(),
    }
}

/// A server that answers by the first line of a request. Other requests get a 404.
struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn new(answers: &'static [(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                let mut request = String::new();
                let mut piece = [0; 4096];
                while !is_whole(&request) {
                    match socket.read(&mut piece) {
                        Ok(0) | Err(_) => break,
                        Ok(read) => request.push_str(&String::from_utf8_lossy(&piece[..read])),
                    }
                }
                counter.fetch_add(1, Ordering::SeqCst);
                let found = answers.iter().find(|(part, _)| request.contains(part));
                let (status, body) = found.map_or(("404 Not Found", "no"), |(_, body)| ("200 OK", *body));
                let length = body.len();
                // If the client has disconnected, the test notices.
                drop(write!(
                    socket,
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                ));
            }
        });
        Self { url, requests }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

const IN_ENVIRONMENT: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "S")];

#[tokio::test]
async fn the_first_source_with_keys_wins() {
    let home = home(
        "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-west-2\n",
        "[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key = S\n\
         [work]\naws_access_key_id = AKWORK\naws_secret_access_key = S\n",
    );
    let home = home.path();
    assert_eq!(id(sources(home, &IN_ENVIRONMENT)).await, "AKENV");
    assert_eq!(id(sources(home, &[])).await, "AKDEFAULT");
    assert_eq!(id(sources(home, &[("AWS_PROFILE", "work")])).await, "AKWORK");
    let chosen = || Sources { profile: Some("work".into()), ..sources(home, &IN_ENVIRONMENT) };
    assert_eq!(id(chosen()).await, "AKWORK", "a profile in the configuration wins over the environment");
    let keys = Keys {
        access_key_id: "AKOPTION".into(),
        secret_access_key: "S".into(),
        session_token: None,
        expires_ms: None,
    };
    assert_eq!(id(Sources { keys: Some(keys), ..chosen() }).await, "AKOPTION");
    let region = |sources: Sources| Aws::new(sources, Clock::stepping(0, 0)).region().to_owned();
    assert_eq!(region(sources(home, &[])), "eu-west-1");
    assert_eq!(region(chosen()), "eu-west-2");
    let empty = tempfile::tempdir().unwrap();
    let keys = home.join(".aws/credentials");
    let elsewhere = [("AWS_SHARED_CREDENTIALS_FILE", keys.to_str().unwrap())];
    assert_eq!(id(sources(empty.path(), &elsewhere)).await, "AKDEFAULT");
}

#[tokio::test]
async fn missing_settings_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let nothing = id(sources(empty.path(), &[])).await;
    for name in [
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_ACCESS_KEY_ID",
        "`default`",
        ".aws/credentials",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "EC2",
    ] {
        assert!(nothing.contains(name), "{name} in {nothing}");
    }
    for (variables, part) in [
        (&[("AWS_PROFILE", "gone")][..], "no AWS profile `gone`"),
        (&[("AWS_ACCESS_KEY_ID", "AK")], "AWS_SECRET_ACCESS_KEY is not"),
        (&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/none")], "AWS_ROLE_ARN is not"),
        (&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/none"), ("AWS_ROLE_ARN", "r")], "`/none` is missing"),
        (&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/x")], "must be https"),
    ] {
        let error = find(sources(empty.path(), variables)).await.unwrap_err();
        assert!(matches!(error, Error::Auth { .. }) && error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_command_prints_keys_or_fails() {
    let keys = r#"{"Version":1,"AccessKeyId":"AKCMD","SecretAccessKey":"S","SessionToken":"T","Expiration":"2015-08-30T13:36:00Z"}"#;
    let mut config = format!("[default]\ncredential_process = echo '{keys}'\n");
    config +=
        "[profile fails]\ncredential_process = false\n[profile talks]\ncredential_process = echo hello\n";
    let home = home(&config, "");
    let found = find(sources(home.path(), &[])).await.unwrap();
    assert_eq!((found.access_key_id.as_str(), found.expires_ms), ("AKCMD", Some(NOW_MS + 3_600_000)));
    assert_eq!(found.session_token.unwrap().expose(), "T");
    let error = id(sources(home.path(), &[("AWS_PROFILE", "fails")])).await;
    assert!(error.contains("`credential_process` failed (exit status: 1): `false`"), "{error}");
    let error = id(sources(home.path(), &[("AWS_PROFILE", "talks")])).await;
    assert!(error.contains("returned no AWS keys"), "{error}");
}

const CONTAINER_KEYS: &str =
    r#"{"AccessKeyId":"AKCONTAINER","SecretAccessKey":"S","Token":"T","Expiration":"2015-08-30T18:36:00Z"}"#;

#[tokio::test]
async fn a_containers_agent_gets_its_token() {
    let server = Server::new(&[("authorization: secret-token", CONTAINER_KEYS)]);
    let empty = tempfile::tempdir().unwrap();
    let url = format!("{}/keys", server.url);
    let token = empty.path().join("token");
    std::fs::write(&token, "secret-token\n").unwrap();
    let with_token = |name, value| {
        sources(empty.path(), &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()), (name, value)])
    };
    assert_eq!(id(with_token("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret-token")).await, "AKCONTAINER");
    let file = with_token("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap());
    assert_eq!(id(file).await, "AKCONTAINER");
    let refused = find(with_token("AWS_CONTAINER_AUTHORIZATION_TOKEN", "wrong")).await.unwrap_err();
    assert!(matches!(&refused, Error::Auth { .. }) && refused.to_string().contains("404"), "{refused}");
}

#[tokio::test]
async fn an_instances_service_is_queried_in_three_steps() {
    let server = Server::new(&[
        ("PUT /latest/api/token", "TOKEN"),
        ("GET /latest/meta-data/iam/security-credentials/role", CONTAINER_KEYS),
        ("GET /latest/meta-data/iam/security-credentials/", "role\n"),
    ]);
    let empty = tempfile::tempdir().unwrap();
    let named =
        [("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url.as_str()), ("AWS_EC2_METADATA_DISABLED", "false")];
    assert_eq!(id(sources(empty.path(), &named)).await, "AKCONTAINER");
    let none = Server::new(&[("PUT /latest/api/token", "TOKEN")]);
    let named =
        [("AWS_EC2_METADATA_SERVICE_ENDPOINT", none.url.as_str()), ("AWS_EC2_METADATA_DISABLED", "false")];
    assert!(id(sources(empty.path(), &named)).await.starts_with("no AWS credentials were found"));
}

const ROLE_KEYS: &str = "<AccessKeyId>AKROLE</AccessKeyId><SecretAccessKey>S</SecretAccessKey>\
                         <SessionToken>T</SessionToken><Expiration>2015-08-30T13:36:00Z</Expiration>";

#[tokio::test]
async fn roles_are_assumed_with_a_token_or_other_keys() {
    let server = Server::new(&[
        (
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=web&RoleSessionName=me&WebIdentityToken=t.o.k",
            ROLE_KEYS,
        ),
        (
            "Credential=AKBASE/20150830/us-east-1/sts/aws4_request, SignedHeaders=content-type;host;x-amz-date",
            ROLE_KEYS,
        ),
    ]);
    let home = home(
        "[profile role]\nrole_arn = r\nsource_profile = base\n",
        "[base]\naws_access_key_id = AKBASE\naws_secret_access_key = S\n",
    );
    let token = home.path().join("token");
    std::fs::write(&token, "t.o.k\n").unwrap();
    let sts = ("AWS_ENDPOINT_URL_STS", server.url.as_str());
    let web = [
        sts,
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_ARN", "web"),
        ("AWS_ROLE_SESSION_NAME", "me"),
    ];
    assert_eq!(id(sources(home.path(), &web)).await, "AKROLE");
    assert_eq!(id(sources(home.path(), &[sts, ("AWS_PROFILE", "role")])).await, "AKROLE");
}

#[tokio::test]
async fn a_browser_sign_in_is_used_until_it_expires() {
    let server = Server::new(&[
        (
            "GET /federation/credentials?account_id=1&role_name=Dev ",
            r#"{"roleCredentials":{"accessKeyId":"AKSSO","secretAccessKey":"S","sessionToken":"T","expiration":1440941760000}}"#,
        ),
        ("POST /token ", r#"{"accessToken":"renewed","expiresIn":3600,"refreshToken":"r2"}"#),
    ]);
    let home = home(
        "[default]\nsso_session = company\nsso_account_id = 1\nsso_role_name = Dev\n\
         [sso-session company]\nsso_region = eu-west-1\n",
        "",
    );
    let variables =
        [("AWS_ENDPOINT_URL_SSO", server.url.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", server.url.as_str())];
    let error = id(sources(home.path(), &variables)).await;
    assert!(error.contains("aws sso login --profile default"), "{error}");
    let cache = home.path().join(".aws/sso/cache");
    std::fs::create_dir_all(&cache).unwrap();
    let mut name = String::new();
    for byte in ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, b"company").as_ref() {
        write!(name, "{byte:02x}").unwrap();
    }
    let keep = |expires: &str| {
        let kept = format!(r#"{{"accessToken":"a","expiresAt":"{expires}"}}"#);
        std::fs::write(cache.join(format!("{name}.json")), kept).unwrap();
    };
    keep("2015-08-30T12:37:00Z");
    assert_eq!(id(sources(home.path(), &variables)).await, "AKSSO");
    keep("2015-08-30T12:35:00Z");
    assert!(id(sources(home.path(), &variables)).await.contains("has expired"));
    // An expired sign-in is refreshed while its client is registered, and stored for other
    // programs.
    let renewable = |registered: &str| {
        let kept = format!(
            r#"{{"startUrl":"x","accessToken":"a","expiresAt":"2015-08-30T12:35:00Z","clientId":"c","clientSecret":"s","refreshToken":"r","registrationExpiresAt":"{registered}"}}"#
        );
        std::fs::write(cache.join(format!("{name}.json")), kept).unwrap();
    };
    renewable("2015-08-30T12:30:00Z");
    assert!(id(sources(home.path(), &variables)).await.contains("has expired"));
    renewable("2015-09-30T12:30:00Z");
    assert_eq!(id(sources(home.path(), &variables)).await, "AKSSO");
    let kept = std::fs::read_to_string(cache.join(format!("{name}.json"))).unwrap();
    for part in [
        r#""accessToken":"renewed""#,
        r#""refreshToken":"r2""#,
        r#""expiresAt":"2015-08-30T13:36:00Z""#,
        r#""startUrl":"x""#,
    ] {
        assert!(kept.contains(part), "{part}: {kept}");
    }
}

#[tokio::test]
async fn keys_are_shared_and_replaced_before_they_expire() {
    // The keys are good from 12:36 to 18:36; every look at the clock is an hour later.
    let server = Server::new(&[("GET /keys", CONTAINER_KEYS)]);
    let empty = tempfile::tempdir().unwrap();
    let url = format!("{}/keys", server.url);
    let found = sources(empty.path(), &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str())]);
    let still = Aws::new(found.clone(), Clock::stepping(NOW_MS, 0));
    let connections = connections();
    let mut set = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (still, connections) = (still.clone(), connections.clone());
        set.spawn(async move { still.0.keys(&connections).await.map(|keys| keys.access_key_id) });
    }
    while let Some(found) = set.join_next().await {
        assert_eq!(found.unwrap().unwrap(), "AKCONTAINER");
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), 1, "one search for all");
    let hourly = Aws::new(found, Clock::stepping(NOW_MS, 3_600_000));
    for _ in 0..7 {
        hourly.0.keys(&connections).await.unwrap();
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), 3, "one more search at first and one near the end");
}
