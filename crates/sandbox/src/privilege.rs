//! The rights of a process besides files and system calls: open descriptors, capabilities and limits.

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::Error;

/// The first descriptor that a program does not expect to be open.
const FIRST_OTHER: i32 = 3;
/// The largest number of processes and threads of a command in its own user namespace. It has no effect for root.
const MAX_PROCESSES: u64 = 8192;
/// The largest core file. One byte is the value for which the kernel starts no program outside of the sandbox that
/// processes core files.
const MAX_CORE_BYTES: u64 = 1;

/// Whether the process has its own user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    Own,
    Shared,
}

/// Removes rights from this process, and so from all processes that it starts.
///
/// # Errors
///
/// Fails if the kernel rejects a change.
pub(crate) fn reduce(users: Users) -> Result<(), Error> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: rustix::io::Errno| Error::Kernel(format!("{what}: {error}"))
    };
    // The program that started this one may have passed descriptors of files and directories outside of the sandbox.
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).map_err(failed("capabilities"))?;
    limit(Resource::Core, MAX_CORE_BYTES).map_err(failed("core files"))?;
    match users {
        // Otherwise the user's other processes would count.
        Users::Shared => Ok(()),
        Users::Own => limit(Resource::Nproc, MAX_PROCESSES).map_err(failed("processes")),
    }
}

/// Lowers a limit. A lower one stays.
fn limit(resource: Resource, most: u64) -> Result<(), rustix::io::Errno> {
    let present = rustix::process::getrlimit(resource);
    let least = |value: Option<u64>| Some(value.map_or(most, |value| value.min(most)));
    setrlimit(resource, Rlimit { current: least(present.current), maximum: least(present.maximum) })
}
