//! Profiles in the files in `~/.aws`, and the key source that a profile configures.
//!
//! Reading the files is separate from interpreting them: [`Files::key_source`] is pure.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::ini::{self, Section};
use super::keys::{Keys, Sources};

/// Limit of a file. Real ones have a few kilobytes.
const FILE_LIMIT_BYTES: u64 = 1024 * 1024;
/// Limit of profiles chained by `source_profile`.
const CHAIN_LIMIT: usize = 5;
const DEFAULT: &str = "default";

/// The source of a profile's keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeySource {
    /// Keys in the profile.
    Keys(Keys),
    /// A command that prints keys.
    Process(String),
    /// A role, assumed with other keys.
    Role { role: Role, base: Box<Self> },
    /// A role, assumed with a token from a file.
    WebIdentity { role: Role, token_file: PathBuf },
    /// Keys in the environment, selected by `credential_source`.
    Environment,
    /// The container's role.
    Container,
    /// The instance's role.
    Instance,
    /// A sign-in in a browser.
    Sso(Sso),
}

/// A role to assume.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) arn: String,
    pub(super) session: Option<String>,
    pub(super) external_id: Option<String>,
}

/// A sign-in whose token another tool stores.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sso {
    pub(super) profile: String,
    /// The text that the name of the token's file is derived from.
    pub(super) cached_as: String,
    pub(super) region: String,
    pub(super) account: String,
    pub(super) role: String,
}

/// The contents of both files.
#[derive(Debug, Default)]
pub(super) struct Files {
    profiles: BTreeMap<String, Section>,
    sessions: BTreeMap<String, Section>,
}

/// Returns the region of the selected profile, or `None` if the files cannot be read.
pub(super) fn region(sources: &Sources) -> Option<String> {
    let files = Files::read(sources).ok()?;
    files.profiles.get(name(sources))?.get("region").filter(|region| !region.is_empty()).cloned()
}

/// Returns the name of the selected profile.
pub(super) fn name(sources: &Sources) -> &str {
    let named = sources.profile.as_deref().filter(|name| !name.is_empty());
    named
        .or_else(|| sources.variable("AWS_PROFILE"))
        .or_else(|| sources.variable("AWS_DEFAULT_PROFILE"))
        .unwrap_or(DEFAULT)
}

/// Returns the paths of the credentials file and of the configuration file.
pub(super) fn paths(sources: &Sources) -> [Option<PathBuf>; 2] {
    let path = |variable: &str, name: &str| {
        let given = sources.variable(variable).map(PathBuf::from);
        given.or_else(|| Some(sources.home.as_ref()?.join(".aws").join(name)))
    };
    [path("AWS_SHARED_CREDENTIALS_FILE", "credentials"), path("AWS_CONFIG_FILE", "config")]
}

impl Files {
    /// Reads both files. A missing file is empty.
    pub(super) fn read(sources: &Sources) -> Result<Self, String> {
        let [keys, all] = paths(sources);
        let text = |path: Option<PathBuf>| path.map_or(Ok(String::new()), |path| read(&path));
        Ok(Self::parse(&text(keys)?, &text(all)?))
    }

    /// Merges both files. The credentials file wins; section names in the other one have prefixes.
    fn parse(keys: &str, all: &str) -> Self {
        let mut files = Self::default();
        for (name, section) in ini::parse(all) {
            if let Some(name) = name.strip_prefix("profile ") {
                files.profiles.entry(name.to_owned()).or_default().extend(section);
            } else if let Some(name) = name.strip_prefix("sso-session ") {
                files.sessions.insert(name.to_owned(), section);
            } else if name == DEFAULT {
                files.profiles.entry(name).or_default().extend(section);
            }
        }
        for (name, section) in ini::parse(keys) {
            files.profiles.entry(name).or_default().extend(section);
        }
        files
    }

    /// Returns the source of a profile's keys, or `None` if the profile is missing or configures
    /// none.
    pub(super) fn key_source(&self, name: &str) -> Result<Option<KeySource>, String> {
        self.follow(name, 0)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.profiles.contains_key(name)
    }

    fn follow(&self, name: &str, depth: usize) -> Result<Option<KeySource>, String> {
        let Some(section) = self.profiles.get(name) else { return Ok(None) };
        if depth >= CHAIN_LIMIT {
            return Err(format!(
                "more than {CHAIN_LIMIT} AWS profiles are chained by `source_profile`, up to `{name}`"
            ));
        }
        if let Some(source) = self.role(name, section, depth)? {
            return Ok(Some(source));
        }
        if let Some(source) = self.sso(name, section)? {
            return Ok(Some(source));
        }
        if let Some(source) = keys(name, section)? {
            return Ok(Some(source));
        }
        Ok(filled(section, "credential_process").map(|command| KeySource::Process(command.to_owned())))
    }

    fn role(&self, name: &str, section: &Section, depth: usize) -> Result<Option<KeySource>, String> {
        let Some(arn) = filled(section, "role_arn") else { return Ok(None) };
        if filled(section, "mfa_serial").is_some() {
            return Err(format!(
                "the AWS profile `{name}` needs a one-time code (`mfa_serial`), which is not supported; \
                 assume the role with another tool and configure its keys"
            ));
        }
        let text = |key: &str| filled(section, key).map(str::to_owned);
        let role = Role {
            arn: arn.to_owned(),
            session: text("role_session_name"),
            external_id: text("external_id"),
        };
        if let Some(file) = filled(section, "web_identity_token_file") {
            return Ok(Some(KeySource::WebIdentity { role, token_file: file.into() }));
        }
        let base = match (filled(section, "source_profile"), filled(section, "credential_source")) {
            (Some(source), _) if source == name => keys(name, section)?,
            (Some(source), _) => self.follow(source, depth + 1)?,
            (None, Some("Environment")) => Some(KeySource::Environment),
            (None, Some("EcsContainer")) => Some(KeySource::Container),
            (None, Some("Ec2InstanceMetadata")) => Some(KeySource::Instance),
            (None, Some(other)) => {
                return Err(format!(
                    "the AWS profile `{name}` has an unknown `credential_source`: `{other}`"
                ));
            }
            (None, None) => keys(name, section)?,
        };
        let base = base.ok_or_else(|| {
            format!(
                "the AWS profile `{name}` has a `role_arn`, but `source_profile` names no profile with keys"
            )
        })?;
        Ok(Some(KeySource::Role { role, base: Box::new(base) }))
    }

    fn sso(&self, name: &str, section: &Section) -> Result<Option<KeySource>, String> {
        let Some(account) = filled(section, "sso_account_id") else { return Ok(None) };
        let missing = |what: &str| format!("the AWS profile `{name}` signs in by SSO, but has no `{what}`");
        let (cached_as, shared) = match filled(section, "sso_session") {
            Some(session) => (Some(session), self.sessions.get(session)),
            None => (filled(section, "sso_start_url"), None),
        };
        let region = filled(section, "sso_region").or_else(|| filled(shared?, "sso_region"));
        Ok(Some(KeySource::Sso(Sso {
            profile: name.to_owned(),
            cached_as: cached_as.ok_or_else(|| missing("sso_session"))?.to_owned(),
            region: region.ok_or_else(|| missing("sso_region"))?.to_owned(),
            account: account.to_owned(),
            role: filled(section, "sso_role_name").ok_or_else(|| missing("sso_role_name"))?.to_owned(),
        })))
    }
}

fn keys(name: &str, section: &Section) -> Result<Option<KeySource>, String> {
    let (id, secret) = (filled(section, "aws_access_key_id"), filled(section, "aws_secret_access_key"));
    match (id, secret) {
        (None, None) => Ok(None),
        (Some(id), Some(secret)) => Ok(Some(KeySource::Keys(Keys {
            access_key_id: id.to_owned(),
            secret_access_key: secret.into(),
            session_token: filled(section, "aws_session_token").map(Into::into),
            expires_ms: None,
        }))),
        (Some(_), None) => Err(format!("the AWS profile `{name}` has no `aws_secret_access_key`")),
        (None, Some(_)) => Err(format!("the AWS profile `{name}` has no `aws_access_key_id`")),
    }
}

fn filled<'a>(section: &'a Section, key: &str) -> Option<&'a str> {
    section.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns the text of a file; empty if the file is missing.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let problem = |why: std::io::Error| format!("`{}` cannot be read: {why}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(why)
            if matches!(why.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(String::new());
        }
        Err(why) => return Err(problem(why)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT_BYTES).read_to_end(&mut bytes).map_err(problem)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
[default]
region = eu-west-1
[profile keyless]
region = eu-west-2
[profile process]
credential_process = /bin/keys --json
[profile role]
role_arn = arn:aws:iam::1:role/r
source_profile = base
external_id = e
[profile own]
role_arn = arn:aws:iam::1:role/r
source_profile = own
aws_access_key_id = AK
aws_secret_access_key = S
[profile web]
role_arn = arn:aws:iam::1:role/r
web_identity_token_file = /tmp/token
[profile instance]
role_arn = arn:aws:iam::1:role/r
credential_source = Ec2InstanceMetadata
[profile sso]
sso_session = company
sso_account_id = 1
sso_role_name = Dev
[sso-session company]
sso_region = us-east-1
[profile sso-old]
sso_start_url = https://x.awsapps.com/start
sso_region = us-east-2
sso_account_id = 1
sso_role_name = Dev
[profile sso-broken]
sso_session = company
sso_account_id = 1
[profile mfa]
role_arn = r
mfa_serial = m
[profile a]
role_arn = r
source_profile = b
[profile b]
role_arn = r
source_profile = a
[profile dangling]
role_arn = r
source_profile = gone
[profile odd]
role_arn = r
credential_source = Moon
";
    const KEYS: &str = "
[base]
aws_access_key_id = AKBASE
aws_secret_access_key = SBASE
aws_session_token = TBASE
[half]
aws_access_key_id = AK
";

    fn some_keys(id: &str, secret: &str, token: Option<&str>) -> KeySource {
        KeySource::Keys(Keys {
            access_key_id: id.into(),
            secret_access_key: secret.into(),
            session_token: token.map(Into::into),
            expires_ms: None,
        })
    }

    fn some_role(external_id: Option<&str>) -> Role {
        Role {
            arn: "arn:aws:iam::1:role/r".into(),
            session: None,
            external_id: external_id.map(str::to_owned),
        }
    }

    fn some_sso(profile: &str, cached_as: &str, region: &str) -> KeySource {
        KeySource::Sso(Sso {
            profile: profile.into(),
            cached_as: cached_as.into(),
            region: region.into(),
            account: "1".into(),
            role: "Dev".into(),
        })
    }

    #[test]
    fn a_profile_selects_its_key_source() {
        let files = Files::parse(KEYS, CONFIG);
        for (name, expected) in [
            ("default", None),
            ("gone", None),
            ("keyless", None),
            ("base", Some(some_keys("AKBASE", "SBASE", Some("TBASE")))),
            ("process", Some(KeySource::Process("/bin/keys --json".into()))),
            (
                "role",
                Some(KeySource::Role {
                    role: some_role(Some("e")),
                    base: Box::new(some_keys("AKBASE", "SBASE", Some("TBASE"))),
                }),
            ),
            (
                "own",
                Some(KeySource::Role { role: some_role(None), base: Box::new(some_keys("AK", "S", None)) }),
            ),
            ("web", Some(KeySource::WebIdentity { role: some_role(None), token_file: "/tmp/token".into() })),
            (
                "instance",
                Some(KeySource::Role { role: some_role(None), base: Box::new(KeySource::Instance) }),
            ),
            ("sso", Some(some_sso("sso", "company", "us-east-1"))),
            ("sso-old", Some(some_sso("sso-old", "https://x.awsapps.com/start", "us-east-2"))),
        ] {
            assert_eq!(files.key_source(name), Ok(expected), "{name}");
        }
    }

    #[test]
    fn errors_in_a_profile_are_reported() {
        let files = Files::parse(KEYS, CONFIG);
        for (name, part) in [
            ("half", "`half` has no `aws_secret_access_key`"),
            ("sso-broken", "no `sso_role_name`"),
            ("mfa", "`mfa_serial`"),
            ("a", "more than 5"),
            ("dangling", "`source_profile`"),
            ("odd", "`Moon`"),
        ] {
            let error = files.key_source(name).unwrap_err();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
