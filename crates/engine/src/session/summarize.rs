//! Requested summaries.

use codewright_proto::{ModelRef, PromptModel, SessionId, SummarizeInput};

use crate::Error;
use crate::admit::{Admission, admit};
use crate::interface::Sessions;
use crate::run::compact::trigger::Cause;

impl Sessions<'_> {
    /// Replaces the conversation so far by a summary, and waits for the end of the turn.
    ///
    /// A running session is summarized after its current step. A failed summary is reported by the session's events and
    /// does not change the conversation.
    pub async fn summarize(self, id: &SessionId, input: SummarizeInput) -> Result<bool, Error> {
        let model = PromptModel { provider_id: input.provider_id, model_id: input.model_id, variant: None };
        let cause = if input.auto == Some(true) { Cause::RequestedDuringTurn } else { Cause::Requested };
        self.ask_for_summary(id, model, cause).await
    }

    /// Does the same with the session's model, or else the configured one.
    pub async fn compact(self, id: &SessionId) -> Result<bool, Error> {
        let session = super::in_use(self.0, id).await?;
        let model = match session.model {
            Some(ModelRef { id, provider_id, .. }) => {
                PromptModel { provider_id, model_id: id, variant: None }
            }
            None => {
                let instance = self.0.instance(std::path::Path::new(&session.directory)).await?;
                let (provider_id, model_id) = instance.models.default_model()?;
                PromptModel { provider_id, model_id, variant: None }
            }
        };
        self.ask_for_summary(id, model, Cause::Requested).await
    }

    async fn ask_for_summary(self, id: &SessionId, model: PromptModel, cause: Cause) -> Result<bool, Error> {
        let (_, turn) = admit(self.0, id, Admission::Summary { model, cause }).await?;
        if let Some(turn) = turn {
            turn.ended().await;
        }
        Ok(true)
    }
}
