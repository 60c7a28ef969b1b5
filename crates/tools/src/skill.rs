//! A skill that the model can load.

use std::path::PathBuf;

/// Instructions for a certain task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name by which it is loaded.
    pub name: String,
    /// When to use it.
    pub description: Option<String>,
    /// Its file, if it has one.
    pub location: Option<PathBuf>,
    /// Its text.
    pub content: String,
}
