//! Sets of keys that users of other programs know.

use super::Presses;

/// The entry of `keybinds` that names a preset.
pub(super) const KEY: &str = "preset";
pub(super) const NAMES: [&str; 4] = ["opencode", "claude", "codex", "vim"];

/// A preset: the keys of the actions that differ from the defaults.
pub(super) struct Preset {
    pub(super) interrupts_with: Presses,
    pub(super) keys: &'static [(&'static str, &'static str)],
}

/// Returns the preset with a name.
pub(super) fn named(name: &str) -> Option<Preset> {
    let (interrupts_with, keys): (_, &[(&str, &str)]) = match name {
        "opencode" => (Presses::Two, OPENCODE),
        "claude" => (Presses::One, CLAUDE),
        "codex" => (Presses::One, CODEX),
        "vim" => (Presses::One, VIM),
        _ => return None,
    };
    Some(Preset { interrupts_with, keys })
}

const OPENCODE: &[(&str, &str)] = &[
    ("session_rename", "ctrl+r"),
    ("history_search", "none"),
    ("agent_cycle_reverse", "shift+tab"),
    ("permission_mode_cycle", "none"),
    ("messages_search_here", "none"),
    ("keys_show", "none"),
];

const CLAUDE: &[(&str, &str)] = &[
    ("editor_open", "ctrl+g,<leader>e"),
    ("messages_first", "home"),
    ("model_list", "alt+p,<leader>m"),
    ("display_thinking", "alt+t"),
];

const CODEX: &[(&str, &str)] = &[
    ("editor_open", "ctrl+g,<leader>e"),
    ("messages_first", "home"),
    ("output_expand", "ctrl+t,ctrl+o"),
    ("variant_cycle", "none"),
];

/// The scrolling keys of vim. While the prompt has text, they edit it.
const VIM: &[(&str, &str)] = &[
    ("messages_page_up", "pageup,ctrl+b"),
    ("messages_page_down", "pagedown,ctrl+f"),
    ("messages_half_page_up", "ctrl+u"),
    ("messages_half_page_down", "ctrl+d"),
    ("messages_line_up", "ctrl+y"),
    ("messages_line_down", "ctrl+e"),
    ("app_exit", "ctrl+c,<leader>q"),
];
