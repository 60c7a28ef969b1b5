//! The decisions about a host that need no waiting.

use std::net::IpAddr;

use codewright_proto::Action;
use codewright_proxy::Target;

pub(super) use codewright_tools::is_public;

use crate::permission::rules::PermissionRules;

/// The key of the permission. Its patterns are `host:port`.
pub(super) use crate::permission::gate::NETWORK as PERMISSION;

/// Reports whether a permission and a pattern name this machine or a host in a private network. A pattern with a wildcard
/// never grants one.
#[must_use]
pub fn names_private_host(permission: &str, pattern: &str) -> bool {
    permission == PERMISSION && Target::of_authority(pattern, None).is_ok_and(|target| is_private(&target))
}

/// Reports whether a target is known not to be on the internet before its name is resolved.
pub(super) fn is_private(target: &Target) -> bool {
    target.is_localhost() || target.address().is_some_and(|address: IpAddr| !is_public(address))
}

/// The addresses that a target may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Addresses of the internet.
    Internet,
    /// Any address.
    Anywhere,
}

/// Returns the addresses that a target may have. It may be in a private network if the user's rules allow exactly its
/// name. Rules with wildcards and approvals do not count.
pub(super) fn reach(rules: &PermissionRules, target: &Target) -> Reach {
    match rules.decide_exactly(PERMISSION, &target.to_string()) {
        Action::Allow => Reach::Anywhere,
        Action::Ask | Action::Deny => Reach::Internet,
    }
}

#[cfg(test)]
mod tests {
    use codewright_proto::Rule;

    use super::*;

    /// The decision about a target by rules of the user: whether it is private, by all rules, and by its exact name.
    #[track_caller]
    fn check(written: &[(&str, Action)], target: &str, expected: (bool, Action, bool)) {
        let mut all = vec![Rule::new("*", "*", Action::Allow), Rule::new(PERMISSION, "*", Action::Ask)];
        all.extend(written.iter().map(|(pattern, action)| Rule::new(PERMISSION, pattern, *action)));
        let rules = PermissionRules::of(all);
        let parsed = Target::of_authority(target, None).unwrap();
        let found = (
            is_private(&parsed),
            rules.decide(PERMISSION, &parsed.to_string()),
            reach(&rules, &parsed) == Reach::Anywhere,
        );
        assert_eq!(found, expected, "{written:?} on {target}");
    }

    #[test]
    fn rules_decide_about_hosts() {
        use Action::{Allow, Ask, Deny};
        let npm = &[("*.npmjs.org:443", Allow)][..];
        for (rules, target, expected) in [
            (&[][..], "example.com:443", (false, Ask, false)),
            (npm, "registry.npmjs.org:443", (false, Allow, false)),
            (npm, "REGISTRY.npmjs.org.:443", (false, Allow, false)),
            (npm, "registry.npmjs.org:80", (false, Ask, false)),
            (npm, "npmjs.org:443", (false, Ask, false)),
            (npm, "registry.npmjs.org.evil.com:443", (false, Ask, false)),
            (npm, "evilnpmjs.org:443", (false, Ask, false)),
            (&[("*", Allow)], "example.com:22", (false, Allow, false)),
            (&[("*:443", Allow), ("evil.com:*", Deny)], "evil.com:443", (false, Deny, false)),
            (&[("evil.com:*", Deny), ("*:443", Allow)], "evil.com:443", (false, Allow, false)),
            (&[("*", Deny), ("example.com:443", Allow)], "example.com:443", (false, Allow, true)),
            // Private hosts need their exact name, in any spelling of the program.
            (&[("*", Allow)], "localhost:5432", (true, Allow, false)),
            (&[("localhost:*", Allow)], "localhost:5432", (true, Allow, false)),
            (&[("localhost:5432", Allow)], "LOCALHOST.:5432", (true, Allow, true)),
            (&[("localhost:5432", Allow)], "localhost:5433", (true, Ask, false)),
            (&[("localhost:5432", Allow)], "127.0.0.1:5432", (true, Ask, false)),
            (&[("127.0.0.1:80", Allow)], "2130706433:80", (true, Allow, true)),
            (&[("127.0.0.1:80", Allow)], "[::ffff:7f00:1]:80", (true, Allow, true)),
            (&[("localhost:80", Allow), ("*:80", Deny)], "localhost:80", (true, Deny, false)),
            (&[("localhost:80", Allow), ("*:80", Ask)], "localhost:80", (true, Ask, false)),
            (&[("localhost:80", Allow), ("*:80", Allow)], "localhost:80", (true, Allow, true)),
            (&[("*", Allow)], "169.254.169.254:80", (true, Allow, false)),
            (&[("*", Allow)], "[fd00:ec2::254]:80", (true, Allow, false)),
            (&[("*", Allow)], "[64:ff9b::7f00:1]:80", (true, Allow, false)),
            (&[("*", Allow)], "[::1]:80", (true, Allow, false)),
            (&[("*", Allow)], "0:80", (true, Allow, false)),
            (&[("*", Allow)], "224.0.0.1:80", (true, Allow, false)),
            (&[("*", Allow)], "a.localhost:80", (true, Allow, false)),
            (&[("*", Allow)], "1.1.1.1:53", (false, Allow, false)),
        ] {
            check(rules, target, expected);
        }
    }

    #[test]
    fn a_pattern_without_a_wildcard_can_name_this_machine() {
        for (permission, pattern, expected) in [
            ("network", "localhost:3000", true),
            ("network", "127.0.0.1:3000", true),
            ("network", "[::1]:3000", true),
            ("network", "10.0.0.1:80", true),
            ("network", "example.com:80", false),
            ("network", "*", false),
            ("network", "localhost:*", false),
            ("read", "localhost:3000", false),
        ] {
            assert_eq!(names_private_host(permission, pattern), expected, "{permission} {pattern}");
        }
    }

    #[test]
    fn a_caller_can_only_make_it_stricter() {
        let rules = |action| PermissionRules::of(vec![Rule::new(PERMISSION, "localhost:80", action)]);
        let target = Target::new("localhost", 80).unwrap();
        let under = |above: &PermissionRules| reach(&rules(Action::Allow).under([above]), &target);
        assert_eq!(under(&rules(Action::Allow)), Reach::Anywhere);
        assert_eq!(under(&PermissionRules::default()), Reach::Internet);
        assert_eq!(under(&rules(Action::Deny)), Reach::Internet);
    }
}
