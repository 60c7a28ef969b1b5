//! The decision about an effect.

use codewright_proto::Action;

use crate::approval::{Approvals, AskingRules, Control};
use crate::ask::{Ask, Certainty, Implied, Policy, UNKNOWN};
use crate::control::Roots;
use crate::evaluate::{Subject, strictest};
use crate::kind::Permission;
use crate::rules::PermissionRules;
use crate::secret::is_secret;

/// The rules that decide: those of the session and the built-in one about control files.
#[derive(Debug, Clone, Copy)]
pub struct Rulebook<'a> {
    /// The rules of the session.
    pub rules: &'a PermissionRules,
    /// Where patterns are relative to, for control files.
    pub roots: &'a Roots,
}

/// Which effects of a call its sandbox makes impossible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Containment {
    /// No sandbox is enforced for the call.
    #[default]
    None,
    /// The kernel enforces the mode of the sandbox.
    Kernel {
        /// The patterns of directories outside that the call cannot reach, because it sees a private one instead.
        unreachable: Vec<String>,
    },
}

impl Containment {
    /// Reports whether the call cannot have this effect.
    fn covers(&self, permission: &Permission, pattern: &str) -> bool {
        match self {
            Self::None => false,
            Self::Kernel { unreachable } => {
                *permission == Permission::ExternalDirectory
                    && unreachable.iter().any(|known| known == pattern)
            }
        }
    }
}

/// The result of a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call may run.
    Granted(By),
    /// A rule about this permission denies the call.
    Denied(Permission),
    /// The user has to reply to each of these, and the first rejection ends the call.
    Ask(Vec<Ask>),
}

impl Decision {
    /// Returns the action of a rule with the same result.
    pub fn action(&self) -> Action {
        match self {
            Self::Granted(_) => Action::Allow,
            Self::Ask(_) => Action::Ask,
            Self::Denied(_) => Action::Deny,
        }
    }
}

/// The source of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The rules and the saved approvals: no time passed.
    Rules,
    /// Granted by rules because the sandbox makes the effect impossible. The grant must not widen the sandbox.
    Kernel,
    /// A user's reply, which may have come hours after the request.
    User,
}

/// Decides about an effect.
///
/// A rule that denies wins over every approval. Implied effects only make the decision stricter.
pub fn decide(
    request: &Ask,
    book: &Rulebook<'_>,
    approvals: &Approvals,
    containment: &Containment,
) -> Decision {
    let relaxed = match containment {
        Containment::None => None,
        Containment::Kernel { .. } => Some(book.rules.held_by_kernel(Certainty::Unknown)),
    };
    let is_covered = |pattern: &str| containment.covers(&request.permission, pattern);
    let judge = |pattern: &str| match &relaxed {
        Some(rules) if is_covered(pattern) => Rulebook { rules, ..*book }.judge(request, pattern),
        _ => book.judge(request, pattern),
    };
    let action = strictest(request.patterns.iter().map(|pattern| judge(pattern)));
    let mut open = Vec::new();
    for implied in &request.implied {
        match book.judge_implied(implied, containment) {
            Action::Deny if action != Action::Deny => return Decision::Denied(implied.permission.clone()),
            Action::Ask if !book.is_remembered(approvals, implied) => open.push(implied),
            Action::Ask | Action::Allow | Action::Deny => {}
        }
    }
    if action == Action::Deny {
        return Decision::Denied(request.permission.clone());
    }
    let is_open =
        |pattern: &String| judge(pattern) == Action::Ask && !book.is_approved(approvals, request, pattern);
    if request.patterns.iter().any(is_open) {
        // The request shows the whole command, so its reply also covers the implied commands.
        return Decision::Ask(vec![with_implied(request, &open)]);
    }
    if !open.is_empty() {
        return Decision::Ask(questions(request, &open));
    }
    let is_covered = request.patterns.iter().any(|pattern| is_covered(pattern));
    Decision::Granted(if is_covered { By::Kernel } else { By::Rules })
}

/// Decides about an effect that a hook of the user grants in the user's place.
///
/// Rules that deny still deny. Requests about control files, about the sandbox, about effects that the call implies, and
/// those that only a rule by name allows still need the user's reply.
pub fn decide_granted(
    request: &Ask,
    book: &Rulebook<'_>,
    approvals: &Approvals,
    containment: &Containment,
) -> Decision {
    let is_simple = policy(request) == Policy::Rules
        && request.patterns.iter().all(|pattern| !book.is_control(&request.permission, pattern))
        && request.implied.iter().all(|implied| book.judge_implied(implied, containment) == Action::Allow);
    match strictest(request.patterns.iter().map(|pattern| book.judge(request, pattern))) {
        Action::Ask if is_simple => Decision::Granted(By::User),
        Action::Ask | Action::Allow | Action::Deny => decide(request, book, approvals, containment),
    }
}

/// Reports whether approvals cover all patterns of a waiting request. `asking` are the rules of all patterns together,
/// which are at least as strict as those of each pattern.
pub fn answered_by(approvals: &Approvals, request: &Ask, asking: &AskingRules) -> bool {
    let policy = policy(request);
    let subject = |pattern| Subject { permission: &request.permission, pattern };
    request.patterns.iter().all(|pattern| approvals.allow(subject(pattern), asking, &policy))
}

impl Rulebook<'_> {
    /// Returns the rules that lead to a request, with the reason that its policy adds.
    pub fn asking(&self, request: &Ask) -> AskingRules {
        let mut asking = AskingRules::default();
        for pattern in &request.patterns {
            asking.extend(self.asking_about(request, pattern));
        }
        asking
    }

    /// Returns why a write needs its own permission; `None` for an ordinary target.
    pub fn control_reason(&self, request: &Ask) -> Option<&'static str> {
        let subject = |pattern| Subject { permission: &request.permission, pattern };
        request.patterns.iter().find_map(|pattern| self.roots.reason(subject(pattern)))
    }

    /// Decides about one pattern by the rules.
    fn judge(&self, request: &Ask, pattern: &str) -> Action {
        let (rules, subject) = (self.rules, Subject { permission: &request.permission, pattern });
        let decided = match policy(request) {
            Policy::Rules => rules.decide(subject.permission, pattern),
            Policy::Named => rules.decide_by_name(subject.permission, pattern),
            Policy::Unenforced { .. } => rules.decide_by_name_of_user(subject.permission, pattern),
            Policy::Exact => rules.decide_exactly(subject.permission, pattern),
            Policy::Spelled => rules.decide_as_spelled(subject.permission, pattern),
            Policy::Reply(_) => {
                strictest([rules.decide(subject.permission, pattern), Action::Ask].into_iter())
            }
        };
        self.roots.decide(decided, subject, rules.user_layers())
    }

    /// Decides about an implied effect. The kernel holds writes that are not stated. It does not hold reads, because a
    /// command can read the worktree and most of the machine.
    fn judge_implied(&self, implied: &Implied, containment: &Containment) -> Action {
        let is_held = *containment != Containment::None
            && implied.permission == Permission::Edit
            && implied.certainty != Certainty::Stated;
        if is_held {
            return self.rules.held_by_kernel(implied.certainty).judge(implied);
        }
        if implied.irreversible.is_some() {
            // The kernel does not hold it, and built-in rules do not know of it.
            let decide = |pattern| self.rules.decide_by_chosen(&implied.permission, pattern);
            let (own, spelled) = (decide(implied.pattern.as_str()), implied.spelled.as_deref().map(decide));
            return if own == Action::Ask { spelled.unwrap_or(own) } else { own };
        }
        let subject = Subject::new(&implied.permission, &implied.pattern);
        self.roots.decide(self.rules.judge(implied), subject, self.rules.user_layers())
    }

    fn is_control(&self, permission: &Permission, pattern: &str) -> bool {
        self.roots.reason(Subject { permission, pattern }).is_some()
    }

    fn asking_about(&self, request: &Ask, pattern: &str) -> AskingRules {
        let is_control = self.is_control(&request.permission, pattern);
        let control = if is_control { Control::Yes } else { Control::No };
        let subject = Subject::new(&request.permission, pattern);
        let asking = AskingRules::of(self.rules, subject, control);
        let asking = if is_secret(subject) { asking.secret() } else { asking };
        let asking = if request.irreversible.is_some() { asking.irreversible() } else { asking };
        match request.policy {
            Policy::Unenforced { .. } => asking.without_sandbox(),
            Policy::Rules | Policy::Named | Policy::Exact | Policy::Spelled | Policy::Reply(_) => asking,
        }
    }

    fn is_approved(&self, approvals: &Approvals, request: &Ask, pattern: &str) -> bool {
        let subject = Subject::new(&request.permission, pattern);
        approvals.allow(subject, &self.asking_about(request, pattern), &policy(request))
    }

    fn is_remembered(&self, approvals: &Approvals, implied: &Implied) -> bool {
        let allows = |pattern: &str| {
            let irreversible = implied.irreversible;
            let request = Ask { irreversible, ..Ask::new(&implied.permission, Vec::new()) };
            let subject = Subject::new(&implied.permission, pattern);
            approvals.allow(subject, &self.asking_about(&request, pattern), &Policy::Rules)
        };
        allows(&implied.pattern) || implied.spelled.as_deref().is_some_and(allows)
    }
}

/// Returns the policy of a request. Leaving the sandbox always needs a reply, whoever asks for it.
fn policy(request: &Ask) -> Policy {
    if request.permission == Permission::Sandbox && !matches!(request.policy, Policy::Reply(_)) {
        return Policy::Reply(crate::ask::Lift::Sandbox);
    }
    request.policy.clone()
}

/// Returns the questions about the implied effects of a call that is allowed itself, one for each kind of permission.
fn questions(request: &Ask, open: &[&Implied]) -> Vec<Ask> {
    let mut kinds: Vec<&Permission> = open.iter().map(|implied| &implied.permission).collect();
    kinds.sort_unstable_by_key(|kind| kind.as_str());
    kinds.dedup();
    let question = |kind: &Permission| {
        let mut question = Ask {
            metadata: request.metadata.clone(),
            policy: request.policy.clone(),
            always: Vec::new(),
            ..Ask::new(kind, Vec::new())
        };
        open.iter().filter(|implied| implied.permission == *kind).for_each(|one| add_to(&mut question, one));
        narrow(&mut question, open);
        question
    };
    kinds.into_iter().map(question).collect()
}

/// Returns the request for a call together with its implied commands.
fn with_implied(request: &Ask, open: &[&Implied]) -> Ask {
    let mut question = request.clone();
    for implied in open.iter().filter(|implied| implied.permission == request.permission) {
        add_to(&mut question, implied);
    }
    narrow(&mut question, open);
    question
}

/// Narrows what a reply of "always" allows if the request contains a command that cannot be undone: each command of the
/// request in exactly the same form, and nothing if the target of one is unknown.
fn narrow(question: &mut Ask, open: &[&Implied]) {
    let is_grave =
        |implied: &&&Implied| implied.permission == question.permission && implied.irreversible.is_some();
    let grave: Vec<_> = open.iter().filter(is_grave).collect();
    let Some(reason) = grave.iter().find_map(|implied| implied.irreversible) else { return };
    let is_unknown = grave.iter().any(|implied| implied.certainty != Certainty::Stated);
    if is_unknown || grave.iter().any(|implied| implied.always.is_none()) {
        // The request would be asked again, and part of what it covers could be something else then.
        question.always.clear();
    } else {
        let is_other = |pattern: &&String| !grave.iter().any(|implied| implied.display() == **pattern);
        let others: Vec<_> = question.patterns.iter().filter(is_other).cloned().collect();
        question.always = exact(&others);
        for always in grave.iter().filter_map(|implied| implied.always.clone()) {
            if !question.always.contains(&always) {
                question.always.push(always);
            }
        }
    }
    let unknown = if is_unknown { "; the target is unknown until it runs" } else { "" };
    question.metadata.insert(Ask::IRREVERSIBLE.to_owned(), format!("{reason}{unknown}").into());
    question.irreversible = Some(reason);
}

/// Returns the patterns that match only themselves.
pub fn exact(patterns: &[String]) -> Vec<String> {
    let is_exact = |pattern: &&String| !pattern.contains(['*', '?', UNKNOWN, '\u{2026}']);
    patterns.iter().filter(is_exact).cloned().collect()
}

fn add_to(question: &mut Ask, implied: &Implied) {
    let shown = implied.display();
    if !question.patterns.contains(&shown) {
        question.patterns.push(shown);
    }
    if let Some(always) = implied.always.as_ref().filter(|always| !question.always.contains(always)) {
        question.always.push(always.clone());
    }
}

#[cfg(test)]
mod tests {
    use codewright_config::{AgentSpec, Dirs, Env, builtin_agents};
    use codewright_proto::{Action, Rule};
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;
    use crate::ask::Lift;
    use crate::principal::{Power, Principal, may, reserved};

    /// The agent `build` with rules of the configuration after the built-in ones.
    fn agent(rules: &[Rule]) -> AgentSpec {
        let dirs = Dirs::new(&Env::from_pairs([("HOME", "/home/ann")])).unwrap();
        let mut agent = builtin_agents(&dirs, std::path::Path::new("/p")).remove(0);
        agent.permission.extend_from_slice(rules);
        agent
    }

    fn by(principal: Principal, rule: Rule) -> Rule {
        Rule { by: Some(principal), ..rule }
    }

    fn decided(configured: &[Rule], session: &[Rule], request: &Ask) -> Action {
        let rules = PermissionRules::of_session(&agent(configured), session, None);
        let roots = Roots { worktree: "/p".into(), project: "/p".into(), ..Roots::default() };
        let book = Rulebook { rules: &rules, roots: &roots };
        decide(request, &book, &Approvals::default(), &Containment::None).action()
    }

    fn rank(action: Action) -> u8 {
        match action {
            Action::Allow => 0,
            Action::Ask => 1,
            Action::Deny => 2,
        }
    }

    const ACTIONS: [Action; 3] = [Action::Allow, Action::Ask, Action::Deny];

    /// What a rule of a session does, for every principal, decision of the configuration and action of the rule.
    #[test]
    fn the_table_of_what_a_rule_of_each_principal_does() {
        for principal in Principal::ALL {
            for kind in ["bash", "read", "webfetch", "a_tool_of_a_server", "external_directory"] {
                let power = reserved(kind).unwrap_or(Power::SetRules);
                for (configured, set) in ACTIONS.into_iter().flat_map(|one| ACTIONS.map(|other| (one, other)))
                {
                    let is_permitted = match (configured, set) {
                        (Action::Deny, Action::Ask | Action::Allow) => may(principal, Power::LiftDenial),
                        (Action::Ask, Action::Allow) => {
                            may(principal, Power::SetRules) && may(principal, power)
                        }
                        (Action::Allow, _)
                        | (Action::Ask, Action::Ask | Action::Deny)
                        | (Action::Deny, Action::Deny) => true,
                    };
                    let expected = if is_permitted { set } else { configured };
                    let configured = [Rule::new(kind, "*", configured)];
                    let session = [by(principal, Rule::new("*", "*", set))];
                    let found = decided(&configured, &session, &Ask::new(kind, vec!["x".to_owned()]));
                    assert_eq!(found, expected, "{principal:?} sets {set:?} for {kind}, {configured:?}");
                }
            }
        }
    }

    /// What needs more than a matching rule, for every principal whose session allows everything by name.
    #[test]
    fn the_table_of_what_only_some_principals_name() {
        let unenforced = || Policy::Unenforced { reason: String::new() };
        for principal in Principal::ALL {
            for (kind, pattern, policy, power) in [
                ("read", "/home/ann/.ssh/id", Policy::Exact, Some(Power::ReadHidden)),
                ("bash", "make", unenforced(), Some(Power::LeaveSandbox)),
                ("edit", ".git/config", Policy::Rules, Some(Power::WriteControlFile)),
                ("sandbox", "make", Policy::Reply(Lift::Sandbox), None),
                ("sandbox", "make", Policy::Rules, None),
            ] {
                let session = [by(principal, Rule::new(kind, pattern, Action::Allow))];
                let request = Ask::new(kind, vec![pattern.to_owned()]).under(policy);
                let is_allowed = power.is_some_and(|power| may(principal, power));
                let expected = if is_allowed { Action::Allow } else { Action::Ask };
                assert_eq!(decided(&[], &session, &request), expected, "{principal:?} {kind} {pattern}");
            }
        }
    }

    #[test]
    fn a_principal_below_does_not_answer_for_one_above() {
        use Principal::{Admin, Document, Member, Owner};
        let rule = |principal, action| by(principal, Rule::new("bash", "*", action));
        for (session, expected) in [
            (vec![rule(Admin, Action::Deny), rule(Member, Action::Allow)], Action::Deny),
            (vec![rule(Admin, Action::Ask), rule(Member, Action::Allow)], Action::Ask),
            (vec![rule(Member, Action::Allow)], Action::Ask),
            (vec![rule(Admin, Action::Allow)], Action::Allow),
            (vec![rule(Member, Action::Deny), rule(Admin, Action::Allow)], Action::Allow),
            (vec![rule(Document, Action::Deny), rule(Owner, Action::Allow)], Action::Allow),
            (vec![rule(Owner, Action::Allow), rule(Document, Action::Deny)], Action::Deny),
            (vec![rule(Document, Action::Deny), rule(Document, Action::Allow)], Action::Ask),
            (vec![rule(Owner, Action::Deny), rule(Owner, Action::Allow)], Action::Allow),
        ] {
            let configured = [Rule::new("bash", "*", Action::Ask)];
            let found = decided(&configured, &session, &Ask::new("bash", vec!["ls".to_owned()]));
            assert_eq!(found, expected, "{session:?}");
        }
    }

    #[test]
    fn a_rule_that_does_not_count_for_a_request_lifts_no_denial() {
        let request = Ask::new("read", vec!["/etc/x".to_owned()]).under(Policy::Exact);
        for principal in Principal::ALL {
            let session = [Rule::new("read", "*", Action::Deny), Rule::new("*", "/etc/*", Action::Allow)];
            let session = session.map(|rule| by(principal, rule));
            assert_eq!(decided(&[], &session, &request), Action::Deny, "{principal:?}");
        }
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let key = select(
            ["*", "bash", "edit", "read", "external_directory", "network", "sandbox", "b*", "srv_*"]
                .as_slice(),
        );
        let pattern =
            select(["*", "git *", "src/*", ".env", ".git/config", "/etc/*", "?", "localhost:80"].as_slice());
        (key, pattern, select(ACTIONS.as_slice()))
            .prop_map(|(key, pattern, action)| Rule::new(key, pattern, action))
    }

    fn request() -> impl Strategy<Value = Ask> {
        let kind = select(
            ["bash", "edit", "read", "external_directory", "network", "sandbox", "srv_get"].as_slice(),
        );
        let pattern = select(
            ["ls", "git push", "src/a.rs", ".env", ".git/config", "/etc/*", "localhost:80"].as_slice(),
        );
        let policy = select(vec![
            Policy::Rules,
            Policy::Named,
            Policy::Exact,
            Policy::Spelled,
            Policy::Unenforced { reason: String::new() },
            Policy::Reply(Lift::Network),
        ]);
        let certainty = select(vec![Certainty::Stated, Certainty::Possible, Certainty::Unknown]);
        (kind, pattern.clone(), policy, proptest::option::of((pattern, certainty))).prop_map(
            |(kind, pattern, policy, implied)| {
                let mut ask = Ask::new(kind, vec![pattern.to_owned()]).under(policy);
                let implied = implied.map(|(pattern, certainty)| Implied {
                    certainty,
                    ..Implied::new(Permission::Edit, pattern)
                });
                ask.implied.extend(implied);
                ask
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// If a rule of a session that allows is set by a principal with less authority, the result is never looser.
        #[test]
        fn the_result_is_never_looser_than_for_a_principal_above(
            configured in proptest::collection::vec(rule(), 0..5),
            session in proptest::collection::vec((rule(), select(Principal::ALL.as_slice())), 1..6),
            lowered in any::<Index>(),
            below in select(Principal::ALL.as_slice()),
            request in request(),
        ) {
            let at = lowered.index(session.len());
            let above: Vec<Rule> = session.iter().map(|(rule, principal)| by(*principal, rule.clone())).collect();
            let mut less = above.clone();
            if less[at].action == Action::Allow {
                less[at].by = less[at].by.max(Some(below));
            }
            let (more, less) = (decided(&configured, &above, &request), decided(&configured, &less, &request));
            prop_assert!(rank(less) >= rank(more), "{more:?} became {less:?}");
        }

        /// All rules of a session of one principal, compared with the same rules of each principal above it.
        #[test]
        fn one_principal_alone_may_at_most_what_those_above_may(
            configured in proptest::collection::vec(rule(), 0..5),
            session in proptest::collection::vec(rule(), 0..6),
            request in request(),
        ) {
            let results = Principal::ALL.map(|principal| {
                let session: Vec<Rule> = session.iter().map(|rule| by(principal, rule.clone())).collect();
                rank(decided(&configured, &session, &request))
            });
            prop_assert!(results.is_sorted(), "{results:?}");
        }

        /// Rules of principals that loosen nothing never make a decision looser than without them.
        #[test]
        fn who_only_tightens_never_loosens(
            configured in proptest::collection::vec(rule(), 0..5),
            session in proptest::collection::vec(rule(), 0..6),
            request in request(),
        ) {
            let without = rank(decided(&configured, &[], &request));
            for principal in Principal::ALL.into_iter().filter(|principal| !may(*principal, Power::SetRules)) {
                let session: Vec<Rule> = session.iter().map(|rule| by(principal, rule.clone())).collect();
                prop_assert!(rank(decided(&configured, &session, &request)) >= without);
            }
        }
    }
}
