//! The sign-in methods of the providers.

/// A sign-in method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The label. OpenCode's clients match on these texts.
    pub label: &'static str,
    /// The flow.
    pub kind: Kind,
    /// Questions before the sign-in.
    pub prompts: &'static [Prompt],
}

/// The flow of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user enters a key.
    Api,
    /// A browser on this machine, or on another with the result pasted here.
    OpenAiBrowser,
    /// A browser on any machine, with a code shown here.
    OpenAiDevice,
    /// A browser on any machine, with a code shown here.
    Copilot,
    /// A browser on this machine, or on another with the result pasted here.
    DigitalOcean,
    /// A browser on this machine, or on another with the result pasted here.
    GitLab,
    /// A browser on this machine, or on another with the result pasted here.
    Snowflake,
    /// A browser on any machine, with a code shown here.
    Xai,
    /// A browser on this machine, or on another with the result pasted here.
    Poe,
}

/// A question before a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt {
    /// The name of the answer.
    pub key: &'static str,
    /// The question.
    pub message: &'static str,
    /// The choices as value, label and hint; if empty, the answer is a text.
    pub options: &'static [(&'static str, &'static str, &'static str)],
    /// An example answer.
    pub placeholder: &'static str,
    /// The condition of the question: another answer has this value.
    pub when: Option<(&'static str, &'static str)>,
}

const KEY: Method = Method { label: "Manually enter API Key", kind: Kind::Api, prompts: &[] };

const OPENAI: &[Method] = &[
    Method { label: "ChatGPT Pro/Plus (browser)", kind: Kind::OpenAiBrowser, prompts: &[] },
    Method { label: "ChatGPT Pro/Plus (headless)", kind: Kind::OpenAiDevice, prompts: &[] },
    KEY,
];

const COPILOT: &[Method] = &[Method {
    label: "Login with GitHub Copilot",
    kind: Kind::Copilot,
    prompts: &[
        Prompt {
            key: "deploymentType",
            message: "Select GitHub deployment type",
            options: &[
                ("github.com", "GitHub.com", "Public"),
                ("enterprise", "GitHub Enterprise", "Data residency or self-hosted"),
            ],
            placeholder: "",
            when: None,
        },
        Prompt {
            key: "enterpriseUrl",
            message: "Enter your GitHub Enterprise URL or domain",
            options: &[],
            placeholder: "company.ghe.com or https://company.ghe.com",
            when: Some(("deploymentType", "enterprise")),
        },
    ],
}];

const fn text(key: &'static str, message: &'static str, placeholder: &'static str) -> Prompt {
    Prompt { key, message, options: &[], placeholder, when: None }
}

const GITLAB_INSTANCE: &[Prompt] = &[text("instanceUrl", "GitLab instance URL", "https://gitlab.com")];
const GITLAB: &[Method] = &[
    Method { label: "GitLab OAuth", kind: Kind::GitLab, prompts: GITLAB_INSTANCE },
    Method { label: "GitLab Personal Access Token", kind: Kind::Api, prompts: GITLAB_INSTANCE },
];

const CLOUDFLARE_ACCOUNT: Prompt =
    text("accountId", "Enter your Cloudflare Account ID", "e.g. 1234567890abcdef1234567890abcdef");
const WORKERS_AI: &[Method] = &[Method { label: "API key", kind: Kind::Api, prompts: &[CLOUDFLARE_ACCOUNT] }];
const AI_GATEWAY: &[Method] = &[Method {
    label: "Gateway API token",
    kind: Kind::Api,
    prompts: &[
        CLOUDFLARE_ACCOUNT,
        text("gatewayId", "Enter your Cloudflare AI Gateway ID", "e.g. my-gateway"),
    ],
}];
const DIGITALOCEAN: &[Method] = &[
    Method { label: "Login with DigitalOcean", kind: Kind::DigitalOcean, prompts: &[] },
    Method { label: "Paste Model Access Key", kind: Kind::Api, prompts: &[] },
];

const SNOWFLAKE_ACCOUNT: Prompt = text("account", "Snowflake Account Identifier", "myorg-myaccount");
const SNOWFLAKE: &[Method] = &[
    Method {
        label: "Login with Snowflake (External Browser)",
        kind: Kind::Snowflake,
        prompts: &[SNOWFLAKE_ACCOUNT, text("role", "Snowflake Role (optional)", "PUBLIC")],
    },
    Method { label: "Paste PAT or bearer token manually", kind: Kind::Api, prompts: &[SNOWFLAKE_ACCOUNT] },
];

const XAI: &[Method] = &[Method { label: "SuperGrok Subscription", kind: Kind::Xai, prompts: &[] }, KEY];

const AZURE: &[Method] = &[Method {
    label: "API key",
    kind: Kind::Api,
    prompts: &[text("resourceName", "Enter Azure Resource Name", "e.g. my-models")],
}];

const POE: &[Method] = &[Method { label: "Login with Poe (browser)", kind: Kind::Poe, prompts: &[] }, KEY];

/// Returns the sign-in methods of a provider, in display order. The default is a key.
#[must_use]
pub fn methods(provider: &str) -> &'static [Method] {
    match provider {
        "openai" => OPENAI,
        "github-copilot" => COPILOT,
        "gitlab" => GITLAB,
        "poe" => POE,
        "cloudflare-workers-ai" => WORKERS_AI,
        "cloudflare-ai-gateway" => AI_GATEWAY,
        "azure" => AZURE,
        "digitalocean" => DIGITALOCEAN,
        "snowflake-cortex" => SNOWFLAKE,
        "xai" => XAI,
        _ => &[KEY],
    }
}
