//! The memory of a process and its descendants.

use std::fs;

/// The number of processes that are counted.
const MAX_PROCESSES: usize = 1000;

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
    }
}
