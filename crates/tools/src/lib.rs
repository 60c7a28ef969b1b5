//! What a tool is, and the built-in ones.
