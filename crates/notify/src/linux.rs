//! The interface of the kernel.

use std::ffi::CString;
use std::io::{Error, ErrorKind};
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// The value of a filter that makes a call wait.
pub const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
/// The size of a page of memory, or a divisor of it. A read must not cross from a page into one that is missing.
const PAGE_BYTES: u64 = 4096;
/// The longest text that is copied, with its end.
const MAX_TEXT_BYTES: usize = libc::PATH_MAX as usize;

/// An instruction of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// The number of instructions to skip if a comparison holds.
    pub if_true: u8,
    /// The number of instructions to skip if it does not.
    pub if_false: u8,
    /// The operand.
    pub value: u32,
}

/// Receives the calls that wait.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    id: u64,
    /// The id of the calling thread.
    pub thread: u32,
    /// The number of the call.
    pub number: i64,
    /// The arguments.
    pub args: [u64; 6],
}

impl Listener {
    /// Restricts the calling thread and all processes that it starts.
    ///
    /// # Errors
    ///
    /// Fails if the kernel is older than 5.19, or another listener or filter prevents this one.
    #[expect(unsafe_code, reason = "no safe interface exists")]
    pub fn install(program: &[Instruction]) -> Result<Self, Error> {
        check_sizes()?;
        let instruction = |one: &Instruction| libc::sock_filter {
            code: one.code,
            jt: one.if_true,
            jf: one.if_false,
            k: one.value,
        };
        let mut filter: Vec<libc::sock_filter> = program.iter().map(instruction).collect();
        let length = u16::try_from(filter.len()).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
        // A caller that is interrupted after its call was received would make it again.
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        // SAFETY: `program` and the instructions that it points to are alive during the call, which only reads them. A
        // result that is not negative is a new descriptor that nothing else owns.
        let listener = unsafe {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                return Err(Error::last_os_error());
            }
            let operation = libc::SECCOMP_SET_MODE_FILTER;
            let result = libc::syscall(libc::SYS_seccomp, operation, flags, &raw const program);
            let descriptor = i32::try_from(result).ok().filter(|descriptor| *descriptor >= 0);
            OwnedFd::from_raw_fd(descriptor.ok_or_else(Error::last_os_error)?)
        };
        Ok(Self(listener))
    }

    /// Waits for a call.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::NotFound`] if no process has the filter any more, or the caller of a call has ended.
    pub fn receive(&self) -> Result<Call, Error> {
        let mut waiting = libc::seccomp_notif {
            id: 0,
            pid: 0,
            flags: 0,
            data: libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] },
        };
        self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut waiting)?;
        let (id, thread, data) = (waiting.id, waiting.pid, waiting.data);
        Ok(Call { id, thread, number: data.nr.into(), args: data.args })
    }

    /// Whether the caller still waits. Otherwise its id may belong to another thread.
    #[must_use]
    pub fn is_waiting(&self, call: &Call) -> bool {
        let mut id = call.id;
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
    }

    /// Lets the kernel make the call.
    ///
    /// # Errors
    ///
    /// Fails if the caller has ended.
    pub fn pass(&self, call: &Call) -> Result<(), Error> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        self.send(libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags })
    }

    /// Ends the call with success, or with an error number.
    ///
    /// # Errors
    ///
    /// Fails if the caller has ended.
    pub fn answer(&self, call: &Call, result: Result<(), i32>) -> Result<(), Error> {
        let error = result.err().map_or(0, |number| -number.abs());
        self.send(libc::seccomp_notif_resp { id: call.id, val: 0, error, flags: 0 })
    }

    /// Ends the call with a copy of an open file.
    ///
    /// # Errors
    ///
    /// Fails if the caller has ended or has no free descriptor. It still waits in the second case.
    pub fn give(&self, call: &Call, file: BorrowedFd<'_>, flags: u32) -> Result<(), Error> {
        let srcfd = u32::try_from(file.as_raw_fd()).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        let mut given = libc::seccomp_notif_addfd {
            id: call.id,
            flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
            srcfd,
            newfd: 0,
            newfd_flags: flags,
        };
        self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut given)
    }

    fn send(&self, mut answer: libc::seccomp_notif_resp) -> Result<(), Error> {
        self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer)
    }

    #[expect(unsafe_code, reason = "no safe interface exists")]
    fn control<T>(&self, request: libc::Ioctl, value: &mut T) -> Result<(), Error> {
        // SAFETY: each request is used with the type of the kernel's interface for it, whose size was compared when the
        // filter was installed, and the value is alive and not used otherwise during the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, std::ptr::from_mut(value)) };
        if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
    }
}

impl Call {
    /// Copies a text from the memory of the caller.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be read, or the text is longer than a path can be.
    pub fn text(&self, argument: usize) -> Result<CString, Error> {
        let address = *self.args.get(argument).ok_or(ErrorKind::InvalidInput)?;
        let mut text: Vec<u8> = Vec::with_capacity(256);
        while text.len() < MAX_TEXT_BYTES {
            let from = address.checked_add(text.len() as u64).ok_or(ErrorKind::InvalidInput)?;
            let page = usize::try_from(PAGE_BYTES - from % PAGE_BYTES).map_err(Error::other)?;
            // Most paths are short.
            let wanted = if text.is_empty() { page.min(256) } else { page };
            let begun = text.len();
            text.resize(begun + wanted, 0);
            let filled = self.read(from, &mut text[begun..])?;
            text.truncate(begun + filled);
            if let Some(end) = text[begun..].iter().position(|byte| *byte == 0) {
                text.truncate(begun + end);
                return CString::new(text).map_err(Error::other);
            }
            if filled == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Err(ErrorKind::InvalidFilename.into())
    }

    /// Copies memory that an argument points to. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be read.
    pub fn bytes(&self, argument: usize, into: &mut [u8]) -> Result<usize, Error> {
        self.read(*self.args.get(argument).ok_or(ErrorKind::InvalidInput)?, into)
    }

    /// Copies memory of the caller. Returns the number of bytes.
    #[expect(unsafe_code, reason = "no safe interface exists")]
    fn read(&self, address: u64, into: &mut [u8]) -> Result<usize, Error> {
        let thread = i32::try_from(self.thread).map_err(Error::other)?;
        let remote = usize::try_from(address).map_err(Error::other)?;
        let own = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let other = libc::iovec { iov_base: std::ptr::without_provenance_mut(remote), iov_len: into.len() };
        // SAFETY: `own` describes the slice, which is only written by this call. The address of the other process is not
        // used in this one; the kernel checks it.
        let count = unsafe { libc::process_vm_readv(thread, &raw const own, 1, &raw const other, 1, 0) };
        usize::try_from(count).map_err(|_| Error::last_os_error())
    }
}

/// Compares the sizes of the interface's types with those of the kernel, which writes into ours.
#[expect(unsafe_code, reason = "no safe interface exists")]
fn check_sizes() -> Result<(), Error> {
    let mut sizes = libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel writes a value of this type, which is alive during the call.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes) };
    if result != 0 {
        return Err(Error::last_os_error());
    }
    let own = (size_of::<libc::seccomp_notif>(), size_of::<libc::seccomp_notif_resp>());
    let of_kernel = (usize::from(sizes.seccomp_notif), usize::from(sizes.seccomp_notif_resp));
    if own == of_kernel { Ok(()) } else { Err(ErrorKind::Unsupported.into()) }
}
