//! Every text the engine sends to a model, named once.
//!
//! Placeholders are `{{name}}`; `render` refuses a text with one too many or too
//! few, so a renamed placeholder fails a test and never reaches a model.

pub(crate) const DEFAULT: &str = include_str!("../prompts/default.txt");
pub(crate) const TITLE: &str = include_str!("../prompts/title.txt");
/// The line before the user's text in a title request.
pub(crate) const TITLE_REQUEST: &str = "Give this conversation a title:\n";
