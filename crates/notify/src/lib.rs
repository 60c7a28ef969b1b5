//! System calls that wait until another thread of the program has decided about them.
//!
//! [`Listener::install`] restricts the calling thread with a filter of the kernel (seccomp). Calls for which the filter
//! returns [`NOTIFY`] wait. Another thread, which must not have the filter, receives each one, and answers it: with a
//! result, with an open file, or by letting the kernel make the call.
//!
//! The arguments of a call are numbers. A path is in the memory of the caller, where other threads and processes can
//! change it after [`Call::text`] has copied it. So a call whose path matters is made by the thread that decides, and
//! only its result is given to the caller.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{Call, Instruction, Listener, NOTIFY};
