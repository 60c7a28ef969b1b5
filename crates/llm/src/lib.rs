//! Model providers: sends a request to a model and returns the answer as a stream of events.
//!
//! A [`Request`] holds the conversation and the tools, a [`Model`] holds the provider's address,
//! protocol and limits. [`Client::stream`] sends the request in the model's wire protocol and
//! returns an [`EventStream`]. The modules under `protocol/` are pure functions that write request
//! bodies and decode answers; one transport serves all of them. The crate never retries a request.
//! The variants of [`Error`] name what a caller can do: retry, compact the conversation, sign in
//! again, or give up.

#![warn(missing_docs)]

mod aws;
pub mod catalog;
mod classify;
mod client;
mod custom;
mod error;
mod event;
mod eventstream;
pub mod family;
mod fit;
pub mod gitlab;
mod google;
mod loose;
mod model;
mod network;
pub mod oauth;
mod options;
mod protocol;
mod quirk;
mod refusal;
mod request;
mod retry_after;
mod secret;
mod sse;
mod transport;
pub mod vault;
pub mod web;

pub use aws::{Aws, Keys, Sources};
pub use client::probe::{Probe, Verdict};
pub use client::{EventStream, body, check_url, decode, list_models};
pub use custom::{CustomFetch, CustomRequest, CustomResponse};
pub use error::{Error, Failure};
pub use event::{FinishReason, ModelEvent, Usage};
pub use fit::media_type;
pub use google::GoogleCredentials;
pub use model::{
    Auth, Capabilities, Cost, Endpoint, Limits, Modalities, Model, PictureLimits, Protocol, Timeouts,
};
pub use network::Network;
pub use quirk::Quirk;
pub use request::{
    AssistantContent, File, FileData, Message, Request, ToolChoice, ToolResult, ToolSpec, UserContent,
};
pub use secret::Secret;
pub use transport::{Client, fetch, fetch_with};
