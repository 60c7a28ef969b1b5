//! Decides the next action of a session.
//!
//! The decision is a value, so that it can be tested as a table, separately from its execution.

use codewright_proto::{Message, MessageWithParts, PartBody};

use super::compact::plan::{marker, open_request};
use super::refusal::is_refused;
use super::structured;
use crate::acp::model::PROVIDER;

/// The text before a command that the user ran, for the model.
pub(crate) const RAN: &str = "The following tool was executed by the user";

/// The effect of a rejection without a message on the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenRefused {
    /// The turn ends.
    Ends,
    /// The model is informed and continues.
    GoesOn,
}

/// The next action of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Request a response of the model.
    Step,
    /// Run a subtask that the last prompt delegates.
    Subtask {
        /// The index of the subtask.
        nth: usize,
    },
    /// Summarize the messages before an index.
    Compact {
        /// The index of the request for the summary.
        asked: usize,
    },
    /// Wait for a prompt.
    Idle,
    /// Report that the session has no prompt to answer.
    NoPrompt,
}

/// Returns the next action of a session.
///
/// A requested summary comes first. A prompt after the last answer is always answered. A turn continues while the model
/// calls tools, and ends when the model stops, fails or is rejected.
pub(crate) fn next(transcript: &[MessageWithParts], when_refused: WhenRefused) -> Next {
    let asked = transcript.iter().rposition(|message| matches!(message.info, Message::User(_)));
    let Some((asked, prompt)) = asked.map(|at| (at, &transcript[at])) else { return Next::NoPrompt };
    if let Some(asked) = open_request(transcript) {
        return Next::Compact { asked };
    }
    if marker(prompt).is_some() || is_command(prompt) {
        return Next::Idle;
    }
    let answer = transcript.iter().enumerate().rev().find_map(|(at, message)| match &message.info {
        Message::Assistant(info) => Some((at, info, &message.parts)),
        Message::User(_) => None,
    });
    let pieces = subtasks(prompt).count();
    let begin = || if pieces > 0 { Next::Subtask { nth: 0 } } else { Next::Step };
    let Some((answered, answer, parts)) = answer else { return begin() };
    // Ids that clients choose do not show the order.
    if asked > answered {
        return begin();
    }
    if answer.error.is_some() || answer.structured.is_some() {
        return Next::Idle;
    }
    let calls = parts.iter().filter_map(|part| match &part.body {
        PartBody::Tool(call) => Some(&call.state),
        _ => None,
    });
    let (mut called, mut refused) = (false, false);
    for state in calls {
        called = true;
        refused |= is_refused(state);
    }
    if refused && when_refused == WhenRefused::Ends {
        return Next::Idle;
    }
    let answers = transcript.iter().filter(
        |message| matches!(&message.info, Message::Assistant(info) if info.parent_id == *prompt.info.id()),
    );
    let done = answers.count();
    match answer.finish.as_deref() {
        _ if done < pieces => Next::Subtask { nth: done },
        // Another agent runs its calls itself, so its answer is whole. It is never repeated after a call.
        _ if called && answer.provider_id == PROVIDER => Next::Idle,
        _ if called => Next::Step,
        // Text does not answer a prompt that requested a value. A step that gives up has an error.
        Some(_) if answer.parent_id == *prompt.info.id() && wants_value(prompt) => Next::Step,
        // A provider may announce tool calls and send none, or give no usable reason. The next request would be the same
        // as this one, so the turn could go on forever.
        Some(_) => Next::Idle,
        // The process ended during the answer, so the prompt has no answer yet.
        None => Next::Step,
    }
}

/// Reports whether a user message is not a prompt but precedes a command that the user ran.
fn is_command(prompt: &MessageWithParts) -> bool {
    let [part] = prompt.parts.as_slice() else { return false };
    matches!(&part.body, PartBody::Text(text) if text.synthetic == Some(true) && *text.text == *RAN)
}

/// Returns the subtasks of a prompt in order.
pub(crate) fn subtasks(prompt: &MessageWithParts) -> impl Iterator<Item = &PartBody> {
    prompt.parts.iter().map(|part| &part.body).filter(|body| matches!(body, PartBody::Subtask { .. }))
}

fn wants_value(prompt: &MessageWithParts) -> bool {
    matches!(&prompt.info, Message::User(prompt) if structured::requested_schema(prompt).is_some())
}

#[cfg(test)]
mod tests {
    use codewright_proto::ToolState;

    use super::super::refusal::REJECTED;
    use super::*;
    use codewright_proto::{
        AssistantMessage, AssistantTime, Clock, CreatedTime, Ids, Map, MessageError, MessagePath, Part,
        PromptModel, TokenUsage, ToolPart, ToolSpan, UserMessage,
    };
    use serde_json::Value;

    struct Talk {
        ids: Ids,
        messages: Vec<MessageWithParts>,
    }

    impl Talk {
        fn new() -> Self {
            Self { ids: Ids::seeded(Clock::stepping(1_000_000, 1), 1), messages: Vec::new() }
        }

        fn user(mut self) -> Self {
            let message = UserMessage {
                id: self.ids.message(),
                session_id: self.ids.session(),
                time: CreatedTime { created: 1 },
                format: None,
                summary: None,
                agent: "build".into(),
                model: PromptModel { provider_id: "p".into(), model_id: "m".into(), variant: None },
                system: None,
                tools: None,
            };
            self.messages.push(MessageWithParts { info: Message::User(message), parts: Vec::new() });
            self
        }

        /// Adds subtasks to the last prompt.
        fn hands_over(mut self, pieces: usize) -> Self {
            let message = self.messages.last_mut().unwrap();
            let (session_id, message_id) = (self.ids.session(), message.info.id().clone());
            message.parts.extend((0..pieces).map(|_| Part {
                id: self.ids.part(),
                session_id: session_id.clone(),
                message_id: message_id.clone(),
                body: PartBody::Subtask {
                    prompt: "p".into(),
                    description: "d".into(),
                    agent: "explore".into(),
                    model: None,
                    command: None,
                },
            }));
            self
        }

        /// Makes the last answer refer to the last prompt.
        fn answering_last(mut self) -> Self {
            let mut users = self.messages.iter().filter(|message| matches!(message.info, Message::User(_)));
            let prompt = users.next_back().unwrap().info.id().clone();
            let Some(Message::Assistant(info)) = self.messages.last_mut().map(|last| &mut last.info) else {
                panic!("the last message is no answer")
            };
            info.parent_id = prompt;
            self
        }

        fn answer(
            mut self,
            finish: Option<&str>,
            error: Option<MessageError>,
            calls: Vec<ToolState>,
        ) -> Self {
            let id = self.ids.message();
            let session_id = self.ids.session();
            let parts = calls
                .into_iter()
                .map(|state| Part {
                    id: self.ids.part(),
                    session_id: session_id.clone(),
                    message_id: id.clone(),
                    body: PartBody::Tool(ToolPart {
                        call_id: "c".into(),
                        tool: "bash".into(),
                        state,
                        metadata: None,
                    }),
                })
                .collect();
            let message = AssistantMessage {
                id,
                session_id,
                time: AssistantTime::default(),
                error,
                parent_id: self.ids.message(),
                model_id: "m".into(),
                provider_id: "p".into(),
                mode: "build".into(),
                agent: "build".into(),
                path: MessagePath { cwd: "/".into(), root: "/".into() },
                summary: None,
                cost: 0.0,
                tokens: TokenUsage::default(),
                structured: None,
                variant: None,
                finish: finish.map(str::to_owned),
            };
            self.messages.push(MessageWithParts { info: Message::Assistant(message), parts });
            self
        }
    }

    fn failed(error: &str) -> ToolState {
        ToolState::Error {
            input: Value::Null,
            error: error.into(),
            metadata: None,
            time: ToolSpan::default(),
        }
    }

    fn done() -> ToolState {
        ToolState::Completed {
            input: Value::Null,
            output: "ok".into(),
            title: String::new(),
            metadata: Map::new(),
            time: ToolSpan::default(),
            attachments: None,
        }
    }

    #[track_caller]
    fn check(talk: Talk, expected: Next) {
        assert_eq!(next(&talk.messages, WhenRefused::Ends), expected);
    }

    #[test]
    fn a_client_chosen_id_is_not_a_later_prompt() {
        let mut talk = Talk::new().user().answer(Some("stop"), None, Vec::new()).answering_last();
        let mine = codewright_proto::MessageId::parse("msg_zzz").unwrap();
        match &mut talk.messages[0].info {
            Message::User(info) => info.id = mine.clone(),
            Message::Assistant(_) => panic!("the first message is a prompt"),
        }
        if let Message::Assistant(info) = &mut talk.messages[1].info {
            info.parent_id = mine;
        }
        assert_eq!(next(&talk.messages, WhenRefused::Ends), Next::Idle);
    }

    #[test]
    fn a_session_without_a_prompt_has_nothing_to_answer() {
        check(Talk::new(), Next::NoPrompt);
        check(Talk::new().answer(Some("stop"), None, vec![]), Next::NoPrompt);
    }

    #[test]
    fn a_prompt_is_answered() {
        check(Talk::new().user(), Next::Step);
        check(Talk::new().user().answer(Some("stop"), None, vec![]).user(), Next::Step);
    }

    #[test]
    fn a_prompt_after_a_failure_is_answered() {
        check(Talk::new().user().answer(None, Some(MessageError::aborted()), vec![]).user(), Next::Step);
    }

    #[test]
    fn an_answer_ends_the_turn_and_calls_continue_it() {
        check(Talk::new().user().answer(Some("stop"), None, vec![]), Next::Idle);
        check(Talk::new().user().answer(Some("length"), None, vec![]), Next::Idle);
        check(Talk::new().user().answer(Some("tool-calls"), None, vec![done()]), Next::Step);
        check(Talk::new().user().answer(Some("tool-calls"), None, vec![failed("no such file")]), Next::Step);
    }

    #[test]
    fn calls_continue_the_turn_for_every_finish_reason() {
        check(Talk::new().user().answer(Some("stop"), None, vec![done()]), Next::Step);
    }

    #[test]
    fn announced_calls_without_content_end_the_turn() {
        for finish in ["tool-calls", "unknown", "other"] {
            check(Talk::new().user().answer(Some(finish), None, vec![]), Next::Idle);
        }
    }

    #[test]
    fn a_rejection_ends_the_turn() {
        check(
            Talk::new().user().answer(Some("tool-calls"), None, vec![done(), failed(REJECTED)]),
            Next::Idle,
        );
        let refused = Talk::new().user().answer(Some("tool-calls"), None, vec![done(), failed(REJECTED)]);
        assert_eq!(next(&refused.messages, WhenRefused::GoesOn), Next::Step);
    }

    #[test]
    fn an_error_ends_the_turn() {
        check(Talk::new().user().answer(None, Some(MessageError::aborted()), vec![]), Next::Idle);
    }

    #[test]
    fn subtasks_run_one_by_one_before_the_model() {
        let talk = || Talk::new().user().hands_over(2);
        check(talk(), Next::Subtask { nth: 0 });
        let one = || talk().answer(Some("tool-calls"), None, vec![done()]).answering_last();
        check(one(), Next::Subtask { nth: 1 });
        let two = || one().answer(Some("tool-calls"), None, vec![done()]).answering_last();
        check(two(), Next::Step);
        check(two().user(), Next::Step);
        check(talk().answer(None, Some(MessageError::aborted()), vec![]).answering_last(), Next::Idle);
        let refused = talk().answer(Some("tool-calls"), None, vec![failed(REJECTED)]).answering_last();
        check(refused, Next::Idle);
    }

    #[test]
    fn a_prompt_with_an_interrupted_answer_is_answered_again() {
        check(Talk::new().user().answer(None, None, vec![]), Next::Step);
    }
}
