//! The names of all variables that the program reads, and tables that describe them.
//!
//! `docs/environment.md` is generated from the tables.

/// The user's home directory.
pub const HOME: &str = "HOME";
/// The user's name, displayed next to prompts.
pub const USER: &str = "USER";
/// The user's name if `USER` is not set.
pub const LOGNAME: &str = "LOGNAME";
/// The directory of configuration. Default: `$HOME/.config`.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// The directory of sessions and credentials. Default: `$HOME/.local/share`.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// The directory of locks and logs. Default: `$HOME/.local/state`.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// The directory of downloads that can be repeated. Default: `$HOME/.cache`.
pub const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
/// The directory of temporary files. Default: `/tmp`.
pub const TMPDIR: &str = "TMPDIR";
/// The time zone, instead of the system's.
pub const TZ: &str = "TZ";
/// Disables colours if it is not empty.
pub const NO_COLOR: &str = "NO_COLOR";
/// The directories that are searched for programs.
pub const PATH: &str = "PATH";
/// The user's shell, for the model's commands.
pub const SHELL: &str = "SHELL";
/// The socket of the SSH agent.
pub const SSH_AUTH_SOCK: &str = "SSH_AUTH_SOCK";
/// The address of the session's message bus.
pub const DBUS_SESSION_BUS_ADDRESS: &str = "DBUS_SESSION_BUS_ADDRESS";
/// The address of the container service.
pub const DOCKER_HOST: &str = "DOCKER_HOST";
/// The directory of the user's sockets.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// The address of the Ollama server.
pub const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// The address of Bedrock, instead of the region's address.
pub const AWS_ENDPOINT_URL_BEDROCK_RUNTIME: &str = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME";
/// Amazon's variables for credentials, files and service addresses.
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

/// OpenTelemetry's variables: the export of spans.
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

/// The variables of libpq that an address of a PostgreSQL database uses.
pub const POSTGRES: &[&str] = &[
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGDATABASE",
    "PGUSER",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGSSLCERT",
    "PGSSLKEY",
    "PGCONNECT_TIMEOUT",
    "PGAPPNAME",
    "PGOPTIONS",
    "PGCHANNELBINDING",
    "PGTARGETSESSIONATTRS",
    "PGLOADBALANCEHOSTS",
];

/// Proxies and certificate authorities, by their common names.
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

/// The user's settings of npm.
pub const NPM_SETTINGS: &[&str] = &["npm_config_userconfig", "NPM_CONFIG_USERCONFIG"];
/// The user's npm registry.
pub const NPM_REGISTRY: &[&str] = &["npm_config_registry", "NPM_CONFIG_REGISTRY"];

/// The Google project of Vertex AI. The first variable that is set counts.
pub const GOOGLE_PROJECTS: &[&str] =
    &["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCP_PROJECT", "GCLOUD_PROJECT"];
/// The location of Vertex AI. The first variable that is set counts.
pub const GOOGLE_LOCATIONS: &[&str] = &["GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION", "VERTEX_LOCATION"];
/// A key for Vertex AI without a project.
pub const GOOGLE_VERTEX_API_KEY: &str = "GOOGLE_VERTEX_API_KEY";
/// Google's key file of a service account or a signed-in user.
pub const GOOGLE_APPLICATION_CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// The configuration directory of `gcloud`. Default: `$HOME/.config/gcloud`.
pub const CLOUDSDK_CONFIG: &str = "CLOUDSDK_CONFIG";
/// The metadata server of a machine at Google.
pub const GCE_METADATA_HOST: &str = "GCE_METADATA_HOST";
/// The address of a GitLab instance. Default: `https://gitlab.com`.
pub const GITLAB_INSTANCE_URL: &str = "GITLAB_INSTANCE_URL";
/// The address of the instance's AI gateway.
pub const GITLAB_AI_GATEWAY_URL: &str = "GITLAB_AI_GATEWAY_URL";
/// The OAuth client id of this program at the instance.
pub const GITLAB_OAUTH_CLIENT_ID: &str = "GITLAB_OAUTH_CLIENT_ID";

/// A configuration file, read after the global ones.
pub const CONFIG: &str = "OPENCODE_CONFIG";
/// A configuration directory, read after the project's.
pub const CONFIG_DIR: &str = "OPENCODE_CONFIG_DIR";
/// A configuration document, which overrides all files.
pub const CONFIG_CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
/// The `permission` key as JSON, which overrides all files.
pub const PERMISSION: &str = "OPENCODE_PERMISSION";
/// Ignore the project's configuration and instruction files.
pub const DISABLE_PROJECT_CONFIG: &str = "OPENCODE_DISABLE_PROJECT_CONFIG";
/// The default for repositories: `ask` (default), `all` (trust all) or `none` (trust none).
pub const TRUST: &str = "OPENCODE_TRUST";
/// Another sandbox, such as a container, contains the program.
pub const SANDBOX_OUTER: &str = "OPENCODE_SANDBOX_OUTER";
/// The strongest mechanism that the sandbox may use.
pub const SANDBOX_MECHANISM: &str = "OPENCODE_SANDBOX_MECHANISM";
/// The channel of the editor in whose terminal the program runs.
pub const EDITOR_CHANNEL: &str = "OPENCODE_EDITOR";
/// Credentials as JSON, instead of the files.
pub const AUTH_CONTENT: &str = "OPENCODE_AUTH_CONTENT";
/// The password of the server.
pub const SERVER_PASSWORD: &str = "OPENCODE_SERVER_PASSWORD";
/// The user name of the server (default: `opencode`).
pub const SERVER_USERNAME: &str = "OPENCODE_SERVER_USERNAME";
/// The address of the database of sessions, instead of the file.
pub const STORE: &str = "OPENCODE_STORE";
/// The secret that servers which share a database have in common.
pub const NODE_SECRET: &str = "OPENCODE_NODE_SECRET";
/// The client that started the program; decides whether questions are possible.
pub const CLIENT: &str = "OPENCODE_CLIENT";
/// Ignore `~/.claude/CLAUDE.md` and `CLAUDE.md`.
pub const DISABLE_CLAUDE_CODE_PROMPT: &str = "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT";
/// Ignore Claude Code's instructions and skills.
pub const DISABLE_CLAUDE_CODE: &str = "OPENCODE_DISABLE_CLAUDE_CODE";
/// Run no plugins and no tool files.
pub const PURE: &str = "OPENCODE_PURE";
/// Ignore the skills in `.claude/skills`.
pub const DISABLE_CLAUDE_CODE_SKILLS: &str = "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS";
/// Ignore the skills in `.claude/skills` and `.agents/skills`.
pub const DISABLE_EXTERNAL_SKILLS: &str = "OPENCODE_DISABLE_EXTERNAL_SKILLS";
/// Never download the model list.
pub const DISABLE_MODELS_FETCH: &str = "OPENCODE_DISABLE_MODELS_FETCH";
/// The address of the model list, instead of models.dev.
pub const MODELS_URL: &str = "OPENCODE_MODELS_URL";
/// Offer web search.
pub const ENABLE_EXA: &str = "OPENCODE_ENABLE_EXA";
/// The address of the web search, instead of Exa's.
pub const EXA_URL: &str = "OPENCODE_EXA_URL";
/// The key of an Exa account. Web search works without one, with a lower limit.
pub const EXA_API_KEY: &str = "EXA_API_KEY";
/// Enable all experiments except background commands.
pub const EXPERIMENTAL: &str = "OPENCODE_EXPERIMENTAL";
/// Let the plan agent write a plan file.
pub const EXPERIMENTAL_PLAN_MODE: &str = "OPENCODE_EXPERIMENTAL_PLAN_MODE";
/// Offer the tool that queries language servers.
pub const EXPERIMENTAL_LSP_TOOL: &str = "OPENCODE_EXPERIMENTAL_LSP_TOOL";
/// Never install language servers.
pub const DISABLE_LSP_DOWNLOAD: &str = "OPENCODE_DISABLE_LSP_DOWNLOAD";
/// Check Python with ty instead of pyright.
pub const EXPERIMENTAL_LSP_TY: &str = "OPENCODE_EXPERIMENTAL_LSP_TY";
/// Let the model propose to make a plan first.
pub const EXPERIMENTAL_PLAN_ENTER: &str = "OPENCODE_EXPERIMENTAL_PLAN_ENTER";
/// Let subagents run in the background.
pub const EXPERIMENTAL_BACKGROUND_SUBAGENTS: &str = "OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS";
/// Report changes of files that other programs make in `run`, too.
pub const EXPERIMENTAL_FILEWATCHER: &str = "OPENCODE_EXPERIMENTAL_FILEWATCHER";
/// Never watch files, not even the branch of a repository.
pub const EXPERIMENTAL_DISABLE_FILEWATCHER: &str = "OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER";
/// Offer commands in the background.
pub const EXPERIMENTAL_BACKGROUND: &str = "OPENCODE_EXPERIMENTAL_BACKGROUND_COMMANDS";
/// Offer the formatter oxfmt.
pub const EXPERIMENTAL_OXFMT: &str = "OPENCODE_EXPERIMENTAL_OXFMT";
/// Do not search for model servers on this machine.
pub const DISABLE_LOCAL_SERVERS: &str = "OPENCODE_DISABLE_LOCAL_SERVERS";

/// A file for the terminal client, which overrides all others.
pub const TUI_CONFIG: &str = "OPENCODE_TUI_CONFIG";
/// The type of the terminal.
pub const TERM: &str = "TERM";
/// Whether the terminal supports 24-bit colours.
pub const COLORTERM: &str = "COLORTERM";
/// The terminal's text and background colours.
pub const COLORFGBG: &str = "COLORFGBG";
/// The locale; overrides `LC_CTYPE` and `LANG`.
pub const LC_ALL: &str = "LC_ALL";
/// The locale of characters; overrides `LANG`.
pub const LC_CTYPE: &str = "LC_CTYPE";
/// The default locale.
pub const LANG: &str = "LANG";
/// Set inside tmux.
pub const TMUX: &str = "TMUX";
/// Set inside GNU screen.
pub const STY: &str = "STY";
/// The program that displays the terminal.
pub const TERM_PROGRAM: &str = "TERM_PROGRAM";
/// The program that reads git passwords from the user. Its path names the editor in whose terminal the program runs.
pub const GIT_ASKPASS: &str = "GIT_ASKPASS";
/// A script of Visual Studio Code's git extension. Its path names the editor in whose terminal the program runs.
pub const VSCODE_GIT_ASKPASS_MAIN: &str = "VSCODE_GIT_ASKPASS_MAIN";
/// Set in the terminal of Visual Studio Code on another machine.
pub const VSCODE_IPC_HOOK_CLI: &str = "VSCODE_IPC_HOOK_CLI";
/// Set in the terminal of Visual Studio Code.
pub const VSCODE_INJECTION: &str = "VSCODE_INJECTION";
/// Set in the terminal of Zed.
pub const ZED_TERM: &str = "ZED_TERM";
/// The socket of Neovim, set in its terminal.
pub const NVIM: &str = "NVIM";
/// Set in the terminals of Emacs.
pub const INSIDE_EMACS: &str = "INSIDE_EMACS";
/// Set in the terminal of JetBrains' editors.
pub const TERMINAL_EMULATOR: &str = "TERMINAL_EMULATOR";
/// The version of the VTE terminal library, as in GNOME's terminal.
pub const VTE_VERSION: &str = "VTE_VERSION";
/// Set in KDE's terminal.
pub const KONSOLE_VERSION: &str = "KONSOLE_VERSION";
/// Set in the Windows terminal.
pub const WT_SESSION: &str = "WT_SESSION";
/// Set in a session over SSH.
pub const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// The X11 display.
pub const DISPLAY: &str = "DISPLAY";
/// The Wayland display.
pub const WAYLAND_DISPLAY: &str = "WAYLAND_DISPLAY";
/// Set inside the Windows Subsystem for Linux.
pub const WSL_DISTRO_NAME: &str = "WSL_DISTRO_NAME";
/// The user's browsers: commands separated by colons, with `%s` for the address.
pub const BROWSER: &str = "BROWSER";
/// The user's full-screen editor.
pub const VISUAL: &str = "VISUAL";
/// The user's editor.
pub const EDITOR: &str = "EDITOR";

/// The variables of this program with their descriptions. Each has a `CODEWRIGHT_` variant.
pub const OWN: &[(&str, &str)] = &[
    (CONFIG, "a configuration file, read after the global ones"),
    (CONFIG_DIR, "a configuration directory, read after the project's"),
    (CONFIG_CONTENT, "a configuration document, which overrides all files"),
    (PERMISSION, "the `permission` key as JSON, which overrides all files"),
    (DISABLE_PROJECT_CONFIG, "ignore the project's configuration and instruction files"),
    (
        TRUST,
        "the decision for repositories without one: `ask` (default), `all` (trust) or `none` (do not trust)",
    ),
    (SANDBOX_OUTER, "the program runs in a container that serves as the sandbox, like `sandbox.outer`"),
    (
        SANDBOX_MECHANISM,
        "the strongest mechanism that the sandbox uses: `bubblewrap` (which also makes the mounts), `unchecked` (names of new files are not compared), `landlock`, `landlock:VERSION` or `none` (default: any)",
    ),
    (
        EDITOR_CHANNEL,
        "the channel of the editor in whose terminal the program runs: `<editor>:<port>:<token>`",
    ),
    (AUTH_CONTENT, "credentials as JSON, instead of the files"),
    (SERVER_PASSWORD, "the password of the server"),
    (SERVER_USERNAME, "the user name of the server (default: `opencode`)"),
    (
        STORE,
        "the address of the database of sessions, such as `postgres://…`, instead of the file; see [PostgreSQL](guides/postgresql.md)",
    ),
    (
        NODE_SECRET,
        "the secret that servers which share a database have in common, instead of the key `node.secret`; see [nodes](guides/nodes.md)",
    ),
    (CLIENT, "the client that started the program; decides whether questions are possible"),
    (PURE, "run no plugins and no tool files"),
    (DISABLE_CLAUDE_CODE, "ignore Claude Code's instructions and skills"),
    (DISABLE_CLAUDE_CODE_PROMPT, "ignore `~/.claude/CLAUDE.md` and `CLAUDE.md`"),
    (DISABLE_CLAUDE_CODE_SKILLS, "ignore the skills in `.claude/skills`"),
    (DISABLE_EXTERNAL_SKILLS, "ignore the skills in `.claude/skills` and `.agents/skills`"),
    (DISABLE_MODELS_FETCH, "never download the model list"),
    (MODELS_URL, "the address of the model list, instead of models.dev"),
    (ENABLE_EXA, "offer web search"),
    (EXA_URL, "the address of the web search, instead of Exa's"),
    (EXPERIMENTAL, "enable all experiments except background commands"),
    (EXPERIMENTAL_PLAN_MODE, "let the plan agent write a plan file"),
    (EXPERIMENTAL_LSP_TOOL, "offer the tool that queries language servers"),
    (DISABLE_LSP_DOWNLOAD, "never install language servers, even if `lsp_install` is set"),
    (EXPERIMENTAL_LSP_TY, "check Python with the language server ty instead of pyright"),
    (EXPERIMENTAL_PLAN_ENTER, "let the model propose to make a plan first"),
    (EXPERIMENTAL_BACKGROUND_SUBAGENTS, "let subagents run in the background"),
    (EXPERIMENTAL_FILEWATCHER, "watch files in `run`, too"),
    (EXPERIMENTAL_DISABLE_FILEWATCHER, "never watch files, not even the branch of a repository"),
    (EXPERIMENTAL_BACKGROUND, "offer commands in the background"),
    (EXPERIMENTAL_OXFMT, "offer the formatter oxfmt"),
    (DISABLE_LOCAL_SERVERS, "do not search for model servers on this machine"),
    (TUI_CONFIG, "a file for the terminal client, which overrides all others"),
    ("OPENCODE_API_KEY", "the key of OpenCode Zen"),
];

/// OpenCode's variables that have no effect, with the reasons.
pub const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("OPENCODE_BUN", "the program contains no JavaScript runtime"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "the program never updates itself"),
    ("OPENCODE_PID", "never read, and not passed on to commands"),
];

/// Variables of the system and of other programs that this program reads too, with their descriptions.
pub const SHARED: &[(&str, &str)] = &[
    (HOME, "the user's home directory"),
    (USER, "the user's name, displayed next to prompts"),
    (LOGNAME, "the user's name if `USER` is not set"),
    (XDG_CONFIG_HOME, "the directory of configuration. Default: `$HOME/.config`"),
    (XDG_DATA_HOME, "the directory of sessions and credentials. Default: `$HOME/.local/share`"),
    (XDG_STATE_HOME, "the directory of locks and logs. Default: `$HOME/.local/state`"),
    (XDG_CACHE_HOME, "the directory of downloads that can be repeated. Default: `$HOME/.cache`"),
    (TMPDIR, "the directory of temporary files. Default: `/tmp`"),
    (TZ, "the time zone, instead of the system's"),
    (NO_COLOR, "disables colours if it is not empty"),
    (PATH, "the directories that are searched for programs"),
    (SHELL, "the user's shell, for the model's commands"),
    (SSH_AUTH_SOCK, "the socket of the SSH agent, which the sandbox hides"),
    (DBUS_SESSION_BUS_ADDRESS, "the message bus, which the sandbox hides"),
    (DOCKER_HOST, "the container service, which the sandbox hides"),
    (XDG_RUNTIME_DIR, "the directory of sockets, which the sandbox hides"),
    (OLLAMA_HOST, "the address of the Ollama server"),
    (AWS_ENDPOINT_URL_BEDROCK_RUNTIME, "the address of Bedrock, instead of the region's address"),
    (GOOGLE_VERTEX_API_KEY, "a key for Vertex AI without a project"),
    (GOOGLE_APPLICATION_CREDENTIALS, "Google's key file of a service account or a signed-in user"),
    (CLOUDSDK_CONFIG, "the configuration directory of `gcloud`. Default: `$HOME/.config/gcloud`"),
    (GCE_METADATA_HOST, "the metadata server of a machine at Google"),
    (GITLAB_INSTANCE_URL, "the address of a GitLab instance. Default: `https://gitlab.com`"),
    (GITLAB_AI_GATEWAY_URL, "the address of the instance's AI gateway"),
    (GITLAB_OAUTH_CLIENT_ID, "the OAuth client id of this program at the instance"),
    (EXA_API_KEY, "the key of an Exa account. Web search works without one, with a lower limit"),
    (TERM, "the type of the terminal"),
    (COLORTERM, "whether the terminal supports 24-bit colours"),
    (COLORFGBG, "the terminal's text and background colours"),
    (LC_ALL, "the locale; overrides `LC_CTYPE` and `LANG`"),
    (LC_CTYPE, "the locale of characters; overrides `LANG`"),
    (LANG, "the default locale"),
    (TMUX, "set inside tmux"),
    (STY, "set inside GNU screen"),
    (
        TERM_PROGRAM,
        "the program that displays the terminal: whether it has links, and the editor it belongs to",
    ),
    (
        GIT_ASKPASS,
        "the program that reads git passwords from the user; its path names the editor of the terminal",
    ),
    (VSCODE_GIT_ASKPASS_MAIN, "a script of Visual Studio Code; its path names the editor of the terminal"),
    (VSCODE_IPC_HOOK_CLI, "set in the terminal of Visual Studio Code on another machine"),
    (VSCODE_INJECTION, "set in the terminal of Visual Studio Code"),
    (ZED_TERM, "set in the terminal of Zed"),
    (NVIM, "the socket of Neovim, set in its terminal"),
    (INSIDE_EMACS, "set in the terminals of Emacs"),
    (TERMINAL_EMULATOR, "set in the terminal of JetBrains' editors"),
    (VTE_VERSION, "the version of the VTE terminal library, which has links since 0.50"),
    (KONSOLE_VERSION, "set in KDE's terminal, which has links"),
    (WT_SESSION, "set in the Windows terminal, which has links"),
    (SSH_CONNECTION, "set in a session over SSH, where the terminal cannot open files"),
    (DISPLAY, "the X11 display"),
    (WAYLAND_DISPLAY, "the Wayland display"),
    (WSL_DISTRO_NAME, "set inside the Windows Subsystem for Linux"),
    (BROWSER, "the user's browsers: commands separated by colons, with `%s` for the address"),
    (VISUAL, "the user's full-screen editor"),
    (EDITOR, "the user's editor"),
];

/// Groups of variables of other programs, with their descriptions.
pub const SHARED_GROUPS: &[(&[&str], &str)] = &[
    (AWS, "Amazon's variables for credentials, files and service addresses"),
    (GOOGLE_PROJECTS, "the Google project of Vertex AI; the first that is set counts"),
    (GOOGLE_LOCATIONS, "the location of Vertex AI; the first that is set counts"),
    (NETWORK, "proxies and certificate authorities"),
    (NPM_SETTINGS, "npm's settings, whose registries are used to install plugins. Default: `$HOME/.npmrc`"),
    (NPM_REGISTRY, "the npm registry, instead of that of the settings"),
    (
        POSTGRES,
        "the connection to a store in PostgreSQL, with the meaning of libpq; see [PostgreSQL](guides/postgresql.md)",
    ),
    (TELEMETRY, "the export of spans, see [telemetry](configuration.md#telemetry)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_is_in_a_table() {
        let constants = include_str!("names.rs").lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("pub const ")?.split_once(": &str = \"")?;
            Some((name, value.strip_suffix("\";")?))
        });
        let listed = |value: &str| OWN.iter().chain(SHARED).filter(|(name, _)| *name == value).count();
        let mut count = 0;
        for (name, value) in constants {
            assert_eq!(listed(value), 1, "{name}");
            count += 1;
        }
        assert!(count > 50, "the constants are recognized");
    }
}
