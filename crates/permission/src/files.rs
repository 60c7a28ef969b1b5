//! The rules about `read`, prepared to be matched against many files.
//!
//! A search checks every file that it finds. The rules are prepared once, so that a file costs a few string
//! comparisons.

use codewright_proto::{Action, Rule};
use codewright_workspace::Access;

use crate::approval::{Approvals, AskingRules, Control};
use crate::ask::Policy;
use crate::evaluate::{Subject, evaluate, matches, strictest};
use crate::kind::Permission;
use crate::rules::PermissionRules;

/// The rules of a session about reading, together with its user's approvals.
pub struct FileRules {
    rules: PermissionRules,
    layers: Vec<Layer>,
    approvals: Approvals,
}

impl FileRules {
    /// Prepares rules and approvals.
    pub fn new(rules: PermissionRules, approvals: Approvals) -> Self {
        let layer = |rules: &[Rule]| {
            let about = rules.iter().filter(|rule| matches(&rule.permission, &Permission::Read));
            let rules: Vec<Rule> = about.cloned().collect();
            let patterns = rules.iter().rev().map(|rule| (Pattern::of(&rule.pattern), rule.action)).collect();
            let is_ascii = rules.iter().all(|rule| rule.pattern.is_ascii());
            Layer { patterns, is_ascii, rules }
        };
        let layers = rules.layers().map(layer).collect();
        Self { rules, layers, approvals }
    }

    /// Decides about a file.
    pub fn access(&self, path: &str) -> Access {
        self.access_if(path, strictest(self.layers.iter().map(|layer| layer.decide(path))))
    }

    /// Decides about a file whose name in normal form is that of another file: rules that allow must have its own name.
    pub fn access_as_spelled(&self, path: &str) -> Access {
        self.access_if(path, strictest(self.layers.iter().map(|layer| layer.decide_as_spelled(path))))
    }

    fn access_if(&self, path: &str, decided: Action) -> Access {
        match decided {
            Action::Allow => Access::Open,
            Action::Deny => Access::Denied,
            Action::Ask => {
                let subject = Subject::new(&Permission::Read, path);
                let asking = AskingRules::of(&self.rules, subject, Control::No);
                let is_approved = self.approvals.allow(subject, &asking, &Policy::Rules);
                if is_approved { Access::Open } else { Access::Asks }
            }
        }
    }
}

/// The rules of one layer that apply to `read`.
struct Layer {
    /// The prepared patterns in reverse order, for names with one spelling.
    patterns: Vec<(Pattern, Action)>,
    /// Whether no pattern has other spellings.
    is_ascii: bool,
    rules: Vec<Rule>,
}

impl Layer {
    fn decide(&self, path: &str) -> Action {
        let found = if self.is_ascii && path.is_ascii() {
            let found = self.patterns.iter().find(|(pattern, _)| pattern.matches(path));
            found.map(|(_, action)| *action)
        } else {
            evaluate(self.rules.iter(), &Permission::Read, path).map(|rule| rule.action)
        };
        found.unwrap_or(Action::Ask)
    }

    fn decide_as_spelled(&self, path: &str) -> Action {
        let counts = |rule: &&Rule| rule.action != Action::Allow || matches(&rule.pattern, path);
        let rules = self.rules.iter().filter(counts);
        evaluate(rules, &Permission::Read, path).map_or(Action::Ask, |rule| rule.action)
    }
}

/// A wildcard. The usual forms are compared as strings.
enum Pattern {
    All,
    Exact(String),
    /// `x*`
    Begin(String),
    /// `*x`
    End(String),
    /// `*x*`
    Within(String),
    Other(String),
}

impl Pattern {
    fn of(pattern: &str) -> Self {
        let is_plain = |text: &str| !text.contains(['*', '?']);
        if pattern.ends_with(" *") {
            return Self::Other(pattern.to_owned());
        }
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(""), _) => Self::All,
            (None, None) if is_plain(pattern) => Self::Exact(pattern.to_owned()),
            (None, Some(begin)) if is_plain(begin) => Self::Begin(begin.to_owned()),
            (Some(end), None) if is_plain(end) => Self::End(end.to_owned()),
            (Some(rest), Some(_)) => match rest.strip_suffix('*') {
                Some(within) if is_plain(within) => Self::Within(within.to_owned()),
                _ => Self::Other(pattern.to_owned()),
            },
            _ => Self::Other(pattern.to_owned()),
        }
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Exact(text) => path == text,
            Self::Begin(text) => path.starts_with(text),
            Self::End(text) => path.ends_with(text),
            Self::Within(text) => path.contains(text),
            Self::Other(pattern) => matches(pattern, path),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hundred_thousand_files_are_judged_quickly() {
        let rule = |pattern: &str, action| Rule::new("read", pattern, action);
        let rules = PermissionRules::of(vec![
            Rule::new("*", "*", Action::Allow),
            rule("*.env", Action::Ask),
            rule("*.env.*", Action::Ask),
            rule("*.env.example", Action::Allow),
        ]);
        let layers = FileRules::new(rules, Approvals::default()).layers;
        let begun = std::time::Instant::now();
        let open = (0..100_000).filter(|n| layers[0].decide(&format!("src/deep/f{n}.rs")) == Action::Allow);
        assert_eq!(open.count(), 100_000);
        assert!(begun.elapsed().as_millis() < 2_000, "{:?} without optimizations", begun.elapsed());
        assert_eq!(layers[0].decide("a/.env"), Action::Ask);
        assert_eq!(layers[0].decide(".env.example"), Action::Allow);
    }

    proptest! {
        /// A prepared pattern matches the same paths as the wildcard.
        #[test]
        fn a_prepared_pattern_matches_the_same_paths(pattern in "[ab.*? ]{0,6}", path in "[ab. /]{0,8}") {
            prop_assert_eq!(Pattern::of(&pattern).matches(&path), matches(&pattern, &path), "{} on {}", pattern, path);
        }
    }
}
