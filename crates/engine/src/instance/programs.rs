//! The programs that run by themselves after an edit, as the configuration of a directory enables them.

use std::path::Path;

use codewright_config::{Env, Worktree, env};
use codewright_formatter::{Formatters, Place, ProgramSearch, Programs};
use codewright_proto::TrustStatus;
use serde_json::{Value, json};

use super::settled::USUAL_PLACES;
use crate::trust::Standing;

/// Returns where programs are found and which may run.
pub(super) fn place(variables: &Env, worktree: &Worktree, directory: &Path, trust: &Standing) -> Place {
    let programs = match trust.status {
        TrustStatus::Trusted => Programs::All,
        TrustStatus::Unneeded | TrustStatus::Undecided | TrustStatus::Restricted => {
            if trust.can_start_programs { Programs::Installed } else { Programs::None }
        }
    };
    let search = ProgramSearch {
        directory: directory.to_owned(),
        worktree: worktree.root.clone(),
        path: variables.filled(env::PATH).unwrap_or(USUAL_PLACES).to_owned(),
        programs,
    };
    Place {
        search,
        has_oxfmt: variables.is_on(env::EXPERIMENTAL_OXFMT) || variables.is_on(env::EXPERIMENTAL),
    }
}

pub(super) fn formatters(config: &Value, place: Place) -> Formatters {
    Formatters::new(config.get("formatter").unwrap_or(&Value::Null), place)
}

/// Returns the formatters for `GET /formatter`.
pub(super) fn listed(formatters: &Formatters) -> Value {
    let listed = formatters.list().into_iter().map(|formatter| {
        json!({"name": formatter.name, "extensions": formatter.extensions, "enabled": formatter.enabled})
    });
    listed.collect()
}
