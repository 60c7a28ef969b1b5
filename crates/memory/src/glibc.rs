//! The calls of glibc's allocator.
#![expect(unsafe_code, reason = "the allocator has no safe interface; the calls have no preconditions")]

use std::ffi::c_int;

/// The number of heaps. Each keeps its own free memory, and the program has two busy threads.
const ARENAS: c_int = 2;
/// The size from which memory is mapped from the system and returned when it is freed. Without this setting glibc raises
/// it up to 32 MiB when a large block is freed.
const MAP_FROM_BYTES: c_int = 1 << 20;
/// The free memory at the end of a heap that is returned immediately.
const TRIM_FROM_BYTES: c_int = 4 << 20;

/// Limits the memory that the allocator keeps.
pub(crate) fn limit() {
    for (parameter, value) in [
        (libc::M_ARENA_MAX, ARENAS),
        (libc::M_MMAP_THRESHOLD, MAP_FROM_BYTES),
        (libc::M_TRIM_THRESHOLD, TRIM_FROM_BYTES),
    ] {
        // A refused value leaves the default, which only costs memory.
        // SAFETY: `mallopt` takes two integers, checks them, and locks the allocator while it changes its settings.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// Returns free memory of every heap to the system.
pub(crate) fn trim() {
    // SAFETY: `malloc_trim` takes an integer, locks each heap in turn, and changes only free memory.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn free_memory_between_used_blocks_is_returned() {
        const BLOCK: usize = 16 * 1024;
        limit();
        let mut blocks: Vec<_> = (0..4000).map(|_| vec![1u8; BLOCK].into_boxed_slice()).collect();
        let used = resident_kib();
        // One block in fifty stays, so that the heap cannot shrink at its end.
        let mut at = 0;
        blocks.retain(|_| {
            at += 1;
            at % 50 == 0
        });
        let kept = resident_kib();
        trim();
        let now = resident_kib();
        assert!(kept > used / 2, "the allocator returned the memory without help: {used}, {kept} KiB");
        assert!(now < used / 4, "{used}, {kept}, {now} KiB");
        drop(blocks);
    }
}
