//! The permission rules of a session: its own, and those of the sessions it works for.
//!
//! A subagent never has more permissions than its callers. Each layer of rules is evaluated
//! separately and the strictest action holds, so a child cannot loosen a rule of its caller.
//!
//! Within a layer the last matching rule decides, as existing configurations expect. What a principal must not loosen
//! is a further list of rules, a bound, whose decision holds as well: see [`may`] for the table.

use std::sync::Arc;

use codewright_config::{AgentSpec, SandboxMode};
use codewright_proto::{Action, Rule, SessionAccess};

use crate::ask::{Certainty, Implied};
use crate::evaluate::{allows_all, evaluate, is_named, is_off, matches, strictest};
use crate::implied::judge;
use crate::kind::Permission;
use crate::principal::{Power, Principal, may, principal_of};

/// Who wrote a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    BuiltIn,
    User,
    Repository,
}

/// Rules in layers: the session's own, then those of each caller, up to the user's session.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRules {
    layers: Arc<[Layer]>,
    /// The user in whose name the session works, on a server with users.
    user: Option<Arc<str>>,
}

/// The rules of one session's agent.
#[derive(Debug, Clone, PartialEq)]
struct Layer {
    /// All rules, including the repository's.
    rules: Arc<[Rule]>,
    /// The number of rules at the beginning that are built in.
    built_in: usize,
    /// The rules without the repository's, if it has any.
    limits: Option<Limits>,
    /// What the principals of the session's rules cannot loosen.
    bounds: Arc<[Bound]>,
    /// The sandbox that the agent or the session requires.
    sandbox: SandboxMode,
}

/// The bounds of a layer to which a repository has added rules.
#[derive(Debug, Clone, PartialEq)]
struct Limits {
    user: Arc<[Rule]>,
    /// The number of rules at the beginning of `user` that are built in.
    built_in: usize,
    /// Rules of the repository that the user accepted as exceptions from questions.
    exceptions: Arc<[Rule]>,
    /// The repository's rules alone, so that the user's rules cannot override its restrictions.
    repository: Arc<[Rule]>,
}

/// Rules whose decision holds besides that of the others. The first rule allows everything.
#[derive(Debug, Clone, PartialEq)]
struct Bound {
    rules: Arc<[Rule]>,
    /// The number of rules at the beginning that are built in.
    built_in: usize,
    source: Source,
}

/// What a bound repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// What others decided.
    Others,
    /// The rules of a principal and of those above it. A rule that does not count for a request cannot lift them.
    Session,
}

/// Returns the sandbox that the rules of a session require. A rule that denies `sandbox` for the mode `workspace` by its
/// name leaves the stricter one, and no rule lifts it.
pub fn required_sandbox(session: &[Rule]) -> SandboxMode {
    let is_denied = |rule: &&Rule| {
        rule.permission == Permission::Sandbox.as_str()
            && rule.pattern == SandboxMode::Workspace.name()
            && rule.action == Action::Deny
    };
    session.iter().find(is_denied).map_or(SandboxMode::Off, |_| SandboxMode::ReadOnly)
}

/// The rule of a bound that restricts nothing.
fn everything() -> Rule {
    Rule::new("*", "*", Action::Allow)
}

impl Bound {
    /// Returns the denials among rules, which a principal without the power to lift them must not loosen.
    fn denying(rules: &[Rule], built_in: usize) -> Self {
        let bound = rules.iter().map(|rule| {
            let action = if rule.action == Action::Deny { Action::Deny } else { Action::Allow };
            Rule { action, ..rule.clone() }
        });
        let rules = [everything()].into_iter().chain(bound).collect();
        Self { rules, built_in: built_in + 1, source: Source::Others }
    }

    /// Returns the restrictions of a principal that loosens nothing. `rules` are those of the principal and of all above
    /// it, which can lift a restriction that was set before.
    fn tightening(rules: impl Iterator<Item = Rule>) -> Self {
        let rules = [everything()].into_iter().chain(rules).collect();
        Self { rules, built_in: 1, source: Source::Session }
    }

    fn decide(&self, permission: &str, pattern: &str, counts: impl Fn(&&Rule) -> bool) -> Action {
        let counts = |rule: &&Rule| match self.source {
            Source::Others => true,
            Source::Session => counts(rule),
        };
        let rule = evaluate(self.rules.iter().filter(counts), permission, pattern);
        rule.map_or(Action::Allow, |rule| rule.action)
    }
}

impl Layer {
    /// Returns the layer of an agent, followed by the rules of a session.
    fn new(agent: &AgentSpec, session: &[Rule], access: Option<&SessionAccess>) -> Self {
        let by = |rule: &Rule| principal_of(rule, access);
        let sets_rules = |principal| may(principal, Power::SetRules);
        let with = |rules: &[Rule], counts: &dyn Fn(Principal) -> bool| -> Arc<[Rule]> {
            let added = session.iter().filter(|rule| counts(by(rule)));
            rules.iter().chain(added).cloned().collect()
        };
        let limits = agent.limits.as_ref().map(|limits| Limits {
            user: with(&limits.user, &sets_rules),
            built_in: limits.built_in_rules,
            exceptions: limits.exceptions.clone().into(),
            repository: limits.repository.clone().into(),
        });
        let mut bounds = Vec::new();
        let is_present = |principal: &Principal| session.iter().any(|rule| by(rule) == *principal);
        for principal in Principal::ALL.into_iter().filter(is_present) {
            if !sets_rules(principal) {
                let rules = session.iter().filter(|rule| by(rule) <= principal).cloned();
                bounds.push(Bound::tightening(rules));
            } else if !may(principal, Power::LiftDenial) {
                let above = |other: Principal| other < principal && sets_rules(other);
                bounds.push(Bound::denying(&with(&agent.permission, &above), agent.built_in_rules));
                if let Some(limits) = &agent.limits {
                    bounds.push(Bound::denying(&with(&limits.user, &above), limits.built_in_rules));
                }
            }
        }
        Self {
            rules: with(&agent.permission, &sets_rules),
            built_in: agent.built_in_rules,
            limits,
            bounds: bounds.into(),
            sandbox: agent.sandbox.max(required_sandbox(session)),
        }
    }

    /// Returns the stricter of the decisions by all rules and by the user's rules. An accepted exception replaces only
    /// a question of the user, never a denial.
    fn decide(&self, permission: &str, pattern: &str, counts: impl Fn(&&Rule) -> bool) -> Action {
        let find = |rules: &'_ [Rule]| {
            let rule = evaluate(rules.iter().filter(&counts), permission, pattern);
            rule.cloned()
        };
        let rule = find(&self.rules);
        let action = rule.as_ref().map_or(Action::Ask, |rule| rule.action);
        let bounds = self.bounds.iter().map(|bound| bound.decide(permission, pattern, &counts));
        let action = strictest(bounds.chain([action]));
        let Some(limits) = &self.limits else { return action };
        let own = find(&limits.user).map_or(Action::Ask, |rule| rule.action);
        let restriction = evaluate(limits.repository.iter(), permission, pattern);
        let action = strictest([action, restriction.map_or(Action::Allow, |rule| rule.action)].into_iter());
        limits.combine(action, own, rule.as_ref())
    }

    /// Returns whether a rule of the user, or one of a repository that the user accepted, allows a pattern. Built-in rules
    /// do not count.
    fn decide_by_chosen(&self, permission: &str, pattern: &str) -> Action {
        let of = |rules: &[Rule], built_in: usize| {
            let chosen = rules.get(built_in..).unwrap_or_default();
            evaluate(chosen.iter(), permission, pattern).map_or(Action::Ask, |rule| rule.action)
        };
        let Some(limits) = &self.limits else { return of(&self.rules, self.built_in) };
        let accepted = evaluate(limits.repository.iter(), permission, pattern);
        let is_accepted = accepted.is_some_and(|rule| limits.exceptions.contains(rule));
        match of(&limits.user, limits.built_in) {
            Action::Ask if is_accepted => Action::Allow,
            action => action,
        }
    }

    fn judge(&self, implied: &Implied) -> Action {
        let bounds = self.bounds.iter().map(|bound| judge(&bound.rules, implied));
        let action = strictest(bounds.chain([judge(&self.rules, implied)]));
        let Some(limits) = &self.limits else { return action };
        let rule = evaluate(self.rules.iter(), &implied.permission, &implied.pattern);
        let action = strictest([action, judge(&limits.repository, implied)].into_iter());
        limits.combine(action, judge(&limits.user, implied), rule)
    }

    /// The layer without the built-in rules that only stand in for the kernel. It enforces the mode of the sandbox, so
    /// an effect of this certainty needs no question, and one that is only possible is not denied in advance.
    fn held_by_kernel(&self, certainty: Certainty) -> Self {
        let relaxed = |rules: &[Rule], built_in: usize| {
            let rules = rules.iter().enumerate().map(|(at, rule)| {
                let is_relaxed = at < built_in
                    && match rule.action {
                        Action::Ask => true,
                        Action::Deny => certainty == Certainty::Possible,
                        Action::Allow => false,
                    };
                if is_relaxed { Rule { action: Action::Allow, ..rule.clone() } } else { rule.clone() }
            });
            rules.collect::<Arc<[Rule]>>()
        };
        let limits = self
            .limits
            .as_ref()
            .map(|limits| Limits { user: relaxed(&limits.user, limits.built_in), ..limits.clone() });
        let bounds = self
            .bounds
            .iter()
            .map(|bound| Bound { rules: relaxed(&bound.rules, bound.built_in), ..bound.clone() });
        Self { rules: relaxed(&self.rules, self.built_in), limits, bounds: bounds.collect(), ..self.clone() }
    }

    fn asking(&self, permission: &str, pattern: &str) -> Option<(Rule, Author)> {
        let find = |rules: &[Rule], built_in: usize| {
            let about = |(_, rule): &(usize, &Rule)| {
                matches(&rule.permission, permission) && matches(&rule.pattern, pattern)
            };
            let (at, rule) = rules.iter().enumerate().rev().find(about)?;
            let author = if at < built_in { Author::BuiltIn } else { Author::User };
            (rule.action == Action::Ask).then(|| (rule.clone(), author))
        };
        let Some(limits) = &self.limits else { return find(&self.rules, self.built_in) };
        let of_repository = || find(&limits.repository, 0).map(|(rule, _)| (rule, Author::Repository));
        find(&limits.user, limits.built_in).or_else(of_repository)
    }

    fn is_off(&self, permission: &str) -> bool {
        let is_off_in =
            |limits: &Limits| is_off(&limits.user, permission) || is_off(&limits.repository, permission);
        is_off(&self.rules, permission)
            || self.bounds.iter().any(|bound| is_off(&bound.rules, permission))
            || self.limits.as_ref().is_some_and(is_off_in)
    }

    /// The rules that the configuration and the session contain.
    fn all(&self) -> impl Iterator<Item = &Rule> {
        let user = self.limits.iter().flat_map(|limits| limits.user.iter());
        // The other rules of a bound repeat those of the layer.
        let bounds = self.bounds.iter().flat_map(|bound| bound.rules.iter());
        self.rules.iter().chain(user).chain(bounds.filter(|rule| rule.by.is_some()))
    }

    fn user(&self) -> &[Rule] {
        self.limits.as_ref().map_or(&*self.rules, |limits| &*limits.user)
    }
}

impl Limits {
    /// Returns the action, given the decision by all rules and the decision by the user's rules.
    fn combine(&self, action: Action, own: Action, decided_by: Option<&Rule>) -> Action {
        let is_exception = decided_by.is_some_and(|rule| self.exceptions.contains(rule));
        match (action, own) {
            (Action::Allow, Action::Ask) if is_exception => Action::Allow,
            (action, own) => strictest([action, own].into_iter()),
        }
    }
}

impl Default for PermissionRules {
    /// No rules: every action needs permission.
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl PermissionRules {
    /// Returns the rules of a session without callers.
    pub fn of(rules: Vec<Rule>) -> Self {
        let layer = Layer {
            rules: rules.into(),
            built_in: 0,
            limits: None,
            bounds: Arc::default(),
            sandbox: SandboxMode::Off,
        };
        Self { layers: [layer].into(), user: None }
    }

    /// Returns the rules of an agent, followed by rules of a session of the owner.
    pub fn of_agent(agent: &AgentSpec, more: &[Rule]) -> Self {
        Self::of_session(agent, more, None)
    }

    /// Returns the rules of an agent, followed by those of a session.
    pub fn of_session(agent: &AgentSpec, more: &[Rule], access: Option<&SessionAccess>) -> Self {
        let user = access.map(|access| access.owner.as_str().into());
        Self { layers: [Layer::new(agent, more, access)].into(), user }
    }

    /// Adds the layers of the callers. A session without a user works in the name of its callers' user.
    pub fn under<'a>(self, above: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut layers, mut user) = (self.layers.to_vec(), self.user);
        for rules in above {
            layers.extend(rules.layers.iter().cloned());
            user = user.or_else(|| rules.user.clone());
        }
        Self { layers: layers.into(), user }
    }

    /// The user in whose name the session works.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the strictest sandbox that an agent or a session of the layers requires.
    pub fn sandbox(&self) -> SandboxMode {
        self.layers.iter().map(|layer| layer.sandbox).max().unwrap_or_default()
    }

    /// Decides about `permission` on one `pattern`. The strictest layer wins, and a layer without a match requires permission.
    pub fn decide(&self, permission: &str, pattern: &str) -> Action {
        strictest(self.layers.iter().map(|layer| layer.decide(permission, pattern, |_| true)))
    }

    /// Does the same, but a rule that allows must name its target.
    pub fn decide_by_name(&self, permission: &str, pattern: &str) -> Action {
        strictest(self.layers.iter().map(|layer| layer.decide(permission, pattern, |rule| is_named(rule))))
    }

    /// Does the same, but only a rule of the user can allow.
    pub fn decide_by_name_of_user(&self, permission: &str, pattern: &str) -> Action {
        self.decide_by_user(permission, pattern, is_named)
    }

    /// Does the same, but only a rule of the user with the same permission and pattern can allow.
    pub fn decide_exactly(&self, permission: &str, pattern: &str) -> Action {
        let is_same = |rule: &Rule| rule.permission == permission && rule.pattern == pattern;
        self.decide_by_user(permission, pattern, |rule| rule.action != Action::Allow || is_same(rule))
    }

    /// Does the same, but a rule that allows must match the pattern as it is spelled.
    pub(crate) fn decide_as_spelled(&self, permission: &str, pattern: &str) -> Action {
        let is_spelled = |rule: &&Rule| rule.action != Action::Allow || matches(&rule.pattern, pattern);
        strictest(self.layers.iter().map(|layer| layer.decide(permission, pattern, is_spelled)))
    }

    /// Decides about an effect that cannot be undone: only a rule that the user wrote or accepted can allow it.
    pub(crate) fn decide_by_chosen(&self, permission: &str, pattern: &str) -> Action {
        let chosen = self.layers.iter().map(|layer| layer.decide_by_chosen(permission, pattern));
        strictest(chosen.chain([self.decide(permission, pattern)]))
    }

    /// Returns the rule that asks about a pattern, and who wrote it, or `None` if no rule requires a reply.
    pub(crate) fn asking(&self, permission: &str, pattern: &str) -> Option<(Rule, Author)> {
        self.layers.iter().find_map(|layer| layer.asking(permission, pattern))
    }

    fn decide_by_user(&self, permission: &str, pattern: &str, counts: impl Fn(&Rule) -> bool) -> Action {
        let of_user = self.user_layers().map(|rules| {
            let rule = evaluate(rules.iter().filter(|rule| counts(rule)), permission, pattern);
            rule.map_or(Action::Ask, |rule| rule.action)
        });
        // A rule that does not count here lifts no restriction either.
        let bounds = self.layers.iter().flat_map(|layer| layer.bounds.iter());
        let bounds = bounds.map(|bound| bound.decide(permission, pattern, |rule| counts(rule)));
        strictest(of_user.chain(bounds).chain([self.decide(permission, pattern)]))
    }

    /// Reports whether each permission whose name begins with `prefix` is allowed on each pattern.
    pub fn allow_all(&self, prefix: &str) -> bool {
        self.layers.iter().all(|layer| {
            let within = |limits: &Limits| {
                allows_all(&limits.user, prefix, Action::Ask)
                    && allows_all(&limits.repository, prefix, Action::Allow)
            };
            allows_all(&layer.rules, prefix, Action::Ask)
                && layer.bounds.iter().all(|bound| allows_all(&bound.rules, prefix, Action::Allow))
                && layer.limits.as_ref().is_none_or(within)
        })
    }

    /// Decides about an implied permission. The strictest layer wins.
    pub fn judge(&self, implied: &Implied) -> Action {
        strictest(self.layers.iter().map(|layer| layer.judge(implied)))
    }

    /// Returns the rules for effects of a certainty that the sandbox of the command prevents if they are not harmless.
    /// Rules of the user, of agents and of repositories keep their meaning; only built-in ones are relaxed.
    pub fn held_by_kernel(&self, certainty: Certainty) -> Self {
        match certainty {
            Certainty::Stated => self.clone(),
            Certainty::Possible | Certainty::Unknown => {
                let layers = self.layers.iter().map(|layer| layer.held_by_kernel(certainty));
                Self { layers: layers.collect(), user: self.user.clone() }
            }
        }
    }

    /// Reports whether the rules deny at least one pattern of a permission.
    pub fn denies_some(&self, permission: &str) -> bool {
        let repositories =
            self.layers.iter().filter_map(|layer| layer.limits.as_ref()).map(|limits| &*limits.repository);
        self.layers().chain(repositories).any(|rules| {
            let about = rules.iter().rev().filter(|rule| matches(&rule.permission, permission));
            // The rules before one about everything have no effect.
            let mut done = false;
            let mut effective = about.take_while(|rule| !std::mem::replace(&mut done, rule.pattern == "*"));
            effective.any(|rule| rule.action == Action::Deny)
        })
    }

    /// Returns the rules of each layer that the configuration of the user and principals who set rules contain.
    pub fn user_layers(&self) -> impl Iterator<Item = &[Rule]> {
        self.layers.iter().map(Layer::user)
    }

    /// Returns the rules of each layer, with those of a repository and the bounds of principals separated.
    pub fn layers(&self) -> impl Iterator<Item = &[Rule]> {
        let user = self.layers.iter().filter_map(|layer| layer.limits.as_ref()).map(|limits| &*limits.user);
        let bounds = self.layers.iter().flat_map(|layer| layer.bounds.iter()).map(|bound| &*bound.rules);
        self.layers.iter().map(|layer| &*layer.rules).chain(user).chain(bounds)
    }

    /// Returns the rules of each layer, and those of each repository alone, which the user's rules do not override.
    pub fn layers_with_repositories(&self) -> impl Iterator<Item = &[Rule]> {
        let limits = self.layers.iter().filter_map(|layer| layer.limits.as_ref());
        self.layers().chain(limits.map(|limits| &*limits.repository))
    }

    /// Reports whether a permission is denied altogether, so that its tools are not offered.
    pub fn is_off(&self, permission: &str) -> bool {
        self.layers.iter().any(|layer| layer.is_off(permission))
    }

    /// Returns the rules about a permission, for the model.
    pub fn about(&self, permission: &str) -> Vec<Rule> {
        let mut about: Vec<Rule> = Vec::new();
        for rule in self.layers.iter().flat_map(Layer::all) {
            let shown = Rule { by: None, ..rule.clone() };
            if matches(&rule.permission, permission) && !about.contains(&shown) {
                about.push(shown);
            }
        }
        about
    }
}

#[cfg(test)]
mod tests {
    use codewright_config::RuleLimits;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_session_can_require_a_sandbox_without_writes() {
        let session = |rules: &[(&str, &str, Action)]| {
            let rules: Vec<Rule> =
                rules.iter().map(|(key, pattern, action)| Rule::new(key, pattern, *action)).collect();
            PermissionRules::of_session(&agent(), &rules, None).sandbox()
        };
        let denied = ("sandbox", "workspace", Action::Deny);
        assert_eq!(session(&[]), SandboxMode::Off);
        assert_eq!(session(&[("*", "*", Action::Deny), ("sandbox", "*", Action::Deny)]), SandboxMode::Off);
        assert_eq!(session(&[denied]), SandboxMode::ReadOnly);
        assert_eq!(session(&[denied, ("sandbox", "*", Action::Allow)]), SandboxMode::ReadOnly);
        let child = PermissionRules::of_agent(&agent(), &[]);
        let above = PermissionRules::of_agent(&agent(), &[Rule::new("sandbox", "workspace", Action::Deny)]);
        assert_eq!(child.under([&above]).sandbox(), SandboxMode::ReadOnly);
    }

    /// Every tool and permission that leads to an effect: built-in ones, and those of servers and plugins.
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
        /// For all rules of a child, every way to an effect is at most as permitted as for its parents.
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
            let mut above = PermissionRules::of(layers.next().unwrap_or_default());
            for rules in layers {
                let child = PermissionRules::of(rules.clone()).under([&above]);
                let alone = PermissionRules::of(rules);
                prop_assert!(rank(child.decide(key, &pattern)) >= rank(above.decide(key, &pattern)));
                prop_assert!(rank(child.decide(key, &pattern)) >= rank(alone.decide(key, &pattern)));
                prop_assert!(!above.is_off(key) || child.is_off(key));
                above = child;
            }
        }

        /// For all rules of a repository, the result permits at most the user's rules and the accepted exceptions, and
        /// never anything that the user denies.
        #[test]
        fn a_repository_never_allows_more_than_the_user_and_the_accepted_exceptions(
            user in proptest::collection::vec(rule(), 0..8),
            repository in proptest::collection::vec(rule(), 0..8),
            is_accepted in any::<bool>(),
            key in proptest::sample::select(KEYS.as_slice()),
            pattern in prop_oneof![
                proptest::sample::select(WORDS.as_slice()).prop_map(str::to_owned),
                "[a-z./ ]{0,8}",
            ],
        ) {
            let is_exception = |rule: &&Rule| rule.action == Action::Allow && !rule.permission.contains(['*', '?']);
            let exceptions: Vec<Rule> = match is_accepted {
                true => repository.iter().filter(is_exception).cloned().collect(),
                false => Vec::new(),
            };
            let agent = AgentSpec {
                permission: [user.clone(), repository.clone()].concat(),
                limits: Some(RuleLimits {
                    user: user.clone(),
                    built_in_rules: 0,
                    exceptions: exceptions.clone(),
                    repository: alone(&repository),
                }),
                ..agent()
            };
            let rules = PermissionRules::of_agent(&agent, &[]);
            let (own, found) = (PermissionRules::of(user).decide(key, &pattern), rules.decide(key, &pattern));
            let by_exception = own == Action::Ask
                && exceptions.iter().any(|rule| matches(&rule.permission, key) && matches(&rule.pattern, &pattern));
            prop_assert!(rank(found) >= rank(own) || by_exception, "{own:?} became {found:?}");
            let restriction = evaluate(repository.iter(), key, &pattern).map_or(Action::Allow, |rule| rule.action);
            prop_assert!(rank(found) >= rank(restriction), "{restriction:?} became {found:?}");
            let implied = Implied::new(key, &pattern);
            let own = judge(&agent.limits.iter().flat_map(|limits| limits.user.clone()).collect::<Vec<_>>(), &implied);
            prop_assert!(rank(rules.judge(&implied)) >= rank(own) || own == Action::Ask && !exceptions.is_empty());
            prop_assert!(own != Action::Deny || rules.judge(&implied) == Action::Deny);
        }

        /// Without a repository the user's rules keep their meaning.
        #[test]
        fn one_layer_is_its_rules(
            rules in proptest::collection::vec(rule(), 0..8),
            key in proptest::sample::select(KEYS.as_slice()),
            pattern in proptest::sample::select(WORDS.as_slice()),
        ) {
            let expected = evaluate(rules.iter(), key, pattern).map_or(Action::Ask, |rule| rule.action);
            prop_assert_eq!(PermissionRules::of(rules).decide(key, pattern), expected);
        }
    }

    fn agent() -> AgentSpec {
        let home = codewright_config::Env::from_pairs([("HOME", "/home/ann")]);
        let dirs = codewright_config::Dirs::new(&home).unwrap();
        codewright_config::builtin_agents(&dirs, std::path::Path::new("/p")).remove(0)
    }

    /// Returns the rules of a repository as its configuration provides them.
    fn alone(rules: &[Rule]) -> Vec<Rule> {
        [&[Rule::new("*", "*", Action::Allow)], rules].concat()
    }

    #[test]
    fn a_question_of_the_user_is_saved_only_by_an_accepted_rule_that_names_the_permission() {
        let user = vec![
            Rule::new("*", "*", Action::Allow),
            Rule::new("bash", "*", Action::Ask),
            Rule::new("bash", "rm *", Action::Deny),
        ];
        let of_repository = [
            Rule::new("bash", "git *", Action::Allow),
            Rule::new("bash", "rm *", Action::Allow),
            Rule::new("edit", "*", Action::Deny),
        ];
        let rules = |exceptions: &[Rule]| {
            let agent = AgentSpec {
                permission: [user.as_slice(), &of_repository].concat(),
                limits: Some(RuleLimits {
                    user: user.clone(),
                    built_in_rules: 0,
                    exceptions: exceptions.to_vec(),
                    repository: alone(&of_repository),
                }),
                ..agent()
            };
            PermissionRules::of_agent(&agent, &[])
        };
        let (accepted, refused) = (rules(&of_repository[..2]), rules(&[]));
        for (permission, pattern, with, without) in [
            ("bash", "git status", Action::Allow, Action::Ask),
            ("bash", "rm x", Action::Deny, Action::Deny),
            ("bash", "ls", Action::Ask, Action::Ask),
            ("edit", "a.rs", Action::Deny, Action::Deny),
            ("read", "a.rs", Action::Allow, Action::Allow),
        ] {
            assert_eq!(accepted.decide(permission, pattern), with, "{permission} {pattern}");
            assert_eq!(refused.decide(permission, pattern), without, "{permission} {pattern}");
        }
    }

    #[test]
    fn a_denial_above_is_named_to_the_child() {
        let above = PermissionRules::of(vec![Rule::new("edit", "*", Action::Deny)]);
        let child = PermissionRules::of(vec![Rule::new("*", "*", Action::Allow)]).under([&above]);
        assert_eq!(child.decide("edit", "a.rs"), Action::Deny);
        assert_eq!(child.about("edit").len(), 2);
        assert!(child.is_off("edit") && !child.is_off("read"));
        assert_eq!(child.decide("read", "a.rs"), Action::Ask, "the parent has no rule for it");
    }
}
