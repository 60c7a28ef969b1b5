//! The calls of the tests with real MCP servers, and the servers themselves.

use serde_json::{Value, json};

/// The command of a server: a program of npm below `node_modules`, or a module of Python.
#[derive(Clone, Copy)]
pub(super) enum Program {
    Node(&'static str),
    Python(&'static str),
}

/// The way to a server.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// The program starts it.
    Stdio,
    /// It listens, and is reached at this path.
    Http(&'static str),
}

/// A server.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) program: Program,
    pub(super) args: &'static [&'static str],
    pub(super) way: Way,
}

/// The place of the allowed directory in the arguments of a server.
pub(super) const DIRECTORY: &str = "@D";

const EVERYTHING: Program = Program::Node("@modelcontextprotocol/server-everything/dist/index.js");
const FILES: Program = Program::Node("@modelcontextprotocol/server-filesystem/dist/index.js");

const fn example(path: &'static str) -> Program {
    Program::Node(path)
}

const fn server(name: &'static str, program: Program, args: &'static [&'static str], way: Way) -> Server {
    Server { name, program, args, way }
}

macro_rules! example {
    ($name:literal) => {
        example(concat!("@modelcontextprotocol/sdk/dist/esm/examples/server/", $name, ".js"))
    };
}

/// Every server, over the three transports.
pub(super) const SERVERS: &[Server] = &[
    server("every", EVERYTHING, &["stdio"], Way::Stdio),
    server("everyhttp", EVERYTHING, &["streamableHttp"], Way::Http("/mcp")),
    server("everysse", EVERYTHING, &["sse"], Way::Http("/sse")),
    server("files", FILES, &[DIRECTORY], Way::Stdio),
    server("weather", example!("mcpServerOutputSchema"), &[], Way::Stdio),
    server("progress", example!("progressExample"), &[], Way::Stdio),
    server("sampling", example!("toolWithSampleServer"), &[], Way::Stdio),
    server("simple", example!("simpleStreamableHttp"), &[], Way::Http("/mcp")),
    server("plain", example!("jsonResponseStreamableHttp"), &[], Way::Http("/mcp")),
    server("stateless", example!("simpleStatelessStreamableHttp"), &[], Way::Http("/mcp")),
    server("polling", example!("ssePollingExample"), &[], Way::Http("/mcp")),
    server("changing", example!("standaloneSseWithGetStreamableHttp"), &[], Way::Http("/mcp")),
    server("both", example!("sseAndStreamableHttpCompatibleServer"), &[], Way::Http("/mcp")),
    server("bothsse", example!("sseAndStreamableHttpCompatibleServer"), &[], Way::Http("/sse")),
    server("sse", example!("simpleSseServer"), &[], Way::Http("/mcp")),
    server("time", Program::Python("mcp_server_time"), &[], Way::Stdio),
];

/// A call, and texts of the JSON of its part.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) shows: Vec<String>,
}

fn case(name: &'static str, tool: &str, input: Value, shows: &[&str]) -> Case {
    let shows = shows.iter().map(|text| (*text).to_owned()).collect();
    Case { name, tool: tool.to_owned(), input, shows }
}

/// The calls of the three transports of one server.
fn everything(server: &str) -> Vec<Case> {
    let tool = |name: &str| format!("{server}_{name}");
    vec![
        case("text", &tool("echo"), json!({"message": "x"}), &["\"output\":\"Echo: x\""]),
        case("missing argument", &tool("echo"), json!({}), &["\"status\":\"error\"", "-32602"]),
        case("numbers", &tool("get-sum"), json!({"a": 2, "b": 40}), &["The sum of 2 and 40 is 42."]),
        case(
            "image",
            &tool("get-tiny-image"),
            json!({}),
            &["\"mime\":\"image/png\"", "data:image/png;base64,", "The image above is the MCP logo."],
        ),
        case(
            "annotations",
            &tool("get-annotated-message"),
            json!({"messageType": "error", "includeImage": true}),
            &["Error: Operation failed", "image/png"],
        ),
        case(
            "structured content",
            &tool("get-structured-content"),
            json!({"location": "Chicago"}),
            &["Light rain / drizzle"],
        ),
        case(
            "resource links",
            &tool("get-resource-links"),
            json!({"count": 2}),
            &["Here are 2 resource links", "[Resource: Text Resource 2 (demo://resource/dynamic/text/2)]"],
        ),
        case(
            "embedded text",
            &tool("get-resource-reference"),
            json!({"resourceType": "Text", "resourceId": 1}),
            &["Resource 1: This is a plaintext resource"],
        ),
        case(
            "embedded file",
            &tool("get-resource-reference"),
            json!({"resourceType": "Blob", "resourceId": 1}),
            &["Binary MCP resource omitted"],
        ),
        case(
            "progress",
            &tool("trigger-long-running-operation"),
            json!({"duration": 2, "steps": 4}),
            &["Long running operation completed. Duration: 2 seconds, Steps: 4."],
        ),
        case("question", &tool("trigger-elicitation-request"), json!({}), &["Ann"]),
    ]
}

/// All calls in their order.
pub(super) fn cases() -> Vec<Case> {
    let read = |server: &str, uri: &str| json!({"server": server, "uri": uri});
    let greet = || json!({"name": "Ann"});
    let stream = || json!({"interval": 50, "count": 3});
    let mut cases: Vec<_> = ["every", "everyhttp", "everysse"].into_iter().flat_map(everything).collect();
    cases.extend([
        case("list of resources", "list_mcp_resources", json!({"server": "every"}), &["architecture.md"]),
        case("templates", "list_mcp_resource_templates", json!({"server": "everysse"}), &["dynamic"]),
        case(
            "text resource",
            "read_mcp_resource",
            read("everyhttp", "demo://resource/dynamic/text/1"),
            &["plaintext"],
        ),
        case("missing resource", "read_mcp_resource", read("every", "nope://x"), &["\"status\":\"error\""]),
        case(
            "write a file",
            "files_write_file",
            json!({"path": "@D/a.txt", "content": "written"}),
            &["Successfully wrote"],
        ),
        case("read it", "files_read_text_file", json!({"path": "@D/a.txt"}), &["\"output\":\"written\""]),
        case("list it", "files_list_directory", json!({"path": "@D"}), &["[FILE] a.txt"]),
        case("search it", "files_search_files", json!({"path": "@D", "pattern": "**/*.txt"}), &["a.txt"]),
        case(
            "edit it",
            "files_edit_file",
            json!({"path": "@D/a.txt", "edits": [{"oldText": "written", "newText": "edited"}]}),
            &["+edited"],
        ),
        case("a file outside", "files_read_text_file", json!({"path": "/etc/hostname"}), &["Access denied"]),
        case(
            "output schema",
            "weather_get_weather",
            json!({"city": "Bern", "country": "CH"}),
            &["celsius", "humidity"],
        ),
        case("counted progress", "progress_count", json!({"n": 3}), &["\"status\":\"completed\""]),
        case("sampling is refused", "sampling_summarize", json!({"text": "x"}), &["\"status\":\"error\""]),
        case("greeting", "simple_greet", greet(), &["Hello, Ann!"]),
        case("notifications before the answer", "simple_multi-greet", greet(), &["Good morning, Ann!"]),
        case("form", "simple_collect-user-info", json!({"infoType": "contact"}), &["Ann"]),
        case("links to files", "simple_list-files", json!({}), &["[Resource: "]),
        case("answer in JSON", "plain_greet", greet(), &["Hello, Ann!"]),
        case("no session", "stateless_start-notification-stream", stream(), &["\"status\":\"completed\""]),
        case("stream cut by the server", "polling_long-task", json!({}), &["\"status\":\"completed\""]),
        case(
            "server with both transports",
            "both_start-notification-stream",
            stream(),
            &["\"status\":\"completed\""],
        ),
        case(
            "its older transport",
            "bothsse_start-notification-stream",
            stream(),
            &["\"status\":\"completed\""],
        ),
        case("older transport", "sse_start-notification-stream", stream(), &["\"status\":\"completed\""]),
        case(
            "changing resources",
            "list_mcp_resources",
            json!({"server": "changing"}),
            &["example-resource"],
        ),
        case("server in Python", "time_get_current_time", json!({"timezone": "UTC"}), &["+00:00"]),
        case(
            "its error",
            "time_get_current_time",
            json!({"timezone": "Nowhere"}),
            &["\"status\":\"error\"", "Nowhere"],
        ),
    ]);
    cases
}

/// The calls through the search tool.
pub(super) fn searched() -> Vec<Case> {
    let through = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
    vec![
        case(
            "search",
            "mcp",
            json!({"search": "sum of two numbers"}),
            &["<tool name=\\\"every_get-sum\\\">"],
        ),
        case(
            "call",
            "mcp",
            through("every_get-sum", json!({"a": 2, "b": 40})),
            &["\"tool\":\"every_get-sum\"", "is 42."],
        ),
        case(
            "wrong arguments",
            "mcp",
            through("every_get-sum", json!({"a": "x"})),
            &["\"status\":\"error\"", "SchemaError"],
        ),
        case("missing tool", "mcp", through("every_get", json!({})), &["There is no tool named"]),
        case("file", "mcp", through("files_list_directory", json!({"path": "@D"})), &["[FILE] a.txt"]),
    ]
}
