//! The deletion of planned files.

use std::fs;
use std::io::ErrorKind;

use super::scan::Plan;

/// Deletes all targets, and the program's directories that are empty afterwards. Returns a message for each failure.
///
/// Links are deleted, never followed, also if they were created after the plan.
pub(super) fn all(plan: &Plan) -> Vec<String> {
    let mut failures = Vec::new();
    for target in &plan.targets {
        let path = &target.path;
        let removed = if target.is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                failures.push(format!("cannot delete `{}`: {error}", path.display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
    for directory in &plan.directories {
        // A directory with kept entries is not empty and stays.
        fs::remove_dir(directory).ok();
    }
    failures
}
