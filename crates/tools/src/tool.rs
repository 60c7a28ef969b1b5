//! The trait of a tool, and its erased twin.

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

/// How long a call may work if its tool says nothing else, whatever its own limits are.
const CALL_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// A tool with a typed input.
pub trait Tool: Send + Sync + 'static {
    /// What models and rules call it.
    const NAME: &'static str;
    /// The facts by which the program treats its calls.
    const FACTS: &'static Facts;
    /// How long a call may work at most; waiting for leave is not counted.
    const DEADLINE: Duration = CALL_DEADLINE;
    /// Its input, as the schema describes it.
    type Input: DeserializeOwned + Send + Sync;

    /// What the model is told about it.
    fn description(&self) -> String;
    /// The JSON schema of the input.
    fn parameters(&self) -> Value;
    /// What this call would need leave for. An empty list is a statement, not a default.
    fn asks(
        &self,
        input: &Self::Input,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<Vec<Ask>, ToolError>> + Send;
    /// Does it; whatever `asks` gave has been granted.
    fn run(&self, input: Self::Input, cx: &ToolCx) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A future of an erased tool.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// A tool whose input is JSON: a built-in one, or one of a plugin or a server.
pub trait AnyTool: Send + Sync {
    /// What models and rules call it.
    fn name(&self) -> &str;
    /// The facts by which the program treats its calls.
    fn facts(&self) -> &'static Facts {
        &Facts::PLAIN
    }
    /// The permission that its calls need.
    fn permission(&self) -> &str {
        self.facts().permission.unwrap_or(self.name())
    }
    /// What the model is told about it.
    fn description(&self) -> String;
    /// The JSON schema of the input.
    fn parameters(&self) -> Value;
    /// How long a call may work at most; waiting for leave is not counted.
    fn deadline(&self) -> Duration {
        CALL_DEADLINE
    }
    /// What this call would need leave for; fails as `run` would if the input does not fit.
    fn asks<'a>(&'a self, input: &'a Value, cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>>;
    /// Does it; whatever `asks` gave has been granted.
    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> Boxed<'a, Output>;
}

/// Forgets the type of a tool.
pub fn erase(tool: impl Tool) -> Arc<dyn AnyTool> {
    Arc::new(Erased(tool))
}

struct Erased<T>(T);

impl<T: Tool> Erased<T> {
    fn decode(&self, input: Value) -> Result<T::Input, ToolError> {
        schema::decode(T::NAME, &self.0.parameters(), input)
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
