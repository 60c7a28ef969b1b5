//! Who may do what.
//!
//! This crate decides, and does nothing else: it reads no file, starts no process and waits for nobody. Everything that
//! a decision depends on is a value:
//!
//! - an [`Ask`] is the effect: what a call does, where, and which consent it needs;
//! - the [`Rulebook`] contains the rules of a session in layers, each with its [`Principal`], and the control files;
//! - [`Approvals`] are the earlier replies of "always";
//! - a [`Containment`] says which effects the sandbox of the call makes impossible.
//!
//! [`decide`] turns these into a [`Decision`]. The engine asks the user, stores replies and starts the call.

mod approval;
mod ask;
pub mod control;
mod decision;
pub mod evaluate;
mod explain;
mod files;
mod implied;
mod kind;
mod principal;
mod rules;
mod secret;

pub use approval::{Approvals, AskingRules, Control, MAX_PATTERN_BYTES, SavedApproval};
pub use ask::{Ask, Certainty, Implied, Lift, Policy, UNKNOWN};
pub use decision::{By, Containment, Decision, Rulebook, answered_by, decide, decide_granted, exact};
pub use explain::Explanation;
pub use files::FileRules;
pub use kind::Permission;
pub use principal::{Power, Principal, Target, add, creator, marked, may, needed, principal_of, reserved};
pub use rules::{PermissionRules, required_sandbox};
pub use secret::{SECRETS, is_secret};
