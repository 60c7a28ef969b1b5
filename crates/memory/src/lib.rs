//! The memory that a process holds and does not need.
//!
//! glibc rarely returns free memory to the system: a server that has worked hard keeps several times the memory that
//! it uses. [`limit`] sets the limits of the allocator at the start of a process. [`trim_after_work`] starts a thread
//! that returns free memory, and the pages of code that were used, a few seconds after the last [`work_ended`].
//!
//! With other C libraries only the pages of code are returned, and outside of Linux every function does nothing.

#[cfg(target_os = "linux")]
mod code;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc;
#[cfg(target_os = "linux")]
mod quiet;
#[cfg(target_os = "linux")]
mod trim;

/// Limits the memory that the allocator keeps. Called once, before the process starts threads.
pub fn limit() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::limit();
}

/// Starts the thread that returns memory after work. It sleeps until work ends, and while work continues it wakes up
/// every few seconds.
pub fn trim_after_work() {
    #[cfg(target_os = "linux")]
    trim::start();
}

/// Reports that work has ended that may have freed memory, such as a request. Costs a few nanoseconds.
pub fn work_ended() {
    #[cfg(target_os = "linux")]
    trim::work_ended();
}
