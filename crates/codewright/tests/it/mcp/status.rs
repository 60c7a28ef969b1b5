//! The status of servers in the terminal client.

use anyhow::Result;
use codewright_testkit::{Script, Terminal, TerminalOptions};
use serde_json::json;

use super::{local, stage};

const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";

#[test]
fn the_terminal_client_shows_errors_and_turns_servers_on_and_off() -> Result<()> {
    let missing = json!({"type": "local", "command": ["no-such-program"]});
    let stage = stage(Script::new(), json!({"alpha": local(&[]), "broken": missing}), json!({}))?;
    let mut terminal = Terminal::start(&TerminalOptions {
        program: env!("CARGO_BIN_EXE_codewright").as_ref(),
        args: &[],
        project: &stage.project,
        variables: &[],
        size: (120, 40),
    })?;
    terminal.shows("Ask anything")?;
    terminal.send("/mcps")?;
    terminal.shows("MCP servers")?;
    terminal.send(ENTER)?;
    terminal.until("both servers", |screen| {
        let has =
            |name: &str, text: &str| screen.lines().any(|line| line.contains(name) && line.contains(text));
        has("alpha", "on") && screen.contains("no-such-program") && has("broken", "off")
    })?;
    terminal.send(" ")?;
    terminal.until("the server is off", |screen| {
        screen.lines().any(|line| line.contains("alpha") && line.contains("disabled"))
    })?;
    terminal.send(" ")?;
    terminal.until("the server is on", |screen| {
        screen.lines().any(|line| line.contains("alpha") && line.contains("on") && !line.contains("disabled"))
    })?;
    terminal.send(ESCAPE)?;
    terminal.hides("turn on or off")?;
    terminal.send("/status")?;
    terminal.shows("View status")?;
    terminal.send(ENTER)?;
    terminal.until("the status", |screen| {
        ["alpha", "broken", "no-such-program"].iter().all(|text| screen.contains(text))
    })?;
    Ok(())
}
