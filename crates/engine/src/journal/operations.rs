//! Writing to the log on behalf of clients.

use std::sync::atomic::Ordering;

use serde_json::Value;

use super::Level;
use crate::interface::Log;

impl Log<'_> {
    /// Writes a line down; that it cannot be written troubles nobody.
    pub async fn write(self, level: Level, service: &str, message: &str, extra: Option<Value>) {
        self.0.journal.note(level, service, message, extra).await;
    }

    /// Whether lines of a level are written down: who writes many of them need not make them otherwise.
    #[must_use]
    pub fn writes(self, level: Level) -> bool {
        self.0.journal.takes(level)
    }

    /// Writes down what matters at least so much.
    pub fn set_level(self, least: Level) {
        self.0.journal.least.store(least as u8, Ordering::Relaxed);
    }

    /// Names the server in the lines that follow. The first name counts.
    pub fn set_node(self, name: &str) {
        self.0.journal.node.get_or_init(|| name.to_owned());
    }

    /// Shows lines on standard error too.
    pub fn show(self) {
        self.0.journal.is_shown.store(true, Ordering::Relaxed);
    }
}
