//! Permission requests: the queue of those that wait for a user, and the check before every call.
//!
//! The decisions themselves are in the crate `permission`.

mod addition;
pub(crate) mod approval;
pub(crate) mod client;
pub(crate) mod decisive;
pub(crate) mod gate;
pub(crate) mod held;
pub(crate) mod reading;
pub(crate) mod session;

pub(crate) use codewright_permission::{control, evaluate};

/// The rules of a session.
pub(crate) mod rules {
    pub(crate) use codewright_permission::{PermissionRules, required_sandbox};
}
