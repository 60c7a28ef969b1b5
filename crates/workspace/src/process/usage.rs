//! The memory of a process and its descendants.

use std::fs;

/// The number of processes that are counted.
const MAX_PROCESSES: usize = 1000;
/// The number of processes between this program and a supervisor.
const MAX_ABOVE: usize = 4;
/// The name of a supervisor, which it gives itself.
const SUPERVISOR: &str = "codewright-run";

/// Returns the private memory of a process and its descendants in bytes. `None` if the system does not report it.
pub(super) fn memory(root: u32) -> Option<u64> {
    let mut waiting = vec![root];
    let (mut total, mut seen) = (None, 0);
    while let Some(id) = waiting.pop() {
        seen += 1;
        if seen > MAX_PROCESSES {
            break;
        }
        // A process that has just ended has no memory.
        if let Some(kib) = private_kib(id) {
            total = Some(total.unwrap_or(0) + kib * 1024);
        }
        waiting.extend(children(id));
    }
    total
}

/// Returns the private memory in bytes of the program that a supervisor runs, or of `root` without a supervisor.
pub(super) fn own_memory(root: u32) -> Option<u64> {
    let mut id = root;
    // A sandbox has a few processes of its own above the supervisor.
    for _ in 0..MAX_ABOVE {
        let children = children(id);
        let is_supervisor =
            fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == SUPERVISOR);
        match children.first() {
            Some(program) if is_supervisor => return private_kib(*program).map(|kib| kib * 1024),
            Some(below) if has_supervisor(*below, MAX_ABOVE) => id = *below,
            _ => break,
        }
    }
    private_kib(id).map(|kib| kib * 1024)
}

/// Whether a process or one of its first children is a supervisor.
fn has_supervisor(id: u32, depth: usize) -> bool {
    if fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == SUPERVISOR) {
        return true;
    }
    depth > 0 && children(id).first().is_some_and(|below| has_supervisor(*below, depth - 1))
}

fn private_kib(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn children(id: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_children_counts() {
        let own = memory(std::process::id()).unwrap();
        assert!(own > 100 * 1024, "{own}");
        assert_eq!(memory(u32::MAX), None);
        let alone = own_memory(std::process::id()).unwrap();
        assert!(alone > 100 * 1024 && alone <= own + 64 * 1024 * 1024, "{alone} {own}");
        assert_eq!(own_memory(u32::MAX), None);
    }
}
