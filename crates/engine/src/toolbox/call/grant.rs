//! The permissions of one call, checked before it starts and again when it runs.
//!
//! A user may reply after hours, and other calls run in the meantime, so a link may lead elsewhere by then. Therefore
//! the effects are computed again immediately before the call runs, and new ones need permission.

use std::sync::Arc;

use codewright_permission::By;
use codewright_tools::{AnyTool, Ask, Implied, Task, Tool as _, ToolCx};
use serde_json::Value;

use super::{ASKS_DEADLINE, CallCx, Failure, Granted, failure, wider, within};
use crate::permission::gate::NETWORK;
use crate::permission::held::Held;
use crate::run::recorder::Call;
use crate::sandbox::enforcement::{Enforcement, enforcement, mode};

/// The number of times that the effects of a call may change before it is given up.
const MAX_CHANGES: usize = 5;

impl CallCx {
    /// Requests all permissions that a call needs.
    pub(super) async fn request_permissions(
        &self,
        call: &Call,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<Granted, Failure> {
        let mut granted = Granted { asks: Vec::new(), tool: self.tool_ref(call) };
        self.ask_for_more(&mut granted, tool, input, cx).await?;
        Ok(granted)
    }

    /// Requests the permissions that are new since the first check. Returns all of them.
    pub(super) async fn request_new_permissions(
        &self,
        mut granted: Granted,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<Granted, Failure> {
        for _ in 0..MAX_CHANGES {
            // Only a user's reply takes time in which something else may change. Rules decide at once, also about a
            // call whose effects differ each time, such as one that lists the running processes.
            if self.ask_for_more(&mut granted, tool, input, cx).await? == By::Rules {
                return Ok(granted);
            }
        }
        Err(Failure::Told("What the call would reach changes all the time, so it was not made.".to_owned()))
    }

    /// Requests permission for everything new that a call needs now. Returns whether a user had to decide.
    async fn ask_for_more(
        &self,
        granted: &mut Granted,
        tool: &Arc<dyn AnyTool>,
        input: &Value,
        cx: &ToolCx,
    ) -> Result<By, Failure> {
        let mut by = By::Rules;
        let mut asks = within(ASKS_DEADLINE, tool.name(), tool.asks(input, cx)).await?.map_err(failure)?;
        let held = if tool.facts().starts_commands {
            asks.extend(self.wider(input).await?);
            self.held(&mut asks).await
        } else {
            None
        };
        for ask in asks {
            let Some(rest) = granted.rest(&ask) else { continue };
            if ask.permission == Task::NAME
                && ask.patterns.iter().all(|agent| self.caller.named.contains(agent))
            {
                // The user named the agent, which permits the call. The caller's rules hold for the agent all the same.
            } else {
                match self.gate_in_sandbox(&rest, Some(granted.tool.clone()), held.as_ref()).await? {
                    By::Rules => {}
                    // Nobody granted this, so it must not widen the sandbox.
                    By::Kernel => continue,
                    By::User => by = By::User,
                }
            }
            granted.asks.push(ask);
        }
        Ok(by)
    }

    /// Returns the permission requests for the wider access that a call names.
    async fn wider(&self, input: &Value) -> Result<Vec<Ask>, Failure> {
        let (input, inner, instance) = (input.clone(), self.inner.clone(), self.instance.clone());
        let mode = mode(&self.inner, &self.instance, self.caller.rules.sandbox());
        let (network, denies_hosts) = (self.instance.sandbox.network, self.caller.rules.denies_some(NETWORK));
        let found = tokio::task::spawn_blocking(move || {
            let (directory, worktree) = (instance.directory.as_path(), instance.worktree.root.as_path());
            let dirs = &inner.dirs;
            wider::asks(&input, &wider::Place { mode, directory, worktree, dirs, network, denies_hosts })
        });
        found.await.unwrap_or_else(|error| Err(error.to_string())).map_err(Failure::Told)
    }

    /// Returns what the kernel holds of a call that starts commands. If it does not enforce the mode, the requests are
    /// marked, so that they need a reply.
    async fn held(&self, asks: &mut [Ask]) -> Option<Held> {
        let enforcement = enforcement(&self.inner, &self.instance, &self.caller.rules).await;
        enforcement.mark(asks);
        if enforcement != Enforcement::Whole {
            return None;
        }
        let mechanism = self.inner.sandbox_support().await.mechanism;
        Some(Held::of(&mechanism))
    }
}

impl Granted {
    /// The granted requests.
    pub(super) fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// The granted hosts, as rules name them.
    pub(super) fn hosts(&self) -> Vec<String> {
        let asks = self.asks.iter().filter(|ask| ask.permission == NETWORK);
        asks.flat_map(|ask| ask.patterns.iter().cloned()).collect()
    }

    /// Returns the part of a request that is not granted yet.
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
