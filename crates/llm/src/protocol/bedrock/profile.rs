//! The inference profile of a model in a region.
//!
//! Many models cannot be used with their plain id, but with a geography's prefix before it. Users
//! write the plain id.

/// Prefixes of profiles. An id with a prefix is not changed.
const PREFIXES: &[&str] = &["global.", "us.", "us-gov.", "eu.", "apac.", "jp.", "au.", "ca.", "sa."];

/// A geography: its prefix, its regions, and the models that need the prefix there. The first match
/// is used.
struct Geography {
    prefix: &'static str,
    regions: fn(&str) -> bool,
    models: &'static [&'static str],
}

const GEOGRAPHIES: &[Geography] = &[
    Geography {
        prefix: "us.",
        regions: |region| region.starts_with("us-") && !region.starts_with("us-gov-"),
        models: &[
            "claude",
            "nova-",
            "deepseek.r1",
            "llama3-1-",
            "llama3-2-",
            "llama3-3-",
            "llama4-",
            "pixtral",
        ],
    },
    Geography {
        prefix: "eu.",
        regions: |region| region.starts_with("eu-"),
        models: &["claude", "nova-lite", "nova-micro", "nova-pro", "nova-2", "llama3-2-", "pixtral"],
    },
    Geography {
        prefix: "au.",
        regions: |region| matches!(region, "ap-southeast-2" | "ap-southeast-4"),
        models: &["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-opus-4-6"],
    },
    Geography {
        prefix: "jp.",
        regions: |region| matches!(region, "ap-northeast-1" | "ap-northeast-3"),
        models: &["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-opus-4-6", "nova-2"],
    },
    Geography {
        prefix: "apac.",
        regions: |region| region.starts_with("ap-"),
        models: &["claude", "nova-lite", "nova-micro", "nova-pro"],
    },
];

/// Returns the id to use in `region`. Ids with a prefix, ARNs, and models without profiles are not
/// changed.
pub(crate) fn id(id: &str, region: &str) -> String {
    let is_plain =
        !id.contains('/') && !id.starts_with("arn:") && !PREFIXES.iter().any(|prefix| id.starts_with(prefix));
    // These models are older than profiles.
    let is_old = id.contains("claude-v2") || id.contains("claude-instant");
    let fits = |geography: &&Geography| {
        (geography.regions)(region) && geography.models.iter().any(|model| id.contains(model))
    };
    match GEOGRAPHIES.iter().find(fits).filter(|_| is_plain && !is_old) {
        Some(geography) => format!("{}{id}", geography.prefix),
        None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_id_gets_the_prefix_of_its_geography() {
        const SONNET: &str = "anthropic.claude-sonnet-4-5-20250929-v1:0";
        for (plain, region, prefix) in [
            (SONNET, "us-east-1", "us."),
            (SONNET, "us-gov-west-1", ""),
            (SONNET, "eu-central-1", "eu."),
            (SONNET, "ap-southeast-2", "au."),
            (SONNET, "ap-northeast-1", "jp."),
            (SONNET, "ap-south-1", "apac."),
            (SONNET, "me-south-1", ""),
            ("anthropic.claude-3-haiku-20240307-v1:0", "ap-northeast-1", "apac."),
            ("anthropic.claude-v2:1", "us-east-1", ""),
            ("amazon.nova-pro-v1:0", "us-west-2", "us."),
            ("amazon.nova-premier-v1:0", "eu-west-1", ""),
            ("deepseek.r1-v1:0", "us-east-1", "us."),
            ("deepseek.v3-v1:0", "us-west-2", ""),
            ("openai.gpt-oss-120b-1:0", "us-west-2", ""),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu-west-1", ""),
            ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "us-east-1", ""),
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/claude", "us-east-1", ""),
        ] {
            assert_eq!(id(plain, region), format!("{prefix}{plain}"), "{plain} in {region}");
        }
    }
}
