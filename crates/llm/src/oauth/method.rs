//! The ways to sign in, by provider.

/// One way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// What it is called; clients know these words.
    pub label: &'static str,
    /// How it is done.
    pub kind: Kind,
    /// What is asked first.
    pub prompts: &'static [Prompt],
}

/// How a sign-in is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user gives a key.
    Api,
    /// In a browser on this machine, or elsewhere with the result pasted here.
    OpenAiBrowser,
    /// In a browser anywhere, with a code shown here.
    OpenAiDevice,
    /// In a browser anywhere, with a code shown here.
    Copilot,
    /// In a browser on this machine, or elsewhere with the result pasted here.
    Poe,
}

/// A question before a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt {
    /// The name of the answer.
    pub key: &'static str,
    /// The question.
    pub message: &'static str,
    /// The answers to choose from as value, label and hint; without any, a text.
    pub options: &'static [(&'static str, &'static str, &'static str)],
    /// What an answer looks like.
    pub placeholder: &'static str,
    /// Asked only when another answer is this one.
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

const POE: &[Method] = &[Method { label: "Login with Poe (browser)", kind: Kind::Poe, prompts: &[] }, KEY];

/// The ways to sign in to a provider, in the order they are offered; a key alone where nothing else is known.
#[must_use]
pub fn methods(provider: &str) -> &'static [Method] {
    match provider {
        "openai" => OPENAI,
        "github-copilot" => COPILOT,
        "poe" => POE,
        _ => &[KEY],
    }
}
