//! The pages of the program's own code and constants.
//!
//! The system maps them from the binary when they are used, 16 at a time, and counts them as memory of the process. After
//! work most of them are not needed again soon.
#![expect(unsafe_code, reason = "the standard library cannot release mapped pages")]

use std::ffi::c_void;
use std::fs;
use std::ptr::with_exposed_provenance_mut;

/// The limit for the list of mappings.
const MAX_MAPS_BYTES: usize = 1 << 20;

/// A part of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: usize,
    bytes: usize,
}

/// Releases the pages of the code. The system maps them again from the binary when they are used.
pub(crate) fn release() {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
    let Some(program) = program.to_str().filter(|_| maps.len() <= MAX_MAPS_BYTES) else { return };
    for Range { start, bytes } in ranges(&maps, program) {
        // A failure has no effect.
        // SAFETY: the range is a mapping of the binary that has never been writable, see `ranges`, and the program
        // unmaps none. So every page has the content of the file, and the system reads it again on the next access.
        unsafe { libc::madvise(with_exposed_provenance_mut::<c_void>(start), bytes, libc::MADV_DONTNEED) };
    }
}

/// Returns the mappings of the program that have never been writable: those up to its code. Later ones contain data that
/// is protected after it was relocated.
fn ranges(maps: &str, program: &str) -> Vec<Range> {
    let mut ranges = Vec::new();
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ');
        let (Some(range), Some(rights)) = (fields.next(), fields.next()) else { continue };
        if fields.nth(3).is_none_or(|path| path.trim_start() != program) {
            continue;
        }
        let is_code = rights == "r-xp";
        if !is_code && rights != "r--p" {
            break;
        }
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let bounds = range.split_once('-').and_then(|(start, end)| number(start).zip(number(end)));
        let Some((start, end)) = bounds.filter(|(start, end)| start < end) else { break };
        ranges.push(Range { start, bytes: end - start });
        if is_code {
            return ranges;
        }
    }
    // An unknown layout.
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 r--p 00000000 fe:00 12 /bin/program
3000-8000 r-xp 00002000 fe:00 12                         /bin/program
8000-9000 r--p 00007000 fe:00 12                         /bin/program
9000-a000 rw-p 00008000 fe:00 12                         /bin/program
a000-b000 rw-p 00000000 00:00 0                          [heap]
c000-d000 r-xp 00000000 fe:00 13                         /lib/libc.so.6
";

    #[track_caller]
    fn check(maps: &str, expected: &[(usize, usize)]) {
        let expected: Vec<_> =
            expected.iter().map(|(start, bytes)| Range { start: *start, bytes: *bytes }).collect();
        assert_eq!(ranges(maps, "/bin/program"), expected);
    }

    #[test]
    fn only_mappings_up_to_the_code_are_released() {
        check(MAPS, &[(0x1000, 0x2000), (0x3000, 0x5000)]);
        check(&MAPS.replace("/bin/program", "/bin/other program"), &[]);
    }

    #[test]
    fn an_unknown_layout_is_left_alone() {
        check(&MAPS.replace("r--p 00000000", "rw-p 00000000"), &[]);
        check(&MAPS.replace("r-xp 00002000", "rwxp 00002000"), &[]);
        check("1000-3000 r--p 00000000 fe:00 12 /bin/program\n", &[]);
        check("", &[]);
    }

    #[test]
    fn the_program_continues_after_its_code_was_released() {
        let resident = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = resident();
        release();
        let after = resident();
        assert!(after < before, "{before} KiB, {after} KiB");
        let threads = (0..4).map(|_| std::thread::spawn(|| (0..200).for_each(|_| release())));
        threads.for_each(|thread| thread.join().unwrap());
    }
}
