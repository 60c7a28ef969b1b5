//! The colours and the form of messages on standard error.
//!
//! Colours are used on a terminal unless `NO_COLOR` is set.

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;

use codewright_config::{Env, env};

/// Adds colours to text if they are enabled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    /// The style of standard error.
    pub(crate) fn stderr() -> Self {
        static ENABLED: OnceLock<bool> = OnceLock::new();
        let is_terminal = std::io::stderr().is_terminal();
        Self { colours: is_terminal && *ENABLED.get_or_init(|| wants_colours(&Env::from_process())) }
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

/// Whether `NO_COLOR` is unset or empty.
fn wants_colours(env: &Env) -> bool {
    env.filled(env::NO_COLOR).is_none()
}

/// Prints an error with its causes on standard error.
pub(crate) fn error(error: &anyhow::Error) {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors include the text of their source.
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    error_text(&message);
}

/// Prints an error message on standard error.
pub(crate) fn error_text(message: &str) {
    let style = Style::stderr();
    let message = crate::clean::clean(message);
    // If standard error is closed, there is no other way to report this.
    drop(writeln!(std::io::stderr(), "{} {message}", style.red(&style.bold("Error:"))));
}

/// Prints a dimmed note on standard error.
pub(crate) fn note(message: &str) {
    // If standard error is closed, there is no other way to report this.
    drop(writeln!(std::io::stderr(), "{}", Style::stderr().dim(&crate::clean::clean(message))));
}

/// Prints a warning on standard error.
pub(crate) fn warning(message: &str) {
    let style = Style::stderr();
    let message = crate::clean::clean(message);
    // If standard error is closed, there is no other way to report this.
    drop(writeln!(std::io::stderr(), "{} {message}", style.yellow(&style.bold("!"))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_disables_colours() {
        for (variables, expected) in [
            (&[][..], true),
            (&[("NO_COLOR", "1")], false),
            (&[("NO_COLOR", "0")], false),
            // An empty variable counts as unset.
            (&[("NO_COLOR", "")], true),
        ] {
            let env = Env::from_pairs(variables.iter().copied());
            assert_eq!(wants_colours(&env), expected, "{variables:?}");
        }
        assert_eq!(Style { colours: false }.red("x"), "x");
        assert_eq!(Style { colours: true }.red("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
