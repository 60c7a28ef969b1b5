//! The table of providers.

use super::ProviderRow;
use crate::{Protocol, Quirk};

pub(super) const PROVIDERS: &[ProviderRow] = &[
    ProviderRow {
        id: "anthropic",
        name: "Anthropic",
        env: &["ANTHROPIC_API_KEY"],
        base_url: "https://api.anthropic.com/v1",
        npm: "@ai-sdk/anthropic",
        protocol: Protocol::Anthropic,
        quirks: &[],
        local: false,
    },
    ProviderRow {
        npm: "@ai-sdk/openai",
        protocol: Protocol::OpenAiResponses,
        ..chat("openai", "OpenAI", &["OPENAI_API_KEY"], "https://api.openai.com/v1")
    },
    ProviderRow {
        npm: "@ai-sdk/google",
        protocol: Protocol::Gemini,
        ..chat(
            "google",
            "Google",
            &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
            "https://generativelanguage.googleapis.com/v1beta",
        )
    },
    ProviderRow {
        npm: "@openrouter/ai-sdk-provider",
        quirks: &[Quirk::ReasoningField, Quirk::ReasoningDetails],
        ..chat("openrouter", "OpenRouter", &["OPENROUTER_API_KEY"], "https://openrouter.ai/api/v1")
    },
    ProviderRow {
        npm: "@ai-sdk/alibaba",
        ..chat(
            "alibaba",
            "Alibaba",
            &["DASHSCOPE_API_KEY"],
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        )
    },
    ProviderRow {
        npm: "@ai-sdk/azure",
        protocol: Protocol::OpenAiResponses,
        ..chat("azure", "Azure", &["AZURE_API_KEY"], "")
    },
    ProviderRow {
        npm: "@ai-sdk/cerebras",
        ..chat("cerebras", "Cerebras", &["CEREBRAS_API_KEY"], "https://api.cerebras.ai/v1")
    },
    chat("chutes", "Chutes", &["CHUTES_API_KEY"], "https://llm.chutes.ai/v1"),
    ProviderRow {
        npm: "@ai-sdk/deepinfra",
        ..chat("deepinfra", "Deep Infra", &["DEEPINFRA_API_KEY"], "https://api.deepinfra.com/v1/openai")
    },
    chat("deepseek", "DeepSeek", &["DEEPSEEK_API_KEY"], "https://api.deepseek.com"),
    chat("fireworks-ai", "Fireworks AI", &["FIREWORKS_API_KEY"], "https://api.fireworks.ai/inference/v1"),
    ProviderRow {
        npm: "@ai-sdk/github-copilot",
        // `GITHUB_TOKEN` is not used: many users have one for other purposes, and the server
        // rejects it.
        ..chat("github-copilot", "GitHub Copilot", &["COPILOT_GITHUB_TOKEN"], "https://api.githubcopilot.com")
    },
    chat("github-models", "GitHub Models", &["GITHUB_TOKEN"], "https://models.github.ai/inference"),
    ProviderRow {
        npm: "@ai-sdk/groq",
        quirks: &[Quirk::ReasoningField],
        ..chat("groq", "Groq", &["GROQ_API_KEY"], "https://api.groq.com/openai/v1")
    },
    chat("huggingface", "Hugging Face", &["HF_TOKEN"], "https://router.huggingface.co/v1"),
    ProviderRow {
        npm: "@ai-sdk/anthropic",
        protocol: Protocol::Anthropic,
        ..chat("minimax", "MiniMax", &["MINIMAX_API_KEY"], "https://api.minimax.io/anthropic/v1")
    },
    ProviderRow {
        npm: "@ai-sdk/mistral",
        quirks: &[Quirk::MistralIds, Quirk::MistralMessages],
        ..chat("mistral", "Mistral", &["MISTRAL_API_KEY"], "https://api.mistral.ai/v1")
    },
    chat("moonshotai", "Moonshot AI", &["MOONSHOT_API_KEY"], "https://api.moonshot.ai/v1"),
    chat("nebius", "Nebius", &["NEBIUS_API_KEY"], "https://api.tokenfactory.nebius.com/v1"),
    chat("nvidia", "Nvidia", &["NVIDIA_API_KEY"], "https://integrate.api.nvidia.com/v1"),
    chat("opencode", "OpenCode Zen", &["OPENCODE_API_KEY"], "https://opencode.ai/zen/v1"),
    chat("poe", "Poe", &["POE_API_KEY"], "https://api.poe.com/v1"),
    ProviderRow {
        npm: "@ai-sdk/perplexity",
        ..chat("perplexity", "Perplexity", &["PERPLEXITY_API_KEY"], "https://api.perplexity.ai")
    },
    ProviderRow {
        npm: "@ai-sdk/togetherai",
        ..chat("togetherai", "Together AI", &["TOGETHER_API_KEY"], "https://api.together.xyz/v1")
    },
    ProviderRow { npm: "@ai-sdk/vercel", ..chat("v0", "v0", &["V0_API_KEY"], "https://api.v0.dev/v1") },
    ProviderRow {
        npm: "venice-ai-sdk-provider",
        ..chat("venice", "Venice AI", &["VENICE_API_KEY"], "https://api.venice.ai/api/v1")
    },
    ProviderRow {
        npm: "@ai-sdk/gateway",
        ..chat("vercel", "Vercel AI Gateway", &["AI_GATEWAY_API_KEY"], "https://ai-gateway.vercel.sh/v1")
    },
    ProviderRow {
        npm: "@ai-sdk/xai",
        protocol: Protocol::OpenAiResponses,
        ..chat("xai", "xAI", &["XAI_API_KEY"], "https://api.x.ai/v1")
    },
    chat("zai", "Z.AI", &["ZHIPU_API_KEY"], "https://api.z.ai/api/paas/v4"),
    chat("zai-coding-plan", "Z.AI Coding Plan", &["ZHIPU_API_KEY"], "https://api.z.ai/api/coding/paas/v4"),
    ProviderRow {
        npm: "@ai-sdk/cohere",
        protocol: Protocol::Cohere,
        ..chat("cohere", "Cohere", &["COHERE_API_KEY"], "https://api.cohere.com/v2")
    },
    // The token buys access tokens from the user's GitLab instance.
    ProviderRow {
        npm: super::GITLAB,
        protocol: Protocol::Anthropic,
        ..chat("gitlab", "GitLab Duo", &["GITLAB_TOKEN"], "https://cloud.gitlab.com/ai/v1/proxy/anthropic/v1")
    },
    ProviderRow {
        npm: super::CLOUDFLARE_GATEWAY,
        ..chat("cloudflare-ai-gateway", "Cloudflare AI Gateway", &["CLOUDFLARE_API_TOKEN"], "")
    },
    chat("snowflake-cortex", "Snowflake Cortex", &["SNOWFLAKE_CORTEX_TOKEN", "SNOWFLAKE_CORTEX_PAT"], ""),
    // The URL depends on the region, and keys can also be in many other places.
    ProviderRow {
        npm: "@ai-sdk/amazon-bedrock",
        protocol: Protocol::Bedrock,
        ..chat(
            "amazon-bedrock",
            "Amazon Bedrock",
            &["AWS_BEARER_TOKEN_BEDROCK"],
            "https://bedrock-runtime.us-east-1.amazonaws.com",
        )
    },
    // The URLs of these two contain a project and a location, and the variables contain a project
    // instead of a key.
    ProviderRow {
        npm: "@ai-sdk/google-vertex",
        protocol: Protocol::Gemini,
        ..chat("google-vertex", "Vertex", VERTEX, "https://aiplatform.googleapis.com/v1beta1")
    },
    ProviderRow {
        npm: "@ai-sdk/google-vertex/anthropic",
        protocol: Protocol::Anthropic,
        ..chat(
            "google-vertex-anthropic",
            "Vertex (Anthropic)",
            VERTEX,
            "https://aiplatform.googleapis.com/v1",
        )
    },
    local("ollama", "Ollama", "http://127.0.0.1:11434/v1"),
    local("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1"),
    local("llama.cpp", "llama.cpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "vLLM", "http://127.0.0.1:8000/v1"),
];

const VERTEX: &[&str] = &["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCP_PROJECT", "GCLOUD_PROJECT"];

const fn chat(
    id: &'static str,
    name: &'static str,
    env: &'static [&'static str],
    base_url: &'static str,
) -> ProviderRow {
    ProviderRow {
        id,
        name,
        env,
        base_url,
        npm: "@ai-sdk/openai-compatible",
        protocol: Protocol::OpenAiChat,
        quirks: &[],
        local: false,
    }
}

const fn local(id: &'static str, name: &'static str, base_url: &'static str) -> ProviderRow {
    ProviderRow { local: true, quirks: &[Quirk::PrintedCalls], ..chat(id, name, &[], base_url) }
}
