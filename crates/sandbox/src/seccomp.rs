//! The system calls that a command cannot use.
//!
//! They can change the kernel, its mounts or its namespaces, or they avoid the other restrictions. A program
//! that tries one gets an error; it is not killed.

use std::collections::BTreeMap;

use codewright_notify::{Instruction, Listener, NOTIFY};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::landlock::Removal;

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

/// The first number of a second set of calls that some kernels accept on x86-64, with 32-bit pointers. No program needs
/// it, and the rules for the first set do not know its numbers.
const SHORT_POINTERS: u32 = 0x4000_0000;

/// Calls that fail as if the kernel did not have them, so that programs use older ones: `clone3` passes its
/// flags in memory, where a filter cannot read them, and io_uring makes calls that no filter sees.
const MISSING: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_io_uring_setup];

/// The calls that create, rename or link an entry, or empty a file by its path.
#[cfg(target_arch = "x86_64")]
const CREATING: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_umask,
];
/// The calls that open a file, and the arguments with the flags.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u32)] = &[(libc::SYS_open, 1), (libc::SYS_openat, 2)];
/// The calls that remove a file.
#[cfg(target_arch = "x86_64")]
const REMOVING: &[i64] = &[libc::SYS_unlink, libc::SYS_unlinkat];
/// See above. Other processors have only the calls with directories.
#[cfg(not(target_arch = "x86_64"))]
const CREATING: &[i64] = &[
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_umask,
];
/// See above.
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u32)] = &[(libc::SYS_openat, 2)];
/// See above.
#[cfg(not(target_arch = "x86_64"))]
const REMOVING: &[i64] = &[libc::SYS_unlinkat];
/// Calls that fail as if the kernel did not have them while new entries are checked. `openat2` has its flags in memory. What a
/// program forbids itself with Landlock would not hold for entries that are created for it.
const MISSING_IF_CHECKED: &[i64] = &[libc::SYS_openat2, libc::SYS_landlock_create_ruleset];
/// The lengths of addresses with which programs connect sockets of the internet protocols: of version 4 and 6, and of the
/// type that holds any address. A call with another length is not seen, and reaches no port of the machine.
const ADDRESS_BYTES: [u32; 3] = [16, 28, 128];
/// The argument of `connect` with the length of the address.
const ADDRESS_LENGTH: u32 = 2;
/// The flags of an open call that may change something.
const WRITING: i32 = libc::O_CREAT | libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC;

/// The place of a call's number in the data that a filter reads.
const CALL_NUMBER: u32 = 0;
/// The place of the processor's kind.
const PROCESSOR: u32 = 4;
/// The place of the first argument, and the size of one. The lower half comes first.
const ARGUMENTS: u32 = 16;
/// See [`ARGUMENTS`].
const ARGUMENT_BYTES: u32 = 8;
/// The kind of this processor.
#[cfg(target_arch = "x86_64")]
const OWN_PROCESSOR: u32 = 0xc000_003e;
/// See above.
#[cfg(target_arch = "aarch64")]
const OWN_PROCESSOR: u32 = 0xc000_00b7;
/// See above.
#[cfg(target_arch = "riscv64")]
const OWN_PROCESSOR: u32 = 0xc000_00f3;

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
    let program: BpfProgram = missing(MISSING)?.into_iter().chain(denied(sockets)?).collect();
    apply_filter(&program).map_err(|error| Error::Kernel(format!("system call filter: {error}")))
}

/// The calls that wait until a thread of the helper has decided about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Those that create entries, or remove them if that is prevented. `None` if no name is guarded.
    pub(crate) creation: Option<Removal>,
    /// Those that connect a socket of the internet protocols.
    pub(crate) connections: bool,
}

/// Does the same, and makes some calls wait.
///
/// # Errors
///
/// Fails if the kernel or the processor is not supported.
pub(crate) fn restrict_watched(sockets: Sockets, watched: Watched) -> Result<Listener, Error> {
    let also: &[i64] = if watched.creation.is_some() { MISSING_IF_CHECKED } else { &[] };
    let absent: Vec<i64> = MISSING.iter().chain(also).copied().collect();
    let program = missing(&absent)?.into_iter().chain(waiting(watched)?).chain(denied(sockets)?);
    let program: Vec<Instruction> = program
        .map(|one| Instruction { code: one.code, if_true: one.jt, if_false: one.jf, value: one.k })
        .collect();
    Listener::install(&program).map_err(|error| Error::Kernel(format!("system call filter: {error}")))
}

/// The part of the filter for the calls that wait. The rest follows.
fn waiting(watched: Watched) -> Result<BpfProgram, Error> {
    let (always, opening): (Vec<i64>, &[(i64, u32)]) = match watched.creation {
        None => (Vec::new(), &[]),
        Some(Removal::Permitted) => (CREATING.to_vec(), OPENING),
        Some(Removal::Prevented) => ([CREATING, REMOVING].concat(), OPENING),
    };
    let connecting: &[u32] = if watched.connections { &ADDRESS_BYTES } else { &[] };
    // Three instructions for each call that opens, two and one for each length for those that connect, and two at the end.
    let of_connections = if connecting.is_empty() { 0 } else { 2 + connecting.len() };
    let length = always.len() + 3 * opening.len() + of_connections + 2;
    let distance = |from: usize, to: usize| {
        u8::try_from(to - from - 1).map_err(|_| Error::Kernel("too many system calls".to_owned()))
    };
    let (rest, wait) = (length, length - 1);
    let load = |place| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, place);
    let jump = |comparison, value| instruction(libc::BPF_JMP | libc::BPF_K | comparison, value);
    // Numbers of calls have another meaning on another processor. The rest of the filter ends such a program.
    let skipped = distance(0, length + 2)?;
    let mut program = vec![
        load(PROCESSOR)?,
        sock_filter { jt: 0, jf: skipped, ..jump(libc::BPF_JEQ, OWN_PROCESSOR)? },
        load(CALL_NUMBER)?,
    ];
    for (at, call) in always.iter().enumerate() {
        program.push(sock_filter { jt: distance(at, wait)?, jf: 0, ..jump(libc::BPF_JEQ, number(*call)?)? });
    }
    for (index, (call, argument)) in opening.iter().enumerate() {
        let at = always.len() + 3 * index;
        program.push(sock_filter { jt: 0, jf: 2, ..jump(libc::BPF_JEQ, number(*call)?)? });
        program.push(load(ARGUMENTS + ARGUMENT_BYTES * argument)?);
        let flags = WRITING.unsigned_abs();
        let (jt, jf) = (distance(at + 2, wait)?, distance(at + 2, rest)?);
        program.push(sock_filter { jt, jf, ..jump(libc::BPF_JSET, flags)? });
    }
    if !connecting.is_empty() {
        let at = always.len() + 3 * opening.len();
        let other = distance(at, rest)?;
        program.push(sock_filter { jt: 0, jf: other, ..jump(libc::BPF_JEQ, number(libc::SYS_connect)?)? });
        program.push(load(ARGUMENTS + ARGUMENT_BYTES * ADDRESS_LENGTH)?);
        for (index, bytes) in connecting.iter().enumerate() {
            let jt = distance(at + 2 + index, wait)?;
            program.push(sock_filter { jt, jf: 0, ..jump(libc::BPF_JEQ, *bytes)? });
        }
    }
    // Beyond the value.
    program.push(instruction(libc::BPF_JMP | libc::BPF_JA, 1)?);
    program.push(instruction(libc::BPF_RET | libc::BPF_K, NOTIFY)?);
    Ok(program)
}

/// The part of the filter for the calls that fail as if the user had no right to make them.
fn denied(sockets: Sockets) -> Result<BpfProgram, Error> {
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
    let failed = |error: seccompiler::BackendError| Error::Kernel(format!("system call filter: {error}"));
    let architecture = std::env::consts::ARCH.try_into().map_err(failed)?;
    let error = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, error, architecture).map_err(failed)?;
    // One filter: the kernel checks each for every call that it has not seen, and compiles each for every command.
    filter.try_into().map_err(failed)
}

fn number(value: i64) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| Error::Kernel("a system call has no valid number".to_owned()))
}

/// The beginning of the filter, for the calls that fail as if the kernel did not have them: some, and all from
/// [`SHORT_POINTERS`]. The rest follows.
fn missing(calls: &[i64]) -> Result<BpfProgram, Error> {
    let mut checks = vec![(libc::BPF_JGE, SHORT_POINTERS)];
    for call in calls {
        checks.push((libc::BPF_JEQ, number(*call)?));
    }
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, CALL_NUMBER)?];
    for (at, (comparison, value)) in checks.iter().enumerate() {
        let after = u8::try_from(checks.len() - at - 1)
            .map_err(|_| Error::Kernel("too many system calls".to_owned()))?;
        let jump = instruction(libc::BPF_JMP | libc::BPF_K | comparison, *value)?;
        // Equal: to the instruction after the checks. Otherwise to the next check, and after the last one beyond it.
        program.push(sock_filter { jt: after, jf: u8::from(after == 0), ..jump });
    }
    let error = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    program.push(instruction(libc::BPF_RET | libc::BPF_K, error)?);
    Ok(program)
}

fn instruction(code: u32, value: u32) -> Result<sock_filter, Error> {
    let code =
        u16::try_from(code).map_err(|_| Error::Kernel("an instruction has no valid code".to_owned()))?;
    Ok(sock_filter { code, jt: 0, jf: 0, k: value })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the beginning of the filter for a call. `None` means that the rest decides.
    fn decide(call: u32) -> Option<u32> {
        let program = missing(MISSING).unwrap();
        let mut at = 0;
        loop {
            let instruction = program.get(at)?;
            at += 1;
            let is_equal = match u32::from(instruction.code) & 0xf7 {
                0x20 => continue,
                0x15 => call == instruction.k,
                0x35 => call >= instruction.k,
                _ => return Some(instruction.k),
            };
            at += usize::from(if is_equal { instruction.jt } else { instruction.jf });
        }
    }

    #[test]
    fn calls_that_a_filter_cannot_judge_are_missing() {
        let error = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        for call in MISSING {
            assert_eq!(decide(u32::try_from(*call).unwrap()), Some(error), "{call}");
        }
        for call in [SHORT_POINTERS, SHORT_POINTERS | 56, SHORT_POINTERS | 512, u32::MAX] {
            assert_eq!(decide(call), Some(error), "{call:#x}");
        }
        for call in [libc::SYS_read, libc::SYS_mount, libc::SYS_clone, libc::SYS_io_uring_setup - 1] {
            assert_eq!(decide(u32::try_from(call).unwrap()), None, "{call}");
        }
    }
}
