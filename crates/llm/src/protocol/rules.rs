//! The rules of providers for requests, as values.
//!
//! Each protocol states its own in its module `rules`, with the source of each rule. `fit` makes any request obey
//! them, so that nothing that a session contains can make a provider refuse every later request.

/// The rules of one provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The names of tools.
    pub(crate) tool_name: ToolName,
    /// The ids of calls.
    pub(crate) call_id: CallId,
    /// The largest number of tools in a request.
    pub(crate) most_tools: usize,
    /// The conversions of a tool's schema, in order.
    pub(crate) schema: &'static [Dialect],
    /// The pictures of a request.
    pub(crate) pictures: PictureRules,
    /// The end of a conversation.
    pub(crate) end: End,
}

/// A rule for the names of tools: ASCII letters, digits, `_` and `-`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolName {
    /// The longest name.
    pub(crate) most_bytes: usize,
    /// Which of these characters have a special place.
    pub(crate) form: NameForm,
}

/// The form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameForm {
    /// All characters at any place.
    Plain,
    /// The first is a letter or `_`.
    Identifier,
    /// The first is a letter or `_`, and there is no `-`.
    Word,
}

/// A rule for the ids of calls. They are always unique in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallId {
    /// Any characters, at most this many bytes.
    Any(usize),
    /// ASCII letters, digits, `_` and `-`, at most this many bytes.
    Word(usize),
    /// Exactly nine ASCII letters and digits.
    Nine,
}

/// A conversion of a tool's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// No variants at the top: their properties are merged.
    FlatTop,
    /// Each list describes its items.
    ListItems,
    /// A list of schemas for items is `prefixItems`, as in draft 2020-12.
    Draft2020,
    /// The names of properties are 1 to 64 of `a-zA-Z0-9_.-`.
    PropertyNames,
    /// Moonshot's own dialect.
    Moonshot,
}

/// The rules for the pictures of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PictureRules {
    /// The largest number in a request.
    pub(crate) most: usize,
    /// The largest width and height in pixels.
    pub(crate) most_pixels: u32,
    /// The largest size of one in base64.
    pub(crate) most_base64_bytes: usize,
    /// The largest size of all in base64.
    pub(crate) most_bytes_in_all: usize,
    /// The supported media types. Others are converted.
    pub(crate) types: &'static [&'static str],
}

/// A rule for the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The model can continue its own message.
    Any,
    /// The last message is the user's or a result.
    User,
}

/// The types that almost every provider supports.
pub(crate) const USUAL_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

const MIB: usize = 1024 * 1024;

/// The pictures of a provider that states no limit, or a very high one.
pub(crate) const USUAL_PICTURES: PictureRules = PictureRules {
    most: 500,
    most_pixels: 8000,
    most_base64_bytes: 20 * MIB,
    most_bytes_in_all: 50 * MIB,
    types: USUAL_TYPES,
};
