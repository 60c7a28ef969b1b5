//! A skill as the tool is given it.

use std::path::PathBuf;

/// Instructions for a certain task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What it is loaded by.
    pub name: String,
    /// When to take it up.
    pub description: Option<String>,
    /// Its file, if it has one.
    pub location: Option<PathBuf>,
    /// Its text.
    pub content: String,
}
