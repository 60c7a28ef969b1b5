//! The permissions that the calls of file tools need.

use codewright_permission::{Ask, Certainty, Implied, Permission, Policy};
use codewright_workspace::{Place, Workspace, has_namesake};

/// A permission request for a file by its names.
pub(crate) fn file(permission: Permission, workspace: &Workspace, place: &Place) -> Ask {
    spelled(Ask::new(permission, file_patterns(workspace, place)), place)
}

/// Makes rules that allow match the file's own name if another file has its normal form.
pub(crate) fn spelled(ask: Ask, place: &Place) -> Ask {
    if has_namesake(&place.real) { ask.under(Policy::Spelled) } else { ask }
}

/// Adds the permission to read a file to the request to change it, because an edit that succeeds or fails reveals content.
pub(crate) fn reading(mut ask: Ask, patterns: &[String], certainty: Certainty) -> Ask {
    let reads =
        patterns.iter().map(|pattern| Implied { certainty, ..Implied::new(Permission::Read, pattern) });
    ask.implied.extend(reads);
    ask
}

/// The permission request for a file outside the worktree, or `None` for a file inside.
pub(crate) fn outside_file(place: &Place) -> Option<Ask> {
    outside(place, place.real.parent().unwrap_or(&place.real))
}

/// The permission request for a directory outside the worktree, or `None` for one inside.
pub(crate) fn outside_directory(place: &Place) -> Option<Ask> {
    outside(place, &place.real)
}

fn outside(place: &Place, parent: &std::path::Path) -> Option<Ask> {
    if place.inside {
        return None;
    }
    let patterns = vec![inside_of(parent)];
    let ask = Ask::new(Permission::ExternalDirectory, patterns.clone());
    let ask = ask.with("filepath", place.path.to_string_lossy());
    Some(Ask { always: patterns, ..ask.with("parentDir", parent.to_string_lossy()) })
}

/// The pattern for everything in a directory.
pub(crate) fn inside_of(directory: &std::path::Path) -> String {
    directory.join("*").to_string_lossy().into_owned()
}

/// The names of a file that rules are matched against: its relative path, and the path of a link's target.
pub(crate) fn file_patterns(workspace: &Workspace, place: &Place) -> Vec<String> {
    let mut patterns = vec![workspace.title(&place.path)];
    let real = workspace.real_title(&place.real);
    if !patterns.contains(&real) {
        patterns.push(real);
    }
    patterns
}
