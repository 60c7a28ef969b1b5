//! Tests of the dialogs for servers, directories and sharing.

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
fn mcp_servers_are_listed_and_turned_on_and_off() {
    let mut stage = Stage::in_session(140, 40);
    stage.write("/mcps");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::LoadServers]);
    stage.shows("no MCP server is configured");
    stage.reply(servers());
    stage.check("mcp");
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char(' '));
    assert_eq!(stage.take_cmds(), [Cmd::SwitchMcp { name: "fs".to_owned(), on: false }]);
    stage.reply(Reply::Servers {
        mcp: Some(json!({"fs": {"status": "disabled"}})),
        lsp: None,
        formatters: None,
    });
    stage.shows("disabled");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::SwitchMcp { name: "fs".to_owned(), on: true }]);
    // An error is displayed, and the list stays open.
    stage.reply(Reply::Failed("cannot connect or disconnect the MCP server `fs`: not offered".to_owned()));
    stage.shows("cannot connect or disconnect");
    stage.shows("MCP servers");
}

#[test]
fn a_server_that_needs_a_sign_in_gets_one_from_the_list() {
    let mut stage = Stage::in_session(140, 40);
    stage.write("/mcps");
    stage.press(KeyCode::Enter);
    stage.take_cmds();
    stage.reply(servers());
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::BeginMcpSignIn("mail".to_owned())]);
    let url = "https://login.test/authorize?state=1";
    stage.reply(Reply::McpSignIn { name: "mail".to_owned(), url: format!("{url}\u{1b}[2J") });
    stage.shows("Sign in to mail");
    stage.shows(url);
    assert!(matches!(&stage.take_cmds()[..], [Cmd::Copy(copied)] if copied.starts_with(url)));
    stage.write("http://127.0.0.1:19876/?code=7");
    stage.press(KeyCode::Enter);
    let code = "http://127.0.0.1:19876/?code=7".to_owned();
    assert_eq!(stage.take_cmds(), [Cmd::FinishMcpSignIn { name: "mail".to_owned(), code }]);
    // The browser may be faster than the user.
    stage.reply(Reply::McpSignIn { name: "mail".to_owned(), url: url.to_owned() });
    stage.shows("Sign in to mail");
    stage.reply(Reply::Servers {
        mcp: Some(json!({"mail": {"status": "connected"}})),
        lsp: None,
        formatters: None,
    });
    stage.hides("Sign in to mail");
}

#[test]
fn the_status_shows_the_sandbox() {
    let mut stage = Stage::in_session(140, 50);
    stage.leader('s');
    assert!(stage.take_cmds().contains(&Cmd::LoadSandbox));
    stage.reply(Reply::Sandbox(json!({
        "mode": "workspace", "network": "off", "outer": false, "mechanism": "bubblewrap", "enforced": true,
    })));
    for text in ["Sandbox of commands", "workspace", "bubblewrap"] {
        stage.shows(text);
    }
    stage.reply(Reply::Sandbox(json!({
        "mode": "workspace", "network": "off", "outer": false, "mechanism": "landlock", "enforced": false,
        "reasons": ["bubblewrap is not installed"], "gaps": ["Commands see all processes."],
    })));
    stage.shows("landlock");
    stage.shows("no, commands ask");
    stage.shows("bubblewrap is not installed");
}

#[test]
fn servers_and_formatters_are_in_the_status_and_up_to_date() {
    let mut stage = Stage::in_session(140, 50);
    stage.event("lsp.updated", json!({}));
    stage.event("mcp.tools.changed", json!({"server": "fs"}));
    assert_eq!(stage.take_cmds(), [Cmd::LoadServers, Cmd::LoadServers]);
    stage.reply(servers());
    stage.leader('s');
    stage.check("status-servers");
}

#[test]
fn a_session_is_moved_to_a_new_worktree_and_the_client_follows_it() {
    let mut stage = Stage::in_session(100, 24);
    stage.write("/move");
    stage.press(KeyCode::Enter);
    let here = json!([{"directory": "/home/me/project"}]);
    stage.reply(Reply::Directories { directories: here, workspaces: json!([]) });
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.shows("Uncommitted changes stay in this directory.");
    stage.write("fix");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::MoveToNew { session: id(SESSION), name: "fix".to_owned() }]);
    let mut moved = session(SESSION, None);
    moved["directory"] = json!("/home/me/worktree/fix");
    stage.reply(Reply::Moved(Box::new(serde_json::from_value(moved).unwrap())));
    stage.shows("session moved to ~/worktree/fix");
    let directory = "/home/me/worktree/fix".to_owned();
    let expected = [Cmd::Follow(directory.clone()), Cmd::LoadTrust(directory.clone())];
    assert_eq!(stage.take_cmds(), expected);
    stage.reply(Reply::Failed("cannot open the directory".to_owned()));
    assert_eq!(stage.take_cmds(), [], "a directory that cannot be opened is not tried again and again");
    stage.reply(Reply::Followed(directory.clone()));
    assert_eq!(stage.take_cmds(), [Cmd::Enter(directory)]);
}

#[test]
fn a_session_is_moved_to_another_directory() {
    let mut stage = Stage::in_session(100, 24);
    stage.write("/move");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::LoadDirectories]);
    let two = json!([{"directory": "/home/me/other"}, {"directory": "/home/me/project"}]);
    let workspaces = json!([{"id": "wrk_1", "name": "cloud", "type": "remote", "directory": "/w"}]);
    stage.reply(Reply::Directories { directories: two, workspaces });
    stage.check("directories");
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    assert_eq!(
        stage.take_cmds(),
        [Cmd::Move { session: id(SESSION), directory: "/home/me/other".to_owned() }]
    );
}

/// Opens the sign-in methods of a provider.
fn connect(methods: Value) -> Stage {
    let mut stage = Stage::started(100, 30);
    stage.write("/connect");
    stage.press(KeyCode::Enter);
    let providers = json!({"all": [{"id": "copilot", "name": "Copilot"}]});
    stage.reply(Reply::AllProviders { providers, methods: json!({"copilot": methods}) });
    stage.press(KeyCode::Enter);
    stage.take_cmds();
    stage
}

/// The questions of a sign-in: a choice, and a text for one of its options.
fn deployment() -> Value {
    json!([
        {"type": "select", "key": "kind", "message": "Which deployment?", "options": [
            {"label": "Public", "value": "public", "hint": "the website"},
            {"label": "Enterprise", "value": "enterprise", "hint": "your own\u{1b}[2J"},
        ]},
        {"type": "text", "key": "url", "message": "Enter the address", "placeholder": "company.example",
            "when": {"key": "kind", "op": "eq", "value": "enterprise"}},
    ])
}

#[test]
fn a_sign_in_asks_for_an_address_first() {
    let mut stage = connect(json!([
        {"type": "oauth", "label": "In the browser", "prompts": deployment()},
        {"type": "oauth", "label": "Other"},
    ]));
    stage.shows("In the browser");
    stage.press(KeyCode::Enter);
    stage.shows("Which deployment?");
    stage.shows("the website");
    assert_eq!(stage.take_cmds(), []);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.shows("Enter the address");
    stage.shows("For example: company.example.");
    stage.msg(Msg::Paste("git.company.example\n".to_owned()));
    assert_eq!(stage.take_cmds(), []);
    stage.press(KeyCode::Enter);
    let inputs = [("kind", "enterprise"), ("url", "git.company.example")];
    let inputs = inputs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    assert_eq!(stage.take_cmds(), [Cmd::BeginSignIn { provider: "copilot".to_owned(), method: 0, inputs }]);
}

#[test]
fn a_question_of_a_sign_in_that_does_not_apply_is_skipped() {
    let mut stage = connect(json!([
        {"type": "oauth", "label": "In the browser", "prompts": deployment()},
        {"type": "oauth", "label": "Other"},
    ]));
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Enter);
    let inputs = [("kind".to_owned(), "public".to_owned())].into();
    assert_eq!(stage.take_cmds(), [Cmd::BeginSignIn { provider: "copilot".to_owned(), method: 0, inputs }]);
}

#[test]
fn a_cancelled_question_starts_no_sign_in() {
    let mut stage = connect(json!([{"type": "oauth", "label": "A", "prompts": deployment()}]));
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.shows("Enter the address");
    stage.press(KeyCode::Esc);
    stage.hides("Enter the address");
    assert_eq!(stage.take_cmds(), []);
}

#[test]
fn a_key_is_stored_with_the_resource_that_it_belongs_to() {
    let resource = json!({"type": "text", "key": "resourceName", "message": "Enter Azure Resource Name"});
    let mut stage = connect(json!([{"type": "api", "label": "API key", "prompts": [resource]}]));
    stage.shows("Enter Azure Resource Name");
    stage.write("my-models");
    stage.press(KeyCode::Enter);
    stage.shows("Key for Copilot");
    stage.write("sk-secret");
    stage.hides("sk-secret");
    stage.press(KeyCode::Enter);
    let inputs = [("resourceName".to_owned(), "my-models".to_owned())].into();
    let (provider, key) = ("copilot".to_owned(), "sk-secret".to_owned());
    assert_eq!(stage.take_cmds(), [Cmd::PutKey { provider, key, inputs }]);
}

#[test]
fn the_text_of_a_skill_is_displayed_before_it_is_used() {
    let mut stage = Stage::in_session(100, 30);
    stage.write("/skills");
    stage.press(KeyCode::Enter);
    stage.reply(Reply::Skills(json!([
        {"name": "deploy", "description": "ships it", "location": "/home/me/project/.opencode/skill/deploy/SKILL.md",
            "content": "# Steps\n\n1. Run **make**.\u{1b}]0;title\u{7}\n"},
        {"name": "test", "description": "tests it", "location": "/home/me/skill/test/SKILL.md", "content": "Test."},
    ])));
    stage.shows("tab shows its text");
    stage.press(KeyCode::Tab);
    for text in ["Skill", "deploy", ".opencode/skill/deploy/SKILL.md", "Steps", "1. Run make."] {
        stage.shows(text);
    }
    stage.hides("**");
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Tab);
    stage.shows("~/skill/test/SKILL.md");
    stage.press(KeyCode::Char('q'));
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.prompt.editor.text(), "/test ");
}
