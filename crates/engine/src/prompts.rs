//! The prompts that the engine sends to models, and the choice of a base prompt for each model.
//!
//! A line that begins with `{{tool}}` is kept only if that tool is offered, one with `{{!tool}}` only if
//! it is not. Other placeholders are `{{name}}` and are replaced in one pass; a test checks that every
//! text has exactly the placeholders that the code replaces. A base prompt depends only on the model's
//! family and the offered tools, so that requests begin the same way and providers can cache the beginning.

/// The prompt for session titles.
pub(crate) const TITLE: &str = include_str!("../prompts/agent/title.txt");
/// The line before the user's text in a title request.
pub(crate) const TITLE_REQUEST: &str = "Give this conversation a title:\n";

/// The prompt for summaries that replace a conversation.
pub(crate) const COMPACTION: &str = include_str!("../prompts/agent/compaction.txt");
/// The request after the conversation that is to be summarised.
pub(crate) const COMPACTION_REQUEST: &str = include_str!("../prompts/compaction-request.txt");

/// The prompt of the agent that searches a code base.
const EXPLORE: &str = include_str!("../prompts/agent/explore.txt");
/// The prompt for summaries in the style of a pull request.
const SUMMARY: &str = include_str!("../prompts/agent/summary.txt");
/// The prompt that turns a description into an agent.
pub(crate) const GENERATE: &str = include_str!("../prompts/agent/generate.txt");

/// The reminder for the plan agent if it plans in the conversation.
pub(crate) const PLAN: &str = include_str!("../prompts/mode/plan.txt");
/// The reminder for the plan agent if it plans in a file.
pub(crate) const PLAN_FILE: &str = include_str!("../prompts/mode/plan-file.txt");
/// The reminder for the build agent after the plan agent.
pub(crate) const BUILD_SWITCH: &str = include_str!("../prompts/mode/build-switch.txt");
/// The reminder for an agent that has used up its steps.
pub(crate) const MAX_STEPS: &str = include_str!("../prompts/mode/max-steps.txt");

/// The template of the command that writes `AGENTS.md`.
pub(crate) const INIT: &str = include_str!("../prompts/command/init.txt");
/// The template of the command that reviews changes.
pub(crate) const REVIEW: &str = include_str!("../prompts/command/review.txt");
/// The prompt of a review whose findings are a list.
pub(crate) const FINDINGS: &str = include_str!("../prompts/review.txt");

/// The text that all base prompts share.
const STOCK: &str = include_str!("../prompts/stock.txt");
const STOCK_PLACE: &str = "{{stock}}";

/// Returns the prompt of a built-in agent; `None` if the agent uses the prompt of the model's family.
pub(crate) fn of_agent(name: &str) -> Option<&'static str> {
    match name {
        "explore" => Some(EXPLORE),
        "compaction" => Some(COMPACTION),
        "title" => Some(TITLE),
        "summary" => Some(SUMMARY),
        _ => None,
    }
    .map(str::trim_end)
}

/// Replaces placeholders in one pass, so that an inserted value is never read as a placeholder.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = behind.split_once("}}") else {
            filled.push_str("{{");
            rest = behind;
            continue;
        };
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => filled.push_str(value),
            None => {
                filled.push_str("{{");
                filled.push_str(name);
                filled.push_str("}}");
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// Removes the lines whose condition does not hold for the offered tools.
fn select_lines(text: &str, has: &dyn Fn(&str) -> bool) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("{{").and_then(|rest| rest.split_once("}}")) {
            Some((condition, rest)) => {
                let stands = match condition.strip_prefix('!') {
                    Some(tool) => !has(tool),
                    None => has(condition),
                };
                if stands {
                    lines.push(rest);
                }
            }
            None => lines.push(line),
        }
    }
    lines.join("\n")
}

/// A group of models that share a base prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Claude,
    /// Capable models that end their turn too early.
    Beast,
    Codex,
    CopilotGpt5,
    Gpt,
    Gemini,
    Kimi,
    /// Models that work best with one call at a time.
    Trinity,
    Default,
}

impl Family {
    /// Returns the family that older versions chose for a model.
    pub(crate) fn of_older(model: &str) -> Self {
        let model = model.to_lowercase();
        let has = |part: &str| model.contains(part);
        match () {
            () if has("gpt-5") => Self::Codex,
            () if has("gpt-") || has("o1") || has("o3") => Self::Beast,
            () if has("gemini-") => Self::Gemini,
            () if has("claude") => Self::Claude,
            () => Self::Default,
        }
    }

    /// Every family.
    pub(crate) const ALL: [(Self, &'static str); 9] = [
        (Self::Claude, "claude"),
        (Self::Beast, "beast"),
        (Self::Codex, "codex"),
        (Self::CopilotGpt5, "copilot-gpt-5"),
        (Self::Gpt, "gpt"),
        (Self::Gemini, "gemini"),
        (Self::Kimi, "kimi"),
        (Self::Trinity, "trinity"),
        (Self::Default, "default"),
    ];

    /// Returns the API name of one model of the family.
    pub(crate) fn sample(self) -> &'static str {
        match self {
            Self::Claude => "claude-sonnet-4-5",
            Self::Beast => "gpt-4.1",
            Self::Codex => "gpt-5-codex",
            Self::CopilotGpt5 | Self::Gpt => "gpt-5",
            Self::Gemini => "gemini-2.5-pro",
            Self::Kimi => "kimi-k2",
            Self::Trinity => "trinity-large",
            Self::Default => "qwen3-coder",
        }
    }

    /// Returns the name of the family.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(family, _)| *family == self).map_or("default", |(_, name)| name)
    }

    /// Returns the family of a model by its API name; the first matching rule decides.
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

    /// Returns the base prompt for a model that is offered these tools.
    pub(crate) fn prompt(self, has: &dyn Fn(&str) -> bool) -> String {
        let text = self.text().replacen(STOCK_PLACE, STOCK.trim_end(), 1);
        select_lines(&text, has).trim_end().to_owned()
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
    fn older_versions_chose_other_families() {
        for (model, expected) in [
            ("gpt-5", Family::Codex),
            ("gpt-5-codex", Family::Codex),
            ("gpt-4o", Family::Beast),
            ("gpt-oss-120b", Family::Beast),
            ("o3", Family::Beast),
            ("gemini-2.5-pro", Family::Gemini),
            ("claude-sonnet-4-5", Family::Claude),
            ("kimi-k2", Family::Default),
            ("qwen3-coder", Family::Default),
        ] {
            assert_eq!(Family::of_older(model), expected, "{model}");
        }
    }

    /// Names that models read as tools, even if this program does not have them.
    const TOOLS: [&str; 22] = [
        "bash",
        "edit",
        "write",
        "read",
        "glob",
        "grep",
        "list",
        "task",
        "todowrite",
        "todoread",
        "webfetch",
        "websearch",
        "codesearch",
        "question",
        "skill",
        "lsp",
        "apply_patch",
        "multiedit",
        "batch",
        "background",
        "plan_enter",
        "plan_exit",
    ];
    /// The tool names that are also plain English words.
    const WORDS: [&str; 10] =
        ["edit", "write", "read", "list", "task", "question", "skill", "batch", "bash", "background"];

    /// Returns the tools that a text names. An English word counts only in a phrase such as "the edit tool".
    fn named(text: &str) -> Vec<&'static str> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: Vec<_> = text.split(|c| !is_word(c)).collect();
        let says = |tool: &str| match WORDS.contains(&tool) {
            false => words.contains(&tool),
            true => ["by ", "with ", "the "].iter().any(|how| {
                text.contains(&format!("{how}{tool} tool")) || text.contains(&format!("`{tool}`"))
            }),
        };
        TOOLS.into_iter().filter(|tool| says(tool)).collect()
    }

    #[test]
    fn every_prompt_is_complete_and_names_only_offered_tools() {
        let tools = codewright_tools::builtin(&codewright_tools::Setup::everything(2026));
        let registry: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        let offers: [&[&str]; 3] = [&[], &["bash", "glob", "grep"], &registry];
        for (family, most_chars) in [
            (Family::Claude, 5_700),
            (Family::Beast, 5_500),
            // One text replaces two prompts of OpenCode.
            (Family::Codex, 5_700),
            (Family::CopilotGpt5, 7_000),
            (Family::Gpt, 8_000),
            (Family::Gemini, 8_500),
            (Family::Kimi, 6_000),
            (Family::Trinity, 4_500),
            (Family::Default, 5_000),
        ] {
            for offered in offers {
                let prompt = family.prompt(&|tool| offered.contains(&tool));
                assert!(prompt.starts_with("You are Codewright"), "{family:?}");
                assert!(prompt.contains("# Care"), "{family:?}");
                assert!(!prompt.contains("{{") && !prompt.contains("}}"), "{family:?}");
                assert!(prompt.chars().count() <= most_chars, "{family:?}: {}", prompt.chars().count());
                // The shared text always names glob and grep: every agent that writes code has them.
                let absent: Vec<_> = named(&prompt)
                    .into_iter()
                    .filter(|tool| !offered.contains(tool) && !matches!(*tool, "glob" | "grep"))
                    .collect();
                assert_eq!(absent, Vec::<&str>::new(), "{family:?} names a tool that is not offered");
            }
        }
    }

    /// The bash tool ends everything that a command has started.
    #[test]
    fn no_prompt_promises_commands_that_outlive_their_call() {
        for (family, _) in Family::ALL {
            let prompt = family.prompt(&|tool| tool != "background");
            assert!(!prompt.contains("in the background"), "{family:?}");
        }
        let gemini = |tools: &[&str]| Family::Gemini.prompt(&|tool| tools.contains(&tool));
        assert!(gemini(&["bash"]).contains("A command ends with everything it started"));
        assert!(gemini(&["bash", "background"]).contains("with background"));
    }

    #[test]
    fn conditions_name_known_tools() {
        for text in Family::ALL.map(|(family, _)| family.text()).into_iter().chain([STOCK]) {
            for line in text.lines().filter_map(|line| line.strip_prefix("{{")) {
                let name = line.split_once("}}").unwrap().0.trim_start_matches('!');
                assert!(name == "stock" || TOOLS.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn the_texts_of_agents_and_modes_are_short_and_complete() {
        for (name, text, most_chars, places) in [
            ("explore", EXPLORE, 600, &[][..]),
            ("compaction", COMPACTION, 500, &[]),
            ("compaction request", COMPACTION_REQUEST, 800, &[]),
            ("title", TITLE, 1_400, &[]),
            ("summary", SUMMARY, 450, &[]),
            ("generate", GENERATE, 1_800, &[]),
            ("plan", PLAN, 900, &["explore"]),
            ("plan file", PLAN_FILE, 2_600, &["path", "state", "explore", "general", "question", "exit"]),
            ("build switch", BUILD_SWITCH, 160, &["plan"]),
            ("max steps", MAX_STEPS, 500, &[]),
            ("init", INIT, 3_000, &["path"]),
            ("review", REVIEW, 3_200, &["path"]),
            ("findings", FINDINGS, 1_700, &[]),
        ] {
            assert!(text.chars().count() <= most_chars, "{name}: {}", text.chars().count());
            let values: Vec<_> = places.iter().map(|place| (*place, "VALUE")).collect();
            assert!(values.iter().all(|(place, _)| text.contains(&format!("{{{{{place}}}}}"))), "{name}");
            assert!(!fill(text, &values).contains("{{"), "{name}");
        }
    }

    #[test]
    fn inserted_values_are_not_replaced_again() {
        assert_eq!(fill("a {{x}} {{y}} {{z}} {{", &[("x", "{{y}}"), ("y", "Y")]), "a {{y}} Y {{z}} {{");
    }

    #[test]
    fn lines_depend_on_the_offered_tools() {
        let text = "a\n{{task}}b\n{{!task}}c\nd";
        assert_eq!(select_lines(text, &|tool| tool == "task"), "a\nb\nd");
        assert_eq!(select_lines(text, &|_| false), "a\nc\nd");
    }
}
