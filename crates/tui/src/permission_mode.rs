//! The permission mode: what the agent may do without a question.
//!
//! A mode never weakens a rule that denies. `Ask` adds rules to the session that ask where the rules of the agent allow
//! everything. `AcceptEdits` answers requests for edits here, except those for files that control other programs.
//! `Plan` is the agent of that name.

use codewright_proto::{Action as Decision, PermissionRequest, Rule, SessionId, ToastVariant};

use crate::mirror::Agent;
use crate::msg::Cmd;
use crate::state::State;

/// The agent of the plan mode.
const PLAN: &str = "plan";
/// The permissions that the mode `Ask` asks for.
const ASKS_FOR: [&str; 2] = ["edit", "bash"];
/// The permission of changes to files.
const EDIT: &str = "edit";
/// The number of rules of a session above which no mode adds rules.
const MAX_RULES: usize = 800;

/// What the agent may do without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionMode {
    /// Edits and commands ask, except those that rules allow by name.
    Ask,
    /// Edits of the project are allowed.
    AcceptEdits,
    /// Nothing is edited.
    Plan,
    /// Every request is allowed (`--auto`).
    Auto,
}

impl PermissionMode {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept edits",
            Self::Plan => "plan",
            Self::Auto => "allow all",
        }
    }

    /// Returns the effect, for the note after a change.
    fn effect(self) -> &'static str {
        match self {
            Self::Ask => "ask: edits and commands need your permission, unless a rule allows them by name",
            Self::AcceptEdits => "accept edits: files of the project are edited without a question",
            Self::Plan => "plan: nothing is edited",
            Self::Auto => "allow all: every request is allowed, unless a rule denies it",
        }
    }
}

/// Returns the mode of the next prompt.
pub(crate) fn current(state: &State) -> PermissionMode {
    if state.agent().is_some_and(|agent| agent.name == PLAN) {
        return PermissionMode::Plan;
    }
    state.chosen_mode.unwrap_or_else(|| {
        if state.options.auto {
            PermissionMode::Auto
        } else if state.agent().is_some_and(|agent| decision(&agent.permission, EDIT) == Decision::Allow) {
            PermissionMode::AcceptEdits
        } else {
            PermissionMode::Ask
        }
    })
}

/// Switches to the next mode.
pub(crate) fn cycle(state: &mut State) -> Vec<Cmd> {
    let agents = state.primary_agents();
    let has_plan = agents.iter().any(|agent| agent.name == PLAN);
    let other = agents.iter().find(|agent| agent.name != PLAN).map(|agent| agent.name.clone());
    let next = match current(state) {
        PermissionMode::Ask => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits if has_plan => PermissionMode::Plan,
        PermissionMode::AcceptEdits | PermissionMode::Plan if state.options.auto => PermissionMode::Auto,
        PermissionMode::AcceptEdits | PermissionMode::Plan | PermissionMode::Auto => PermissionMode::Ask,
    };
    if next == PermissionMode::Plan {
        let before = state.agent().map(|agent| agent.name.clone());
        state.agent_before_plan = before;
        state.choice.agent = Some(PLAN.to_owned());
    } else {
        if current(state) == PermissionMode::Plan {
            state.choice.agent = state.agent_before_plan.take().or(other);
        }
        state.chosen_mode = Some(next);
    }
    state.notify(next.effect(), ToastVariant::Info);
    let mut cmds: Vec<Cmd> =
        state.session_id().cloned().and_then(|id| set_rules(state, id)).into_iter().collect();
    cmds.extend(state.auto_approvals(&state.mirror.permissions));
    cmds
}

/// Returns the command that gives a session the rules of the mode, if it does not have them.
fn set_rules(state: &mut State, id: SessionId) -> Option<Cmd> {
    let rules = missing_rules(state, Some(&id));
    let count = state.mirror.sessions.get(&id)?.permission.as_ref().map_or(0, Vec::len);
    if !rules.is_empty() && count + rules.len() > MAX_RULES {
        state.warn("this session has too many permission rules: the mode applies from the next session on");
        return None;
    }
    (!rules.is_empty()).then_some(Cmd::SetRules { session: id, rules })
}

/// Returns the rules that the mode needs and that a session, or a new one, does not have.
pub(crate) fn missing_rules(state: &State, session: Option<&SessionId>) -> Vec<Rule> {
    let Some(agent) = state.agent() else { return Vec::new() };
    let known =
        session.and_then(|id| state.mirror.sessions.get(id)?.permission.as_deref()).unwrap_or_default();
    let asking = rules_of(agent, Strictness::Asking);
    let rules = match state.chosen_mode {
        Some(PermissionMode::Ask) if agent.name != PLAN => asking,
        // Rules of a session cannot be removed, so those of the agent are added after them.
        Some(PermissionMode::AcceptEdits | PermissionMode::Auto) if contains(known, &asking) => {
            rules_of(agent, Strictness::OfAgent)
        }
        Some(_) | None => return Vec::new(),
    };
    if known.ends_with(&rules) || known.len() + rules.len() > MAX_RULES { Vec::new() } else { rules }
}

fn contains(known: &[Rule], rules: &[Rule]) -> bool {
    !rules.is_empty() && known.windows(rules.len()).any(|window| window == rules)
}

/// How strict the rules of a mode are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// Those of the agent.
    OfAgent,
    /// They ask where the agent's rules allow everything.
    Asking,
}

/// Returns the agent's rules for edits and commands.
fn rules_of(agent: &Agent, strictness: Strictness) -> Vec<Rule> {
    let mut rules = Vec::new();
    for name in ASKS_FOR {
        let first = if strictness == Strictness::Asking { Decision::Ask } else { Decision::Allow };
        rules.push(Rule::new(name, "*", first));
        for rule in agent.permission.iter().filter(|rule| matches_key(&rule.permission, name)) {
            let is_blanket = rule.action == Decision::Allow && rule.pattern == "*";
            let asks = strictness == Strictness::Asking && is_blanket;
            let action = if asks { Decision::Ask } else { rule.action };
            rules.push(Rule::new(name, &rule.pattern, action));
        }
    }
    rules
}

/// Whether the key of a rule, which may have wildcards, is for a permission.
fn matches_key(key: &str, name: &str) -> bool {
    match key.split_once('*') {
        None => key == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// Returns what the rules decide about a permission in general.
fn decision(rules: &[Rule], name: &str) -> Decision {
    let rule = rules.iter().rev().find(|rule| rule.pattern == "*" && matches_key(&rule.permission, name));
    rule.map_or(Decision::Allow, |rule| rule.action)
}

/// Whether the mode answers a request: `AcceptEdits` allows edits, except of files that control other programs.
pub(crate) fn accepts(state: &State, request: &PermissionRequest) -> bool {
    let is_here = state.is_prompted_here(&request.session_id)
        || state.session_id().is_some_and(|id| state.mirror.is_below(&request.session_id, id));
    match current(state) {
        PermissionMode::Auto => state.is_prompted_here(&request.session_id),
        PermissionMode::AcceptEdits => {
            state.chosen_mode == Some(PermissionMode::AcceptEdits)
                && is_here
                && request.permission == EDIT
                && !request.metadata.contains_key("controlFile")
        }
        PermissionMode::Ask | PermissionMode::Plan => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(rules: &[(&str, &str, Decision)]) -> Agent {
        let permission = rules.iter().map(|(name, pattern, action)| Rule::new(name, pattern, *action));
        Agent { name: "build".to_owned(), permission: permission.collect(), ..Agent::default() }
    }

    fn written(rules: &[Rule]) -> Vec<String> {
        rules.iter().map(|rule| format!("{} {} {:?}", rule.permission, rule.pattern, rule.action)).collect()
    }

    #[test]
    fn asking_rules_keep_what_is_denied_and_what_is_allowed_by_name() {
        let agent = agent(&[
            ("*", "*", Decision::Allow),
            ("edit", "secret/*", Decision::Deny),
            ("bash", "npm test", Decision::Allow),
            ("read", "*.env", Decision::Ask),
        ]);
        assert_eq!(
            written(&rules_of(&agent, Strictness::Asking)),
            [
                "edit * Ask",
                "edit * Ask",
                "edit secret/* Deny",
                "bash * Ask",
                "bash * Ask",
                "bash npm test Allow",
            ]
        );
        assert_eq!(
            written(&rules_of(&agent, Strictness::OfAgent)),
            [
                "edit * Allow",
                "edit * Allow",
                "edit secret/* Deny",
                "bash * Allow",
                "bash * Allow",
                "bash npm test Allow",
            ]
        );
    }

    #[test]
    fn a_blanket_rule_that_denies_stays() {
        let agent = agent(&[("*", "*", Decision::Deny), ("bash", "*", Decision::Allow)]);
        assert_eq!(
            written(&rules_of(&agent, Strictness::Asking)),
            ["edit * Ask", "edit * Deny", "bash * Ask", "bash * Deny", "bash * Ask"]
        );
        assert_eq!(decision(&agent.permission, "edit"), Decision::Deny);
    }
}
