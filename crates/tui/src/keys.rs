//! The actions of the client and their key bindings.
//!
//! One table holds, for each action, the name in the configuration's `keybinds`, the default keys, the
//! name for the server's `tui.command.execute` and the palette, the slash commands and the title.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

mod preset;

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stroke {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// A stroke that triggers an action, alone or after the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binding {
    leader: bool,
    stroke: Stroke,
}

/// The group of an action in the palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Session,
    Prompt,
    Agent,
    System,
    /// Not in the palette: the action has only keys.
    Keys,
}

impl Group {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Session => "Session",
            Self::Prompt => "Prompt",
            Self::Agent => "Agent",
            Self::System => "System",
            Self::Keys => "Keys",
        }
    }
}

/// A row of the table.
pub(crate) struct Row {
    pub(crate) action: Action,
    /// The name in `keybinds`.
    pub(crate) name: &'static str,
    /// The default keys, separated by commas.
    keys: &'static str,
    /// The name that a server uses.
    pub(crate) command: &'static str,
    pub(crate) slash: &'static [&'static str],
    pub(crate) title: &'static str,
    pub(crate) group: Group,
}

macro_rules! actions {
    ($($action:ident $group:ident $name:literal $keys:literal $command:literal [$($slash:literal)*] $title:literal;)*) => {
        /// An action of the user.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Action { $($action,)* }

        pub(crate) const ACTIONS: &[Row] = &[$(Row {
            action: Action::$action, name: $name, keys: $keys, command: $command,
            slash: &[$($slash),*], title: $title, group: Group::$group,
        },)*];
    };
}

actions! {
    SessionList Session "session_list" "<leader>l" "session.list" ["sessions" "resume" "continue"] "Switch session";
    SessionNew Session "session_new" "<leader>n" "session.new" ["new" "clear"] "New session";
    SessionRename Session "session_rename" "none" "session.rename" ["rename"] "Rename session";
    SessionTimeline Session "session_timeline" "<leader>g" "session.timeline" ["timeline"] "Jump to message";
    SearchTranscript Session "messages_search" "<leader>/" "session.search" ["search" "find"] "Search the transcript";
    SearchHere Keys "messages_search_here" "/" "session.search.here" [] "Search the transcript while reading older text";
    SessionFork Session "session_fork" "none" "session.fork" ["fork"] "Fork session";
    SessionCompact Session "session_compact" "<leader>c" "session.compact" ["compact" "summarize"] "Compact session";
    Move Session "session_move" "none" "session.move" ["move"] "Move session";
    Undo Session "messages_undo" "<leader>u" "session.undo" ["undo"] "Undo previous message";
    Redo Session "messages_redo" "<leader>r" "session.redo" ["redo"] "Redo";
    Diff Session "diff_open" "none" "session.diff" ["diff"] "Review changes";
    Review Session "review_start" "none" "session.review" ["review"] "Let the model review changes";
    Findings Session "review_findings" "none" "session.review.findings" ["findings"] "Findings of the review";
    Copy Session "messages_copy" "<leader>y" "messages.copy" ["copy"] "Copy last answer";
    CopyTranscript Session "transcript_copy" "none" "session.copy" [] "Copy transcript";
    Export Session "session_export" "<leader>x" "session.export" ["export"] "Open transcript in the editor";
    Interrupt Session "session_interrupt" "escape" "session.interrupt" [] "Interrupt";
    Sidebar Session "sidebar_toggle" "<leader>b" "session.sidebar.toggle" [] "Show or hide the sidebar";
    Details Session "tool_details" "none" "session.toggle.actions" ["details"] "Show or hide details of tools";
    Expand Session "output_expand" "ctrl+o" "session.toggle.output" [] "Show or hide full outputs";
    Thinking Session "display_thinking" "none" "session.toggle.thinking" ["thinking"] "Show or hide thinking";
    Timestamps Session "timestamps_toggle" "none" "session.toggle.timestamps" ["timestamps"] "Show or hide times";
    ChildFirst Session "session_child_first" "<leader>down" "session.child.first" [] "Go to a subagent";
    ChildNext Session "session_child_cycle" "right" "session.child.next" [] "Go to the next subagent";
    ChildPrevious Session "session_child_cycle_reverse" "left" "session.child.previous" [] "Go to the previous subagent";
    Parent Session "session_parent" "up" "session.parent" [] "Go back from a subagent";
    PageUp Keys "messages_page_up" "pageup,ctrl+alt+b" "session.page.up" [] "Page up";
    PageDown Keys "messages_page_down" "pagedown,ctrl+alt+f" "session.page.down" [] "Page down";
    LineUp Keys "messages_line_up" "ctrl+alt+y" "session.line.up" [] "Line up";
    LineDown Keys "messages_line_down" "ctrl+alt+e" "session.line.down" [] "Line down";
    HalfUp Keys "messages_half_page_up" "ctrl+alt+u" "session.half.page.up" [] "Half a page up";
    HalfDown Keys "messages_half_page_down" "ctrl+alt+d" "session.half.page.down" [] "Half a page down";
    First Keys "messages_first" "ctrl+g,home" "session.first" [] "Go to the beginning";
    Last Keys "messages_last" "ctrl+alt+g,end" "session.last" [] "Go to the end";
    MessageNext Keys "messages_next" "none" "session.message.next" [] "Go to the next message";
    MessagePrevious Keys "messages_previous" "none" "session.message.previous" [] "Go to the previous message";
    Editor Prompt "editor_open" "<leader>e" "prompt.editor" ["editor"] "Open editor";
    HistorySearch Prompt "history_search" "ctrl+r" "prompt.history.search" ["history"] "Search earlier prompts";
    TakeBack Prompt "prompt_take_back" "alt+up" "prompt.take.back" [] "Edit the prompt that waits";
    Skills Prompt "skill_list" "none" "prompt.skills" ["skills"] "Skills";
    Submit Keys "input_submit" "return" "prompt.submit" [] "Send the prompt";
    Newline Keys "input_newline" "shift+return,ctrl+return,alt+return,ctrl+j" "input.newline" [] "New line";
    Clear Keys "input_clear" "ctrl+c" "prompt.clear" [] "Clear the prompt";
    HistoryPrevious Keys "history_previous" "up" "prompt.history.previous" [] "Previous prompt";
    HistoryNext Keys "history_next" "down" "prompt.history.next" [] "Next prompt";
    Left Keys "input_move_left" "left,ctrl+b" "input.left" [] "Left";
    Right Keys "input_move_right" "right,ctrl+f" "input.right" [] "Right";
    Up Keys "input_move_up" "up" "input.up" [] "Up";
    Down Keys "input_move_down" "down" "input.down" [] "Down";
    LineStart Keys "input_line_home" "ctrl+a,home" "input.line.home" [] "Go to the start of the line";
    LineEnd Keys "input_line_end" "ctrl+e,end" "input.line.end" [] "Go to the end of the line";
    WordLeft Keys "input_word_backward" "alt+b,alt+left,ctrl+left" "input.word.left" [] "Go a word left";
    WordRight Keys "input_word_forward" "alt+f,alt+right,ctrl+right" "input.word.right" [] "Go a word right";
    Backspace Keys "input_backspace" "backspace,shift+backspace" "input.backspace" [] "Delete previous character";
    Delete Keys "input_delete" "ctrl+d,delete,shift+delete" "input.delete" [] "Delete next character";
    DeleteWordBefore Keys "input_delete_word_backward" "ctrl+w,ctrl+backspace,alt+backspace" "input.delete.word" [] "Delete previous word";
    DeleteWordAfter Keys "input_delete_word_forward" "alt+d,alt+delete,ctrl+delete" "input.delete.word.forward" [] "Delete next word";
    DeleteToStart Keys "input_delete_to_line_start" "ctrl+u" "input.delete.start" [] "Delete to the start of the line";
    DeleteToEnd Keys "input_delete_to_line_end" "ctrl+k" "input.delete.end" [] "Delete to the end of the line";
    InputPaste Keys "input_paste" "ctrl+v" "prompt.paste" [] "Paste text or a picture";
    InputUndo Keys "input_undo" "ctrl+-,ctrl+_,super+z" "input.undo" [] "Undo in the prompt";
    ModelList Agent "model_list" "<leader>m" "model.list" ["models" "model"] "Switch model";
    ModelRecent Agent "model_cycle_recent" "f2" "model.cycle.recent" [] "Next recent model";
    ModelRecentBack Agent "model_cycle_recent_reverse" "shift+f2" "model.cycle.recent.reverse" [] "Previous recent model";
    VariantCycle Agent "variant_cycle" "ctrl+t" "variant.cycle" ["variant"] "Next variant";
    AgentList Agent "agent_list" "<leader>a" "agent.list" ["agents" "agent"] "Switch agent";
    AgentCycle Agent "agent_cycle" "tab" "agent.cycle" [] "Next agent";
    AgentCycleBack Agent "agent_cycle_reverse" "none" "agent.cycle.reverse" [] "Previous agent";
    PermissionMode Agent "permission_mode_cycle" "shift+tab" "permission.mode.cycle" ["mode"] "Next permission mode";
    McpList Agent "mcp_list" "none" "mcp.list" ["mcps" "mcp"] "MCP servers";
    Connect Agent "provider_connect" "none" "provider.connect" ["connect" "login"] "Connect provider";
    Palette System "command_list" "ctrl+p,ctrl+k,super+k,<leader>p" "command.palette" [] "Commands";
    ShowKeys System "keys_show" "?" "keys.show" ["keys"] "Keys of the moment";
    Cost System "cost_show" "none" "cost.show" ["cost"] "Cost of the session";
    Context System "context_show" "none" "context.show" ["context"] "What fills the context";
    Status System "status_view" "<leader>s" "status.show" ["status"] "View status";
    Trust System "workspace_trust" "none" "workspace.trust" ["trust"] "Workspace trust";
    ThemeList System "theme_list" "<leader>t" "theme.list" ["themes" "theme"] "Switch theme";
    ThemeMode System "theme_mode" "none" "theme.mode" [] "Switch between light and dark";
    Help System "help_show" "none" "help.show" ["help"] "Help and all keys";
    Bug System "bug_report" "none" "bug.report" ["bug"] "Bug report";
    Mouse System "mouse_toggle" "none" "mouse.toggle" ["mouse"] "Toggle mouse";
    Suspend System "terminal_suspend" "ctrl+z" "terminal.suspend" [] "Suspend";
    Exit System "app_exit" "ctrl+c,ctrl+d,<leader>q" "app.exit" ["exit" "quit" "q"] "Exit";
}

impl Action {
    /// Whether the action scrolls the transcript.
    pub(crate) fn scrolls(self) -> bool {
        matches!(
            self,
            Self::PageUp | Self::PageDown | Self::LineUp | Self::LineDown | Self::HalfUp | Self::HalfDown
        )
    }

    pub(crate) fn row(self) -> &'static Row {
        ACTIONS.iter().find(|row| row.action == self).expect("every action has a row")
    }
}

/// The actions that OpenCode does not have. They give way to keys that a configuration binds to other actions.
const OWN: [Action; 6] = [
    Action::SearchTranscript,
    Action::SearchHere,
    Action::HistorySearch,
    Action::TakeBack,
    Action::PermissionMode,
    Action::ShowKeys,
];

/// How many presses of the key interrupt a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presses {
    One,
    Two,
}

/// The key bindings.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    leader: Vec<Stroke>,
    bindings: Vec<(Action, Vec<Binding>)>,
    pub(crate) interrupts_with: Presses,
}

impl Default for Keys {
    fn default() -> Self {
        let bindings = ACTIONS.iter().map(|row| (row.action, parse_all(row.keys).unwrap_or_default()));
        Self {
            leader: vec![plain_stroke("ctrl+x").expect("it is a valid key")],
            bindings: bindings.collect(),
            interrupts_with: Presses::One,
        }
    }
}

impl Keys {
    /// Applies the `keybinds` of a configuration: first its preset, then its other entries. Returns a warning for each
    /// invalid entry, whose keys do not change.
    pub(crate) fn configure(&mut self, config: &Value) -> Vec<String> {
        let Some(entries) = config.as_object() else {
            return vec!["`keybinds` is not an object; using the default keys".to_owned()];
        };
        let mut warnings: Vec<String> =
            entries.get(preset::KEY).and_then(|preset| self.apply_preset(preset)).into_iter().collect();
        let mut chosen = Vec::new();
        for (name, value) in entries.iter().filter(|(name, _)| *name != preset::KEY) {
            let Some(text) = binding_text(value) else {
                warnings.push(format!("`keybinds.{name}` is not a string; using the default keys"));
                continue;
            };
            if name == "leader" {
                match parse_all(&text) {
                    Ok(strokes) => self.leader = strokes.iter().map(|binding| binding.stroke).collect(),
                    Err(key) => warnings.push(unknown_key(name, &key)),
                }
                continue;
            }
            // Configurations may name actions that only other clients have.
            let Some(row) = ACTIONS.iter().find(|row| row.name == name) else { continue };
            match parse_all(&text) {
                Ok(bindings) => {
                    self.bind(row.action, bindings);
                    chosen.push(row.action);
                }
                Err(key) => warnings.push(unknown_key(name, &key)),
            }
        }
        self.give_way(&chosen);
        warnings
    }

    fn bind(&mut self, action: Action, bindings: Vec<Binding>) {
        if let Some(entry) = self.bindings.iter_mut().find(|(bound, _)| *bound == action) {
            entry.1 = bindings;
        }
    }

    /// Removes the keys of chosen actions from the actions that OpenCode does not have.
    fn give_way(&mut self, chosen: &[Action]) {
        let taken = self.bindings.iter().filter(|(action, _)| chosen.contains(action));
        let taken: Vec<Binding> = taken.flat_map(|(_, bindings)| bindings.clone()).collect();
        let own = self.bindings.iter_mut();
        for (_, bindings) in own.filter(|(action, _)| OWN.contains(action) && !chosen.contains(action)) {
            bindings.retain(|binding| !taken.contains(binding));
        }
    }

    fn apply_preset(&mut self, value: &Value) -> Option<String> {
        let Some(preset) = value.as_str().and_then(preset::named) else {
            let names = preset::NAMES.join("`, `");
            return Some(format!("`keybinds.preset` is not one of `{names}`; using the default keys"));
        };
        for (name, keys) in preset.keys {
            let row = ACTIONS.iter().find(|row| row.name == *name);
            if let (Some(row), Ok(bindings)) = (row, parse_all(keys)) {
                self.bind(row.action, bindings);
            }
        }
        self.interrupts_with = preset.interrupts_with;
        None
    }

    pub(crate) fn is_leader(&self, key: KeyEvent) -> bool {
        self.leader.contains(&Stroke::of(key))
    }

    /// Returns the actions that a key is bound to, in the order of the table.
    pub(crate) fn actions(&self, key: KeyEvent, leader: bool) -> impl Iterator<Item = Action> + '_ {
        let binding = Binding { leader, stroke: Stroke::of(key) };
        let bound = self.bindings.iter().filter(move |(_, bindings)| bindings.contains(&binding));
        bound.map(|(action, _)| *action)
    }

    /// Returns the keys of an action, separated by commas.
    pub(crate) fn label(&self, action: Action) -> String {
        let Some((_, bindings)) = self.bindings.iter().find(|(bound, _)| *bound == action) else {
            return String::new();
        };
        let leader = self.leader.first().map(Stroke::label).unwrap_or_default();
        let shown = bindings.iter().map(|binding| {
            let stroke = binding.stroke.label();
            if binding.leader { format!("{leader} {stroke}") } else { stroke }
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Returns the first key of an action.
    pub(crate) fn first(&self, action: Action) -> String {
        self.label(action).split(", ").next().unwrap_or_default().to_owned()
    }
}

/// Returns the keys of an entry, which is a string, a list of strings, or `false` for no keys.
fn binding_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(false) | Value::Null => Some("none".to_owned()),
        Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Some(texts?.join(","))
        }
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn unknown_key(name: &str, key: &str) -> String {
    format!("`keybinds.{name}`: `{key}` is not a key; using the default keys")
}

/// Parses bindings that are separated by commas. The error is the text that is not a key.
fn parse_all(text: &str) -> Result<Vec<Binding>, String> {
    let mut bindings = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "none") {
        let (leader, rest) = match word.strip_prefix("<leader>") {
            Some(rest) => (true, rest.trim_start_matches(['+', ' '])),
            None => (false, word),
        };
        let stroke = plain_stroke(rest).ok_or_else(|| word.to_owned())?;
        bindings.push(Binding { leader, stroke });
    }
    Ok(bindings)
}

fn plain_stroke(text: &str) -> Option<Stroke> {
    let mut modifiers = KeyModifiers::NONE;
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.as_str();
    while let Some((modifier, key)) = rest.split_once('+').filter(|(_, key)| !key.is_empty()) {
        modifiers |= match modifier {
            "ctrl" | "control" => KeyModifiers::CONTROL,
            "alt" | "option" | "meta" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            "super" | "cmd" | "win" => KeyModifiers::SUPER,
            _ => return None,
        };
        rest = key;
    }
    Some(Stroke::new(code(rest)?, modifiers))
}

const NAMED: &[(&str, KeyCode)] = &[
    ("return", KeyCode::Enter),
    ("enter", KeyCode::Enter),
    ("escape", KeyCode::Esc),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pgup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("pgdown", KeyCode::PageDown),
];

fn code(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    if let Some(number) = name.strip_prefix('f').and_then(|number| number.parse::<u8>().ok()) {
        return (1..=24).contains(&number).then_some(KeyCode::F(number));
    }
    let mut chars = name.chars();
    let first = chars.next()?;
    chars.next().is_none().then_some(KeyCode::Char(first))
}

impl Stroke {
    /// Creates a stroke in a normal form, because terminals report keys in different forms.
    fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT | KeyModifiers::SUPER;
        let mut modifiers = modifiers & known;
        let code = match code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(c) if c.is_uppercase() => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Char(c.to_lowercase().next().unwrap_or(c))
            }
            // Shift is needed to type the character and is not a modifier.
            KeyCode::Char(c) if !c.is_alphabetic() => {
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(c)
            }
            other => other,
        };
        Self { code, modifiers }
    }

    fn of(key: KeyEvent) -> Self {
        Self::new(key.code, key.modifiers)
    }

    fn label(&self) -> String {
        let mut text = String::new();
        for (modifier, name) in [
            (KeyModifiers::CONTROL, "ctrl+"),
            (KeyModifiers::ALT, "alt+"),
            (KeyModifiers::SHIFT, "shift+"),
            (KeyModifiers::SUPER, "super+"),
        ] {
            if self.modifiers.contains(modifier) {
                text.push_str(name);
            }
        }
        let named = NAMED.iter().find(|(_, code)| *code == self.code);
        match (self.code, named) {
            (_, Some((name, _))) => text.push_str(match *name {
                "return" => "enter",
                "escape" => "esc",
                name => name,
            }),
            (KeyCode::Char(c), None) => text.push(c),
            (KeyCode::F(number), None) => text.push_str(&format!("f{number}")),
            (other, None) => text.push_str(&other.to_string().to_lowercase()),
        }
        text
    }
}

/// Returns the keys and titles of the listed actions by group.
pub(crate) fn by_group(
    keys: &Keys,
    is_listed: impl Fn(Action) -> bool,
) -> BTreeMap<&'static str, Vec<(String, &'static str)>> {
    let mut groups: BTreeMap<&'static str, Vec<(String, &'static str)>> = BTreeMap::new();
    for row in ACTIONS.iter().filter(|row| is_listed(row.action)) {
        let shown = keys.label(row.action);
        let slash = row.slash.first().map(|slash| format!("/{slash}"));
        let how = [Some(shown).filter(|shown| !shown.is_empty()), slash].into_iter().flatten();
        let how = how.collect::<Vec<_>>().join("  ");
        if !how.is_empty() {
            groups.entry(row.group.title()).or_default().push((how, row.title));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    /// Returns the reference page of the key bindings, in Markdown.
    fn reference() -> String {
        let keys = Keys::default();
        let mut page = format!(
            "# Keys\n\n\
            <!-- Generated from crates/tui/src/keys.rs. To regenerate, run \
            `UPDATE_DOCS=1 cargo test -p codewright-tui keys`. -->\n\n\
            The actions of the [terminal client](tui.md) with their default keys. `{}` is the leader key: press it, \
            then the other key\nwithin two seconds. The name sets other keys in `keybinds` of [`tui.json`](tui.md#configuration).\n\
            A server performs an action by its command name (`tui.command.execute`).\n",
            keys.leader.first().map(Stroke::label).unwrap_or_default()
        );
        for group in [Group::Session, Group::Prompt, Group::Agent, Group::System, Group::Keys] {
            let title = if group == Group::Keys { "Scrolling and editing" } else { group.title() };
            page.push_str(&format!("\n## {title}\n\n"));
            page.push_str(
                "| action | keys | slash commands | name | command name |\n|---|---|---|---|---|\n",
            );
            for row in ACTIONS.iter().filter(|row| row.group == group) {
                let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
                let bindings = keys.label(row.action);
                let bindings: Vec<String> = bindings.split(", ").map(code).collect();
                let slash: Vec<String> = row.slash.iter().map(|name| format!("`/{name}`")).collect();
                page.push_str(&format!(
                    "| {} | {} | {} | `{}` | `{}` |\n",
                    row.title,
                    bindings.join(", "),
                    slash.join(", "),
                    row.name,
                    row.command
                ));
            }
        }
        page
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch of the test, not configuration of the program")]
    fn the_reference_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/keys.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let command = "UPDATE_DOCS=1 cargo test -p codewright-tui keys";
        assert_eq!(page, reference(), "docs/keys.md is outdated; regenerate it with `{command}`");
    }

    #[test]
    fn the_default_keys_are_valid() {
        for row in ACTIONS {
            assert!(parse_all(row.keys).is_ok(), "{}", row.name);
        }
    }

    #[test]
    fn keys_match_in_every_form_that_terminals_report() {
        let keys = Keys::default();
        let actions = |code, modifiers| keys.actions(key(code, modifiers), false).collect::<Vec<_>>();
        assert_eq!(actions(KeyCode::BackTab, KeyModifiers::NONE), [Action::PermissionMode]);
        assert_eq!(actions(KeyCode::Tab, KeyModifiers::SHIFT), [Action::PermissionMode]);
        assert_eq!(actions(KeyCode::Char('P'), KeyModifiers::CONTROL), []);
        assert_eq!(actions(KeyCode::Char('p'), KeyModifiers::CONTROL), [Action::Palette]);
        assert_eq!(actions(KeyCode::Char('?'), KeyModifiers::SHIFT), [Action::ShowKeys]);
        assert!(keys.is_leader(key(KeyCode::Char('x'), KeyModifiers::CONTROL)));
        let after_leader: Vec<_> = keys.actions(key(KeyCode::Char('m'), KeyModifiers::NONE), true).collect();
        assert_eq!(after_leader, [Action::ModelList]);
    }

    #[test]
    fn a_configuration_changes_keys_and_invalid_entries_cause_warnings() {
        let mut keys = Keys::default();
        let warnings = keys.configure(&json!({
            "leader": "ctrl+a",
            "model_list": "<leader>+m, f5",
            "app_exit": "none",
            "theme_list": false,
            "agent_list": ["f6", "<leader>z"],
            "session_new": "hyper+q",
            "session_list": 3,
            "of_another_client": "whatever",
        }));
        assert_eq!(
            warnings,
            [
                "`keybinds.session_new`: `hyper+q` is not a key; using the default keys",
                "`keybinds.session_list` is not a string; using the default keys",
            ]
        );
        assert_eq!(keys.label(Action::ModelList), "ctrl+a m, f5");
        assert_eq!(keys.label(Action::Exit), "");
        assert_eq!(keys.label(Action::ThemeList), "");
        assert_eq!(keys.label(Action::AgentList), "f6, ctrl+a z");
        assert_eq!(keys.first(Action::SessionNew), "ctrl+a n");
        assert_eq!(keys.configure(&json!([])).len(), 1);
    }

    #[test]
    fn a_preset_changes_keys_and_other_entries_override_it() {
        for (preset, action, keys) in [
            ("opencode", Action::AgentCycleBack, "shift+tab"),
            ("opencode", Action::PermissionMode, ""),
            ("opencode", Action::SessionRename, "ctrl+r"),
            ("opencode", Action::HistorySearch, ""),
            ("claude", Action::PermissionMode, "shift+tab"),
            ("claude", Action::Editor, "ctrl+g, ctrl+x e"),
            ("codex", Action::Expand, "ctrl+t, ctrl+o"),
            ("vim", Action::HalfDown, "ctrl+d"),
        ] {
            let mut keys_of = Keys::default();
            assert_eq!(keys_of.configure(&json!({"preset": preset})), [] as [String; 0]);
            assert_eq!(keys_of.label(action), keys, "{preset} {action:?}");
        }
        let mut keys = Keys::default();
        keys.configure(&json!({"session_rename": "f9", "preset": "opencode"}));
        assert_eq!(keys.label(Action::SessionRename), "f9");
        let warnings = Keys::default().configure(&json!({"preset": "emacs"}));
        assert!(warnings[0].contains("`keybinds.preset`") && warnings[0].contains("`vim`"), "{warnings:?}");
    }

    #[test]
    fn every_preset_names_known_actions_and_valid_keys() {
        for name in preset::NAMES {
            for (action, keys) in preset::named(name).unwrap().keys {
                assert!(ACTIONS.iter().any(|row| row.name == *action), "{name}: {action}");
                assert!(parse_all(keys).is_ok(), "{name}: {keys}");
            }
        }
    }

    #[test]
    fn a_configured_key_is_taken_from_the_actions_that_opencode_does_not_have() {
        let mut keys = Keys::default();
        keys.configure(&json!({"agent_cycle_reverse": "shift+tab", "session_rename": "ctrl+r"}));
        for (code, modifiers, action) in [
            (KeyCode::BackTab, KeyModifiers::NONE, Action::AgentCycleBack),
            (KeyCode::Char('r'), KeyModifiers::CONTROL, Action::SessionRename),
        ] {
            assert_eq!(keys.actions(key(code, modifiers), false).collect::<Vec<_>>(), [action]);
        }
    }
}
