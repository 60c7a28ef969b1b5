//! The leave of one call: asked before it begins, and held against what it would reach when it does.
//!
//! A person may think for hours, and other calls work meanwhile: a link may lead elsewhere by then.
//! So everything is looked up once more right before the call runs, and what is new is asked for.

use std::sync::Arc;

use codewright_proto::ToolRef;
use codewright_tools::{AnyTool, Ask, ToolCx};
use serde_json::Value;

use super::{ASKS_DEADLINE, CallCx, Failure, failure, within};
use crate::run::recorder::Call;

/// How often what a call reaches may change under it before it is given up.
const MAX_CHANGES: usize = 5;

/// What a call was granted, and for whom the questions were.
pub(super) struct Granted {
    asks: Vec<Ask>,
    tool: ToolRef,
}

impl CallCx {
    /// Asks for everything that a call needs leave for.
    pub(super) async fn granted(
        &self,
        call: &Call,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<Granted, Failure> {
        let mut granted = Granted { asks: Vec::new(), tool: self.tool_ref(call) };
        granted.asks = self.ask_for_more(&granted, (tool, input), cx).await?;
        Ok(granted)
    }

    /// Asks again for what has changed since leave was given.
    pub(super) async fn still_granted(
        &self,
        mut granted: Granted,
        call: (&Arc<dyn AnyTool>, &Value),
        cx: &ToolCx,
    ) -> Result<(), Failure> {
        for _ in 0..MAX_CHANGES {
            let asks = self.ask_for_more(&granted, call, cx).await?;
            let is_same = asks.iter().all(|ask| granted.rest(ask).is_none());
            granted.asks = asks;
            if is_same {
                return Ok(());
            }
        }
        Err(Failure::Told("What the call would reach changes all the time, so it was not made.".to_owned()))
    }

    /// Everything that a call needs leave for now, once all of it that is new is granted.
    async fn ask_for_more(
        &self,
        granted: &Granted,
        (tool, input): (&Arc<dyn AnyTool>, &Value),
        cx: &ToolCx,
    ) -> Result<Vec<Ask>, Failure> {
        let asks = within(ASKS_DEADLINE, tool.name(), tool.asks(input, cx)).await?.map_err(failure)?;
        for ask in asks.iter().filter_map(|ask| granted.rest(ask)) {
            if ask.permission == "task" && ask.patterns.iter().all(|agent| self.caller.named.contains(agent))
            {
                // The user named the agent, which is leave enough to call it. It works under our rules all the same.
                continue;
            }
            self.gate(&ask, Some(granted.tool.clone())).await?;
        }
        Ok(asks)
    }
}

impl Granted {
    /// What of an ask was not granted yet.
    fn rest(&self, ask: &Ask) -> Option<Ask> {
        let is_same = |known: &&Ask| known.permission == ask.permission && known.patterns == ask.patterns;
        let Some(known) = self.asks.iter().find(is_same) else { return Some(ask.clone()) };
        let implied: Vec<_> =
            ask.implied.iter().filter(|implied| !known.implied.contains(implied)).cloned().collect();
        let is_more = !implied.is_empty();
        is_more.then(|| Ask { patterns: Vec::new(), implied, ..ask.clone() })
    }
}
