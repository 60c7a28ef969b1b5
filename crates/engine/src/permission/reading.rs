//! The filter for files that searches find.

use codewright_permission::{Approvals, FileRules};
use codewright_tools::{Namesake, ReadRules};

use super::rules::PermissionRules;

/// Returns the rules of a session about reading, together with its user's approvals.
pub(crate) fn read_rules(rules: &PermissionRules, approvals: Approvals) -> ReadRules {
    let rules = FileRules::new(rules.clone(), approvals);
    ReadRules::new(move |path, namesake| match namesake {
        Namesake::None => rules.access(path),
        Namesake::Exists => rules.access_as_spelled(path),
    })
}
