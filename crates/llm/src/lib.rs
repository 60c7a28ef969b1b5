//! From a request value to a stream of model events.
//!
//! A [`Request`] says what to ask, a [`Model`] says whom; [`Client::stream`]
//! sends it in the model's wire protocol and gives back an [`EventStream`].
//! What a body or a chunk means is decided by pure functions under
//! `protocol/`; one transport feeds them all. Nothing here repeats a request:
//! [`Error`] names what the caller can do, and the caller does it.

#![warn(missing_docs)]

mod aws;
pub mod catalog;
mod classify;
mod client;
mod error;
mod event;
mod eventstream;
pub mod family;
pub mod gitlab;
mod google;
mod loose;
mod model;
mod network;
pub mod oauth;
mod options;
mod protocol;
mod quirk;
mod request;
mod retry_after;
mod sse;
pub mod vault;
pub mod web;

pub use aws::{Aws, Keys, Sources};
pub use client::{Client, EventStream, check_url, decode, fetch, fetch_with, list_models};
pub use error::{Error, Failure};
pub use event::{FinishReason, ModelEvent, Usage};
pub use google::GoogleCredentials;
pub use model::{Auth, Capabilities, Cost, Endpoint, Limits, Modalities, Model, Protocol, Secret, Timeouts};
pub use network::Network;
pub use quirk::Quirk;
pub use request::{
    AssistantContent, File, FileData, Message, Request, ToolChoice, ToolResult, ToolSpec, UserContent,
};
