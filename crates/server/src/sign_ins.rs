//! The sign-ins of browsers: a cookie and a key that stand for a user name and a password.
//!
//! The web app sends the password once. The server then gives the browser two random values, and keeps the password
//! encrypted with one of them. A request needs both:
//!
//! - The cookie is not readable by scripts, so a script that got into the page cannot take the sign-in elsewhere.
//! - The key is a header that only pages of this origin can set. Browsers send a cookie to every port of a host, so any
//!   other server on the machine sees it. Without the key it is worthless there.
//!
//! A request with both gets the header `Authorization` that began the sign-in. Everything after that works as if the
//! browser had sent it: a removed user, a changed token or an expired one ends the sign-in.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::Request;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::guard::same;

/// The header of the key.
const KEY: HeaderName = HeaderName::from_static("x-codewright-key");
/// The start of the cookie's name. The port follows, because servers on different ports share their cookies.
const COOKIE: &str = "codewright";
/// The maximum number of sign-ins. The one that was not used for longest ends first.
const MAX_SIGN_INS: usize = 256;
const HOUR_MS: u64 = 60 * 60 * 1000;
/// The time without requests after which a sign-in ends.
const IDLE_TIMEOUT_MS: u64 = 7 * 24 * HOUR_MS;
/// The time after which a sign-in ends in any case.
const LIFETIME_MS: u64 = 30 * 24 * HOUR_MS;
/// The age of the stored time of use from which on it is stored again.
const STALE_MS: u64 = HOUR_MS;
/// The random bytes of a cookie and of a key.
const RANDOM_BYTES: usize = 32;
/// The longest header `Authorization` that can be kept.
const MAX_CREDENTIALS_BYTES: usize = 8 * 1024;
/// The largest file: that many sign-ins with long credentials.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The open sign-ins.
#[derive(Default)]
pub(crate) struct SignIns {
    open: Mutex<Open>,
    /// The file that keeps them over a restart.
    file: Option<PathBuf>,
}

#[derive(Default)]
struct Open {
    /// By the hash of their cookie.
    all: HashMap<Hash, SignIn>,
    /// Those that ended here, which another server of the same user may still list in the file.
    ended: HashSet<Hash>,
}

type Hash = [u8; 32];

/// A sign-in, in memory and in the file.
#[derive(Clone, Serialize, Deserialize)]
struct SignIn {
    /// The hash of the cookie.
    name: Hash,
    /// The hash of the key.
    key: Hash,
    /// The credentials that the browser sent, encrypted with the cookie. So neither the file nor a dump of the memory
    /// contains a password.
    sealed: Vec<u8>,
    since_ms: u64,
    used_ms: u64,
    /// The last time of use in the file.
    #[serde(skip)]
    stored_ms: u64,
}

/// What a browser gets for its credentials.
pub(crate) struct Issued {
    /// The value of `Set-Cookie`.
    pub(crate) cookie: HeaderValue,
    pub(crate) key: String,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    /// The request has no valid sign-in.
    No,
    Yes,
    /// The same, and the file should be written.
    Stale,
}

impl SignIns {
    /// Returns the sign-ins of a file. An unreadable file counts as empty: browsers have to sign in again.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let stored = file.as_deref().map(read).unwrap_or_default();
        let all = stored.into_iter().map(|one| (one.name, one)).collect();
        Self { open: Mutex::new(Open { all, ended: HashSet::new() }), file }
    }

    /// Begins a sign-in with the checked credentials of a request.
    ///
    /// # Errors
    ///
    /// Fails without the header `Authorization`.
    pub(crate) fn begin(&self, headers: &HeaderMap, now_ms: u64) -> Result<Issued, Error> {
        let credentials = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(credentials) = credentials.filter(|bytes| bytes.len() <= MAX_CREDENTIALS_BYTES) else {
            return Err(Error::payload("a sign-in needs the header `Authorization`"));
        };
        let (secret, key) = (random()?, random()?);
        let cookie = cookie(headers, &secret, LIFETIME_MS / 1000)?;
        let name = hash(secret.as_bytes());
        let sealed = seal(&secret, credentials).ok_or(Error::Panic)?;
        let key_hash = hash(key.as_bytes());
        let sign_in =
            SignIn { name, key: key_hash, sealed, since_ms: now_ms, used_ms: now_ms, stored_ms: now_ms };
        let mut open = self.lock();
        open.all.insert(name, sign_in);
        open.tidy(now_ms);
        Ok(Issued { cookie, key })
    }

    /// Adds the credentials of the sign-in to a request that has its cookie and its key, and no credentials of its own.
    pub(crate) fn restore(&self, request: &mut Request, now_ms: u64) -> Restored {
        self.restore_headers(request.headers_mut(), now_ms)
    }

    fn restore_headers(&self, headers: &mut HeaderMap, now_ms: u64) -> Restored {
        if headers.contains_key(header::AUTHORIZATION) {
            return Restored::No;
        }
        let Some((secret, key)) = secret_of(headers).zip(headers.get(KEY).map(HeaderValue::as_bytes)) else {
            return Restored::No;
        };
        let mut open = self.lock();
        let Some(sign_in) = open.all.get_mut(&hash(secret.as_bytes())) else { return Restored::No };
        if !sign_in.is_valid(now_ms) || !same(&hash(key), &sign_in.key) {
            return Restored::No;
        }
        let credentials = unseal(&secret, &sign_in.sealed);
        let Some(mut value) = credentials.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok()) else {
            return Restored::No;
        };
        value.set_sensitive(true);
        sign_in.used_ms = sign_in.used_ms.max(now_ms);
        let is_stale = now_ms.saturating_sub(sign_in.stored_ms) >= STALE_MS;
        if is_stale {
            // One request is enough to write the file.
            sign_in.stored_ms = now_ms;
        }
        headers.insert(header::AUTHORIZATION, value);
        if is_stale { Restored::Stale } else { Restored::Yes }
    }

    /// Ends the sign-in of a request, and returns the value of `Set-Cookie` that removes its cookie.
    pub(crate) fn end(&self, headers: &HeaderMap, now_ms: u64) -> Result<HeaderValue, Error> {
        if let Some(secret) = secret_of(headers) {
            let mut open = self.lock();
            let name = hash(secret.as_bytes());
            if open.all.remove(&name).is_some() {
                open.ended.insert(name);
            }
            open.tidy(now_ms);
        }
        cookie(headers, "", 0)
    }

    /// Writes the file. Blocks.
    pub(crate) fn save(&self, now_ms: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut open = self.lock();
        // Another server of the same user may have added some.
        for other in read(file) {
            if !open.ended.contains(&other.name) {
                open.all.entry(other.name).or_insert(other);
            }
        }
        open.tidy(now_ms);
        for sign_in in open.all.values_mut() {
            sign_in.stored_ms = sign_in.used_ms;
        }
        let all: Vec<&SignIn> = open.all.values().collect();
        write(file, &serde_json::to_vec(&all)?)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Each change of the map is a single call, so a poisoned map is still consistent.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Drops what has ended, and the least used ones above the maximum.
    fn tidy(&mut self, now_ms: u64) {
        self.all.retain(|_, sign_in| sign_in.is_valid(now_ms));
        while self.all.len() > MAX_SIGN_INS {
            let oldest = self.all.iter().min_by_key(|(_, one)| one.used_ms).map(|(name, _)| *name);
            let Some(oldest) = oldest else { break };
            self.all.remove(&oldest);
            self.ended.insert(oldest);
        }
        if self.ended.len() > MAX_SIGN_INS {
            self.ended.clear();
        }
    }
}

impl SignIn {
    fn is_valid(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) < IDLE_TIMEOUT_MS
            && now_ms.saturating_sub(self.since_ms) < LIFETIME_MS
    }
}

/// Returns the sign-ins of a file, which may be missing, too large or of another version.
fn read(file: &Path) -> Vec<SignIn> {
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > MAX_FILE_BYTES) {
        return Vec::new();
    }
    let stored: Vec<SignIn> =
        fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    stored.into_iter().take(MAX_SIGN_INS).map(|one| SignIn { stored_ms: one.used_ms, ..one }).collect()
}

/// Replaces a file that only its owner can read.
fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let opened = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside);
    let written = opened.and_then(|mut opened| opened.write_all(content));
    let done = written.and_then(|()| fs::rename(&beside, file));
    if done.is_err() {
        // The error of writing is the one that counts.
        drop(fs::remove_file(&beside));
    }
    done
}

/// Returns the key that encrypts the credentials of a sign-in. It differs from the hash that names the sign-in.
fn sealing_key(secret: &str) -> Option<LessSafeKey> {
    let bytes = hash(format!("seal {secret}").as_bytes());
    UnboundKey::new(&AES_256_GCM, &bytes).ok().map(LessSafeKey::new)
}

/// The nonce may be constant, because a key encrypts one text only.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn seal(secret: &str, credentials: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = credentials.to_vec();
    sealing_key(secret)?.seal_in_place_append_tag(nonce(), Aad::empty(), &mut bytes).ok()?;
    Some(bytes)
}

fn unseal(secret: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = sealed.to_vec();
    let opened = sealing_key(secret)?.open_in_place(nonce(), Aad::empty(), &mut bytes).ok()?;
    Some(opened.to_vec())
}

fn random() -> Result<String, Error> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Panic)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(bytes: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// Returns the name of the cookie for the host that the browser uses.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{COOKIE}_{port}"),
        None => COOKIE.to_owned(),
    }
}

/// Returns the value of `Set-Cookie`.
fn cookie(headers: &HeaderMap, secret: &str, seconds: u64) -> Result<HeaderValue, Error> {
    let name = cookie_name(headers);
    // The page's origin is the only trustworthy sign of HTTPS: a proxy may end it.
    let is_secure =
        headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let secure = if is_secure { "; Secure" } else { "" };
    let value = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut value = HeaderValue::try_from(value).map_err(|_| Error::Panic)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the cookie of a request.
fn secret_of(headers: &HeaderMap) -> Option<String> {
    let name = cookie_name(headers);
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, secret)| *found == name && !secret.is_empty()).map(|(_, secret)| secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn begin(all: &SignIns, host: &str, now_ms: u64) -> (String, String) {
        let issued = all.begin(&headers(&[("host", host), ("authorization", "Basic YTpi")]), now_ms).unwrap();
        let cookie = issued.cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        (cookie, issued.key)
    }

    fn is_restored(all: &SignIns, lines: &[(&str, &str)], now_ms: u64) -> bool {
        let mut headers = headers(lines);
        let is_done = all.restore_headers(&mut headers, now_ms) != Restored::No;
        assert_eq!(is_done, headers.get("authorization").is_some_and(|value| value == "Basic YTpi"));
        is_done
    }

    fn lines<'a>(cookie: &'a str, key: &'a str) -> [(&'a str, &'a str); 3] {
        [("host", "localhost:4096"), ("cookie", cookie), ("x-codewright-key", key)]
    }

    const HOST: &str = "localhost:4096";

    #[test]
    fn a_request_needs_the_cookie_and_the_key_of_one_sign_in() {
        let all = SignIns::default();
        let (cookie, key) = begin(&all, HOST, 0);
        let (other_cookie, other_key) = begin(&all, HOST, 0);
        let check = |cookie: &str, key: &str| is_restored(&all, &lines(cookie, key), 0);
        assert!(check(&cookie, &key) && check(&other_cookie, &other_key));
        assert!(check(&format!("a=b; {cookie}; c"), &key));
        assert!(!check(&cookie, &other_key) && !check(&cookie, "") && !check("codewright_4096=", &key));
        assert!(!is_restored(&all, &lines(&cookie, &key)[..2], 0));
        assert!(!is_restored(&all, &[("host", HOST), ("x-codewright-key", &key)], 0));
        let elsewhere = [("host", "localhost:4097"), ("cookie", cookie.as_str()), ("x-codewright-key", &key)];
        assert!(!is_restored(&all, &elsewhere, 0), "a server of another port has another cookie");
    }

    #[test]
    fn sign_ins_end() {
        let all = SignIns::default();
        let (cookie, key) = begin(&all, HOST, 0);
        let step = IDLE_TIMEOUT_MS - 1;
        assert!(is_restored(&all, &lines(&cookie, &key), step));
        assert!(is_restored(&all, &lines(&cookie, &key), 2 * step), "each request prolongs it");
        assert!(is_restored(&all, &lines(&cookie, &key), 3 * step));
        assert!(is_restored(&all, &lines(&cookie, &key), 4 * step));
        assert!(!is_restored(&all, &lines(&cookie, &key), LIFETIME_MS), "but not beyond its lifetime");
        let (cookie, key) = begin(&all, HOST, 0);
        assert!(!is_restored(&all, &lines(&cookie, &key), IDLE_TIMEOUT_MS));
        let (cookie, key) = begin(&all, HOST, 0);
        let removal = all.end(&headers(&lines(&cookie, &key)), 0).unwrap();
        assert!(removal.to_str().unwrap().contains("Max-Age=0"));
        assert!(!is_restored(&all, &lines(&cookie, &key), 0));
    }

    #[test]
    fn the_number_of_sign_ins_is_bounded_and_the_least_used_one_ends() {
        let all = SignIns::default();
        let (first, first_key) = begin(&all, HOST, 0);
        let (next, next_key) = begin(&all, HOST, 0);
        assert!(is_restored(&all, &lines(&first, &first_key), 1));
        for _ in 0..MAX_SIGN_INS - 1 {
            begin(&all, HOST, 1);
        }
        assert_eq!(all.lock().all.len(), MAX_SIGN_INS);
        assert!(is_restored(&all, &lines(&first, &first_key), 1));
        assert!(!is_restored(&all, &lines(&next, &next_key), 1));
    }

    #[test]
    fn sign_ins_survive_a_restart_and_the_file_contains_no_credentials() {
        let directory = std::env::temp_dir().join(format!("codewright-sign-ins-{}", std::process::id()));
        let file = directory.join("state/sign-ins.json");
        let all = SignIns::open(Some(file.clone()));
        let (cookie, key) = begin(&all, HOST, 0);
        all.save(0).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let content = fs::read_to_string(&file).unwrap();
        let secret = cookie.split_once('=').unwrap().1;
        assert!(!content.contains(secret) && !content.contains(&key) && !content.contains("YTpi"));

        let again = SignIns::open(Some(file.clone()));
        assert!(is_restored(&again, &lines(&cookie, &key), 1));
        let (other, other_key) = begin(&all, HOST, 2);
        all.save(2).unwrap();
        again.end(&headers(&lines(&cookie, &key)), 2).unwrap();
        again.save(2).unwrap();
        let last = SignIns::open(Some(file.clone()));
        assert!(!is_restored(&last, &lines(&cookie, &key), 3), "what ended stays so");
        assert!(is_restored(&last, &lines(&other, &other_key), 3), "a sign-in of another server is kept");
        for broken in ["", "{}", "[1]", "[{\"name\": []}]"] {
            fs::write(&file, broken).unwrap();
            assert!(SignIns::open(Some(file.clone())).lock().all.is_empty(), "{broken}");
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_file_is_written_again_when_its_times_are_old() {
        let all = SignIns::default();
        let (cookie, key) = begin(&all, HOST, 0);
        let restore = |now_ms| all.restore_headers(&mut headers(&lines(&cookie, &key)), now_ms);
        assert_eq!(restore(1), Restored::Yes);
        assert_eq!(restore(STALE_MS), Restored::Stale);
        assert_eq!(restore(STALE_MS + 1), Restored::Yes);
    }

    #[test]
    fn the_cookie_is_for_this_server_only() {
        let all = SignIns::default();
        let cookie = |lines: &[(&str, &str)]| {
            let mut lines = lines.to_vec();
            lines.push(("authorization", "Basic YTpi"));
            all.begin(&headers(&lines), 0).unwrap().cookie
        };
        let plain = cookie(&[("host", "[::1]:4096"), ("origin", "http://[::1]:4096")]);
        assert!(plain.is_sensitive());
        let plain = plain.to_str().unwrap();
        assert!(plain.starts_with("codewright_4096="), "{plain}");
        for part in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=2592000"] {
            assert!(plain.contains(part), "{plain}");
        }
        assert!(!plain.contains("Secure"), "a browser would not store it");
        let secure = cookie(&[("host", "code.example"), ("origin", "https://code.example")]);
        let secure = secure.to_str().unwrap();
        assert!(secure.starts_with("codewright=") && secure.ends_with("; Secure"), "{secure}");
    }
}
