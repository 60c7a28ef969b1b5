//! The environment variables, read once at start.
//!
//! [`Env`] is a snapshot of them; no other code reads variables. Every `OPENCODE_` variable has a `CODEWRIGHT_` variant,
//! which wins if both are set. The constants in this module are the names of all variables that the program reads.

mod names;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    sync::Arc,
};

pub use names::*;

const OWN_PREFIX: &str = "CODEWRIGHT_";
const ORIGINAL_PREFIX: &str = "OPENCODE_";

/// Variables of other programs that name files or directories with credentials.
const SECRET_PATHS: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "PGSSLKEY",
    "npm_config_userconfig",
];

/// Variables that the tools of a user read. Commands get them, even if the configuration uses them or a provider accepts them
/// as its key.
const TOOL_VARIABLES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_ROLE_ARN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "CLOUDFLARE_ACCOUNT_ID",
    "CLOUDFLARE_API_KEY",
    "CLOUDFLARE_API_TOKEN",
    "DATABRICKS_HOST",
    "DATABRICKS_TOKEN",
    "DIGITALOCEAN_ACCESS_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN",
    "NODE_AUTH_TOKEN",
    "NPM_TOKEN",
    "PGPASSWORD",
    "VERCEL_TOKEN",
    "WANDB_API_KEY",
];

/// Variables of this program and of the system that it connects to, which have a secret. Commands get them, because other
/// programs use them too.
const SERVICES: &[&str] = &["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "PGPASSWORD"];

/// Variables about the machine and the terminal, which never have a secret.
const ORDINARY: &[&str] = &[
    "COLORTERM",
    "DISPLAY",
    "EDITOR",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "NODE_EXTRA_CA_CERTS",
    "OLDPWD",
    "PAGER",
    "PWD",
    "SSH_AUTH_SOCK",
    "TEMP",
    "TERM",
    "TMP",
    "TZ",
    "VISUAL",
    "WAYLAND_DISPLAY",
];

/// The keys of model providers that commands do not get. The variables of [`TOOL_VARIABLES`] are not listed, because commands need
/// them.
const PROVIDER_KEYS: &[&str] = &[
    "302AI_API_KEY",
    "AI_GATEWAY_API_KEY",
    "AIHUBMIX_API_KEY",
    "ANTHROPIC_API_KEY",
    "AZURE_API_KEY",
    "AZURE_COGNITIVE_SERVICES_API_KEY",
    "BASETEN_API_KEY",
    "CEREBRAS_API_KEY",
    "CHUTES_API_KEY",
    "COHERE_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "DASHSCOPE_API_KEY",
    "DEEPINFRA_API_KEY",
    "DEEPSEEK_API_KEY",
    "EXA_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GOOGLE_VERTEX_API_KEY",
    "GROQ_API_KEY",
    "HELICONE_API_KEY",
    "INCEPTION_API_KEY",
    "INFERENCE_API_KEY",
    "KIMI_API_KEY",
    "LLAMA_API_KEY",
    "LMSTUDIO_API_KEY",
    "MINIMAX_API_KEY",
    "MISTRAL_API_KEY",
    "MODELSCOPE_API_KEY",
    "MOONSHOT_API_KEY",
    "MORPH_API_KEY",
    "NEBIUS_API_KEY",
    "NOVITA_API_KEY",
    "NVIDIA_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "POE_API_KEY",
    "REQUESTY_API_KEY",
    "SCALEWAY_API_KEY",
    "SILICONFLOW_API_KEY",
    "STEPFUN_API_KEY",
    "SYNTHETIC_API_KEY",
    "TOGETHER_API_KEY",
    "UPSTAGE_API_KEY",
    "V0_API_KEY",
    "VENICE_API_KEY",
    "XAI_API_KEY",
    "XIAOMI_API_KEY",
    "ZENMUX_API_KEY",
    "ZHIPU_API_KEY",
];

/// This program's secrets, without the prefix, which commands do not get.
const OWN_SECRETS: &[&str] =
    &["API_KEY", "AUTH_CONTENT", "CONFIG_CONTENT", "EDITOR", "NODE_SECRET", "SERVER_PASSWORD", "STORE"];

/// A snapshot of the environment variables. Its `Debug` text contains no values.
#[derive(Clone, Default)]
pub struct Env {
    values: BTreeMap<String, String>,
    /// The variables of the catalog that may have the key of a provider.
    provider_keys: Arc<BTreeSet<String>>,
}

impl Env {
    /// The variables of a list that are set and not empty.
    #[must_use]
    pub fn of(&self, names: &[&str]) -> BTreeMap<String, String> {
        let found = names.iter().filter_map(|name| Some(((*name).to_owned(), self.filled(name)?.to_owned())));
        found.collect()
    }

    /// The variables of this process. Values that are not UTF-8 count as unset. Without `HOME`, as in services and containers,
    /// it is the directory that the system has for the user.
    #[must_use]
    pub fn from_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut values: BTreeMap<_, _> = std::env::vars_os().filter_map(text).collect();
        if values.get(HOME).is_none_or(String::is_empty) {
            let home = std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
            values.extend(home.map(|home| (HOME.to_owned(), home)));
        }
        Self { values, ..Self::default() }
    }

    /// An environment with exactly these variables.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let values = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { values, ..Self::default() }
    }

    /// A variable's value. The `CODEWRIGHT_` variant wins, for either name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lookup(name).map(|(_, value)| value)
    }

    /// A variable's value if it is not empty.
    #[must_use]
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// These variables overridden by others, except names that control this program or the system.
    #[must_use]
    pub fn with<'a>(&self, others: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values = self.values.clone();
        let others = others.into_iter().filter(|(name, _)| !is_steering(name));
        values.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self { values, provider_keys: self.provider_keys.clone() }
    }

    /// These variables, with all repositories trusted.
    #[must_use]
    pub fn with_trust(&self) -> Self {
        let mut values = self.values.clone();
        values.insert("CODEWRIGHT_TRUST".to_owned(), "all".to_owned());
        Self { values, provider_keys: self.provider_keys.clone() }
    }

    /// These variables, with the address of the database of sessions.
    #[must_use]
    pub fn with_store(&self, url: &str) -> Self {
        let mut values = self.values.clone();
        values.insert("CODEWRIGHT_STORE".to_owned(), url.to_owned());
        Self { values, provider_keys: self.provider_keys.clone() }
    }

    /// These variables, and the names of those that the catalog of providers lists. Names of regions and accounts are no
    /// keys.
    #[must_use]
    pub fn with_provider_keys<'a>(&self, names: impl Iterator<Item = &'a str>) -> Self {
        let is_set = |name: &&str| self.values.contains_key(*name) && names_credential(name);
        let keys = names.filter(is_set).map(str::to_owned).collect();
        Self { values: self.values.clone(), provider_keys: Arc::new(keys) }
    }

    /// Whether a switch is on: `1` or `true`, ignoring case.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    /// The names of the variables that commands do not get: keys of model providers and this program's secrets.
    ///
    /// All other variables are passed on, except those that the configuration uses as secrets.
    #[must_use]
    pub fn child_removals(&self) -> Vec<&str> {
        let is_key = |name: &str| PROVIDER_KEYS.contains(&name) || self.provider_keys.contains(name);
        let secret = |name: &str| is_own_secret(name) || (is_key(name) && !is_shared(name));
        self.values.keys().map(String::as_str).filter(|name| secret(name)).collect()
    }

    /// The names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The values of the variables that hold credentials by their names, which no log may contain.
    #[must_use]
    pub fn secrets(&self) -> Vec<&str> {
        /// Shorter values are switches and names.
        const MIN_BYTES: usize = 8;
        let is_secret = |(name, value): &(&String, &String)| {
            is_credential(name) || (names_credential(name) && value.len() >= MIN_BYTES)
        };
        self.values.iter().filter(is_secret).map(|(_, value)| value.trim()).collect()
    }

    /// The reason why no repository may use a variable. `None` if it may, when the user trusts it.
    pub(crate) fn reserved(&self, name: &str) -> Option<&'static str> {
        let has_password = NETWORK.contains(&name) && self.get(name).is_some_and(|value| value.contains('@'));
        if is_own_secret(name) {
            Some("it is a secret of this program")
        } else if is_credential(name) || self.provider_keys.contains(name) {
            Some("it is the key of a provider")
        } else if SERVICES.contains(&name) || has_password {
            Some("it has a password")
        } else {
            None
        }
    }

    /// The absolute paths of files and directories with credentials that variables name.
    pub fn secret_paths(&self) -> impl Iterator<Item = &str> {
        let values = SECRET_PATHS.iter().filter_map(|name| self.filled(name));
        // A device stands for no file.
        let is_file =
            |value: &Path| value.is_absolute() && value.parent().is_some() && !value.starts_with("/dev");
        values.filter(move |value| is_file(Path::new(value)))
    }

    /// The values of both spellings of a variable of this program, also of the one that has no effect.
    pub fn spellings(&self, name: &str) -> impl Iterator<Item = &str> {
        let stem = name.strip_prefix(OWN_PREFIX).or_else(|| name.strip_prefix(ORIGINAL_PREFIX));
        let names = stem.map(|stem| [OWN_PREFIX, ORIGINAL_PREFIX].map(|prefix| format!("{prefix}{stem}")));
        let values = names.into_iter().flatten().filter_map(|name| self.exact(&name).map(|(_, value)| value));
        values.filter(|value| !value.is_empty())
    }

    /// The name of the variant that is set, for messages, and its value.
    pub(crate) fn lookup(&self, name: &str) -> Option<(&str, &str)> {
        let stem = name.strip_prefix(OWN_PREFIX).or_else(|| name.strip_prefix(ORIGINAL_PREFIX));
        let Some(stem) = stem else { return self.exact(name) };
        self.exact(&format!("{OWN_PREFIX}{stem}")).or_else(|| self.exact(&format!("{ORIGINAL_PREFIX}{stem}")))
    }

    fn exact(&self, name: &str) -> Option<(&str, &str)> {
        self.values.get_key_value(name).map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Whether the name of a variable is that of a credential.
pub(crate) fn names_credential(name: &str) -> bool {
    const WORDS: [&str; 9] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "JWT"];
    const ENDS: [&str; 3] = ["_PAT", "PASS", "_AUTH"];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word)) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether other programs of the user need a variable, so that commands get it in any case.
#[must_use]
pub fn is_shared(name: &str) -> bool {
    TOOL_VARIABLES.contains(&name) || SERVICES.contains(&name) || NETWORK.contains(&name)
}

/// Whether a program that gets a variable of [`TOOL_VARIABLES`] anyway may have it under another name, also if a repository
/// configures the program.
pub(crate) fn is_inherited(name: &str) -> bool {
    TOOL_VARIABLES.contains(&name) && !SERVICES.contains(&name)
}

/// Whether a variable never has a secret.
pub(crate) fn is_ordinary(name: &str) -> bool {
    let is_steering = is_steering(name) && !is_own_secret(name);
    (is_steering && !names_credential(name)) || ORDINARY.contains(&name) || name.starts_with("LC_")
}

/// Whether a variable holds a credential that belongs to one provider, or a secret of this program.
pub(crate) fn is_credential(name: &str) -> bool {
    const CLOUD: [&str; 4] =
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"];
    is_own_secret(name) || PROVIDER_KEYS.contains(&name) || CLOUD.contains(&name)
}

fn is_own_secret(name: &str) -> bool {
    let stem = name.strip_prefix(OWN_PREFIX).or_else(|| name.strip_prefix(ORIGINAL_PREFIX));
    stem.is_some_and(|stem| OWN_SECRETS.contains(&stem))
}

/// Whether a variable controls this program or the system, as opposed to a token.
#[must_use]
pub fn is_steering(name: &str) -> bool {
    const SYSTEM: [&str; 9] =
        ["HOME", "PATH", "SHELL", "USER", "LOGNAME", "TMPDIR", "IFS", "ENV", "BASH_ENV"];
    const PREFIXES: [&str; 5] = ["XDG_", "LD_", "DYLD_", "GIT_", "SSL_"];
    let own = name.starts_with(OWN_PREFIX) || name.starts_with(ORIGINAL_PREFIX);
    let is_token = name.ends_with("_KEY") || name.ends_with("_TOKEN");
    (own && !is_token) || SYSTEM.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_variant_wins_for_either_name() {
        let both = Env::from_pairs([("OPENCODE_CONFIG", "theirs"), ("CODEWRIGHT_CONFIG", "ours")]);
        assert_eq!(both.get("OPENCODE_CONFIG"), Some("ours"));
        assert_eq!(both.get("CODEWRIGHT_CONFIG"), Some("ours"));
        let theirs = Env::from_pairs([("OPENCODE_CONFIG", "theirs")]);
        assert_eq!(theirs.get(CONFIG), Some("theirs"));
        assert_eq!(theirs.get("CODEWRIGHT_CONFIG"), Some("theirs"));
        assert_eq!(theirs.get("CONFIG"), None);
    }

    #[test]
    fn an_empty_own_variant_overrides_the_other() {
        let env = Env::from_pairs([("OPENCODE_CONFIG", "theirs"), ("CODEWRIGHT_CONFIG", "")]);
        assert_eq!(env.get(CONFIG), Some(""));
        assert_eq!(env.filled(CONFIG), None);
    }

    #[test]
    fn tokens_are_overridden_and_controlling_variables_are_not() {
        let env = Env::from_pairs([("ACME_TOKEN", "old"), ("HOME", "/home/me")]);
        let others = [
            ("ACME_TOKEN", "new"),
            ("HOME", "/evil"),
            ("OPENCODE_CONFIG", "/evil"),
            ("OPENCODE_API_KEY", "k"),
            ("LD_PRELOAD", "x"),
        ];
        let found = env.with(others);
        let found = ["ACME_TOKEN", "HOME", "OPENCODE_CONFIG", "OPENCODE_API_KEY", "LD_PRELOAD"]
            .map(|name| found.get(name));
        assert_eq!(found, [Some("new"), Some("/home/me"), None, Some("k"), None]);
    }

    #[test]
    fn a_switch_is_on_for_one_and_true_only() {
        for (value, on) in
            [("1", true), ("true", true), ("TRUE", true), ("0", false), ("", false), ("yes", false)]
        {
            assert_eq!(Env::from_pairs([(EXPERIMENTAL, value)]).is_on(EXPERIMENTAL), on, "{value}");
        }
    }

    #[test]
    fn commands_get_everything_except_provider_keys_and_own_secrets() {
        let env = Env::from_pairs(
            [
                "ANTHROPIC_API_KEY",
                "GITHUB_TOKEN",
                "AWS_SECRET_ACCESS_KEY",
                "STRIPE_API_KEY",
                "OPENCODE_SERVER_PASSWORD",
                "CODEWRIGHT_SERVER_PASSWORD",
                "OPENCODE_AUTH_CONTENT",
                "CODEWRIGHT_STORE",
                "OPENCODE_CONFIG",
                "PATH",
            ]
            .map(|name| (name, "x")),
        );
        let expected = [
            "ANTHROPIC_API_KEY",
            "CODEWRIGHT_SERVER_PASSWORD",
            "CODEWRIGHT_STORE",
            "OPENCODE_AUTH_CONTENT",
            "OPENCODE_SERVER_PASSWORD",
        ];
        assert_eq!(env.child_removals(), expected);
    }

    #[test]
    fn debug_text_has_names_without_values() {
        let text = format!("{:?}", Env::from_pairs([("OPENAI_API_KEY", "sk-secret")]));
        assert!(text.contains("OPENAI_API_KEY") && !text.contains("sk-secret"), "{text}");
    }
}
