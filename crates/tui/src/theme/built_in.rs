//! The built-in themes.

use serde_json::{Value, json};

/// A theme with a palette for dark and one for light backgrounds.
struct Row {
    name: &'static str,
    dark: Palette,
    light: Palette,
}

/// Background, panel, element, border, muted text, text, and then red, orange, yellow, green, cyan, blue and purple.
type Palette = [&'static str; 13];

/// The default theme.
pub(crate) const DEFAULT: &str = "codewright";
/// The theme in the terminal's own colours.
pub(crate) const SYSTEM: &str = "system";

const ROWS: &[Row] = &[
    Row {
        name: DEFAULT,
        dark: [
            "#0e1116", "#151a21", "#1d242d", "#2f3a47", "#7d8996", "#dfe5ec", "#f07178", "#e8a75d",
            "#e6c76a", "#8fc97a", "#63c7c0", "#6cb0f5", "#b99af0",
        ],
        light: [
            "#fbfbfa", "#f1f1ef", "#e7e7e4", "#c9c9c4", "#75756e", "#22262b", "#c4343b", "#b05a10",
            "#8a6a00", "#2f7d32", "#0f7a75", "#1c64b8", "#7445b8",
        ],
    },
    Row {
        name: "catppuccin",
        dark: [
            "#1e1e2e", "#181825", "#313244", "#45475a", "#9399b2", "#cdd6f4", "#f38ba8", "#fab387",
            "#f9e2af", "#a6e3a1", "#94e2d5", "#89b4fa", "#cba6f7",
        ],
        light: [
            "#eff1f5", "#e6e9ef", "#ccd0da", "#bcc0cc", "#7c7f93", "#4c4f69", "#d20f39", "#fe640b",
            "#df8e1d", "#40a02b", "#179299", "#1e66f5", "#8839ef",
        ],
    },
    Row {
        name: "dracula",
        dark: [
            "#282a36", "#21222c", "#44475a", "#6272a4", "#8d98c4", "#f8f8f2", "#ff5555", "#ffb86c",
            "#f1fa8c", "#50fa7b", "#8be9fd", "#8be9fd", "#bd93f9",
        ],
        light: [
            "#f8f8f2", "#eeeee6", "#e2e2d9", "#c8c8bd", "#6272a4", "#282a36", "#cb3a2a", "#a34d14",
            "#846e15", "#14710a", "#036a96", "#036a96", "#644ac9",
        ],
    },
    Row {
        name: "everforest",
        dark: [
            "#2d353b", "#343f44", "#3d484d", "#475258", "#859289", "#d3c6aa", "#e67e80", "#e69875",
            "#dbbc7f", "#a7c080", "#83c092", "#7fbbb3", "#d699b6",
        ],
        light: [
            "#fdf6e3", "#f4f0d9", "#efebd4", "#e0dcc7", "#939f91", "#5c6a72", "#f85552", "#f57d26",
            "#dfa000", "#8da101", "#35a77c", "#3a94c5", "#df69ba",
        ],
    },
    Row {
        name: "github",
        dark: [
            "#0d1117", "#161b22", "#21262d", "#30363d", "#8b949e", "#c9d1d9", "#ff7b72", "#ffa657",
            "#d29922", "#3fb950", "#39c5cf", "#58a6ff", "#bc8cff",
        ],
        light: [
            "#ffffff", "#f6f8fa", "#eaeef2", "#d0d7de", "#57606a", "#24292f", "#cf222e", "#bc4c00",
            "#9a6700", "#1a7f37", "#1b7c83", "#0969da", "#8250df",
        ],
    },
    Row {
        name: "gruvbox",
        dark: [
            "#282828", "#32302f", "#3c3836", "#504945", "#a89984", "#ebdbb2", "#fb4934", "#fe8019",
            "#fabd2f", "#b8bb26", "#8ec07c", "#83a598", "#d3869b",
        ],
        light: [
            "#fbf1c7", "#f2e5bc", "#ebdbb2", "#d5c4a1", "#7c6f64", "#3c3836", "#9d0006", "#af3a03",
            "#b57614", "#79740e", "#427b58", "#076678", "#8f3f71",
        ],
    },
    Row {
        name: "kanagawa",
        dark: [
            "#1f1f28", "#16161d", "#2a2a37", "#54546d", "#727169", "#dcd7ba", "#e82424", "#ffa066",
            "#e6c384", "#98bb6c", "#7aa89f", "#7e9cd8", "#957fb8",
        ],
        light: [
            "#f2ecbc", "#e7dba0", "#e4d794", "#c9cbd1", "#716e61", "#545464", "#c84053", "#cc6d00",
            "#77713f", "#6f894e", "#597b75", "#4d699b", "#624c83",
        ],
    },
    Row {
        name: "monokai",
        dark: [
            "#272822", "#1e1f1c", "#3e3d32", "#57584f", "#8f908a", "#f8f8f2", "#f92672", "#fd971f",
            "#e6db74", "#a6e22e", "#66d9ef", "#66d9ef", "#ae81ff",
        ],
        light: [
            "#fafafa", "#f0f0f0", "#e6e6e6", "#cccccc", "#75715e", "#272822", "#d3135a", "#b35c00",
            "#8a7a00", "#5a8a00", "#0e7c93", "#0e7c93", "#7a4fd0",
        ],
    },
    Row {
        name: "nord",
        dark: [
            "#2e3440", "#3b4252", "#434c5e", "#4c566a", "#8b95a7", "#d8dee9", "#bf616a", "#d08770",
            "#ebcb8b", "#a3be8c", "#88c0d0", "#81a1c1", "#b48ead",
        ],
        light: [
            "#eceff4", "#e5e9f0", "#d8dee9", "#c2cad8", "#6b7689", "#2e3440", "#a8414b", "#a85b40",
            "#8a6d1f", "#5b7a44", "#2f7d91", "#4a6f99", "#8a5c82",
        ],
    },
    Row {
        name: "one-dark",
        dark: [
            "#282c34", "#21252b", "#353b45", "#3e4451", "#7f848e", "#abb2bf", "#e06c75", "#d19a66",
            "#e5c07b", "#98c379", "#56b6c2", "#61afef", "#c678dd",
        ],
        light: [
            "#fafafa", "#f0f0f1", "#eaeaeb", "#d4d4d6", "#8c8d93", "#383a42", "#e45649", "#986801",
            "#c18401", "#50a14f", "#0184bc", "#4078f2", "#a626a4",
        ],
    },
    Row {
        name: "rosepine",
        dark: [
            "#191724", "#1f1d2e", "#26233a", "#403d52", "#908caa", "#e0def4", "#eb6f92", "#f6c177",
            "#f6c177", "#9ccfd8", "#9ccfd8", "#31748f", "#c4a7e7",
        ],
        light: [
            "#faf4ed", "#fffaf3", "#f2e9e1", "#dfdad9", "#797593", "#575279", "#b4637a", "#ea9d34",
            "#ea9d34", "#56949f", "#56949f", "#286983", "#907aa9",
        ],
    },
    Row {
        name: "solarized",
        dark: [
            "#002b36", "#073642", "#0d4150", "#2a5560", "#839496", "#93a1a1", "#dc322f", "#cb4b16",
            "#b58900", "#859900", "#2aa198", "#268bd2", "#6c71c4",
        ],
        light: [
            "#fdf6e3", "#eee8d5", "#e4ddc8", "#c9c2ae", "#657b83", "#586e75", "#dc322f", "#cb4b16",
            "#b58900", "#859900", "#2aa198", "#268bd2", "#6c71c4",
        ],
    },
    Row {
        name: "tokyonight",
        dark: [
            "#1a1b26", "#16161e", "#292e42", "#3b4261", "#737aa2", "#c0caf5", "#f7768e", "#ff9e64",
            "#e0af68", "#9ece6a", "#7dcfff", "#7aa2f7", "#bb9af7",
        ],
        light: [
            "#e1e2e7", "#d0d5e3", "#c4c8da", "#a8aecb", "#6172b0", "#3760bf", "#f52a65", "#b15c00",
            "#8c6c3e", "#587539", "#007197", "#2e7de9", "#9854f1",
        ],
    },
];

/// Returns the names of the built-in themes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name).chain([SYSTEM])
}

/// Returns a theme by name, in the format of a theme file.
pub(crate) fn file(name: &str) -> Option<Value> {
    if name == SYSTEM {
        return Some(system());
    }
    // OpenCode's default theme is called `opencode`; here it is an alias of the default theme.
    let name = if name == "opencode" { DEFAULT } else { name };
    let row = ROWS.iter().find(|row| row.name == name)?;
    let both = |at: usize| json!({ "dark": row.dark[at], "light": row.light[at] });
    let mixed = |at: usize| json!({ "dark": blend(row.dark, at), "light": blend(row.light, at) });
    Some(json!({ "theme": {
        "background": both(0), "backgroundPanel": both(1), "backgroundElement": both(2),
        "border": both(3), "borderSubtle": both(3), "textMuted": both(4), "text": both(5),
        "error": both(6), "warning": both(7), "markdownEmph": both(8), "success": both(9),
        "info": both(10), "primary": both(11), "accent": both(12), "secondary": both(10),
        "syntaxNumber": both(7), "syntaxType": both(8), "diffAddedBg": mixed(9), "diffRemovedBg": mixed(6),
    } }))
}

/// Mixes a fifth of a colour into the background, for the background of changed lines.
fn blend(palette: Palette, at: usize) -> String {
    let channel = |text: &str, at: usize| {
        text.get(1 + 2 * at..3 + 2 * at).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
    };
    let mix = |nth| (channel(palette[0], nth) * 5 + channel(palette[at], nth)) / 6;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// Returns the theme with the sixteen colours of the terminal. The background does not change.
fn system() -> Value {
    json!({ "theme": {
        "background": "none", "backgroundPanel": "none", "backgroundElement": { "dark": 8, "light": 7 },
        "backgroundMenu": { "dark": 0, "light": 15 },
        "border": 8, "textMuted": 8, "text": "none", "selectedListItemText": { "dark": 0, "light": 15 },
        "error": 1, "warning": 3, "success": 2, "info": 6, "primary": 4, "secondary": 6, "accent": 5,
        "diffAddedBg": "none", "diffRemovedBg": "none",
    } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Mode, Theme};

    #[test]
    fn every_built_in_theme_can_be_read() {
        for name in names() {
            for mode in [Mode::Dark, Mode::Light] {
                let theme = Theme::parse(&file(name).unwrap(), mode);
                assert!(theme.is_ok(), "{name}: {theme:?}");
            }
        }
        assert_eq!(file("opencode"), file(DEFAULT));
        assert_eq!(file("nobody"), None);
    }
}
