//! The trait of tools, and its type-erased form.

pub(crate) mod apply_patch;
pub(crate) mod background;
pub(crate) mod bash;
pub(crate) mod batch;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod list;
pub(crate) mod lsp;
pub(crate) mod multiedit;
pub(crate) mod plan;
pub(crate) mod question;
pub(crate) mod read;
pub(crate) mod skill;
pub(crate) mod task;
pub(crate) mod todoread;
pub(crate) mod todowrite;
pub(crate) mod webfetch;
pub(crate) mod websearch;
pub(crate) mod write;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Ask, Facts, Output, ToolCx, ToolError, schema};

/// The time limit of a call if its tool sets none.
const CALL_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// A tool with typed arguments.
pub trait Tool: Send + Sync + 'static {
    /// Its name for models and in rules.
    const NAME: &'static str;
    /// The facts that decide how the program treats its calls.
    const FACTS: &'static Facts;
    /// The time limit of a call, without the time that permission requests take.
    const DEADLINE: Duration = CALL_DEADLINE;
    /// Its arguments, as the schema describes them.
    type Input: DeserializeOwned + Send + Sync;

    /// The description for the model.
    fn description(&self) -> String;
    /// The JSON schema of the arguments.
    fn parameters(&self) -> Value;
    /// The permissions that a call needs. Without any, return an empty list.
    fn asks(
        &self,
        input: &Self::Input,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<Vec<Ask>, ToolError>> + Send;
    /// Runs a call. The permissions from `asks` have been granted.
    fn run(&self, input: Self::Input, cx: &ToolCx) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A future of a type-erased tool.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// A tool with JSON arguments: a built-in one, or one of a plugin or a server.
pub trait AnyTool: Send + Sync {
    /// Its name for models and in rules.
    fn name(&self) -> &str;
    /// The facts that decide how the program treats its calls.
    fn facts(&self) -> &'static Facts {
        &Facts::PLAIN
    }
    /// The permission that its calls need.
    fn permission(&self) -> &str {
        self.facts().permission.unwrap_or(self.name())
    }
    /// The description for the model.
    fn description(&self) -> String;
    /// The JSON schema of the arguments.
    fn parameters(&self) -> Value;
    /// The time limit of a call, without the time that permission requests take.
    fn deadline(&self) -> Duration {
        CALL_DEADLINE
    }
    /// The permissions that a call needs. Fails like `run` if the arguments are invalid.
    fn asks<'a>(&'a self, input: &'a Value, cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>>;
    /// Runs a call. The permissions from `asks` have been granted.
    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> Boxed<'a, Output>;
}

/// Erases the type of a tool.
pub fn erase(tool: impl Tool) -> Arc<dyn AnyTool> {
    Arc::new(Erased(tool))
}

struct Erased<T>(T);

impl<T: Tool> Erased<T> {
    fn decode(&self, input: Value) -> Result<T::Input, ToolError> {
        schema::decode::<T>(&self.0.parameters(), input)
    }
}

impl<T: Tool> AnyTool for Erased<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn facts(&self) -> &'static Facts {
        T::FACTS
    }

    fn description(&self) -> String {
        self.0.description()
    }

    fn parameters(&self) -> Value {
        self.0.parameters()
    }

    fn deadline(&self) -> Duration {
        T::DEADLINE
    }

    fn asks<'a>(&'a self, input: &'a Value, cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>> {
        Box::pin(async move { self.0.asks(&self.decode(input.clone())?, cx).await })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> Boxed<'a, Output> {
        Box::pin(async move { self.0.run(self.decode(input)?, cx).await })
    }
}
