//! Keys from a service on the machine or in the cloud, or from a command.
//!
//! Each function queries one source within its own deadline. `None` means that the source does not
//! exist here. A source that exists and refuses is an error.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use ring::digest;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout};

use super::keys::{Keys, Sources};
use super::profile::{Role, Sso};
use super::sign::{self, Scope};
use super::{profile, stamp};
use crate::error::{Failure, cut};
use crate::transport::Connections;
use crate::{Error, Secret};

/// Time limits of an instance's metadata service: to accept a connection, and to answer.
const INSTANCE_WAIT: Duration = Duration::from_secs(1);
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Time limit of a command, which may wait for the user.
const PROCESS_WAIT: Duration = Duration::from_secs(60);
/// Limit of an answer or of a command's output.
const ANSWER_LIMIT_BYTES: usize = 64 * 1024;
/// The lifetime of a refreshed sign-in if the server does not send one.
const SSO_LIFE_SECONDS: u64 = 3600;
/// The name of this program in a role's history.
const SESSION: &str = "codewright";
const CONTAINER: &str = "http://169.254.170.2";
const INSTANCE: &str = "http://169.254.169.254";

/// The inputs of a lookup.
pub(super) struct Search<'a> {
    pub(super) sources: &'a Sources,
    pub(super) region: &'a str,
    pub(super) now_ms: u64,
    pub(super) connections: &'a Connections,
}

/// Returns the keys of a container's role, or `None` outside a container.
pub(super) async fn container(search: &Search<'_>) -> Result<Option<Keys>, Error> {
    let sources = search.sources;
    let url = match (
        sources.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        sources.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    ) {
        (Some(path), _) => format!("{CONTAINER}{path}"),
        (None, Some(url)) => url.to_owned(),
        (None, None) => return Ok(None),
    };
    let url = address(&url)?;
    // The request contains a token, which an address from the environment must not leak
    // unencrypted.
    if url.scheme() != "https" && !is_on_this_machine(&url) {
        return Err(auth_error(format!(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https or an address of this machine, found `{}`",
            cut(url.as_str(), 200)
        )));
    }
    let token = match sources.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(profile::read(Path::new(file)).map_err(auth_error)?.trim().to_owned()),
        None => sources.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned),
    };
    let headers: Vec<_> = token.iter().map(|token| ("authorization", token.as_str())).collect();
    let answer = send(search, KeyRequest { headers: &headers, ..KeyRequest::get(url, ANSWER_WAIT) }).await?;
    keys_of(&answer, "the container's agent").map(Some)
}

/// Returns the keys of the web identity in the environment, if one is set.
pub(super) async fn web_identity_of_environment(search: &Search<'_>) -> Result<Option<Keys>, Error> {
    let Some(file) = search.sources.variable("AWS_WEB_IDENTITY_TOKEN_FILE") else { return Ok(None) };
    let arn = search
        .sources
        .variable("AWS_ROLE_ARN")
        .ok_or_else(|| auth_error("AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not"))?;
    let session = search.sources.variable("AWS_ROLE_SESSION_NAME").map(str::to_owned);
    let role = Role { arn: arn.to_owned(), session, external_id: None };
    web_identity(search, &role, Path::new(file)).await.map(Some)
}

/// Assumes a role with the token in a file.
pub(super) async fn web_identity(search: &Search<'_>, role: &Role, file: &Path) -> Result<Keys, Error> {
    let token = profile::read(file).map_err(auth_error)?;
    let token = token.trim();
    if token.is_empty() {
        return Err(auth_error(format!(
            "the web identity's token file `{}` is missing or empty",
            file.display()
        )));
    }
    let form = form("AssumeRoleWithWebIdentity", role, &[("WebIdentityToken", token)]);
    let answer = send(
        search,
        KeyRequest { method: Method::POST, body: form, ..KeyRequest::get(sts(search)?, ANSWER_WAIT) },
    );
    sts_keys(&answer.await?)
}

/// Assumes a role with other keys.
pub(super) async fn assume_role(search: &Search<'_>, role: &Role, with: &Keys) -> Result<Keys, Error> {
    let url = sts(search)?;
    let external: Vec<_> = role.external_id.iter().map(|id| ("ExternalId", id.as_str())).collect();
    let form = form("AssumeRole", role, &external);
    let scope = Scope { keys: with, region: search.region, service: "sts", now_ms: search.now_ms };
    let added = sign::headers(&scope, "POST", &url, &[("content-type", FORM)], form.as_bytes());
    let headers: Vec<_> = added.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let request = KeyRequest {
        method: Method::POST,
        body: form,
        headers: &headers,
        ..KeyRequest::get(url, ANSWER_WAIT)
    };
    sts_keys(&send(search, request).await?)
}

/// Returns the keys of a sign-in in a browser.
pub(super) async fn sso(search: &Search<'_>, sso: &Sso) -> Result<Keys, Error> {
    let name = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, sso.cached_as.as_bytes());
    let home = search.sources.home.as_ref().ok_or_else(|| auth_error("there is no home directory"))?;
    let file = home.join(".aws/sso/cache").join(format!("{}.json", sign::hex(name.as_ref())));
    let kept = || -> Result<Value, Error> {
        Ok(serde_json::from_str(&profile::read(&file).map_err(auth_error)?).unwrap_or_default())
    };
    let mut token = valid_token(&kept()?, search.now_ms);
    if token.is_none() {
        token = match refresh(search, sso, &file, kept()?).await {
            Ok(token) => token,
            Err(error @ Error::Busy { .. }) => return Err(error),
            // Another program may have refreshed the same sign-in in the meantime.
            Err(_) => valid_token(&kept()?, search.now_ms),
        };
    }
    let token = token.ok_or_else(|| {
        let profile = &sso.profile;
        auth_error(format!(
            "the sign-in of the AWS profile `{profile}` has expired; run `aws sso login --profile {profile}`"
        ))
    })?;
    let base = search.sources.variable("AWS_ENDPOINT_URL_SSO").map(str::to_owned);
    let base = base.unwrap_or_else(|| format!("https://portal.sso.{}.amazonaws.com", sso.region));
    let mut url = address(&format!("{}/federation/credentials", base.trim_end_matches('/')))?;
    url.query_pairs_mut().append_pair("account_id", &sso.account).append_pair("role_name", &sso.role);
    let headers = [("x-amz-sso_bearer_token", token.expose())];
    let answer = send(search, KeyRequest { headers: &headers, ..KeyRequest::get(url, ANSWER_WAIT) }).await?;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    let keys = &answer["roleCredentials"];
    let text = |name: &str| keys[name].as_str().filter(|text| !text.is_empty());
    match (text("accessKeyId"), text("secretAccessKey")) {
        (Some(id), Some(secret)) => Ok(Keys {
            access_key_id: id.to_owned(),
            secret_access_key: secret.into(),
            session_token: text("sessionToken").map(Into::into),
            expires_ms: keys["expiration"].as_u64(),
        }),
        _ => Err(auth_error("the answer of AWS SSO contains no keys")),
    }
}

/// Returns the token of a sign-in that has not expired.
fn valid_token(kept: &Value, now_ms: u64) -> Option<Secret> {
    let end = kept["expiresAt"].as_str().and_then(stamp::parse);
    let token = kept["accessToken"].as_str().filter(|token| !token.is_empty());
    token.filter(|_| end.is_none_or(|end| now_ms < end)).map(Secret::from)
}

/// Refreshes an expired sign-in if possible, and stores the token for Amazon's own tools.
async fn refresh(
    search: &Search<'_>,
    sso: &Sso,
    file: &Path,
    mut kept: Value,
) -> Result<Option<Secret>, Error> {
    let text = |name: &str| kept[name].as_str().filter(|text| !text.is_empty());
    let registration = text("clientId").zip(text("clientSecret")).zip(text("refreshToken"));
    let is_registered =
        text("registrationExpiresAt").and_then(stamp::parse).is_none_or(|end| search.now_ms < end);
    let Some(((client, secret), refresh)) = registration.filter(|_| is_registered) else { return Ok(None) };
    let request = json!({
        "clientId": client, "clientSecret": secret, "grantType": "refresh_token", "refreshToken": refresh,
    });
    let base = search.sources.variable("AWS_ENDPOINT_URL_SSO_OIDC").map(str::to_owned);
    let base = base.unwrap_or_else(|| format!("https://oidc.{}.amazonaws.com", sso.region));
    let url = address(&format!("{}/token", base.trim_end_matches('/')))?;
    let headers = [("content-type", "application/json")];
    let body = request.to_string();
    let answer = send(
        search,
        KeyRequest { method: Method::POST, headers: &headers, body, ..KeyRequest::get(url, ANSWER_WAIT) },
    );
    let answer: Value = serde_json::from_str(&answer.await?).unwrap_or_default();
    let Some(token) = answer["accessToken"].as_str().filter(|token| !token.is_empty()) else {
        return Err(auth_error("AWS SSO refreshed the sign-in without returning a token"));
    };
    let token = Secret::from(token);
    let life_ms = answer["expiresIn"].as_u64().unwrap_or(SSO_LIFE_SECONDS).saturating_mul(1000);
    kept["accessToken"] = token.expose().into();
    kept["expiresAt"] = stamp::plain(search.now_ms.saturating_add(life_ms)).into();
    if let Some(next) = answer["refreshToken"].as_str().filter(|next| !next.is_empty()) {
        kept["refreshToken"] = next.into();
    }
    // A token that cannot be stored still works. The next lookup refreshes it again.
    drop(replace_file(file, &kept.to_string()));
    Ok(Some(token))
}

/// Replaces a file atomically. Only the user may read it.
fn replace_file(file: &Path, text: &str) -> std::io::Result<()> {
    let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let opened = options.create(true).truncate(true).write(true).mode(0o600).open(&temporary);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&temporary, file))
}

/// Returns the keys of an instance's role, or `None` if there is no metadata service or no role.
pub(super) async fn instance(search: &Search<'_>) -> Result<Option<Keys>, Error> {
    let sources = search.sources;
    if sources.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|set| set.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let named = sources.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    let base = named.unwrap_or(INSTANCE).trim_end_matches('/').to_owned();
    // Nearly all machines are not instances and must not wait long.
    let wait = if named.is_some() { ANSWER_WAIT } else { INSTANCE_WAIT };
    let url = |path: &str| address(&format!("{base}/latest/{path}"));
    let lifetime = [("x-aws-ec2-metadata-token-ttl-seconds", "21600")];
    let request =
        KeyRequest { method: Method::PUT, headers: &lifetime, ..KeyRequest::get(url("api/token")?, wait) };
    let Ok(token) = send(search, request).await else { return Ok(None) };
    let headers = [("x-aws-ec2-metadata-token", token.trim())];
    let path = "meta-data/iam/security-credentials/";
    let request = KeyRequest { headers: &headers, ..KeyRequest::get(url(path)?, ANSWER_WAIT) };
    // An instance without a role answers with an error.
    let Ok(role) = send(search, request).await else { return Ok(None) };
    let Some(role) = role.lines().next().map(str::trim).filter(|role| !role.is_empty()) else {
        return Ok(None);
    };
    let request =
        KeyRequest { headers: &headers, ..KeyRequest::get(url(&format!("{path}{role}"))?, ANSWER_WAIT) };
    keys_of(&send(search, request).await?, "the instance's metadata service").map(Some)
}

/// Returns the keys that a command prints.
pub(super) async fn process(command: &str) -> Result<Keys, Error> {
    let command_text = cut(command, 200);
    let mut child = shell(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|why| auth_error(format!("`credential_process` cannot run `{command_text}`: {why}")))?;
    let mut out = Vec::new();
    let whole = async {
        if let Some(pipe) = child.stdout.take() {
            pipe.take(ANSWER_LIMIT_BYTES as u64).read_to_end(&mut out).await?;
        }
        child.wait().await
    };
    match timeout(PROCESS_WAIT, whole).await {
        Ok(Ok(status)) if status.success() => {
            keys_of(&String::from_utf8_lossy(&out), &format!("`credential_process` (`{command_text}`)"))
        }
        Ok(Ok(status)) => {
            Err(auth_error(format!("`credential_process` failed ({status}): `{command_text}`")))
        }
        Ok(Err(why)) => Err(auth_error(format!("`credential_process` cannot be read: {why}"))),
        Err(_) => {
            let seconds = PROCESS_WAIT.as_secs();
            Err(auth_error(format!("`credential_process` did not end within {seconds} s: `{command_text}`")))
        }
    }
}

fn shell(command: &str) -> tokio::process::Command {
    if cfg!(windows) {
        let mut shell = tokio::process::Command::new("cmd");
        shell.arg("/C").arg(command);
        return shell;
    }
    let mut shell = tokio::process::Command::new("/bin/sh");
    // The command replaces the shell, so that killing the process kills the command.
    shell.arg("-c").arg(format!("exec {command}"));
    shell
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Returns the form of a request for a role.
fn form(action: &str, role: &Role, more: &[(&str, &str)]) -> String {
    let session = role.session.as_deref().unwrap_or(SESSION);
    let fields =
        [("Action", action), ("Version", "2011-06-15"), ("RoleArn", &role.arn), ("RoleSessionName", session)];
    let pairs = fields.iter().chain(more).map(|(name, value)| {
        format!("{name}={}", percent_encoding::utf8_percent_encode(value, sign::ESCAPED))
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the URL of the security token service.
fn sts(search: &Search<'_>) -> Result<Url, Error> {
    let domain = if search.region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let named = search.sources.variable("AWS_ENDPOINT_URL_STS").map(str::to_owned);
    address(&named.unwrap_or_else(|| format!("https://sts.{}.{domain}/", search.region)))
}

/// Parses the keys in an XML answer.
fn sts_keys(answer: &str) -> Result<Keys, Error> {
    let field = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text.trim())
    };
    match (field("AccessKeyId"), field("SecretAccessKey")) {
        (Some(id), Some(secret)) => Ok(Keys {
            access_key_id: id.to_owned(),
            secret_access_key: secret.into(),
            session_token: field("SessionToken").map(Into::into),
            expires_ms: field("Expiration").and_then(stamp::parse),
        }),
        _ => Err(auth_error("the answer of AWS STS contains no keys")),
    }
}

/// Parses the JSON with keys that containers, instances and commands return.
fn keys_of(answer: &str, who: &str) -> Result<Keys, Error> {
    let answer: Value = serde_json::from_str(answer.trim())
        .map_err(|why| auth_error(format!("{who} returned no AWS keys: {why}")))?;
    let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
    match (text("AccessKeyId"), text("SecretAccessKey")) {
        (Some(id), Some(secret)) => Ok(Keys {
            access_key_id: id.to_owned(),
            secret_access_key: secret.into(),
            session_token: text("SessionToken").or_else(|| text("Token")).map(Into::into),
            expires_ms: text("Expiration").and_then(stamp::parse),
        }),
        _ => Err(auth_error(format!("{who} returned no `AccessKeyId` and `SecretAccessKey`"))),
    }
}

/// A request for keys.
struct KeyRequest<'a> {
    method: Method,
    url: Url,
    headers: &'a [(&'static str, &'a str)],
    /// A form, unless the headers set another content type; may be empty.
    body: String,
    wait: Duration,
}

impl KeyRequest<'_> {
    fn get(url: Url, wait: Duration) -> Self {
        Self { method: Method::GET, url, headers: &[], body: String::new(), wait }
    }
}

/// Sends a request and returns the body of a successful answer.
async fn send(search: &Search<'_>, request: KeyRequest<'_>) -> Result<String, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        let value = HeaderValue::from_str(value).map_err(|_| {
            auth_error(format!("the AWS token for `{name}` contains characters that cannot be sent"))
        })?;
        headers.insert(HeaderName::from_static(name), value);
    }
    if !request.body.is_empty() && !headers.contains_key("content-type") {
        headers.insert("content-type", HeaderValue::from_static(FORM));
    }
    let host = request.url.host_str().unwrap_or_default().to_owned();
    let deadline = Instant::now() + request.wait;
    let client = search.connections.to(&request.url, request.wait)?;
    let sent = client.request(request.method, request.url.clone()).headers(headers).body(request.body).send();
    let response = match tokio::time::timeout_at(deadline, sent).await {
        Ok(response) => {
            response.map_err(|why| search.connections.not_reached(&why, &request.url, request.wait))?
        }
        Err(_) => {
            return Err(Error::busy(format!(
                "{host} returned no AWS keys within {} s",
                request.wait.as_secs()
            )));
        }
    };
    let status = response.status();
    let body = crate::transport::read(response, ANSWER_LIMIT_BYTES, deadline).await;
    if status.is_success() {
        return Ok(body);
    }
    let message = format!("{host} returned no AWS keys ({status}): {}", cut(body.trim(), 300));
    if status.is_server_error() || status.as_u16() == 429 {
        return Err(Error::busy(message));
    }
    Err(auth_error(message))
}

/// Returns the error for missing or rejected keys, which the user has to fix.
pub(super) fn auth_error(message: impl Into<String>) -> Error {
    Error::Auth { failure: Failure::new(message) }
}

fn address(url: &str) -> Result<Url, Error> {
    Url::parse(url).map_err(|why| {
        auth_error(format!("the address `{}` for AWS keys is not valid: {why}", cut(url, 200)))
    })
}

/// Returns whether an address is loopback, or one at which a machine's own agents listen.
fn is_on_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || host == "fd00:ec2::23",
        Err(_) => host == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roles_keys_are_read_from_xml() {
        let answer = "<R><Credentials>\n<AccessKeyId>AK</AccessKeyId><SecretAccessKey>S/+=</SecretAccessKey>\
                      <SessionToken>T</SessionToken><Expiration>2015-08-30T12:36:00Z</Expiration></Credentials></R>";
        let keys = sts_keys(answer).unwrap();
        let expected = Keys {
            access_key_id: "AK".into(),
            secret_access_key: "S/+=".into(),
            session_token: Some("T".into()),
            expires_ms: Some(1_440_938_160_000),
        };
        assert_eq!(keys, expected);
        assert!(sts_keys("<Error/>").is_err());
    }

    #[test]
    fn a_role_request_is_a_form() {
        let role = Role { arn: "arn:aws:iam::1:role/r".into(), session: None, external_id: None };
        assert_eq!(
            form("AssumeRole", &role, &[("ExternalId", "a b")]),
            "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr\
             &RoleSessionName=codewright&ExternalId=a%20b"
        );
    }

    #[test]
    fn a_token_leaves_this_machine_only_encrypted() {
        for (url, expected) in [
            ("http://127.0.0.1:9/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("http://169.254.170.23/x", true),
            ("http://[fd00:ec2::23]/x", true),
            ("http://10.0.0.1/x", false),
            ("http://example.com/x", false),
        ] {
            assert_eq!(is_on_this_machine(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
