//! Finds the permission rules of a session.

use std::path::Path;

use codewright_config::{AgentSpec, Dirs, RuleLimits};
use codewright_proto::{Rule, Session};

use super::gate::OUTSIDE;
use super::rules::PermissionRules;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;

/// The number of callers whose rules are looked up.
const MAX_ABOVE: usize = 64;

/// Returns the permission rules of a session that runs with this agent.
///
/// A subagent whose call is waiting has the rules of that call. Otherwise the parent sessions are looked up, each with
/// its current agent.
pub(crate) async fn session_rules(
    inner: &Inner,
    instance: &Instance,
    session: &Session,
    agent: &str,
) -> Result<PermissionRules, Error> {
    let own = own(inner, instance, session, agent)?;
    if let Some(above) = inner.subagents.above(&session.id) {
        return Ok(own.under(&above));
    }
    let mut above = Vec::new();
    let mut next = session.parent_id.clone();
    while let Some(id) = next.take().filter(|_| above.len() < MAX_ABOVE) {
        let Some(parent) = inner.store.session(&id).await? else { break };
        let instance = inner.instance(Path::new(&parent.directory)).await?;
        // A missing agent is replaced by the default agent.
        let named = parent.agent.as_deref().filter(|name| instance.agent(name).is_ok());
        let agent = instance.agent_name(named)?;
        above.push(self::own(inner, &instance, &parent, &agent)?);
        next = parent.parent_id;
    }
    Ok(own.under(&above))
}

/// The rules of the agent, followed by those of the session.
///
/// If a user who is not an administrator has set rules of the session, they only make the decisions of the others stricter.
/// So do those of an imported document, for the rules that were set here.
fn own(inner: &Inner, instance: &Instance, session: &Session, agent: &str) -> Result<PermissionRules, Error> {
    let agent = instance.agent(agent)?;
    let below: Vec<Rule> = session.parent_id.iter().flat_map(|_| instance.settled.rules_below()).collect();
    let more: Vec<Rule> = session.permission.iter().flatten().chain(&below).cloned().collect();
    let Some(access) = &session.access else {
        return Ok(PermissionRules::of_agent(agent, &more).under(&without_imported(agent, &more)));
    };
    let agent = of_user(agent, &inner.dirs, &access.owner);
    let rules = PermissionRules::of_agent(&agent, &more).under(&without_imported(&agent, &more));
    let bound =
        (!access.admin && session.permission.is_some()).then(|| PermissionRules::of_agent(&agent, &below));
    Ok(rules.under(&bound).of_user(&access.owner))
}

/// The rules without those of an imported document, if it brought some.
fn without_imported(agent: &AgentSpec, rules: &[Rule]) -> Option<PermissionRules> {
    let chosen: Vec<Rule> = rules.iter().filter(|rule| !rule.imported).cloned().collect();
    (chosen.len() < rules.len()).then(|| PermissionRules::of_agent(agent, &chosen))
}

/// Replaces the directories of all users in the built-in rules by those of one user.
fn of_user(agent: &AgentSpec, dirs: &Dirs, user: &str) -> AgentSpec {
    let pattern = |directory: &Path| directory.join("*").display().to_string();
    let shared = [dirs.tool_output(), dirs.plans(), dirs.tmp.clone()]
        .map(|directory| (pattern(&directory), pattern(&Dirs::of_user(directory, user))));
    let own = |rules: &[Rule]| {
        let rules = rules.iter().map(|rule| {
            let own = shared.iter().find(|(of_all, _)| rule.permission == OUTSIDE && rule.pattern == *of_all);
            let pattern = own.map_or_else(|| rule.pattern.clone(), |(_, own)| own.clone());
            Rule { pattern, ..rule.clone() }
        });
        rules.collect::<Vec<_>>()
    };
    let limits = agent.limits.as_ref().map(|limits| RuleLimits { user: own(&limits.user), ..limits.clone() });
    AgentSpec { permission: own(&agent.permission), limits, ..agent.clone() }
}

#[cfg(test)]
mod tests {
    use codewright_config::Env;
    use codewright_proto::Action;

    use super::*;

    #[test]
    fn imported_rules_only_restrict_and_a_later_rule_of_the_user_lifts_them() {
        let dirs = Dirs::new(&Env::from_pairs([("HOME", "/home/ann")])).unwrap();
        let agent = codewright_config::builtin_agents(&dirs, Path::new("/p")).remove(0);
        let (allow, ask, deny) = (Action::Allow, Action::Ask, Action::Deny);
        let own = |action| Rule::new("bash", "*", action);
        let imported = |action| Rule { imported: true, ..own(action) };
        for (rules, expected) in [
            (vec![own(deny), imported(allow)], deny),
            (vec![own(deny), imported(ask)], deny),
            (vec![own(ask), imported(allow)], ask),
            (vec![own(allow), imported(deny)], deny),
            (vec![imported(deny), own(allow)], allow),
            (vec![imported(allow), own(deny)], deny),
        ] {
            let found = PermissionRules::of_agent(&agent, &rules).under(&without_imported(&agent, &rules));
            assert_eq!(found.decide("bash", "ls"), expected, "{rules:?}");
        }
    }
}
