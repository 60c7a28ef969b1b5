//! Servers, places and sharing.

use super::*;

fn servers() -> Reply {
    Reply::Servers {
        mcp: Some(json!({
            "broken": {"status": "failed", "error": "no such file: /nonexistent\u{1b}[2J"},
            "fs": {"status": "connected"},
            "mail": {"status": "needs_auth"},
            "off": {"status": "disabled"},
        })),
        lsp: Some(
            json!([{"id": "rust", "name": "rust-analyzer", "root": "crates/a", "status": "connected"}]),
        ),
        formatters: Some(json!([
            {"name": "rustfmt", "extensions": [".rs"], "enabled": true},
            {"name": "ruff", "extensions": [".py"], "enabled": false},
        ])),
    }
}

#[test]
fn tool_servers_are_listed_and_switched() {
    let mut stage = Stage::in_session(140, 40);
    stage.write("/mcps");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), [Cmd::LoadServers]);
    stage.shows("no MCP server is configured");
    stage.reply(servers());
    stage.check("mcp");
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char(' '));
    assert_eq!(stage.taken(), [Cmd::SwitchMcp { name: "fs".to_owned(), on: false }]);
    stage.reply(Reply::Servers {
        mcp: Some(json!({"fs": {"status": "disabled"}})),
        lsp: None,
        formatters: None,
    });
    stage.shows("switched off");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), [Cmd::SwitchMcp { name: "fs".to_owned(), on: true }]);
    // What cannot be done is said, and the list stays.
    stage.reply(Reply::Failed("the MCP server `fs` could not be switched: not offered".to_owned()));
    stage.shows("could not be switched");
    stage.shows("MCP servers");
}

#[test]
fn what_helps_the_server_is_in_the_status_and_kept_up_to_date() {
    let mut stage = Stage::in_session(140, 50);
    stage.event("lsp.updated", json!({}));
    stage.event("mcp.tools.changed", json!({"server": "fs"}));
    assert_eq!(stage.taken(), [Cmd::LoadServers, Cmd::LoadServers]);
    stage.reply(servers());
    stage.leader('s');
    stage.check("status-servers");
}

#[test]
fn sharing_is_explained_before_it_is_done() {
    let mut stage = Stage::in_session(100, 24);
    stage.write("/share");
    stage.press(KeyCode::Enter);
    stage.check("share");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), []);
    stage.write("/share");
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), [Cmd::Share(id(SESSION))]);
    let mut shared = session(SESSION, None);
    shared["share"] = json!({"url": "https://example.org/s/1"});
    stage.reply(Reply::Shared(Box::new(serde_json::from_value(shared).unwrap())));
    stage.shows("shared at https://example.org/s/1");
    assert_eq!(stage.taken(), [Cmd::Copy("https://example.org/s/1".to_owned())]);
    stage.write("/unshare");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), [Cmd::Unshare(id(SESSION))]);
}

#[test]
fn a_session_is_moved_to_another_directory() {
    let mut stage = Stage::in_session(100, 24);
    stage.write("/move");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), [Cmd::LoadPlaces]);
    let here = json!([{"directory": "/home/me/project"}]);
    stage.reply(Reply::Places { directories: here, workspaces: json!([]) });
    stage.shows("there is no other directory");
    let two = json!([{"directory": "/home/me/other"}, {"directory": "/home/me/project"}]);
    let workspaces = json!([{"id": "wrk_1", "name": "cloud", "type": "remote", "directory": "/w"}]);
    stage.reply(Reply::Places { directories: two, workspaces });
    stage.check("places");
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.taken(), [Cmd::Move { session: id(SESSION), directory: "/home/me/other".to_owned() }]);
}
