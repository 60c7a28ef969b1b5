//! The answers of hooks, and what several of them decide together.

use serde_json::Value;

use super::{Author, HookEvent};

/// The longest text of an answer that is used.
const MAX_TEXT_CHARS: usize = 10_000;
/// The longest text of all answers together.
const MAX_ALL_CHARS: usize = 40_000;
/// The exit code of a hook that blocks.
const BLOCKS: i32 = 2;

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookEnd {
    /// It exited.
    Exited { code: i32, stdout: String, stderr: String },
    /// It did not run or was ended. Holds the reason.
    Failed(String),
}

/// A decision about a call. The last one is the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// What hooks decide together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// The strictest decision, and its reason.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) reason: String,
    /// Why the turn must end.
    pub(crate) stop: Option<String>,
    /// Texts for the model.
    pub(crate) contexts: Vec<String>,
    /// Other arguments for the call.
    pub(crate) input: Option<Value>,
    /// Messages for the user.
    pub(crate) notices: Vec<String>,
}

impl Outcome {
    /// The reason of a denial or of the end of the turn.
    pub(crate) fn blocked(&self) -> Option<&str> {
        match (self.verdict, &self.stop) {
            (Some(Verdict::Deny), _) => Some(&self.reason),
            (_, Some(stop)) => Some(stop),
            _ => None,
        }
    }

    /// Adds the end of one hook.
    pub(crate) fn add(&mut self, event: HookEvent, author: Author, end: HookEnd) {
        match end {
            HookEnd::Failed(reason) => self.notice(format!("A hook of {} failed: {reason}", event.name())),
            HookEnd::Exited { code: BLOCKS, stderr, .. } => {
                let reason = cut(stderr.trim());
                let reason = if reason.is_empty() { "A hook blocked this.".to_owned() } else { reason };
                self.decide(Verdict::Deny, reason);
            }
            HookEnd::Exited { code: 0, stdout, .. } => self.answer(event, author, stdout.trim()),
            HookEnd::Exited { code, stderr, .. } => {
                let said = cut(stderr.trim());
                self.notice(
                    format!("A hook of {} ended with code {code}. {said}", event.name()).trim().to_owned(),
                );
            }
        }
    }

    fn answer(&mut self, event: HookEvent, author: Author, stdout: &str) {
        if !stdout.starts_with('{') {
            if matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit) && !stdout.is_empty() {
                self.say(stdout);
            }
            return;
        }
        let answer: Value = match serde_json::from_str(stdout) {
            Ok(answer) => answer,
            Err(error) => {
                return self.notice(format!("A hook of {} answered invalid JSON: {error}", event.name()));
            }
        };
        let text = |value: &Value| value.as_str().map(cut).unwrap_or_default();
        if let Some(message) = answer["systemMessage"].as_str() {
            self.notice(cut(message));
        }
        if answer["continue"] == false {
            let reason = text(&answer["stopReason"]);
            self.stop = Some(if reason.is_empty() { "A hook ended the turn.".to_owned() } else { reason });
        }
        let own = &answer["hookSpecificOutput"];
        if let Some(context) = own["additionalContext"].as_str() {
            self.say(context);
        }
        let (decision, reason) =
            match own["permissionDecision"].as_str().or(own["decision"]["behavior"].as_str()) {
                Some(decision) => (Some(decision), text(&own["permissionDecisionReason"])),
                None => (answer["decision"].as_str(), text(&answer["reason"])),
            };
        let message = text(&own["decision"]["message"]);
        let reason = if reason.is_empty() { message } else { reason };
        match decision {
            Some("deny" | "block") => {
                let reason = if reason.is_empty() { "A hook blocked this.".to_owned() } else { reason };
                self.decide(Verdict::Deny, reason);
            }
            Some("ask") => self.decide(Verdict::Ask, reason),
            // A repository cannot answer a question that is for its user.
            Some("allow" | "approve") if author == Author::User => self.decide(Verdict::Allow, reason),
            Some("allow" | "approve") | None => {}
            Some(other) => {
                self.notice(format!("A hook of {} made the unknown decision `{}`", event.name(), cut(other)));
            }
        }
        let input = own.get("updatedInput").or_else(|| own["decision"].get("updatedInput"));
        if let Some(input) = input.filter(|input| input.is_object()) {
            // Hooks end in any order, but are added in the order of the configuration: the last one counts.
            self.input = Some(input.clone());
        }
    }

    fn decide(&mut self, verdict: Verdict, reason: String) {
        if self.verdict.is_none_or(|before| before < verdict) {
            self.verdict = Some(verdict);
            self.reason = reason;
        } else if self.verdict == Some(verdict)
            && !reason.is_empty()
            && self.reason.chars().count() < MAX_ALL_CHARS
        {
            self.reason = format!("{}\n{reason}", self.reason).trim().to_owned();
        }
    }

    fn say(&mut self, text: &str) {
        let used: usize = self.contexts.iter().map(|context| context.chars().count()).sum();
        let text = cut(text.trim());
        if !text.is_empty() && used < MAX_ALL_CHARS {
            self.contexts.push(text);
        }
    }

    fn notice(&mut self, text: String) {
        self.notices.push(text);
    }
}

/// The beginning of a text, without control characters.
fn cut(text: &str) -> String {
    let shown = text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t'));
    let mut shown: String = shown.take(MAX_TEXT_CHARS + 1).collect();
    if shown.chars().count() > MAX_TEXT_CHARS {
        shown.pop();
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(event: HookEvent, ends: &[(Author, i32, &str, &str)]) -> Outcome {
        let mut outcome = Outcome::default();
        for (author, code, stdout, stderr) in ends {
            let (stdout, stderr) = ((*stdout).to_owned(), (*stderr).to_owned());
            outcome.add(event, *author, HookEnd::Exited { code: *code, stdout, stderr });
        }
        outcome
    }

    #[track_caller]
    fn check(ends: &[(Author, i32, &str, &str)], expected: (Option<Verdict>, &str)) {
        let found = outcome(HookEvent::PreToolUse, ends);
        assert_eq!((found.verdict, found.reason.as_str()), expected, "{ends:?}");
    }

    #[test]
    fn the_strictest_answer_wins() {
        use Author::{Repository, User};
        let answer = |decision: &str| {
            let own = json!({"permissionDecision": decision, "permissionDecisionReason": "because"});
            json!({"hookSpecificOutput": own}).to_string()
        };
        let (allow, ask, deny) = (answer("allow"), answer("ask"), answer("deny"));
        for (ends, expected) in [
            (vec![(User, 0, "", "")], (None, "")),
            (vec![(User, 0, allow.as_str(), "")], (Some(Verdict::Allow), "because")),
            (vec![(Repository, 0, allow.as_str(), "")], (None, "")),
            (
                vec![(User, 0, allow.as_str(), ""), (Repository, 0, ask.as_str(), "")],
                (Some(Verdict::Ask), "because"),
            ),
            (
                vec![(Repository, 0, deny.as_str(), ""), (User, 0, allow.as_str(), "")],
                (Some(Verdict::Deny), "because"),
            ),
            (vec![(User, 2, "", "no\n")], (Some(Verdict::Deny), "no")),
            (vec![(User, 2, "", "")], (Some(Verdict::Deny), "A hook blocked this.")),
            (vec![(User, 2, "", "one"), (User, 2, "", "two")], (Some(Verdict::Deny), "one\ntwo")),
            (vec![(User, 0, r#"{"decision": "block", "reason": "r"}"#, "")], (Some(Verdict::Deny), "r")),
            (vec![(User, 0, r#"{"decision": "approve"}"#, "")], (Some(Verdict::Allow), "")),
            (vec![(User, 1, &deny, "x")], (None, "")),
        ] {
            check(&ends, expected);
        }
    }

    #[test]
    fn only_some_events_make_output_context() {
        let said = |event| outcome(event, &[(Author::User, 0, "text", "")]).contexts;
        assert_eq!(said(HookEvent::SessionStart), ["text"]);
        assert_eq!(said(HookEvent::UserPromptSubmit), ["text"]);
        assert_eq!(said(HookEvent::PreToolUse), [""; 0]);
        let context = r#"{"hookSpecificOutput": {"additionalContext": "more"}}"#;
        assert_eq!(outcome(HookEvent::PostToolUse, &[(Author::User, 0, context, "")]).contexts, ["more"]);
    }

    #[test]
    fn faults_are_notices() {
        for (code, stdout) in [(0, "{broken"), (1, ""), (127, ""), (0, r#"{"decision": "maybe"}"#)] {
            let found = outcome(HookEvent::Stop, &[(Author::User, code, stdout, "")]);
            assert!(found.verdict.is_none() && found.notices.len() == 1, "{code} {stdout}");
        }
        let long = "x".repeat(50_000);
        let found = outcome(HookEvent::UserPromptSubmit, &[(Author::User, 0, &long, "")]);
        assert_eq!(found.contexts[0].chars().count(), MAX_TEXT_CHARS + 1);
        let stop = outcome(HookEvent::Stop, &[(Author::User, 0, r#"{"continue": false}"#, "")]);
        assert_eq!(stop.blocked(), Some("A hook ended the turn."));
    }
}
