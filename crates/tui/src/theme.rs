//! Themes: the colours of the client.
//!
//! Theme files have OpenCode's format: named colours in `defs`, and for each role a colour, a name, a number
//! of the terminal's palette, `none`, or one of these for dark and one for light backgrounds. A role that a
//! file omits has the colour of another role.

pub(crate) mod built_in;

use std::collections::BTreeMap;

use ratatui::style::Color;
use serde_json::{Map, Value};

/// The maximum length of a chain of names.
const MAX_NAMES: usize = 16;

/// The number of colours of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// No colours.
    None,
    /// The 256 colours of the palette.
    Palette,
    /// All RGB colours.
    Full,
}

/// Whether the background is dark or light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Light text on a dark background.
    #[default]
    Dark,
    /// Dark text on a light background.
    Light,
}

macro_rules! roles {
    ($($(#[$doc:meta])* $field:ident $name:literal $fallback:ident;)*) => {
        /// The colours of all roles.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct Theme {
            $($(#[$doc])* pub(crate) $field: Color,)*
        }

        /// Each role with the role whose colour it has if a file omits it.
        const ROLES: &[(&str, &str)] = &[$(($name, stringify!($fallback)),)*];

        impl Theme {
            fn from_roles(colour: impl Fn(&str) -> Color) -> Self {
                Self { $($field: colour($name),)* }
            }

            fn map(self, change: impl Fn(Color) -> Color) -> Self {
                Self { $($field: change(self.$field),)* }
            }
        }
    };
}

roles! {
    primary "primary" none;
    secondary "secondary" primary;
    accent "accent" primary;
    error "error" none;
    warning "warning" none;
    success "success" none;
    info "info" primary;
    text "text" none;
    muted "textMuted" text;
    background "background" none;
    panel "backgroundPanel" background;
    element "backgroundElement" backgroundPanel;
    menu "backgroundMenu" backgroundElement;
    selected_text "selectedListItemText" background;
    border "border" textMuted;
    border_active "borderActive" primary;
    border_subtle "borderSubtle" border;
    diff_added "diffAdded" success;
    diff_removed "diffRemoved" error;
    diff_context "diffContext" textMuted;
    diff_hunk "diffHunkHeader" textMuted;
    diff_added_back "diffAddedBg" none;
    diff_removed_back "diffRemovedBg" none;
    diff_context_back "diffContextBg" none;
    diff_number "diffLineNumber" textMuted;
    markdown_text "markdownText" text;
    heading "markdownHeading" accent;
    link "markdownLink" primary;
    link_text "markdownLinkText" info;
    code "markdownCode" success;
    quote "markdownBlockQuote" warning;
    emphasis "markdownEmph" warning;
    strong "markdownStrong" text;
    rule "markdownHorizontalRule" textMuted;
    list_item "markdownListItem" primary;
    list_number "markdownListEnumeration" primary;
    code_block "markdownCodeBlock" text;
    comment "syntaxComment" textMuted;
    keyword "syntaxKeyword" accent;
    function "syntaxFunction" primary;
    variable "syntaxVariable" text;
    string "syntaxString" success;
    number "syntaxNumber" warning;
    kind "syntaxType" info;
    operator "syntaxOperator" text;
    punctuation "syntaxPunctuation" text;
}

/// Why a theme file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("it is not an object with `theme`")]
    Shape,
    #[error("`{role}`: `{value}` is not a colour")]
    Colour { role: String, value: String },
    #[error("`{role}` refers to itself")]
    Circle { role: String },
}

impl Theme {
    /// Parses a theme file.
    pub(crate) fn parse(file: &Value, mode: Mode) -> Result<Self, Error> {
        let roles = file.get("theme").and_then(Value::as_object).ok_or(Error::Shape)?;
        let none = Map::new();
        let names = file.get("defs").and_then(Value::as_object).unwrap_or(&none);
        let mut colours = BTreeMap::new();
        for (role, _) in ROLES {
            if let Some(value) = roles.get(*role) {
                let reader = Reader { roles, names, role, mode };
                colours.insert(*role, reader.read(value, MAX_NAMES)?);
            }
        }
        Ok(Self::from_roles(|role| resolve_role(&colours, role)))
    }

    /// Returns the theme for a terminal with this number of colours.
    pub(crate) fn at(self, depth: Depth) -> Self {
        match depth {
            Depth::Full => self,
            Depth::Palette => self.map(nearest_indexed),
            Depth::None => self.map(|_| Color::Reset),
        }
    }
}

/// A role's colour, or that of the role it follows.
fn resolve_role(colours: &BTreeMap<&str, Color>, role: &str) -> Color {
    let mut role = role;
    for _ in 0..ROLES.len() {
        if let Some(colour) = colours.get(role) {
            return *colour;
        }
        let Some((_, next)) = ROLES.iter().find(|(name, _)| *name == role) else { break };
        role = next;
    }
    Color::Reset
}

struct Reader<'a> {
    roles: &'a Map<String, Value>,
    names: &'a Map<String, Value>,
    role: &'a str,
    mode: Mode,
}

impl Reader<'_> {
    fn read(&self, value: &Value, depth: usize) -> Result<Color, Error> {
        if depth == 0 {
            return Err(Error::Circle { role: self.role.to_owned() });
        }
        let wrong = || Error::Colour { role: self.role.to_owned(), value: display(value) };
        match value {
            Value::Number(number) => {
                let index = number.as_u64().and_then(|index| u8::try_from(index).ok()).ok_or_else(wrong)?;
                Ok(Color::Indexed(index))
            }
            Value::String(text) if text == "none" || text == "transparent" => Ok(Color::Reset),
            Value::String(text) if text.starts_with('#') => hex(text).ok_or_else(wrong),
            Value::String(name) => {
                let next = self.names.get(name).or_else(|| self.roles.get(name)).ok_or_else(wrong)?;
                self.read(next, depth - 1)
            }
            Value::Object(modes) => {
                let key = if self.mode == Mode::Dark { "dark" } else { "light" };
                self.read(modes.get(key).ok_or_else(wrong)?, depth - 1)
            }
            Value::Null | Value::Bool(_) | Value::Array(_) => Err(wrong()),
        }
    }
}

fn display(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `#rgb`, `#rrggbb`, or the latter with an opacity that is left out.
fn hex(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#')?;
    if !digits.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let digit = |at: usize| u8::from_str_radix(digits.get(at..=at)?, 16).ok().map(|value| value * 17);
    match digits.len() {
        3 => Some(Color::Rgb(digit(0)?, digit(1)?, digit(2)?)),
        6 | 8 => Some(Color::Rgb(byte(0)?, byte(2)?, byte(4)?)),
        _ => None,
    }
}

/// Returns the nearest colour of the palette.
fn nearest_indexed(colour: Color) -> Color {
    let Color::Rgb(red, green, blue) = colour else { return colour };
    const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| {
        let value = i32::from(value);
        let distance = |(_, step): &(usize, &i32)| (value - **step).abs();
        STEPS.iter().enumerate().min_by_key(distance).map_or(0, |(at, _)| at)
    };
    let (r, g, b) = (nearest(red), nearest(green), nearest(blue));
    let grey = (i32::from(red) + i32::from(green) + i32::from(blue)) / 3;
    let shade = ((grey - 8).max(0) / 10).min(23);
    let far = |colour: [i32; 3]| {
        let target = [red, green, blue].map(i32::from);
        (0..3).map(|at| (colour[at] - target[at]).pow(2)).sum::<i32>()
    };
    if far([STEPS[r], STEPS[g], STEPS[b]]) <= far([shade * 10 + 8; 3]) {
        return Color::Indexed((16 + 36 * r + 6 * g + b) as u8);
    }
    Color::Indexed((232 + shade) as u8)
}

/// Parses the colour of an agent.
pub(crate) fn parse_color(text: &str) -> Option<Color> {
    hex(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_theme_file_can_use_names_modes_and_numbers() {
        let file = json!({
            "defs": { "blue": "#0000ff", "sky": "blue" },
            "theme": {
                "primary": "sky",
                "text": { "dark": "#eee", "light": "#111" },
                "error": 9,
                "background": "none",
                "syntaxString": "primary",
            },
        });
        let dark = Theme::parse(&file, Mode::Dark).unwrap();
        assert_eq!(dark.primary, Color::Rgb(0, 0, 255));
        assert_eq!(dark.text, Color::Rgb(0xee, 0xee, 0xee));
        assert_eq!(dark.error, Color::Indexed(9));
        assert_eq!(dark.background, Color::Reset);
        assert_eq!(dark.string, dark.primary);
        // An omitted role has the colour of another role.
        assert_eq!(dark.border_active, dark.primary);
        assert_eq!(Theme::parse(&file, Mode::Light).unwrap().text, Color::Rgb(0x11, 0x11, 0x11));
    }

    #[test]
    fn an_invalid_file_is_an_error() {
        for (file, expected) in [
            (json!({}), "it is not an object with `theme`"),
            (json!({"theme": {"text": "#12"}}), "`text`: `#12` is not a colour"),
            (json!({"theme": {"text": "unknown"}}), "`text`: `unknown` is not a colour"),
            (json!({"theme": {"text": "text"}}), "`text` refers to itself"),
            (json!({"theme": {"text": 300}}), "`text`: `300` is not a colour"),
            (json!({"theme": {"text": "#äbcd"}}), "`text`: `#äbcd` is not a colour"),
        ] {
            assert_eq!(Theme::parse(&file, Mode::Dark).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_palette_uses_the_nearest_colours() {
        assert_eq!(nearest_indexed(Color::Rgb(255, 0, 0)), Color::Indexed(196));
        assert_eq!(nearest_indexed(Color::Rgb(128, 128, 128)), Color::Indexed(244));
        assert_eq!(nearest_indexed(Color::Indexed(3)), Color::Indexed(3));
    }
}
