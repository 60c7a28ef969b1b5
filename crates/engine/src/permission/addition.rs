//! Permission rules that a client adds on behalf of the user.
//!
//! A rule for a session is added to the rules of the session. A rule for a project is saved like the approval of a
//! reply of `always`: it answers requests and never permits what a rule denies.

use std::sync::Arc;

use codewright_permission::{MAX_PATTERN_BYTES, add, marked};
use codewright_proto::{Action, Principal, Rule, Session, SessionId};
use codewright_tools::{Ask, Permission};
use codewright_workspace::{normalize, relative};

use super::reading::KeptFiles;
use super::rules::PermissionRules;
use crate::Error;
use crate::instance::Instance;
use crate::interface::Permissions;
use crate::sandbox::masked::is_kept_from_model;

/// The number of rules of a session above which none is added.
const MAX_RULES: usize = 1000;
/// The longest permission key.
const MAX_KEY_BYTES: usize = 256;

impl Permissions<'_> {
    /// Returns why a user of the server may not apply a patch, or `None` if he may: the rules of the operator hold for its files,
    /// and files that other programs execute are for administrators. A patch of a user changes, adds or removes regular
    /// files: the source of a copy would not be listed, and a link would lead out of the directory.
    ///
    /// # Errors
    ///
    /// Fails if git cannot read the repository, or if the directory has no agent.
    pub async fn why_no_patch(
        self,
        instance: &Arc<Instance>,
        patch: &str,
    ) -> Result<Option<&'static str>, Error> {
        if patch.lines().any(is_unusual) {
            return Ok(Some(
                "patches of users may not copy or rename files, and may not contain links or submodules",
            ));
        }
        let rules = PermissionRules::of_agent(instance.agent(&instance.agent_name(None)?)?, &[]);
        let kept = self.kept_from_users(instance)?;
        let paths = instance.patched_paths(patch).await?;
        if paths.is_empty() {
            return Ok(Some("git finds no file in this patch, or the patch does not fit"));
        }
        for path in paths {
            if self.0.gate.is_control(instance, &path) {
                return Ok(Some("only administrators change files that other programs execute"));
            }
            let file = normalize(&instance.worktree.root.join(&path));
            if kept.has(&file) {
                return Ok(Some("the rules of this server do not let users read a file of this patch"));
            }
            let pattern = relative(&instance.worktree.root, &file);
            let ask = Ask::new(Permission::Edit, vec![pattern]);
            if self.0.gate.judge(&rules, instance, &ask).await? == Action::Deny {
                return Ok(Some("the rules of this server deny changes of a file of this patch"));
            }
        }
        Ok(None)
    }

    /// Returns which files of a directory a user of the server may not see although he may read the directory: the rules
    /// of the operator deny them or ask about them as secrets, or the sandbox hides them.
    ///
    /// # Errors
    ///
    /// Fails if the directory has no agent.
    pub fn kept_from_users(self, instance: &Arc<Instance>) -> Result<KeptFiles, Error> {
        let rules = PermissionRules::of_agent(instance.agent(&instance.agent_name(None)?)?, &[]);
        let hides = self.0.gate.hides(instance);
        let (inner, of) = (Arc::clone(self.0), Arc::clone(instance));
        Ok(KeptFiles::of(move |path| hides(path) || is_kept_from_model(&inner, &of, &rules, path)))
    }

    /// Adds a rule to a session. It replaces an earlier rule for the same permission and pattern.
    ///
    /// # Errors
    ///
    /// Fails if the session is missing or has too many rules, or if the rule is invalid.
    pub async fn add_to_session(self, id: &SessionId, rule: Rule, by: Principal) -> Result<(), Error> {
        check(&rule)?;
        let session = self.0.session(id).await?;
        if session.permission.is_some_and(|rules| rules.len() >= MAX_RULES) {
            return Err(Error::too_many(format!("the session has {MAX_RULES} permission rules already")));
        }
        let now = self.0.clock.now_ms();
        let change = |session: &mut Session| {
            let rule = marked(rule.clone(), by, session.access.as_ref());
            add(session.permission.get_or_insert_default(), rule, session.access.as_ref());
            session.time.updated = now;
        };
        self.0.update_session(id, change).await?;
        Ok(())
    }

    /// Saves an approval for the project of an instance, as after a request for exactly this pattern.
    ///
    /// # Errors
    ///
    /// Fails if the rule is invalid, does not allow, or contradicts a rule that denies.
    pub async fn add_to_project(self, instance: &Instance, rule: Rule) -> Result<(), Error> {
        check(&rule)?;
        if rule.action != Action::Allow {
            return Err(Error::invalid(
                "a rule for a project can only allow: name a session, or change `permission` in the configuration",
            ));
        }
        let agent = instance.agent_name(None)?;
        let rules = PermissionRules::of_agent(instance.agent(&agent)?, &[]);
        let ask = Ask::new(&rule.permission, vec![rule.pattern.clone()]);
        match self.0.gate.judge(&rules, instance, &ask).await? {
            Action::Allow => Ok(()),
            Action::Ask => self.0.gate.approve(&rules, instance, &rule.permission, &rule.pattern).await,
            Action::Deny => Err(Error::invalid(format!(
                "a rule of the configuration denies `{}` for `{}`, and no approval overrides it",
                rule.permission, rule.pattern
            ))),
        }
    }
}

/// Whether a line of a patch is a header by which git does more than change the lines of a regular file. Lines of content
/// begin with a blank, a sign or a backslash.
fn is_unusual(line: &str) -> bool {
    let is_mode =
        line.starts_with("new file mode") || line.starts_with("new mode") || line.starts_with("old mode");
    let is_regular = line.trim_end().ends_with("100644") || line.trim_end().ends_with("100755");
    ["rename ", "copy ", "similarity ", "dissimilarity "].iter().any(|header| line.starts_with(header))
        || (is_mode && !is_regular)
        || (line.starts_with("deleted file mode") && !is_regular)
}

fn check(rule: &Rule) -> Result<(), Error> {
    let is_valid = |text: &str, limit: usize| {
        !text.is_empty() && text.len() <= limit && !text.chars().any(char::is_control)
    };
    if !is_valid(&rule.permission, MAX_KEY_BYTES) {
        return Err(Error::invalid(format!("`permission` must have 1 to {MAX_KEY_BYTES} printable bytes")));
    }
    // Commands may have several lines.
    if rule.pattern.is_empty() || rule.pattern.len() > MAX_PATTERN_BYTES || rule.pattern.contains('\0') {
        return Err(Error::invalid(format!("`pattern` must have 1 to {MAX_PATTERN_BYTES} bytes")));
    }
    Ok(())
}
