//! A sandbox without namespaces and without a second program, for fixed commands of this program.
//!
//! The kernel restricts threads. So a thread restricts itself, starts the process, which inherits the restrictions,
//! and ends. This takes a tenth of a millisecond, where namespaces take several.

use std::path::Path;

#[cfg(target_os = "linux")]
use landlock::{
    ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};

/// Calls `start` on a thread that can write only these files and directories, and opens no socket. So do all
/// processes that it starts there. Reading is not restricted.
///
/// A kernel that cannot restrict anything runs `start` as it is. Callers must not depend on more.
///
/// # Panics
///
/// Panics if `start` does.
pub fn with_writes<T: Send>(write: &[&Path], start: impl FnOnce() -> T + Send) -> T {
    #[cfg(target_os = "linux")]
    return std::thread::scope(|scope| {
        let work = || {
            // Without the filter the other restriction still holds, and the other way round.
            drop(only_writes(write));
            drop(crate::seccomp::restrict(crate::seccomp::Sockets::Pairs));
            start()
        };
        match scope.spawn(work).join() {
            Ok(started) => started,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    #[cfg(not(target_os = "linux"))]
    {
        let _ = write;
        start()
    }
}

/// Restricts where the calling thread writes.
#[cfg(target_os = "linux")]
fn only_writes(write: &[&Path]) -> Result<(), landlock::RulesetError> {
    let access = AccessFs::from_write(ABI::V6);
    let scope = Scope::AbstractUnixSocket | Scope::Signal;
    let mut ruleset = Ruleset::default().handle_access(access)?.scope(scope)?.create()?;
    for path in write.iter().copied().chain([Path::new("/dev/null")]) {
        // What does not exist needs no rule.
        let Ok(descriptor) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI::V6) };
        ruleset = ruleset.add_rule(PathBeneath::new(descriptor, access))?;
    }
    ruleset.restrict_self().map(drop)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_writes_only_what_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&outside, "before").unwrap();
        let line = "echo a > inside/a && mv inside/a inside/b && cat outside > /dev/null && echo x > outside";
        let run = |write: &[&Path]| {
            with_writes(write, || Command::new("sh").args(["-c", line]).current_dir(folder.path()).output())
                .unwrap()
        };
        let done = run(&[&inside]);
        if crate::landlock::version().is_some() {
            assert!(!done.status.success());
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "before");
        }
        assert!(inside.join("b").exists(), "{}", String::from_utf8_lossy(&done.stderr));
        // The calling thread is not restricted.
        std::fs::write(&outside, "after").unwrap();
        assert!(std::net::TcpListener::bind("127.0.0.1:0").is_ok());
    }
}
