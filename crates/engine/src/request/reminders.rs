//! Reminders that the program adds at the end of a request.
//!
//! Reminders belong to one request and are not stored: they are an additional text of the last prompt, and later
//! requests contain that prompt without them. The messages before the last prompt stay as they were sent.

use std::path::Path;

use codewright_llm::{AssistantContent, Message, Protocol, UserContent};
use codewright_proto::{Message as Stored, MessageWithParts, UserMessage};

use super::history::GO_ON;
use crate::prompts;

/// The name of the planning agent.
const PLAN: &str = "plan";
const BUILD: &str = "build";

/// The facts that decide about reminders.
pub(crate) struct Facts<'a> {
    pub(crate) transcript: &'a [MessageWithParts],
    pub(crate) prompt: &'a UserMessage,
    /// The number of steps that the agent may run.
    pub(crate) steps: Option<u64>,
    /// The file of the plan, if plans are written to files.
    pub(crate) plan_file: Option<&'a Path>,
    /// Reports whether a tool is offered.
    pub(crate) has: &'a dyn Fn(&str) -> bool,
    pub(crate) protocol: Protocol,
}

/// Adds the current reminders to the messages of a request.
pub(crate) fn remind(messages: &mut Vec<Message>, facts: &Facts<'_>) {
    if let Some(text) = mode(facts) {
        let last = messages.iter_mut().rev().find_map(|message| match message {
            Message::User(content) if *content != [UserContent::Text(GO_ON.to_owned())] => Some(content),
            Message::User(_) | Message::Assistant(_) | Message::Tool(_) => None,
        });
        if let Some(content) = last {
            content.push(UserContent::Text(text));
        }
    }
    if is_last_step(facts) {
        let text = prompts::MAX_STEPS.trim_end();
        match facts.protocol {
            Protocol::OpenAiChat | Protocol::OpenAiResponses => {
                messages.push(Message::Assistant(vec![AssistantContent::Text(text.to_owned())]));
            }
            // These protocols treat a last message of the model as the start of its answer, or refuse it.
            Protocol::Anthropic | Protocol::Bedrock | Protocol::Gemini | Protocol::Cohere => {
                let text = format!("<system-reminder>\n{text}\n</system-reminder>");
                messages.push(Message::User(vec![UserContent::Text(text)]));
            }
        }
    }
}

/// Reports whether the agent has reached its last step.
pub(crate) fn is_last_step(facts: &Facts<'_>) -> bool {
    let taken = facts.transcript.iter().filter(|message| match &message.info {
        Stored::Assistant(info) => info.parent_id == facts.prompt.id,
        Stored::User(_) => false,
    });
    facts.steps.is_some_and(|steps| taken.count() as u64 + 1 >= steps)
}

/// Returns the reminder about planning for the current agent.
fn mode(facts: &Facts<'_>) -> Option<String> {
    let has = facts.has;
    match (facts.prompt.agent.as_str(), facts.plan_file) {
        (PLAN, None) => {
            let explore = if has("task") { "use explore agents with task if that helps; " } else { "" };
            Some(prompts::fill(prompts::PLAN.trim_end(), &[("explore", explore)]))
        }
        (PLAN, Some(file)) => Some(plan_file(file, has)),
        (BUILD, file) if has_planned(facts.transcript) => {
            let written = file.filter(|file| file.is_file());
            let plan = written.map_or_else(String::new, |file| {
                format!(" The plan is in {}: carry it out.", file.display())
            });
            Some(prompts::fill(prompts::BUILD_SWITCH.trim_end(), &[("plan", &plan)]))
        }
        _ => None,
    }
}

fn has_planned(transcript: &[MessageWithParts]) -> bool {
    transcript.iter().any(|message| matches!(&message.info, Stored::Assistant(info) if info.agent == PLAN))
}

fn plan_file(file: &Path, has: &dyn Fn(&str) -> bool) -> String {
    let state = match (file.is_file(), has("apply_patch")) {
        (true, true) => "It exists: read it and continue it with apply_patch.",
        (true, false) => "It exists: read it and continue it with edit.",
        (false, true) => "It does not exist yet: create it with apply_patch.",
        (false, false) => "It does not exist yet: create it with write.",
    };
    let (explore, general) = if has("task") {
        (
            " Delegate searches to explore agents: one for a known place or a small change, up to three in \
             parallel in one answer if the scope is unclear or several areas matter, each with its own question. \
             Do not search again for facts you have.",
            "For a large task, give a general agent the background you gathered, without a solution, and \
             request a detailed plan. ",
        )
    } else {
        ("", "")
    };
    let question = if has("question") { " using question" } else { "" };
    let exit = if has("plan_exit") {
        "Call plan_exit when nothing is open."
    } else {
        "Tell the user that the plan is ready when nothing is open."
    };
    prompts::fill(
        prompts::PLAN_FILE.trim_end(),
        &[
            ("path", &file.display().to_string()),
            ("state", state),
            ("explore", explore),
            ("general", general),
            ("question", question),
            ("exit", exit),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A conversation in short form: `u` is a prompt, another word an answer of that agent to the last prompt.
    fn talk(written: &str) -> Vec<MessageWithParts> {
        let mut asked = String::new();
        let messages = written.split_whitespace().enumerate().map(|(n, word)| {
            let id = format!("msg_{n:03}");
            let model = json!({"providerID": "p", "modelID": "m"});
            let info = if word == "u" {
                asked.clone_from(&id);
                json!({"role": "user", "id": id, "sessionID": "ses_1", "time": {"created": n}, "agent": "x", "model": model})
            } else {
                json!({
                    "role": "assistant", "id": id, "sessionID": "ses_1", "time": {"created": n}, "parentID": asked,
                    "modelID": "m", "providerID": "p", "mode": word, "agent": word, "finish": "tool-calls",
                    "path": {"cwd": "/", "root": "/"}, "cost": 0.0,
                    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
                })
            };
            serde_json::from_value(json!({"info": info, "parts": []})).unwrap()
        });
        messages.collect()
    }

    fn reminded(
        written: &str,
        agent: &str,
        steps: Option<u64>,
        (plan_file, protocol): (Option<&Path>, Protocol),
    ) -> Vec<String> {
        let transcript = talk(written);
        let prompt = transcript.iter().rev().find_map(|message| match &message.info {
            Stored::User(prompt) => Some(prompt.clone()),
            Stored::Assistant(_) => None,
        });
        let prompt = UserMessage { agent: agent.into(), ..prompt.unwrap() };
        let facts = Facts {
            transcript: &transcript,
            prompt: &prompt,
            steps,
            plan_file,
            has: &|tool| matches!(tool, "edit" | "write" | "plan_exit" | "question"),
            protocol,
        };
        let user = |text: &str| Message::User(vec![UserContent::Text(text.to_owned())]);
        let mut messages = vec![user("earlier"), user("now"), Message::Tool(Vec::new()), user(GO_ON)];
        remind(&mut messages, &facts);
        messages
            .iter()
            .map(|message| match message {
                Message::User(content) => {
                    let texts = content.iter().map(|content| match content {
                        UserContent::Text(text) => text.clone(),
                        UserContent::File(_) => String::new(),
                    });
                    format!("u:{}", texts.collect::<Vec<_>>().join("+"))
                }
                Message::Assistant(content) => match &content[..] {
                    [AssistantContent::Text(text)] => format!("a:{text}"),
                    _ => "a".to_owned(),
                },
                Message::Tool(_) => "t".to_owned(),
            })
            .collect()
    }

    #[test]
    fn only_the_last_prompt_has_the_reminder_of_the_mode() {
        let chat = (None, Protocol::OpenAiChat);
        let messages = reminded("u plan u", "plan", None, chat);
        assert_eq!(messages[0], "u:earlier");
        assert!(messages[1].starts_with("u:now+<system-reminder>\nPlan mode:"), "{messages:?}");
        assert_eq!(messages.len(), 4);
        let messages = reminded("u plan u build u", "build", None, chat);
        assert!(
            messages[1].contains("Plan mode is over") && !messages[1].contains("plan is in"),
            "{messages:?}"
        );
        assert_eq!(reminded("u build u", "build", None, chat)[1], "u:now");
        assert_eq!(reminded("u plan u", "other", None, chat)[1], "u:now");
    }

    #[test]
    fn the_reminder_names_the_plan_file_and_whether_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plan.md");
        let text_for =
            |agent: &str| reminded("u plan u", agent, None, (Some(&file), Protocol::OpenAiChat))[1].clone();
        let text = text_for("plan");
        for expected in [
            "plan.md",
            "does not exist yet: create it with write",
            "settle open choices with the user using question",
            "Call plan_exit",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("explore agents"), "what is not offered is not named: {text}");
        assert!(!text_for("build").contains("plan.md"));
        std::fs::write(&file, "x").unwrap();
        assert!(text_for("plan").contains("It exists: read it and continue it with edit."));
        assert!(text_for("build").contains("plan.md: carry it out"));
    }

    #[test]
    fn the_last_step_has_a_reminder() {
        for (written, steps, expected) in [
            ("u", Some(1), true),
            ("u", Some(2), false),
            ("u build", Some(2), true),
            ("u build build", Some(2), true),
            ("u build build u", Some(2), false),
            ("u build build", None, false),
        ] {
            let messages = reminded(written, "build", steps, (None, Protocol::OpenAiChat));
            assert_eq!(
                messages.last().unwrap().starts_with("a:The steps of this turn"),
                expected,
                "{written}"
            );
        }
        let messages = reminded("u", "build", Some(1), (None, Protocol::Anthropic));
        assert!(messages.last().unwrap().starts_with("u:<system-reminder>\nThe steps"), "{messages:?}");
    }
}
