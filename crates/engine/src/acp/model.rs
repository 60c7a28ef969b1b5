//! The name of another agent in the place of a model.
//!
//! Messages always name a model. The answers of another agent name the provider `acp` and the agent.

use codewright_proto::PromptModel;

/// The provider of answers of other agents.
pub(crate) const PROVIDER: &str = "acp";

/// Returns the model of the answers of another agent.
pub(crate) fn model(agent: &str) -> PromptModel {
    PromptModel { provider_id: PROVIDER.to_owned(), model_id: agent.to_owned(), variant: None }
}
