//! The leave of one call: asked before it begins, and held against what it would reach when it does.
//!
//! A person may think for hours, and other calls work meanwhile: a link may lead elsewhere by then.
//! So everything is looked up once more right before the call runs, and what is new is asked for.

use std::sync::Arc;

use codewright_proto::ToolRef;
use codewright_tools::{AnyTool, Ask, Implied, Task, Tool as _, ToolCx};
use serde_json::Value;

use super::{ASKS_DEADLINE, CallCx, Failure, failure, within};
use crate::permission::gate::By;
use crate::run::recorder::Call;

/// How often what a call reaches may change under it before it is given up.
const MAX_CHANGES: usize = 5;

/// All that a call was granted so far, and the call.
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
        self.ask_for_more(&mut granted, (tool, input), cx).await?;
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
            // Only a question takes time in which something else may change. Rules decide at once, also about a
            // call whose effects differ each time, such as one that lists the running processes.
            if self.ask_for_more(&mut granted, call, cx).await? == By::Rules {
                return Ok(());
            }
        }
        Err(Failure::Told("What the call would reach changes all the time, so it was not made.".to_owned()))
    }

    /// Requests permission for everything new that a call needs now; returns whether a user had to decide.
    async fn ask_for_more(
        &self,
        granted: &mut Granted,
        (tool, input): (&Arc<dyn AnyTool>, &Value),
        cx: &ToolCx,
    ) -> Result<By, Failure> {
        let mut by = By::Rules;
        let asks = within(ASKS_DEADLINE, tool.name(), tool.asks(input, cx)).await?.map_err(failure)?;
        for ask in asks {
            let Some(rest) = granted.rest(&ask) else { continue };
            if ask.permission == Task::NAME
                && ask.patterns.iter().all(|agent| self.caller.named.contains(agent))
            {
                // The user named the agent, which permits the call. The caller's rules hold for the agent all the same.
            } else if self.gate(&rest, Some(granted.tool.clone())).await? == By::User {
                by = By::User;
            }
            granted.asks.push(ask);
        }
        Ok(by)
    }
}

impl Granted {
    /// What of an ask was not granted yet.
    fn rest(&self, ask: &Ask) -> Option<Ask> {
        let is_same = |known: &&Ask| known.permission == ask.permission && known.patterns == ask.patterns;
        let known: Vec<_> = self.asks.iter().filter(is_same).collect();
        if known.is_empty() {
            return Some(ask.clone());
        }
        let is_new = |implied: &&Implied| !known.iter().any(|ask| ask.implied.contains(implied));
        let implied: Vec<_> = ask.implied.iter().filter(is_new).cloned().collect();
        let is_more = !implied.is_empty();
        is_more.then(|| Ask { patterns: Vec::new(), implied, ..ask.clone() })
    }
}
