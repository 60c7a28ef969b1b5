//! A note that a terminal client shows for a moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a note looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToastVariant {
    /// Something to know.
    #[default]
    Info,
    /// Something went well.
    Success,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}

/// A note, as `POST /tui/show-toast` takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Toast {
    /// A line above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it says.
    pub message: String,
    /// How it looks.
    pub variant: ToastVariant,
    /// How long it stays, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}
