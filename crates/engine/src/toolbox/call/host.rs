//! The operations of the engine that a tool can use, for one call of a session.

use std::sync::Arc;

use codewright_lsp::{Answer, Query};
use codewright_proto::{PartInput, PromptInput, Question, QuestionOption, SessionId, ToolRef};
use codewright_tools::{
    Answers, Boxed, CallIdentity, Completed, Completion, Host, LanguageAnswer, LanguageQuery, Lsp, Progress,
    TaskInput, TaskOutcome, ToolError, UserQuestion,
};
use tokio_util::sync::CancellationToken;

use crate::admit::{Admission, admit};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::lsp;
use crate::mcp::sample;
use crate::question::Reply;
use crate::run::recorder::tokens;
use crate::run::step::store::{account, cost};
use crate::subagent::handover::{self, Caller};

/// The host of one call.
pub(crate) struct CallHost {
    pub(crate) inner: Arc<Inner>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) progress: Progress,
    pub(crate) session_id: SessionId,
    pub(crate) tool: ToolRef,
    pub(crate) cancel: CancellationToken,
}

impl Host for CallHost {
    fn ask_user(&self, questions: Vec<UserQuestion>) -> Boxed<'_, Option<Answers>> {
        let questions = questions.into_iter().map(question).collect();
        Box::pin(async move {
            let asked =
                self.inner.questions.ask(&self.session_id, questions, Some(self.tool.clone()), &self.cancel);
            match asked.await {
                Reply::Answered(answers) => Ok(Some(answers)),
                Reply::Dismissed => Ok(None),
                Reply::Cancelled => Err(ToolError::Cancelled(None)),
                Reply::Crowded => Err(ToolError::model("too many questions wait for the user already")),
            }
        })
    }

    fn delegate(&self, input: TaskInput) -> Boxed<'_, TaskOutcome> {
        let call = handover::Call {
            inner: &self.inner,
            instance: &self.instance,
            session: &self.session_id,
            caller: &self.caller,
            progress: &self.progress,
            cancel: &self.cancel,
        };
        Box::pin(handover::delegate(call, input))
    }

    fn plan_file(&self) -> Boxed<'_, String> {
        Box::pin(async move {
            let session = self.inner.session(&self.session_id).await.map_err(ToolError::model)?;
            Ok(self.instance.plan_file(&self.inner.dirs, &session).to_string_lossy().into_owned())
        })
    }

    fn query_language(&self, query: LanguageQuery) -> Boxed<'_, LanguageAnswer> {
        Box::pin(async move {
            let LanguageQuery { operation, path, line, character, name } = query;
            let Some(servers) = lsp::host::servers(&self.inner, &self.instance) else {
                return Err(ToolError::model(
                    "Language servers are disabled: the configuration key `lsp` is not set. Use grep and read instead.",
                ));
            };
            let answer = if operation == Lsp::DIAGNOSTICS {
                servers.diagnose(&path).await
            } else {
                let Ok(operation) = serde_json::from_value(operation.clone().into()) else {
                    return Err(ToolError::Model(format!("there is no operation `{operation}`")));
                };
                servers.query(&Query { operation, path, line, character, name }).await
            };
            let Answer { text, entries } = answer.map_err(ToolError::Model)?;
            Ok(LanguageAnswer { text, entries })
        })
    }

    fn identity(&self) -> Option<CallIdentity> {
        Some(CallIdentity {
            session: self.session_id.to_string(),
            message: self.tool.message_id.to_string(),
            call: self.tool.call_id.clone(),
            agent: self.caller.agent.clone(),
        })
    }

    fn complete(&self, wanted: Completion) -> Boxed<'_, Completed> {
        Box::pin(async move {
            let model = self.caller.model.as_ref();
            let answer = sample::complete(&self.inner, &self.instance, model, wanted).await?;
            // The message's tokens are the size of its context, so these belong to the session only.
            let tokens = tokens(&answer.usage);
            let cost = cost(&answer.model, &tokens);
            self.caller.charge(cost);
            account(&self.inner, &self.session_id, &tokens, cost).await.map_err(ToolError::model)?;
            Ok(answer.completed)
        })
    }

    fn switch_agent<'a>(&'a self, agent: &'a str, word: String) -> Boxed<'a, ()> {
        Box::pin(async move {
            let text = PartInput::Text {
                id: None,
                text: word,
                synthetic: Some(true),
                ignored: None,
                metadata: None,
            };
            let prompt = PromptInput {
                agent: Some(agent.to_owned()),
                // Used by agents without a configured model.
                model: self
                    .instance
                    .agent(agent)
                    .ok()
                    .filter(|agent| agent.model.is_none())
                    .and(self.caller.model.clone()),
                chosen: Some(true),
                parts: vec![text],
                ..PromptInput::default()
            };
            let admitted = admit(&self.inner, &self.session_id, Admission::Prompt(Box::new(prompt))).await;
            admitted.map(drop).map_err(ToolError::model)
        })
    }
}

fn question(asked: UserQuestion) -> Question {
    let options = asked
        .options
        .into_iter()
        .map(|option| QuestionOption { label: option.label, description: option.description });
    Question {
        question: asked.question,
        header: asked.header,
        options: options.collect(),
        multiple: asked.multiple,
        custom: asked.custom,
    }
}
