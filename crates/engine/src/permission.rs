//! What a tool call may do: the rules, the decision and the gate in front of every call.

pub(crate) mod approval;
pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod evaluate;
pub(crate) mod gate;
pub(crate) mod implied;
pub(crate) mod reading;
pub(crate) mod rules;
pub(crate) mod session;
