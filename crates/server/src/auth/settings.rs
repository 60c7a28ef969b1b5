//! The key `auth` of the user's configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use codewright_engine::Quotas;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::Deserialize;
use serde_json::Value;

use super::oidc::Oidc;
use super::{Caller, Role};

/// The maximum number of users in the configuration.
const MAX_USERS: usize = 10_000;
/// The maximum number of tokens of a user: more than one while a token is replaced.
const MAX_TOKENS: usize = 4;
/// The longest name of a user or a team.
const MAX_NAME_BYTES: usize = 128;
/// The prefix of the hash of a token.
const HASH_PREFIX: &str = "sha256:";
/// The random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// The shortest token. Tokens are random, so a fast hash protects them: a list of all tokens of this length cannot be made.
pub(super) const MIN_TOKEN_BYTES: usize = 32;

/// The users of a server, and what limits them.
#[derive(Debug)]
pub struct Auth {
    pub(super) users: Vec<User>,
    /// The directories that users other than administrators may work in; empty means the directory of the server.
    pub(super) directories: Vec<PathBuf>,
    pub(super) oidc: Option<Oidc>,
    quotas: Quotas,
}

/// A user with the hashes of the tokens.
#[derive(Debug)]
pub(super) struct User {
    pub(super) caller: Caller,
    pub(super) hashes: Vec<[u8; 32]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    users: BTreeMap<String, UserDocument>,
    oidc: Option<OidcDocument>,
    #[serde(default)]
    directories: Vec<PathBuf>,
    #[serde(default)]
    quotas: Quotas,
}

/// The key `auth.oidc`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OidcDocument {
    pub(super) issuer: String,
    pub(super) audience: String,
    pub(super) user_claim: Option<String>,
    pub(super) team_claim: Option<String>,
    #[serde(default)]
    pub(super) roles: BTreeMap<String, String>,
    pub(super) role: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserDocument {
    token: OneOrMore,
    role: String,
    #[serde(default)]
    teams: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Auth {
    /// Reads the key `auth`. `default` is the directory of the server, and `own` are the directories of the program, which
    /// no user but an administrator may read.
    ///
    /// # Errors
    ///
    /// Returns what is wrong.
    pub fn parse(value: &Value, default: &Path, own: &[PathBuf]) -> Result<Self, String> {
        let document: Document =
            serde_json::from_value(value.clone()).map_err(|error| format!("`auth` is not valid: {error}"))?;
        if document.users.len() > MAX_USERS || (document.users.is_empty() && document.oidc.is_none()) {
            return Err(format!("`auth.users` needs 1 to {MAX_USERS} users, unless there is `auth.oidc`"));
        }
        let mut users = Vec::with_capacity(document.users.len());
        for (name, user) in document.users {
            users.push(read_user(&name, user)?);
        }
        let mut directories = document.directories;
        if directories.is_empty() {
            directories.push(default.to_owned());
        }
        let directories = directories.iter().map(|path| checked(path, own)).collect::<Result<_, _>>()?;
        let oidc = document.oidc.map(Oidc::new).transpose()?;
        Ok(Self { users, directories, oidc, quotas: document.quotas })
    }

    /// The quotas.
    #[must_use]
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }
}

fn read_user(name: &str, user: UserDocument) -> Result<User, String> {
    check_name(name)?;
    user.teams.iter().try_for_each(|team| check_name(team))?;
    let role = Role::parse(&user.role)
        .ok_or_else(|| format!("the role of the user `{name}` is not `admin`, `member` or `reader`"))?;
    let tokens = match user.token {
        OneOrMore::One(token) => vec![token],
        OneOrMore::More(tokens) => tokens,
    };
    if tokens.is_empty() || tokens.len() > MAX_TOKENS {
        return Err(format!("the user `{name}` needs 1 to {MAX_TOKENS} tokens"));
    }
    let hashes = tokens.iter().map(|token| read_hash(token)).collect::<Option<_>>().ok_or_else(|| {
        format!(
            "a token of the user `{name}` is not `{HASH_PREFIX}` and 64 hexadecimal digits: make one with \
             `codewright users token`"
        )
    })?;
    Ok(User { caller: Caller { name: name.into(), role, teams: user.teams.into(), until: None }, hashes })
}

/// Names are shown, logged and compared, so they are plain.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    let is_valid = !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_plain);
    if is_valid && name != "local" {
        return Ok(());
    }
    let shown: String = name.chars().filter(|char| !char.is_control()).take(40).collect();
    Err(format!("`{shown}` is not a name for a user or a team: use letters, digits and `._@+-`"))
}

fn read_hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(HASH_PREFIX)?;
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

/// Returns a new random token, and its hash for the configuration.
///
/// # Errors
///
/// Fails if the system has no random numbers.
pub fn new_token() -> std::io::Result<(String, String)> {
    let mut random = [0; TOKEN_BYTES];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| std::io::Error::other("the system has no random numbers"))?;
    let token = format!("cw_{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let digits: String = hash(&token).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((token, format!("{HASH_PREFIX}{digits}")))
}

/// Returns the hash of a token.
pub(super) fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// Returns a directory without links. It must not contain what the program stores of all users.
fn checked(path: &Path, own: &[PathBuf]) -> Result<PathBuf, String> {
    let shown = path.display();
    let real = path
        .canonicalize()
        .map_err(|error| format!("the directory `{shown}` of `auth.directories` cannot be used: {error}"))?;
    let own = own.iter().filter_map(|own| own.canonicalize().ok());
    match own.into_iter().find(|own| own.starts_with(&real) || real.starts_with(own)) {
        Some(own) => Err(format!(
            "`{shown}` cannot be a directory for users, because the program keeps its own files in `{}`: name others in \
             `auth.directories`",
            own.display()
        )),
        None => Ok(real),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: &Value, expected: &str) {
        let error = Auth::parse(value, Path::new("/usr"), &[PathBuf::from("/usr/bin")]).err();
        let error = error.unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{value}: {error}");
    }

    #[test]
    fn an_invalid_key_is_reported() {
        let hash = format!("sha256:{}", "0a".repeat(32));
        let user = |name: &str, role: &str, token: &str| json!({"users": {name: {"role": role, "token": token}}, "directories": ["/etc"]});
        check(&json!({}), "needs 1 to");
        check(&json!({"user": {}}), "unknown field `user`");
        check(&user("a b", "member", &hash), "`a b` is not a name");
        check(&user("local", "member", &hash), "`local` is not a name");
        check(&user("a", "root", &hash), "the role of the user `a`");
        check(&user("a", "member", "secret"), "a token of the user `a`");
        check(&user("a", "member", "sha256:zz"), "a token of the user `a`");
        check(&user("a", "member", &hash), "");
        check(&json!({"users": {"a": {"role": "admin", "token": hash}}}), "keeps its own files in");
        check(
            &json!({"users": {"a": {"role": "admin", "token": hash}}, "directories": ["/nowhere"]}),
            "`/nowhere`",
        );
    }
}
