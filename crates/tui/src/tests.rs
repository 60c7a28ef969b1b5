//! Tests of the client without a terminal and a server: messages in, screens and commands out.
//!
//! Screens are compared with the files in `snapshots`. A missing file is written and its test fails once,
//! so that the file is reviewed.

use std::collections::BTreeMap;

use codewright_proto::{Notice, SessionId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use crate::msg::{Cmd, Msg, Reply, StartData};
use crate::state::{First, Local, Options, Route, State};
use crate::theme::Depth;
use crate::update::update;
use crate::view;

mod changes;
mod cost;
mod dialogs;
mod grid;
mod hands;
mod screens;
mod small;
mod steps;
mod trust;

const NOW: u64 = 1_795_300_000_000;
const SESSION: &str = "ses_000000000001aaaaaaaaaaaaaa";
const CHILD: &str = "ses_000000000002aaaaaaaaaaaaaa";

pub(crate) fn options() -> Options {
    Options {
        version: "1.2.3",
        directory: "/home/me/project".to_owned(),
        home: "/home/me".to_owned(),
        state: "/nowhere".into(),
        themes: Vec::new(),
        config: json!({}),
        depth: Depth::Full,
        mode: None,
        editor: None,
        ide: None,
        nvim: None,
        channel: None,
        programs: String::new(),
        private_variables: Vec::new(),
        links: crate::state::Links::All,
        has_local_files: true,
        multiplexer: None,
        desktops: Vec::new(),
        mini: None,
        ascii: false,
        zone: crate::zone::Zone::utc(),
        first: First::Home,
        prompt: None,
        sends_prompt: false,
        agent: None,
        model: None,
        auto: false,
        notification: Some(crate::notification::Sequence::Osc9),
        ignores_copies: false,
        notes: Vec::new(),
    }
}

/// The state of a client, and the commands that it issued.
struct Stage {
    state: State,
    cmds: Vec<Cmd>,
    now: u64,
}

impl Stage {
    fn new(width: u16, height: u16) -> Self {
        Self::with(options(), (width, height))
    }

    fn with(options: Options, size: (u16, u16)) -> Self {
        let mut state = State::new(options, Local::default(), BTreeMap::new(), NOW);
        state.size = size;
        let mut stage = Self { state, cmds: Vec::new(), now: NOW };
        stage.msg(Msg::Connected);
        stage.cmds.clear();
        stage
    }

    /// Returns a client that has fetched the data of a server.
    fn started(width: u16, height: u16) -> Self {
        let mut stage = Self::new(width, height);
        stage.start(providers());
        stage
    }

    fn start(&mut self, providers: Value) {
        let started = StartData {
            agents: Some(json!([
                {"name": "build", "mode": "primary", "native": true},
                {"name": "plan", "mode": "primary", "native": true},
                {"name": "explore", "mode": "subagent", "native": true, "description": "looks around"},
                {"name": "title", "mode": "primary", "hidden": true},
            ])),
            providers: Some(providers),
            commands: Some(json!([{"name": "review", "description": "review changes", "source": "command"}])),
            branch: Some(Some("main".to_owned())),
            config: Some(json!({})),
            ..StartData::default()
        };
        self.msg(Msg::Reply(Reply::Started(Box::new(started))));
        // Every start fetches it. Tests are about the other commands.
        self.cmds.retain(|cmd| *cmd != Cmd::LoadSandboxSetting);
    }

    /// Returns a client with an empty session.
    fn in_session(width: u16, height: u16) -> Self {
        let mut stage = Self::started(width, height);
        stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
        stage.reply(Reply::Messages { session: id(SESSION), messages: Vec::new(), older: None });
        stage.cmds.clear();
        stage
    }

    fn msg(&mut self, msg: Msg) {
        let cmds = update(&mut self.state, msg, self.now);
        self.cmds.extend(cmds);
        view::arrange(&mut self.state);
    }

    fn reply(&mut self, reply: Reply) {
        self.msg(Msg::Reply(reply));
    }

    /// Applies an event of the server.
    fn event(&mut self, kind: &str, properties: Value) {
        let json = json!({"id": "evt_000000000001aaaaaaaaaaaaaa", "type": kind, "properties": properties});
        let notice = Notice::parse(&json.to_string()).unwrap_or_else(|| panic!("{json}"));
        self.msg(Msg::Notice(Box::new(notice)));
    }

    fn message(&mut self, info: Value) {
        self.event("message.updated", json!({"sessionID": info["sessionID"], "info": info}));
    }

    fn part(&mut self, part: Value) {
        self.event(
            "message.part.updated",
            json!({"sessionID": part["sessionID"], "part": part, "time": NOW}),
        );
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.msg(Msg::Key(KeyEvent::new(code, modifiers)));
    }

    fn press(&mut self, code: KeyCode) {
        self.key(code, KeyModifiers::NONE);
    }

    fn control(&mut self, c: char) {
        self.key(KeyCode::Char(c), KeyModifiers::CONTROL);
    }

    /// Presses the leader and then a key.
    fn leader(&mut self, c: char) {
        self.control('x');
        self.press(KeyCode::Char(c));
    }

    fn click(&mut self, column: u16, row: u16) {
        self.msg(mouse(MouseEventKind::Down(MouseButton::Left), column, row));
        self.msg(mouse(MouseEventKind::Up(MouseButton::Left), column, row));
    }

    fn write(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c));
        }
    }

    /// Returns the commands since the last call.
    fn take_cmds(&mut self) -> Vec<Cmd> {
        std::mem::take(&mut self.cmds)
    }

    fn buffer(&mut self) -> ratatui::buffer::Buffer {
        let (width, height) = self.state.size;
        view::arrange(&mut self.state);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view::view(&self.state, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn screen(&mut self) -> String {
        let (width, height) = self.state.size;
        let buffer = self.buffer();
        let rows = (0..height).map(|y| {
            let mut row = String::new();
            let mut x = 0;
            while x < width {
                // The cells after a wide character belong to it.
                let symbol = buffer[(x, y)].symbol();
                row.push_str(symbol);
                x += u16::try_from(crate::wrap::width(symbol)).unwrap().max(1);
            }
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn shows(&mut self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "`{text}` is not on the screen:\n{screen}");
    }

    #[track_caller]
    fn hides(&mut self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "`{text}` is on the screen:\n{screen}");
    }

    #[track_caller]
    fn check(&mut self, name: &str) {
        let screen = format!("{}\n", self.screen());
        let path = format!("{}/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        match std::fs::read_to_string(&path) {
            Ok(expected) => assert_eq!(screen, expected, "{name}: delete {path} to accept the new screen"),
            Err(_) => {
                std::fs::write(&path, &screen).unwrap();
                panic!("{path} was written, review it:\n{screen}");
            }
        }
    }
}

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn providers() -> Value {
    let model = |name: &str, context: u64| json!({"id": name, "name": name, "limit": {"context": context}, "cost": {"input": 1.0, "output": 1.0}});
    let mut clever = model("clever", 200_000);
    clever["variants"] = json!({"low": {}, "high": {}});
    json!({
        "providers": [
            {"id": "mock", "name": "Mock", "source": "api", "models": {"clever": clever, "quick": model("quick", 32_000)}},
            {"id": "other", "name": "Other", "source": "api", "models": {"plain": model("plain", 8_000)}},
        ],
        "default": {"mock": "clever"},
    })
}

fn session(session: &str, parent: Option<&str>) -> Value {
    let mut value = json!({
        "id": session, "slug": "a-b", "projectID": "global", "directory": "/home/me/project",
        "title": "Fix the adder", "version": "1", "cost": 0.0123, "agent": "build",
        "time": {"created": NOW, "updated": NOW},
    });
    if let Some(parent) = parent {
        value["parentID"] = json!(parent);
    }
    value
}

fn message_id(nth: u64) -> String {
    format!("msg_{nth:012x}aaaaaaaaaaaaaa")
}

fn user(nth: u64) -> Value {
    json!({
        "role": "user", "id": message_id(nth), "sessionID": SESSION, "time": {"created": NOW + nth},
        "agent": "build", "model": {"providerID": "mock", "modelID": "clever"},
    })
}

fn assistant(nth: u64, finish: Option<&str>) -> Value {
    let mut value = json!({
        "role": "assistant", "id": message_id(nth), "sessionID": SESSION, "parentID": message_id(1),
        "time": {"created": NOW + nth}, "modelID": "clever", "providerID": "mock", "mode": "build",
        "agent": "build", "path": {"cwd": "/", "root": "/"}, "cost": 0.0,
        "tokens": {"input": 12_000, "output": 345, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    });
    if let Some(finish) = finish {
        value["finish"] = json!(finish);
        value["time"]["completed"] = json!(NOW + 3_700);
    }
    value
}

/// Returns a part with its own id, in a message.
fn part(message: u64, nth: u64, body: Value) -> Value {
    let mut part = json!({
        "id": format!("prt_{nth:012x}aaaaaaaaaaaaaa"), "sessionID": SESSION, "messageID": message_id(message),
    });
    for (key, value) in body.as_object().unwrap() {
        part[key] = value.clone();
    }
    part
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(name: &str, input: Value, output: &str, metadata: Value) -> Value {
    json!({"type": "tool", "callID": "c", "tool": name, "state": {
        "status": "completed", "input": input, "output": output, "title": "", "metadata": metadata,
        "time": {"start": NOW, "end": NOW + 1_500},
    }})
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Msg {
    Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}
