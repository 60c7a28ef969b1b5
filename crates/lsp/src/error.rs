//! The reasons why a server or a request failed, and text of servers in a form that is safe to show.

/// The longest text of a server in an error.
const MAX_TEXT_CHARS: usize = 500;

/// A failed connection or request. The text is one sentence for the user or the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server answered with an error.
    Answered(String),
    /// It did not answer in time.
    Late(String),
    /// The connection ended.
    Closed,
    /// The server or its output cannot be used.
    Failed(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Answered(text) => {
                write!(f, "The server answered with an error: {}.", text.trim_end_matches('.'))
            }
            Self::Late(text) | Self::Failed(text) => f.write_str(text),
            Self::Closed => f.write_str("The connection to the server was closed."),
        }
    }
}

/// One line of limited length. Control characters become spaces.
pub(crate) fn cut(text: &str) -> String {
    cut_to(text, MAX_TEXT_CHARS)
}

/// One line of at most `chars` characters. Control characters and those that change the direction of text become spaces.
pub(crate) fn cut_to(text: &str, chars: usize) -> String {
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let clean = text.chars().map(|c| if is_hidden(c) { ' ' } else { c });
    let mut short: String = clean.take(chars).collect();
    short.truncate(short.trim_end().len());
    short
}
