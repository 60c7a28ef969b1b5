//! A toast: a short notification in the terminal client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The style of a toast.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToastVariant {
    /// Information.
    #[default]
    Info,
    /// Success.
    Success,
    /// Warning.
    Warning,
    /// Error.
    Error,
}

/// A toast: the body of `POST /tui/show-toast`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Toast {
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text.
    pub message: String,
    /// The style.
    pub variant: ToastVariant,
    /// How long the toast is displayed, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}
