//! What holds for a session: its own rules, and those of everybody who handed it the work.
//!
//! Work that is handed down never may more than whoever handed it down: each layer is asked by
//! itself, and the strictest answer holds. So no child, whatever its agent, loosens a rule.

use std::sync::Arc;

use codewright_proto::{Action, Rule, Session};
use codewright_tools::Implied;

use super::evaluate::{evaluate, is_named, is_off, matches, strictest};
use super::implied::judge;
use crate::Error;
use crate::engine::Inner;
use crate::place::Place;

/// How many sessions may stand above one; what is above them is not looked at.
const MAX_ABOVE: usize = 64;

/// Rules in layers: one's own, then those of whoever handed down the work, up to the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Law(Arc<[Arc<[Rule]>]>);

impl Default for Law {
    /// The law of one who has no rules: everything is asked.
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Law {
    /// The law of one whom nobody handed anything.
    pub(crate) fn of(rules: Vec<Rule>) -> Self {
        Self([rules.into()].into())
    }

    /// The law of one who works for others.
    pub(crate) fn under<'a>(rules: Vec<Rule>, above: impl IntoIterator<Item = &'a Self>) -> Self {
        let above = above.into_iter().flat_map(|law| law.0.iter().cloned());
        Self([rules.into()].into_iter().chain(above).collect())
    }

    /// Decides about `permission` on one `pattern`: the strictest layer holds, and one that says nothing asks.
    pub(crate) fn decide(&self, permission: &str, pattern: &str) -> Action {
        strictest(
            self.0.iter().map(|rules| {
                evaluate(rules.iter(), permission, pattern).map_or(Action::Ask, |rule| rule.action)
            }),
        )
    }

    /// The same, where a rule that allows has to name what it allows.
    pub(crate) fn decide_by_name(&self, permission: &str, pattern: &str) -> Action {
        strictest(self.0.iter().map(|rules| {
            let named = rules.iter().filter(|rule| is_named(rule));
            evaluate(named, permission, pattern).map_or(Action::Ask, |rule| rule.action)
        }))
    }

    /// Decides about something that comes with a call: the strictest layer holds.
    pub(crate) fn judge(&self, implied: &Implied) -> Action {
        strictest(self.0.iter().map(|rules| judge(rules, implied)))
    }

    /// The rules of each layer, for questions that this type does not answer.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &[Rule]> {
        self.0.iter().map(|rules| &**rules)
    }

    /// Whether something is switched off altogether, so that the model need not see it.
    pub(crate) fn is_off(&self, permission: &str) -> bool {
        self.0.iter().any(|rules| is_off(rules, permission))
    }

    /// The rules that speak of a permission, for the model to read.
    pub(crate) fn about(&self, permission: &str) -> Vec<Rule> {
        let mut about: Vec<Rule> = Vec::new();
        for rule in self.0.iter().flat_map(|rules| rules.iter()) {
            if matches(&rule.permission, permission) && !about.contains(rule) {
                about.push(rule.clone());
            }
        }
        about
    }
}

/// The law of a session whose next steps an agent takes.
///
/// Whoever is waited for by a call works under the law of that call. Otherwise the sessions
/// above are looked up, each with the agent that it has now.
pub(crate) async fn law(inner: &Inner, place: &Place, session: &Session, agent: &str) -> Result<Law, Error> {
    let own = rules(place, session, agent)?;
    if let Some(above) = inner.subagents.above(&session.id) {
        return Ok(Law::under(own, &above));
    }
    let mut above = Vec::new();
    let mut next = session.parent_id.clone();
    while let Some(id) = next.take().filter(|_| above.len() < MAX_ABOVE) {
        let Some(parent) = inner.store.session(&id).await? else { break };
        let place = inner.place(std::path::Path::new(&parent.directory)).await?;
        // An agent that is gone stands for the one that sessions begin with.
        let named = parent.agent.as_deref().filter(|name| place.agent(name).is_ok());
        let agent = place.agent_name(named)?;
        above.push(Law::of(rules(&place, &parent, &agent)?));
        next = parent.parent_id;
    }
    Ok(Law::under(own, &above))
}

/// An agent's rules, then the session's.
fn rules(place: &Place, session: &Session, agent: &str) -> Result<Vec<Rule>, Error> {
    let mut rules = place.agent(agent)?.permission.clone();
    rules.extend(session.permission.iter().flatten().cloned());
    if session.parent_id.is_some() {
        rules.extend(place.settled.rules_below());
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names of every way to an effect: built-in tools, gates, and tools of servers and plugins.
    const KEYS: [&str; 14] = [
        "bash",
        "edit",
        "read",
        "task",
        "skill",
        "webfetch",
        "external_directory",
        "doom_loop",
        "batch",
        "plan_exit",
        "question",
        "github_create_issue",
        "myplugin.deploy",
        "todowrite",
    ];
    const WORDS: [&str; 9] =
        ["git push", "rm -rf x", "src/a.rs", ".env", "/etc/*", "general", "explore", "a/../b", "*"];

    fn rule() -> impl Strategy<Value = Rule> {
        let key = prop_oneof![
            proptest::sample::select(KEYS.as_slice()).prop_map(str::to_owned),
            Just("*".to_owned()),
            Just("github_*".to_owned()),
            "[a-z*?]{1,4}",
        ];
        let pattern = prop_oneof![
            proptest::sample::select(WORDS.as_slice()).prop_map(str::to_owned),
            Just("git *".to_owned()),
            Just("*.env".to_owned()),
            "[a-z./*? ]{0,6}",
        ];
        let action = proptest::sample::select([Action::Allow, Action::Ask, Action::Deny].as_slice());
        (key, pattern, action).prop_map(|(key, pattern, action)| Rule::new(&key, &pattern, action))
    }

    fn rank(action: Action) -> u8 {
        match action {
            Action::Allow => 0,
            Action::Ask => 1,
            Action::Deny => 2,
        }
    }

    proptest! {
        /// Whatever rules a child has, on every way to an effect it may at most what its parents may.
        #[test]
        fn a_child_never_may_more_than_any_above_it(
            layers in proptest::collection::vec(proptest::collection::vec(rule(), 0..8), 1..5),
            key in proptest::sample::select(KEYS.as_slice()),
            pattern in prop_oneof![
                proptest::sample::select(WORDS.as_slice()).prop_map(str::to_owned),
                "[a-z./ ]{0,8}",
            ],
        ) {
            let mut layers = layers.into_iter();
            let mut above = Law::of(layers.next().unwrap_or_default());
            for rules in layers {
                let child = Law::under(rules.clone(), [&above]);
                let alone = Law::of(rules);
                prop_assert!(rank(child.decide(key, &pattern)) >= rank(above.decide(key, &pattern)));
                prop_assert!(rank(child.decide(key, &pattern)) >= rank(alone.decide(key, &pattern)));
                prop_assert!(!above.is_off(key) || child.is_off(key));
                above = child;
            }
        }

        /// Alone, one's own rules mean what they always meant.
        #[test]
        fn one_layer_is_its_rules(
            rules in proptest::collection::vec(rule(), 0..8),
            key in proptest::sample::select(KEYS.as_slice()),
            pattern in proptest::sample::select(WORDS.as_slice()),
        ) {
            let expected = evaluate(rules.iter(), key, pattern).map_or(Action::Ask, |rule| rule.action);
            prop_assert_eq!(Law::of(rules).decide(key, pattern), expected);
        }
    }

    #[test]
    fn a_denial_above_is_named_to_the_child() {
        let above = Law::of(vec![Rule::new("edit", "*", Action::Deny)]);
        let child = Law::under(vec![Rule::new("*", "*", Action::Allow)], [&above]);
        assert_eq!(child.decide("edit", "a.rs"), Action::Deny);
        assert_eq!(child.about("edit").len(), 2);
        assert!(child.is_off("edit") && !child.is_off("read"));
        assert_eq!(child.decide("read", "a.rs"), Action::Ask, "the parent has no rule for it");
    }
}
