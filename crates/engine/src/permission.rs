//! Permissions of tool calls: the rules, the decision and the check before every call.

mod addition;
pub(crate) mod approval;
pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod evaluate;
pub(crate) mod gate;
pub(crate) mod held;
pub(crate) mod implied;
pub(crate) mod reading;
pub(crate) mod rules;
pub(crate) mod session;
pub(crate) mod widening;
