//! The environment, read once.
//!
//! [`Env`] is a snapshot taken at start; no other code reads a variable. Every `OPENCODE_` name has
//! a `CODEWRIGHT_` twin that wins when both are set. The constants below are all the names we read.

use std::{collections::BTreeMap, fmt};

/// The user's home directory.
pub const HOME: &str = "HOME";
/// The user's name, shown beside prompts.
pub const USER: &str = "USER";
/// The user's name where `USER` is not set.
pub const LOGNAME: &str = "LOGNAME";
/// Where configuration lives; `$HOME/.config` without it.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Where sessions and credentials live; `$HOME/.local/share` without it.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// Where locks and logs of the running program live; `$HOME/.local/state` without it.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// Where downloads that can be fetched again live; `$HOME/.cache` without it.
pub const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
/// Where scratch files live; `/tmp` without it.
pub const TMPDIR: &str = "TMPDIR";
/// Whatever it is set to, output has no colours; programs agree on this name.
pub const NO_COLOR: &str = "NO_COLOR";
/// Where programs are looked for.
pub const PATH: &str = "PATH";
/// The user's shell, for commands the model runs.
pub const SHELL: &str = "SHELL";
/// Where an Ollama server listens; Ollama's own variable.
pub const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// Where Bedrock answers, in place of the region's own address; Amazon's own variable.
pub const AWS_ENDPOINT_URL_BEDROCK_RUNTIME: &str = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME";
/// Amazon's own variables that say where its keys, its files and its services are.
pub const AWS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_ENDPOINT_URL_SSO",
    "AWS_ENDPOINT_URL_SSO_OIDC",
    "AWS_ENDPOINT_URL_STS",
];

/// Where what took how long is told, and what of it; programs agree on these names.
pub const TELEMETRY: &[&str] = &[
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
];

/// The proxies on the way out, and whose certificates are believed; programs agree on these names.
pub const NETWORK: &[&str] = &[
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The Google project that pays for Vertex AI, the first one set counting.
pub const GOOGLE_PROJECTS: &[&str] =
    &["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCP_PROJECT", "GCLOUD_PROJECT"];
/// Where Vertex AI is asked, the first one set counting.
pub const GOOGLE_LOCATIONS: &[&str] = &["GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION", "VERTEX_LOCATION"];
/// A key for Vertex AI without a project.
pub const GOOGLE_VERTEX_API_KEY: &str = "GOOGLE_VERTEX_API_KEY";
/// Google's key file of a service account or a signed-in user.
pub const GOOGLE_APPLICATION_CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// Where `gcloud` keeps its own things; `$HOME/.config/gcloud` without it.
pub const CLOUDSDK_CONFIG: &str = "CLOUDSDK_CONFIG";
/// The host that tells a machine of Google's who it is.
pub const GCE_METADATA_HOST: &str = "GCE_METADATA_HOST";
/// The GitLab of a company, in place of the public one.
pub const GITLAB_INSTANCE_URL: &str = "GITLAB_INSTANCE_URL";
/// A company's own gateway to models behind its GitLab.
pub const GITLAB_AI_GATEWAY_URL: &str = "GITLAB_AI_GATEWAY_URL";
/// The client that a company's GitLab knows this program by.
pub const GITLAB_OAUTH_CLIENT_ID: &str = "GITLAB_OAUTH_CLIENT_ID";

/// A configuration file, read after the global ones.
pub const CONFIG: &str = "OPENCODE_CONFIG";
/// A directory with configuration files, read after the project's.
pub const CONFIG_DIR: &str = "OPENCODE_CONFIG_DIR";
/// A whole configuration document, laid over all files.
pub const CONFIG_CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
/// A `permission` value as JSON, laid over all files.
pub const PERMISSION: &str = "OPENCODE_PERMISSION";
/// Whether the project's own configuration files are left alone.
pub const DISABLE_PROJECT_CONFIG: &str = "OPENCODE_DISABLE_PROJECT_CONFIG";
/// Whether repositories are trusted without a question: `all`, `ask` or `none`.
pub const TRUST: &str = "OPENCODE_TRUST";
/// Credentials as JSON, used in place of the files.
pub const AUTH_CONTENT: &str = "OPENCODE_AUTH_CONTENT";
/// The password clients of the server must send.
pub const SERVER_PASSWORD: &str = "OPENCODE_SERVER_PASSWORD";
/// The user name clients of the server must send.
pub const SERVER_USERNAME: &str = "OPENCODE_SERVER_USERNAME";
/// Which client started the program; decides whether questions can be asked.
pub const CLIENT: &str = "OPENCODE_CLIENT";
/// Whether `~/.claude/CLAUDE.md` is left out of the instructions.
pub const DISABLE_CLAUDE_CODE_PROMPT: &str = "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT";
/// Whether nothing of another program's, `.claude`, is used.
pub const DISABLE_CLAUDE_CODE: &str = "OPENCODE_DISABLE_CLAUDE_CODE";
/// Whether the skills of `.claude/skills` are left out.
pub const DISABLE_CLAUDE_CODE_SKILLS: &str = "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS";
/// Whether the skills of `.claude/skills` and `.agents/skills` are left out.
pub const DISABLE_EXTERNAL_SKILLS: &str = "OPENCODE_DISABLE_EXTERNAL_SKILLS";
/// Whether the model list is never fetched.
pub const DISABLE_MODELS_FETCH: &str = "OPENCODE_DISABLE_MODELS_FETCH";
/// Where the model list is fetched from, instead of models.dev.
pub const MODELS_URL: &str = "OPENCODE_MODELS_URL";
/// Whether web search is offered.
pub const ENABLE_EXA: &str = "OPENCODE_ENABLE_EXA";
/// Where searches of the web go, instead of Exa's own address.
pub const EXA_URL: &str = "OPENCODE_EXA_URL";
/// The key of an account with Exa; searches work without one as far as it allows.
pub const EXA_API_KEY: &str = "EXA_API_KEY";
/// Whether every experiment is on.
pub const EXPERIMENTAL: &str = "OPENCODE_EXPERIMENTAL";
/// Whether the language server tool is offered.
pub const EXPERIMENTAL_LSP_TOOL: &str = "OPENCODE_EXPERIMENTAL_LSP_TOOL";
/// Whether the plan agent writes a plan file.
pub const EXPERIMENTAL_PLAN_MODE: &str = "OPENCODE_EXPERIMENTAL_PLAN_MODE";
/// Whether the model may propose to make a plan first.
pub const EXPERIMENTAL_PLAN_ENTER: &str = "OPENCODE_EXPERIMENTAL_PLAN_ENTER";
/// Whether commands can be begun in the background.
pub const EXPERIMENTAL_BACKGROUND: &str = "OPENCODE_EXPERIMENTAL_BACKGROUND_COMMANDS";
/// On, model servers on this machine are not looked for.
pub const DISABLE_LOCAL_SERVERS: &str = "OPENCODE_DISABLE_LOCAL_SERVERS";

/// A file for the terminal client, over all others.
pub const TUI_CONFIG: &str = "OPENCODE_TUI_CONFIG";
/// The kind of terminal.
pub const TERM: &str = "TERM";
/// Whether the terminal has all colours.
pub const COLORTERM: &str = "COLORTERM";
/// The terminal's own colours of text and background.
pub const COLORFGBG: &str = "COLORFGBG";
/// The language and letters of everything.
pub const LC_ALL: &str = "LC_ALL";
/// The letters.
pub const LC_CTYPE: &str = "LC_CTYPE";
/// The usual language and letters.
pub const LANG: &str = "LANG";
/// Set within tmux.
pub const TMUX: &str = "TMUX";
/// Set within GNU screen.
pub const STY: &str = "STY";
/// Where windows of X11 are shown.
pub const DISPLAY: &str = "DISPLAY";
/// Where windows of Wayland are shown.
pub const WAYLAND_DISPLAY: &str = "WAYLAND_DISPLAY";
/// Set within the Windows Subsystem for Linux.
pub const WSL_DISTRO_NAME: &str = "WSL_DISTRO_NAME";
/// The user's browsers, as commands with colons between them; programs agree on this name.
pub const BROWSER: &str = "BROWSER";
/// The user's editor for whole screens.
pub const VISUAL: &str = "VISUAL";
/// The user's editor.
pub const EDITOR: &str = "EDITOR";

/// The variables of this program, each with a `CODEWRIGHT_` twin, and what they are for.
pub const OWN: &[(&str, &str)] = &[
    (CONFIG, "a configuration file, after the global ones"),
    (CONFIG_DIR, "a folder of configuration, after the project's"),
    (CONFIG_CONTENT, "a configuration text, over all files"),
    (PERMISSION, "the `permission` key as JSON, over all else"),
    (DISABLE_PROJECT_CONFIG, "leave the project's files alone"),
    (TRUST, "trust every repository (`all`), ask (`ask`, the default), or trust none (`none`)"),
    (AUTH_CONTENT, "credentials as JSON, instead of the files"),
    (SERVER_PASSWORD, "the password of the server"),
    (SERVER_USERNAME, "the user name that goes with it"),
    (CLIENT, "which client started the program"),
    (DISABLE_CLAUDE_CODE, "leave Claude Code's instructions and skills alone"),
    (DISABLE_CLAUDE_CODE_PROMPT, "leave `~/.claude/CLAUDE.md` and `CLAUDE.md` alone"),
    (DISABLE_MODELS_FETCH, "never fetch the list of models"),
    (MODELS_URL, "where the list of models is fetched"),
    (ENABLE_EXA, "offer web search"),
    (EXPERIMENTAL, "switch every experiment on"),
    (EXPERIMENTAL_LSP_TOOL, "offer the language server tool"),
    (EXPERIMENTAL_PLAN_MODE, "plan into a file"),
    (EXPERIMENTAL_BACKGROUND, "offer commands in the background"),
    (DISABLE_LOCAL_SERVERS, "do not look for model servers on this machine"),
    (TUI_CONFIG, "a file for the terminal client, over all others"),
    ("OPENCODE_API_KEY", "the key of OpenCode Zen"),
];

/// Variables of the original that change nothing here, and why.
pub const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("OPENCODE_BUN", "there is no JavaScript runtime inside"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "the program never updates itself"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "no language server is ever downloaded"),
    ("OPENCODE_PID", "never read, and not passed on to commands"),
];

const OWN_PREFIX: &str = "CODEWRIGHT_";
const ORIGINAL_PREFIX: &str = "OPENCODE_";

/// Keys of model providers, and nothing else: a token that a developer's own tools read too
/// (`GITHUB_TOKEN`, `HF_TOKEN`, `AWS_…`, `CLOUDFLARE_API_TOKEN`) stays, because commands break without it.
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

/// What of our own a child must not see, behind either prefix.
const OWN_SECRETS: &[&str] = &["API_KEY", "AUTH_CONTENT", "SERVER_PASSWORD"];

/// The variables as they were at start; values never appear in its `Debug` text.
#[derive(Clone, Default)]
pub struct Env {
    values: BTreeMap<String, String>,
}

impl Env {
    /// Those of these variables that are set to something.
    #[must_use]
    pub fn of(&self, names: &[&str]) -> BTreeMap<String, String> {
        let found = names.iter().filter_map(|name| Some(((*name).to_owned(), self.filled(name)?.to_owned())));
        found.collect()
    }

    /// The process's own variables; those that are not UTF-8 are as good as unset.
    #[must_use]
    pub fn from_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { values: std::env::vars_os().filter_map(text).collect() }
    }

    /// Exactly these variables.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        Self { values: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }

    /// A variable's value; of two twins ours wins, whichever of them is asked for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lookup(name).map(|(_, value)| value)
    }

    /// A variable's value unless that is empty.
    #[must_use]
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// These variables with others over them; names that steer this program or the system are passed over.
    #[must_use]
    pub fn with<'a>(&self, others: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values = self.values.clone();
        let others = others.into_iter().filter(|(name, _)| !is_steering(name));
        values.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self { values }
    }

    /// These variables, with every repository trusted.
    #[must_use]
    pub fn trusting(&self) -> Self {
        let mut values = self.values.clone();
        values.insert("CODEWRIGHT_TRUST".to_owned(), "all".to_owned());
        Self { values }
    }

    /// Whether a switch is on: `1` or `true`, in any case.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    /// The variables that the children of tools do not get: keys of model providers and our own secrets.
    ///
    /// Everything else is passed on, as commands expect.
    #[must_use]
    pub fn child_removals(&self) -> Vec<&str> {
        let secret = |name: &str| is_own_secret(name) || PROVIDER_KEYS.contains(&name);
        self.values.keys().map(String::as_str).filter(|name| secret(name)).collect()
    }

    /// The name as it is set, and its value: messages name the twin that was used.
    pub(crate) fn lookup(&self, name: &str) -> Option<(&str, &str)> {
        let stem = name.strip_prefix(OWN_PREFIX).or_else(|| name.strip_prefix(ORIGINAL_PREFIX));
        let Some(stem) = stem else { return self.exact(name) };
        self.exact(&format!("{OWN_PREFIX}{stem}")).or_else(|| self.exact(&format!("{ORIGINAL_PREFIX}{stem}")))
    }

    fn exact(&self, name: &str) -> Option<(&str, &str)> {
        self.values.get_key_value(name).map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Whether a variable holds a credential that belongs to one provider, or a secret of this program.
#[must_use]
pub fn is_credential(name: &str) -> bool {
    const CLOUD: [&str; 4] =
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"];
    is_own_secret(name) || PROVIDER_KEYS.contains(&name) || CLOUD.contains(&name)
}

fn is_own_secret(name: &str) -> bool {
    let stem = name.strip_prefix(OWN_PREFIX).or_else(|| name.strip_prefix(ORIGINAL_PREFIX));
    stem.is_some_and(|stem| OWN_SECRETS.contains(&stem))
}

/// Whether a variable decides what programs do, and is no mere token.
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
    fn our_twin_wins_under_either_name() {
        let both = Env::from_pairs([("OPENCODE_CONFIG", "theirs"), ("CODEWRIGHT_CONFIG", "ours")]);
        assert_eq!(both.get("OPENCODE_CONFIG"), Some("ours"));
        assert_eq!(both.get("CODEWRIGHT_CONFIG"), Some("ours"));
        let theirs = Env::from_pairs([("OPENCODE_CONFIG", "theirs")]);
        assert_eq!(theirs.get(CONFIG), Some("theirs"));
        assert_eq!(theirs.get("CODEWRIGHT_CONFIG"), Some("theirs"));
        assert_eq!(theirs.get("CONFIG"), None);
    }

    #[test]
    fn an_empty_twin_of_ours_switches_the_other_off() {
        let env = Env::from_pairs([("OPENCODE_CONFIG", "theirs"), ("CODEWRIGHT_CONFIG", "")]);
        assert_eq!(env.get(CONFIG), Some(""));
        assert_eq!(env.filled(CONFIG), None);
    }

    #[test]
    fn tokens_are_laid_over_and_what_steers_is_not() {
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
    fn children_lose_provider_keys_and_our_password_and_nothing_else() {
        let env = Env::from_pairs(
            [
                "ANTHROPIC_API_KEY",
                "GITHUB_TOKEN",
                "AWS_SECRET_ACCESS_KEY",
                "STRIPE_API_KEY",
                "OPENCODE_SERVER_PASSWORD",
                "CODEWRIGHT_SERVER_PASSWORD",
                "OPENCODE_AUTH_CONTENT",
                "OPENCODE_CONFIG",
                "PATH",
            ]
            .map(|name| (name, "x")),
        );
        let expected = [
            "ANTHROPIC_API_KEY",
            "CODEWRIGHT_SERVER_PASSWORD",
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
