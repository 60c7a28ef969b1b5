//! Pages to read: help, keys, cost, context, status, bug report, a finding and the text of a skill.

use crossterm::event::{KeyCode, KeyEvent};

/// The topic of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topic {
    Help,
    /// The keys that have an effect now.
    Keys,
    /// The cost of the session.
    Cost,
    /// What fills the context.
    Context,
    Status,
    Bug,
    /// The finding of the review with this index.
    Finding(usize),
    /// The text of the skill with this name.
    Skill(String),
}

/// A page with its scroll position.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) topic: Topic,
    pub(crate) scroll: usize,
}

impl Page {
    pub(crate) fn new(topic: Topic) -> Self {
        Self { topic, scroll: 0 }
    }

    /// Handles a key. Returns whether it closes the page.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(15),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += 15,
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            KeyCode::Enter | KeyCode::Char('q') => return true,
            _ => {}
        }
        false
    }
}
