//! Every text the engine sends to a model, named once, and which base prompt a model gets.
//!
//! Placeholders are `{{name}}`; a text with one too many or too few fails a test and
//! never reaches a model. A base prompt depends on nothing but the model's family, so
//! the beginning of every request stays the same and providers can cache it.

pub(crate) const TITLE: &str = include_str!("../prompts/title.txt");
/// The line before the user's text in a title request.
pub(crate) const TITLE_REQUEST: &str = "Give this conversation a title:\n";

pub(crate) const COMPACTION: &str = include_str!("../prompts/compaction.txt");
/// What stands behind the conversation that is to be summarised.
pub(crate) const COMPACTION_REQUEST: &str = include_str!("../prompts/compaction-request.txt");

/// What all base prompts share.
const STOCK: &str = include_str!("../prompts/stock.txt");
const STOCK_PLACE: &str = "{{stock}}";

/// Models that profit from the same words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Claude,
    /// Capable models that hand back too early.
    Beast,
    Codex,
    CopilotGpt5,
    Gpt,
    Gemini,
    Kimi,
    /// Models that do best with one call at a time.
    Trinity,
    Default,
}

impl Family {
    /// The family of a model, by the name it has on the wire; the first rule that matches.
    pub(crate) fn of(provider_id: &str, model: &str) -> Self {
        let model = model.to_lowercase();
        let has = |part: &str| model.contains(part);
        match () {
            () if has("claude") => Self::Claude,
            () if has("gpt-4") || has("o1") || has("o3") => Self::Beast,
            () if has("gpt") && has("codex") => Self::Codex,
            () if has("gpt-5") && provider_id.contains("copilot") => Self::CopilotGpt5,
            () if has("gpt") => Self::Gpt,
            () if has("gemini") => Self::Gemini,
            () if has("kimi") => Self::Kimi,
            () if has("trinity") => Self::Trinity,
            () => Self::Default,
        }
    }

    /// The base prompt.
    pub(crate) fn prompt(self) -> String {
        self.text().replacen(STOCK_PLACE, STOCK.trim_end(), 1).trim_end().to_owned()
    }

    fn text(self) -> &'static str {
        match self {
            Self::Claude => include_str!("../prompts/family/claude.txt"),
            Self::Beast => include_str!("../prompts/family/beast.txt"),
            Self::Codex => include_str!("../prompts/family/codex.txt"),
            Self::CopilotGpt5 => include_str!("../prompts/family/copilot-gpt-5.txt"),
            Self::Gpt => include_str!("../prompts/family/gpt.txt"),
            Self::Gemini => include_str!("../prompts/family/gemini.txt"),
            Self::Kimi => include_str!("../prompts/family/kimi.txt"),
            Self::Trinity => include_str!("../prompts/family/trinity.txt"),
            Self::Default => include_str!("../prompts/family/default.txt"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_gets_the_prompt_of_its_family() {
        for (model, expected) in [
            ("claude-sonnet-4-5", Family::Claude),
            ("anthropic/Claude-Opus-4-6", Family::Claude),
            ("gpt-4o", Family::Beast),
            ("gpt-4.1", Family::Beast),
            ("o1", Family::Beast),
            ("o3-mini", Family::Beast),
            ("gpt-5", Family::Gpt),
            ("gpt-5.1", Family::Gpt),
            ("gpt-5.4", Family::Gpt),
            ("gpt-oss-120b", Family::Gpt),
            ("gpt-5-codex", Family::Codex),
            ("gpt-5.3-codex", Family::Codex),
            ("gemini-2.5-pro", Family::Gemini),
            ("google/gemini-3-pro", Family::Gemini),
            ("kimi-k2", Family::Kimi),
            ("kimi-k2-thinking", Family::Kimi),
            ("trinity-large", Family::Trinity),
            ("deepseek-chat", Family::Default),
            ("devstral-small", Family::Default),
            ("glm-4.6", Family::Default),
            ("grok-4", Family::Default),
            ("qwen3-coder", Family::Default),
            ("minimax-m2", Family::Default),
            ("mistral-large", Family::Default),
            ("plain-model", Family::Default),
        ] {
            assert_eq!(Family::of("any", model), expected, "{model}");
        }
        assert_eq!(Family::of("github-copilot", "gpt-5"), Family::CopilotGpt5);
        assert_eq!(Family::of("github-copilot", "gpt-5-codex"), Family::Codex);
    }

    #[test]
    fn every_prompt_is_whole_and_names_only_tools_that_exist() {
        // The sizes are those that the texts must stay under to be worth their tokens.
        for (family, most_chars) in [
            (Family::Claude, 5_700),
            (Family::Beast, 5_500),
            (Family::Codex, 5_000),
            (Family::CopilotGpt5, 7_000),
            (Family::Gpt, 8_000),
            (Family::Gemini, 8_500),
            (Family::Kimi, 6_000),
            (Family::Trinity, 4_500),
            (Family::Default, 5_000),
        ] {
            let prompt = family.prompt();
            assert!(prompt.starts_with("You are Codewright"), "{family:?}");
            assert!(prompt.contains("# Care"), "{family:?}");
            assert!(!prompt.contains("{{") && !prompt.contains("}}"), "{family:?}");
            assert!(prompt.chars().count() <= most_chars, "{family:?}: {}", prompt.chars().count());
            for absent in ["todowrite", "webfetch", "`task`", "apply_patch"] {
                assert!(!prompt.contains(absent), "{family:?} names {absent}");
            }
        }
    }
}
