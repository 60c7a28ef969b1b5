//! The system calls that a command cannot use.
//!
//! They can change the kernel, its mounts or its namespaces, or they avoid the other restrictions. A program
//! that tries one gets an error; it is not killed.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The sockets that a command may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    /// Those of [`FAMILIES`]. A network namespace restricts what they reach.
    Any,
    /// Only pairs of unix sockets.
    Pairs,
}

/// Calls that fail as if the user had no right to make them.
const DENIED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Calls that give access to the ports of the machine, for root.
#[cfg(target_arch = "x86_64")]
const PORTS: &[i64] = &[libc::SYS_ioperm, libc::SYS_iopl];
/// See above. Other processors have no such calls.
#[cfg(not(target_arch = "x86_64"))]
const PORTS: &[i64] = &[];

/// The families of sockets that a network namespace separates. Others, such as sockets to the host of a virtual
/// machine, reach beyond it.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The bit of a second set of call numbers that some kernels accept, with 32-bit pointers. The filter sees them as
/// other calls.
#[cfg(target_arch = "x86_64")]
const SHORT_POINTERS: i64 = 0x4000_0000;
/// The calls of that set with a number of their own: `ioctl` and `kexec_load`.
#[cfg(target_arch = "x86_64")]
const SHORT_NUMBERS: [(i64, i64); 2] = [(libc::SYS_ioctl, 514), (libc::SYS_kexec_load, 528)];

/// Calls that fail as if the kernel did not have them, so that programs use older ones: `clone3` passes its
/// flags in memory, where a filter cannot read them, and io_uring makes calls that no filter sees.
const MISSING: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_io_uring_setup];

/// The `ioctl` requests that type into a terminal.
#[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
const TYPING: [u64; 2] = [libc::TIOCSTI as u64, libc::TIOCLINUX as u64];

/// The namespaces that a process must not create: a new user namespace would give it all rights inside.
const NAMESPACE: u64 = libc::CLONE_NEWUSER as u64;

/// Restricts the calling thread and all processes that it starts.
///
/// # Errors
///
/// Fails if the kernel or the processor is not supported.
pub(crate) fn restrict(sockets: Sockets) -> Result<(), Error> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().chain(PORTS).map(|call| (*call, Vec::new())).collect();
    let dword = SeccompCmpArgLen::Dword;
    let namespace =
        |argument| condition(argument, dword.clone(), SeccompCmpOp::MaskedEq(NAMESPACE), NAMESPACE);
    denied.insert(libc::SYS_clone, vec![rule(vec![namespace(0)?])?]);
    denied.insert(libc::SYS_unshare, vec![rule(vec![namespace(0)?])?]);
    let mut typing = Vec::new();
    for request in TYPING {
        typing.push(rule(vec![condition(1, dword.clone(), SeccompCmpOp::Eq, request)?])?);
    }
    denied.insert(libc::SYS_ioctl, typing);
    denied.insert(libc::SYS_socket, socket_rules(sockets)?);
    apply(denied, libc::EPERM)?;
    apply(MISSING.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)
}

/// The rules that deny the other sockets. Without a condition all are denied.
fn socket_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, Error> {
    let ne = |argument, value| condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value);
    match sockets {
        Sockets::Any => {
            let others: Result<Vec<_>, _> =
                FAMILIES.iter().map(|family| ne(0, family.unsigned_abs().into())).collect();
            Ok(vec![rule(others?)?])
        }
        Sockets::Pairs => Ok(Vec::new()),
    }
}

fn condition(
    argument: u8,
    len: SeccompCmpArgLen,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, Error> {
    SeccompCondition::new(argument, len, op, value).map_err(|error| Error::Kernel(error.to_string()))
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Error> {
    SeccompRule::new(conditions).map_err(|error| Error::Kernel(error.to_string()))
}

/// Adds the same rules for the second set of call numbers.
#[cfg(target_arch = "x86_64")]
fn add_short_pointers(rules: &mut BTreeMap<i64, Vec<SeccompRule>>) {
    let same: Vec<_> = rules.iter().map(|(call, rules)| (call | SHORT_POINTERS, rules.clone())).collect();
    for (call, number) in SHORT_NUMBERS {
        if let Some(rules_of_call) = rules.get(&call).cloned() {
            rules.insert(number | SHORT_POINTERS, rules_of_call);
        }
    }
    rules.extend(same);
}

/// Other processors have one set of numbers.
#[cfg(not(target_arch = "x86_64"))]
fn add_short_pointers(_: &mut BTreeMap<i64, Vec<SeccompRule>>) {}

fn apply(mut rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<(), Error> {
    add_short_pointers(&mut rules);
    let failed = |error: seccompiler::BackendError| Error::Kernel(format!("system call filter: {error}"));
    let architecture = std::env::consts::ARCH.try_into().map_err(failed)?;
    let error = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, architecture).map_err(failed)?;
    let program: BpfProgram = filter.try_into().map_err(failed)?;
    apply_filter(&program).map_err(|error| Error::Kernel(format!("system call filter: {error}")))
}
