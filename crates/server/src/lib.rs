//! The engine over HTTP and server-sent events.
