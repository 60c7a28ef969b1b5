//! A started sign-in that waits for the user.

/// A started sign-in, and its state.
pub(super) struct Started<T> {
    /// The URL that the user opens.
    pub(super) url: String,
    /// Instructions for the user.
    pub(super) instructions: String,
    /// Whether the sign-in completes by itself.
    pub(super) is_automatic: bool,
    /// The state of the flow.
    pub(super) flow: T,
}
