//! Configuration, projects, the remote control of a terminal client, and missing features.

use codewright_proto::SessionInput;
use codewright_testkit::{Project, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, ask, quick};
use crate::events::Raw;

#[tokio::test]
async fn a_change_of_the_configuration_takes_effect_immediately() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let mut stream = Raw::open(&router, "/event", None).await;
    let changed = ask(&router, "PATCH", "/config", r#"{"username":"bob","zzz":5}"#).await;
    assert_eq!(changed, (200, json!({"username": "bob"})), "unknown keys are omitted");
    let mut said = stream.next().await.1;
    while said["type"] != "server.instance.disposed" {
        said = stream.next().await.1;
    }
    assert_eq!(said["properties"]["directory"], json!(bench.project.directory()));
    assert_eq!(ask(&router, "GET", "/config", "").await.1["username"], "bob");
    let nested = r#"{"agent":{"build":{"temperature":0.5}}}"#;
    assert_eq!(ask(&router, "PUT", "/config", nested).await.0, 200);
    let config = ask(&router, "GET", "/config", "").await.1;
    assert_eq!((&config["username"], &config["model"]), (&json!("bob"), &json!("mock/plain-model")));
    for (body, said) in
        [(r#"{"username":5}"#, "`username` must be a string"), ("[]", "object"), ("5", "object")]
    {
        let (status, error) = ask(&router, "PATCH", "/config", body).await;
        assert_eq!((status, &error["name"]), (400, &json!("BadRequest")), "{error}");
        assert!(error["data"]["message"].as_str().unwrap().contains(said), "{error}");
    }
    let (status, whole) = ask(&router, "PATCH", "/global/config", r#"{"share":"disabled"}"#).await;
    assert_eq!((status, &whole["share"]), (200, &json!("disabled")));
    assert_eq!(ask(&router, "GET", "/global/config", "").await.1, whole);
    assert_eq!(ask(&router, "GET", "/config", "").await.1["share"], "disabled");
}

#[tokio::test]
async fn concurrent_changes_are_all_stored() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let change = |at: usize| {
        let router = router.clone();
        async move { ask(&router, "PATCH", "/config", &format!(r#"{{"agent":{{"a{at}":{{}}}}}}"#)).await }
    };
    let answers = futures_util::future::join_all((0..20).map(change)).await;
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    assert_eq!(ask(&router, "GET", "/config", "").await.1["agent"].as_object().unwrap().len(), 20);
}

#[tokio::test]
async fn projects_are_listed_and_renamed() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let (_, current) = ask(&router, "GET", "/project/current", "").await;
    let id = current["id"].as_str().unwrap();
    assert_eq!(id.len(), 40);
    assert_eq!(ask(&router, "GET", "/project", "").await, (200, json!([current])));
    let path = format!("/project/{id}");
    let mut stream = Raw::open(&router, "/global/event", None).await;
    let (status, named) = ask(&router, "PATCH", &path, r##"{"name":"Mine","icon":{"color":"#fff"}}"##).await;
    assert_eq!((status, &named["name"], &named["icon"]), (200, &json!("Mine"), &json!({"color": "#fff"})));
    let (_, notice) = stream.next_event().await;
    assert_eq!(notice["payload"]["type"], "project.updated");
    assert_eq!(notice["payload"]["properties"], named);
    assert_eq!(ask(&router, "GET", "/project/current", "").await.1, named);
    let (_, named) = ask(&router, "PATCH", &path, r#"{"icon":{"url":"data:,"}}"#).await;
    assert_eq!(named["icon"], json!({"color": "#fff", "url": "data:,"}), "absent fields do not change");
    let directory = json!([{"directory": bench.project.directory()}]);
    assert_eq!(ask(&router, "GET", &format!("{path}/directories"), "").await, (200, directory));
    assert_eq!(ask(&router, "GET", "/project/zzz/directories", "").await, (200, json!([])));
    let missing =
        json!({"_tag": "ProjectNotFoundError", "projectID": "zzz", "message": "Project not found: zzz"});
    assert_eq!(ask(&router, "PATCH", "/project/zzz", "{}").await, (404, missing));
}

#[tokio::test]
async fn a_terminal_client_receives_remote_control_requests_as_events() {
    let bench = Bench::new(Script::new()).await;
    bench.project.write("other/x", "").unwrap();
    let router = bench.router(quick());
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let mut here = Raw::open(&router, "/event", None).await;
    let mut there = Raw::open(&router, "/event?directory=other", None).await;
    let mut all = Raw::open(&router, "/global/event", None).await;
    let select = json!({"sessionID": session}).to_string();
    let command = |name: &str| ("tui.command.execute", json!({"command": name}));
    let text = || ("tui.prompt.append", json!({"text": "x"}));
    let toast = json!({"message": "m", "variant": "info"});
    let rows: [(&str, &str, (&str, Value)); 12] = [
        ("append-prompt", r#"{"text":"x"}"#, text()),
        ("open-help", "", command("help.show")),
        ("open-sessions", "", command("session.list")),
        ("open-themes", "", command("theme.list")),
        ("open-models", "", command("model.list")),
        ("submit-prompt", "", command("prompt.submit")),
        ("clear-prompt", "", command("prompt.clear")),
        ("execute-command", r#"{"command":"session_new"}"#, command("session.new")),
        ("execute-command", r#"{"command":"agent.cycle"}"#, command("agent.cycle")),
        ("show-toast", r#"{"message":"m","variant":"info"}"#, ("tui.toast.show", toast)),
        ("publish", r#"{"type":"tui.prompt.append","properties":{"text":"x"}}"#, text()),
        ("select-session", &select, ("tui.session.select", json!({"sessionID": session}))),
    ];
    let directory = json!(bench.project.directory());
    for (name, body, (kind, properties)) in rows {
        assert_eq!(ask(&router, "POST", &format!("/tui/{name}"), body).await, (200, json!(true)), "{name}");
        let (_, notice) = here.next_event().await;
        assert_eq!((&notice["type"], &notice["properties"]), (&json!(kind), &properties), "{name}");
        let (_, wrapped) = all.next_event().await;
        assert_eq!((&wrapped["directory"], &wrapped["payload"]), (&directory, &notice), "{name}");
    }
    assert_eq!(ask(&router, "POST", "/tui/open-help?directory=other", "").await.0, 200);
    assert_eq!(there.next_event().await.1["properties"], json!({"command": "help.show"}));
    assert_eq!(ask(&router, "POST", "/tui/control/response", "{}").await, (200, json!(true)));
    for (name, body, status) in [
        ("select-session", r#"{"sessionID":"ses_x0000"}"#, 404),
        ("publish", r#"{"type":"zzz","properties":{}}"#, 400),
        ("show-toast", r#"{"message":"m","variant":"loud"}"#, 400),
    ] {
        assert_eq!(ask(&router, "POST", &format!("/tui/{name}"), body).await.0, status, "{name}");
    }
}

#[tokio::test]
async fn missing_features_return_empty_lists_or_errors() {
    let bench = Bench::configured(Script::new(), |config| {
        config["mcp"] = json!({
            "off": {"type": "local", "command": ["x"], "enabled": false},
            "on": {"type": "local", "command": ["no-such-program-here"]},
        });
    })
    .await;
    let router = bench.router(quick());
    let servers = json!({
        "off": {"status": "disabled"},
        "on": {"status": "failed", "error": "Executable not found in $PATH: \"no-such-program-here\""},
    });
    let unknown =
        json!({"_tag": "McpServerNotFoundError", "name": "no", "message": "MCP server not found: no"});
    let error = |what: &str| json!({"name": "BadRequest", "data": {"message": format!("{what} is not supported by this version")}});
    let worktree = json!({"type": "worktree", "name": "Worktree", "description": "Create a git worktree"});
    let console = json!({"consoleManagedProviders": [], "switchableOrgCount": 0});
    let rows = [
        ("GET", "/mcp", "", 200, servers),
        ("POST", "/mcp/no/connect", "", 404, unknown),
        ("POST", "/mcp/on/connect", "", 200, json!(true)),
        ("GET", "/lsp", "", 200, json!([])),
        ("GET", "/formatter", "", 200, json!([])),
        ("GET", "/experimental/capabilities", "", 200, json!({"backgroundSubagents": false})),
        ("GET", "/experimental/console", "", 200, console),
        ("GET", "/experimental/console/orgs", "", 200, json!({"orgs": []})),
        ("GET", "/experimental/resource", "", 200, json!({})),
        ("GET", "/experimental/workspace", "", 200, json!([])),
        ("GET", "/experimental/workspace/adapter", "", 200, json!([worktree])),
        ("GET", "/experimental/workspace/status", "", 200, json!([])),
        ("POST", "/experimental/workspace/sync-list", "", 204, Value::Null),
        ("POST", "/experimental/workspace", r#"{"type":"x"}"#, 400, error("working in workspaces")),
        ("GET", "/experimental/worktree", "", 200, json!([])),
        ("GET", "/path?workspace=wrk_x", "", 400, error("working in workspaces")),
        ("POST", "/experimental/session/ses_x0000/background", "", 200, json!(false)),
        ("POST", "/experimental/project/x/copy/refresh", "", 204, Value::Null),
        ("POST", "/sync/start", "", 200, json!(true)),
        ("GET", "/api/session/active", "", 200, json!({"data": {}})),
        ("GET", "/api/permission/saved", "", 200, json!({"data": []})),
    ];
    for (method, path, body, status, expected) in rows {
        assert_eq!(ask(&router, method, path, body).await, (status, expected), "{method} {path}");
    }
    let (_, ids) = ask(&router, "GET", "/experimental/tool/ids", "").await;
    let recorded = [
        "invalid",
        "question",
        "bash",
        "read",
        "glob",
        "grep",
        "edit",
        "write",
        "task",
        "webfetch",
        "todowrite",
        "websearch",
        "skill",
        "apply_patch",
    ];
    assert_eq!(ids, json!(recorded));
    let (_, tools) = ask(&router, "GET", "/experimental/tool?provider=mock&model=x", "").await;
    assert_eq!(tools[0]["parameters"]["type"], "object", "{tools}");
    let shown: Vec<&Value> = tools.as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
    let listed: Vec<&Value> = ids.as_array().unwrap().iter().filter(|id| shown.contains(id)).collect();
    assert_eq!(shown, listed, "both lists have the same order");
    assert_eq!(shown[0], "invalid");
}

#[tokio::test]
async fn v2_routes_return_the_same_data_in_their_own_schemas() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
    let directory = json!(bench.project.directory());
    let (_, location) = ask(&router, "GET", "/api/location", "").await;
    assert_eq!((&location["directory"], &location["project"]["directory"]), (&directory, &directory));
    let at = format!("/api/location?location%5Bdirectory%5D={}/.git", bench.project.directory().display());
    assert_eq!(
        ask(&router, "GET", &at, "").await.1["directory"],
        format!("{}/.git", directory.as_str().unwrap())
    );
    let read = async |path: &str| {
        let (status, json) = ask(&router, "GET", path, "").await;
        assert_eq!((status, &json["location"]), (200, &location), "{path}");
        json["data"].clone()
    };
    let agents = read("/api/agent").await;
    assert_eq!((&agents[0]["id"], &agents[0]["mode"]), (&json!("build"), &json!("primary")));
    assert_eq!(agents[0]["permissions"][0], json!({"action": "*", "resource": "*", "effect": "allow"}));
    let models = read("/api/model").await;
    let model = models.as_array().unwrap().iter().find(|model| model["id"] == "plain-model").unwrap();
    assert_eq!((&model["providerID"], &model["enabled"]), (&json!("mock"), &json!(true)));
    assert!(!models.to_string().contains("apiKey"), "keys are not returned");
    let providers = read("/api/provider").await;
    assert!(providers.as_array().unwrap().iter().any(|provider| provider["id"] == "mock"));
    assert_eq!(read("/api/provider/mock").await["name"], providers[0]["name"]);
    let (status, error) = ask(&router, "GET", "/api/provider/zzz", "").await;
    assert_eq!((status, &error["_tag"]), (404, &json!("ProviderNotFoundError")));
    let integrations = read("/api/integration").await;
    assert!(integrations.as_array().unwrap().len() > 50);
    let openai = read("/api/integration/openai").await;
    assert_eq!(openai["methods"][1], json!({"type": "env", "names": ["OPENAI_API_KEY"]}));
    let key = r#"{"key":"sk-x"}"#;
    assert_eq!(ask(&router, "POST", "/api/integration/openai/connect/key", key).await, (204, Value::Null));
    let connected = read("/api/integration/openai").await;
    assert_eq!(connected["connections"][0]["type"], "credential", "{connected}");
    assert_eq!(ask(&router, "DELETE", "/api/credential/openai", "").await, (204, Value::Null));
    assert_eq!(read("/api/integration/openai").await["connections"], json!([]));
    let (_, sessions) = ask(&router, "GET", "/api/session?limit=5&order=desc", "").await;
    assert_eq!(
        (&sessions["data"][0]["id"], &sessions["data"][0]["location"]["directory"]),
        (&json!(session.id), &directory)
    );
    let (_, one) = ask(&router, "GET", &format!("/api/session/{}", session.id), "").await;
    assert_eq!(one["data"], sessions["data"][0]);
    let (status, error) = ask(&router, "GET", "/api/session/ses_x0000", "").await;
    assert_eq!((status, &error["_tag"]), (404, &json!("SessionNotFoundError")));
    for path in ["/api/reference", "/api/permission/request"] {
        assert_eq!(read(path).await, json!([]), "{path}");
    }
}

#[tokio::test]
async fn sessions_of_all_directories_are_listed_in_pages() {
    let bench = Bench::new(Script::new()).await;
    bench.project.write("other/x", "").unwrap();
    let router = bench.router(quick());
    for directory in ["", "?directory=other", "?directory=other"] {
        assert_eq!(ask(&router, "POST", &format!("/session{directory}"), "").await.0, 200);
    }
    let (_, all) = ask(&router, "GET", "/experimental/session", "").await;
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[0]["project"]["id"], "global");
    let (_, page) = ask(&router, "GET", "/experimental/session?limit=1", "").await;
    assert_eq!(page, json!([all[0]]));
    let cursor = format!("/experimental/session?cursor={}", all[0]["time"]["updated"]);
    let (_, rest) = ask(&router, "GET", &cursor, "").await;
    assert!(rest.as_array().unwrap().iter().all(|session| session["id"] != all[0]["id"]), "{rest}");
    let newest = format!("/session/{}", all[0]["id"].as_str().unwrap());
    assert_eq!(ask(&router, "PATCH", &newest, r#"{"time":{"archived":1}}"#).await.0, 200);
    let (_, page) = ask(&router, "GET", "/experimental/session?limit=1", "").await;
    assert_eq!(page, json!([all[1]]), "an archived session must not count");
    let (_, both) = ask(&router, "GET", "/experimental/session?limit=2", "").await;
    assert_eq!(both, json!([all[1], all[2]]));
    let (_, archived) = ask(&router, "GET", "/experimental/session?archived=true&limit=1", "").await;
    assert_eq!(archived[0]["id"], all[0]["id"]);
}

#[tokio::test]
async fn clients_can_write_to_the_log() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let line = r#"{"service":"web","level":"warn","message":"slow","extra":{"ms":5}}"#;
    assert_eq!(ask(&router, "POST", "/log", line).await, (200, json!(true)));
    assert_eq!(ask(&router, "POST", "/log", r#"{"service":"x","level":"loud","message":"m"}"#).await.0, 400);
    let (_, path) = ask(&router, "GET", "/path", "").await;
    let log = std::path::Path::new(path["state"].as_str().unwrap()).join("log/codewright.log");
    let text = std::fs::read_to_string(&log).unwrap();
    let written: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&written["level"], &written["service"], &written["extra"]["ms"]),
        (&json!("warn"), &json!("web"), &json!(5))
    );
    assert_eq!(text.lines().count(), 1);
}

#[tokio::test]
async fn background_subagents_are_a_capability_only_if_they_are_offered() {
    for (variables, expected) in [
        (&[][..], false),
        (&[("OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS", "1")], true),
        (&[("OPENCODE_EXPERIMENTAL", "true")], true),
    ] {
        let project = Project::plain().unwrap();
        let bench = Bench::in_environment(project, Script::new(), |_| {}, variables).await;
        let router = bench.router(quick());
        let capabilities = ask(&router, "GET", "/experimental/capabilities", "").await;
        assert_eq!(capabilities, (200, json!({"backgroundSubagents": expected})), "{variables:?}");
        let (_, tools) = ask(&router, "GET", "/experimental/tool?provider=mock&model=plain-model", "").await;
        let task = tools.as_array().unwrap().iter().find(|tool| tool["id"] == "task").unwrap();
        let is_offered = task["parameters"]["properties"]["background"].is_object();
        assert_eq!(is_offered, expected, "{variables:?}");
    }
}

#[tokio::test]
async fn older_clients_send_a_prompt_as_content() {
    let bench = Bench::new(Script::new().text("One.").text("Two.")).await;
    let router = bench.router(quick());
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let path = format!("/session/{session}/message");
    for body in [
        json!({"content": "hello"}),
        json!({"content": [{"type": "text", "text": "hello"}]}),
        json!({"content": "ignored", "parts": [{"type": "text", "text": "hello"}], "noReply": true}),
    ] {
        let (status, reply) = ask(&router, "POST", &path, &body.to_string()).await;
        assert_eq!(status, 200, "{reply}");
    }
    let (_, messages) = ask(&router, "GET", &path, "").await;
    let prompts = messages.as_array().unwrap().iter().filter(|message| message["info"]["role"] == "user");
    let texts: Vec<_> = prompts.map(|message| message["parts"][0]["text"].clone()).collect();
    assert_eq!(texts, ["hello", "hello", "hello"]);
    for (body, expected) in [
        (json!({}), "Missing key\n  at [\"parts\"]"),
        (json!({"parts": "hello"}), "at [\"parts\"]"),
        (json!({"content": 5}), "at [\"content\"]"),
    ] {
        let (status, error) = ask(&router, "POST", &path, &body.to_string()).await;
        assert_eq!(status, 400, "{error}");
        assert!(error["data"]["message"].as_str().unwrap().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_sandbox_is_probed_only_on_request() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let known = json!({"mode": "workspace", "network": "proxy", "outer": true});
    assert_eq!(ask(&router, "GET", "/experimental/sandbox", "").await, (200, known.clone()));
    let (status, probed) = ask(&router, "GET", "/experimental/sandbox?probe=true", "").await;
    // Commands have no supervisor here, so the kernel of no system restricts them as a whole.
    assert_eq!((status, &probed["mode"]), (200, &known["mode"]));
    assert!(probed["mechanism"].is_string() && probed["enforced"].is_boolean(), "{probed}");
    assert_eq!(ask(&router, "GET", "/experimental/sandbox", "").await.1, probed);
}

#[tokio::test]
async fn formatters_are_listed_as_the_configuration_says() {
    let bench = Bench::configured(Script::new(), |config| {
        config["formatter"] = json!({
            "rustfmt": {"disabled": true},
            "mine": {"command": ["/bin/sh", "-c", "true"], "extensions": [".txt"]},
        });
    })
    .await;
    let (status, listed) = ask(&bench.router(quick()), "GET", "/formatter", "").await;
    let listed = listed.as_array().unwrap();
    assert_eq!((status, listed.len()), (200, 26));
    assert_eq!(listed[0]["name"], "zig");
    assert!(!listed.iter().any(|formatter| formatter["name"] == "rustfmt"), "{listed:?}");
    assert_eq!(listed[25], json!({"name": "mine", "extensions": [".txt"], "enabled": true}));
}
