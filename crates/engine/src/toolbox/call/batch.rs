//! Runs several calls in one: each is checked and run like any call, in parallel.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use codewright_tools::{AnyTool, Batch, BatchCall, Bounds, Output, Progress, Tool as _, ToolCx};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::Value;

use super::{CallCx, Failure, Granted, PendingCall, failure, unavailable, within};
use crate::extension::Moment;
use crate::extension::moments::ToolCall;
use crate::run::recorder::Call;
use crate::run::refusal::REJECTED;

/// The output limit of all results together, as a multiple of the limit of one.
const MORE: usize = 2;
/// The smallest output limit of each result.
const LEAST: Bounds = Bounds { lines: 100, bytes: 4 * 1024 };

/// A permitted call.
struct Permitted {
    /// The context with the id by which extensions tell the calls of a batch apart.
    call: CallCx,
    tool: Arc<dyn AnyTool>,
    input: Value,
    cx: ToolCx,
    granted: Granted,
}

/// A permitted call, or the reason why it is rejected.
type Ready = Result<Box<Permitted>, String>;

impl CallCx {
    /// Runs the calls of a batch after all of them are permitted and the batch is recorded.
    ///
    /// Permissions are requested first, one after the other: a rejection without a message ends the turn before any
    /// call of the batch has run.
    pub(super) async fn batch(&self, pending: PendingCall<'_>, input: Value) -> Result<Output, Failure> {
        let calls = Batch::calls(input).map_err(failure)?;
        let bounds = share(self.instance.settled.bounds, calls.len().min(Batch::MOST));
        let mut ready = Vec::new();
        for (number, inner) in calls.into_iter().enumerate() {
            let name = inner.tool.clone();
            let one = if number < Batch::MOST {
                let hook_id = Some(format!("{}-{number}", pending.call.id));
                let own = Self { hook_id, ..self.clone() };
                own.prepared(pending.call, inner, bounds).await?
            } else {
                Err(format!("A batch has {} calls at most; this one was not made.", Batch::MOST))
            };
            ready.push((name, one));
        }
        self.until_recorded(pending.recorded).await?;
        let made = ready.into_iter().map(|(name, ready)| async {
            let result = match ready {
                Ok(permitted) => permitted.made().await?,
                Err(error) => Err(error),
            };
            Ok::<_, Failure>((name, result))
        });
        let results: Result<Vec<_>, Failure> = join_all(made).await.into_iter().collect();
        Ok(Batch::joined(results?))
    }

    /// Requests the permissions of a call. The inner error is the result of the call, the outer one ends the batch.
    async fn prepared(self, call: &Call, inner: BatchCall, bounds: Bounds) -> Result<Ready, Failure> {
        let tool = self.selection.find(&inner.tool).filter(|tool| tool.name() != Batch::NAME);
        let tool = tool.filter(|tool| self.inner.toolbox.find(tool.name()).is_some());
        let Some(tool) = tool else {
            let may = |tool: &&Arc<dyn AnyTool>| {
                tool.name() != Batch::NAME && self.inner.toolbox.find(tool.name()).is_some()
            };
            let may: Vec<_> = self.selection.offered.iter().filter(may).cloned().collect();
            return Ok(Err(unavailable(&inner.tool, &may)));
        };
        let input = Value::Object(inner.parameters);
        let input = match self.extensions.tool_before(self.hooked(tool.name()), input).await {
            Ok(input) => input,
            Err(reason) => return Ok(Err(reason)),
        };
        let cx = self.call_cx(call, &tool, Progress::none()).await?;
        let cx = ToolCx { bounds, ..cx };
        match self.request_permissions(call, &tool, &input, &cx).await {
            Ok(granted) => Ok(Ok(Box::new(Permitted { call: self, tool, input, cx, granted }))),
            Err(Failure::Told(error)) if error != REJECTED => Ok(Err(error)),
            Err(ended) => Err(ended),
        }
    }

    /// The call as extensions know it.
    fn hooked<'a>(&'a self, tool: &'a str) -> ToolCall<'a> {
        let call_id = self.hook_id.as_deref().unwrap_or_default();
        ToolCall { tool, session: &self.session_id, call_id }
    }
}

impl Permitted {
    /// Runs the call. The inner error is the result of the call, the outer one ends the batch.
    async fn made(self) -> Result<Result<Output, String>, Failure> {
        let Self { call, tool, input, cx, granted } = self;
        let (name, extensions) = (tool.name(), &call.extensions);
        let args = extensions.take(Moment::ToolAfter).then(|| input.clone());
        let effect = AssertUnwindSafe(call.effect(&tool, input, &cx, granted)).catch_unwind();
        match within(tool.deadline(), name, effect).await {
            Ok(Ok(Ok(output))) => Ok(Ok(match args {
                Some(args) => extensions.tool_after(call.hooked(name), &args, output).await,
                None => output,
            })),
            Ok(Ok(Err(Failure::Aborted))) | Err(Failure::Aborted) => Err(Failure::Aborted),
            Ok(Ok(Err(Failure::Told(error)))) | Err(Failure::Told(error)) => Ok(Err(error)),
            Ok(Err(_)) => Ok(Err(format!("The {name} tool failed: this is a bug in Codewright."))),
        }
    }
}

/// Returns the output limit of each of several results.
fn share(all: Bounds, calls: usize) -> Bounds {
    let part = |all: usize, least: usize| (all * MORE / calls.max(1)).clamp(least.min(all), all);
    Bounds { lines: part(all.lines, LEAST.lines), bytes: part(all.bytes, LEAST.bytes) }
}
