//! Files and directories that may have secrets. An approval of others does not cover them.

use std::path::Path;

use crate::evaluate::{Subject, matches};
use crate::kind::Permission;

/// Credentials and private data, below the home directory.
pub const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".oci",
    ".bluemix",
    ".aliyun",
    ".config/linode-cli",
    ".kube",
    ".config/helm",
    ".docker",
    ".config/containers",
    ".local/share/containers",
    ".minikube",
    ".colima",
    ".lima",
    ".rd",
    ".orbstack",
    ".vagrant.d",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".config/op",
    ".config/Bitwarden CLI",
    ".fly",
    ".config/heroku",
    ".config/netlify",
    ".config/vercel",
    ".local/share/com.vercel.cli",
    ".wrangler",
    ".config/.wrangler",
    ".config/stripe",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".config/pnpm/rc",
    ".pypirc",
    ".config/pypoetry/auth.toml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".bundle/config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/composer/auth.json",
    ".composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    ".hex",
    ".sbt/credentials",
    ".ivy2/.credentials",
    ".conda/aau_token",
    ".huggingface",
    ".cache/huggingface/token",
    ".kaggle",
    ".databrickscfg",
    ".snowflake",
    ".snowsql",
    ".dbt",
    ".pgpass",
    ".postgresql",
    ".my.cnf",
    ".mylogin.cnf",
    ".mongorc.js",
    ".rediscli_auth",
    ".boto",
    ".s3cfg",
    ".config/rclone",
    ".config/restic",
    ".config/sops",
    ".config/age",
    ".msmtprc",
    ".mbsyncrc",
    ".config/neomutt",
    ".fetchmailrc",
    ".config/openvpn",
    ".config/wireguard",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".config/solana",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".gemini",
    ".config/github-copilot",
    ".config/openai",
    ".config/anthropic",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/kwalletrc",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".librewolf",
    ".thunderbird",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".local/share/TelegramDesktop",
    "snap/firefox",
    "snap/chromium",
    ".var/app",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Mail",
    "Library/Messages",
    "Library/Safari",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
];

/// Names of files with secrets, in lower case.
const FILES: &[&str] = &[
    "*.env",
    "*.env.*",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*credentials*",
    "secrets.*",
];
/// Names of files that only show the form.
const EXAMPLES: &[&str] = &["*.example", "*.sample", "*.template", "*.dist"];

/// Whether a read, or the use of a directory outside, may reveal secrets.
pub fn is_secret(subject: Subject<'_>) -> bool {
    let path = Path::new(subject.pattern);
    let is = |permission: Permission| subject.permission == permission.as_str();
    if is(Permission::Read) {
        is_file(path) || is_below(path)
    } else {
        is(Permission::ExternalDirectory) && is_below(path)
    }
}

fn is_file(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let any = |names: &[&str]| names.iter().any(|pattern| matches(pattern, &name));
    any(FILES) && !any(EXAMPLES)
}

/// Whether a path is one of those with sign-ins and keys, or below one.
fn is_below(path: &Path) -> bool {
    let names: Vec<_> = path.iter().collect();
    SECRETS.iter().any(|row| {
        let row: Vec<_> = Path::new(row).iter().collect();
        names.windows(row.len()).any(|names| names == row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_by_their_names() {
        for (permission, pattern, expected) in [
            ("read", ".env", true),
            ("read", "a/.env.local", true),
            ("read", "a/.env.example", false),
            ("read", "keys/server.PEM", true),
            ("read", "src/environment.rs", false),
            ("read", "../home/.aws/credentials", true),
            ("edit", ".env", false),
            ("external_directory", "/home/ann/.ssh/*", true),
            ("external_directory", "/home/ann/.config/gh/deep/*", true),
            ("external_directory", "/home/ann/.config/*", false),
            ("external_directory", "/home/ann/*", false),
        ] {
            assert_eq!(is_secret(Subject::new(permission, pattern)), expected, "{permission} {pattern}");
        }
    }
}
