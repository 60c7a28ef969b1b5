//! Colours, which only a terminal gets, and the form of errors.

use std::io::{IsTerminal as _, Write as _};

/// Writes text in colours, or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    /// The style of standard error.
    pub(crate) fn stderr() -> Self {
        Self { colours: std::io::stderr().is_terminal() }
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("90", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Says on standard error what went wrong, why, and what to do.
pub(crate) fn error(error: &anyhow::Error) {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors repeat their source in their own words.
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    error_text(&message);
}

/// Says on standard error what went wrong.
pub(crate) fn error_text(message: &str) {
    let style = Style::stderr();
    let message = crate::clean::clean(message);
    // Nobody is left to be told when this fails.
    drop(writeln!(std::io::stderr(), "{} {message}", style.red(&style.bold("Error:"))));
}

/// Says on standard error what was done.
pub(crate) fn note(message: &str) {
    // Nobody is left to be told when this fails.
    drop(writeln!(std::io::stderr(), "{}", Style::stderr().dim(&crate::clean::clean(message))));
}

/// Says on standard error what is odd but does no harm.
pub(crate) fn warning(message: &str) {
    let style = Style::stderr();
    let message = crate::clean::clean(message);
    // Nobody is left to be told when this fails.
    drop(writeln!(std::io::stderr(), "{} {message}", style.yellow(&style.bold("!"))));
}
