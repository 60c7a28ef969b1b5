//! The names, descriptions and schemas of all built-in tools, and truncation.

use std::collections::BTreeSet;

use codewright_tools::{MAX_BYTES, MAX_LINES, Output, Setup, ToolError, builtin, facts, trim};
use serde_json::{Value, json};

use crate::project::{Project, tool_named};

#[test]
fn names_are_unique_and_every_tool_is_described() {
    let usual =
        ["apply_patch", "bash", "batch", "codesearch", "edit", "glob", "grep", "list", "multiedit", "read"];
    let usual =
        usual.into_iter().chain(["skill", "task", "todoread", "todowrite", "webfetch", "websearch", "write"]);
    let conditional = ["background", "lsp", "plan_enter", "plan_exit", "question"];
    let names = |setup: &Setup| builtin(setup).iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&Setup::default()), usual.clone().collect::<Vec<_>>());
    let everything = Setup::everything(2026);
    let all: BTreeSet<&str> = usual.chain(conditional).collect();
    assert_eq!(names(&everything), all.into_iter().collect::<Vec<_>>());
    for tool in builtin(&everything) {
        let description = tool.description();
        assert!((200..=2200).contains(&description.len()), "{}: {}", tool.name(), description.len());
        assert!(!description.contains("{{"), "{}", tool.name());
    }
}

#[test]
fn aliases_and_positions_are_unique() {
    let (mut names, mut positions) = (BTreeSet::new(), BTreeSet::new());
    for tool in builtin(&Setup::everything(2026)) {
        let facts = facts(tool.name()).expect("a built-in tool");
        let all = facts.aliases.iter().map(|alias| (*alias).to_owned()).chain([tool.name().to_owned()]);
        for name in all {
            assert!(names.insert(name.clone()), "{name}");
        }
        assert!(facts.position.is_none_or(|position| positions.insert(position)), "{}", tool.name());
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of recorded schemas")]
fn schemas_have_the_recorded_shape() {
    let max = 9_007_199_254_740_991_i64;
    let text = json!({"type": "string"});
    let cases = [
        ("apply_patch", json!({"patchText": text}), json!(["patchText"])),
        (
            "bash",
            json!({"command": text, "timeout": {"minimum": -max, "exclusiveMinimum": 0, "type": "integer", "maximum": max}, "workdir": text}),
            json!(["command"]),
        ),
        (
            "edit",
            json!({"filePath": text, "oldString": text, "newString": text, "replaceAll": {"type": "boolean"}}),
            json!(["filePath", "oldString", "newString"]),
        ),
        ("glob", json!({"pattern": text, "path": text}), json!(["pattern"])),
        ("grep", json!({"pattern": text, "path": text, "include": text}), json!(["pattern"])),
        (
            "read",
            json!({"filePath": text, "offset": {"minimum": 0, "type": "integer", "maximum": max}, "limit": {"minimum": 0, "type": "integer", "maximum": max}}),
            json!(["filePath"]),
        ),
        (
            "todowrite",
            json!({"todos": {"type": "array", "items": {
                "type": "object", "properties": {"content": text, "status": text, "priority": text},
                "required": ["content", "status", "priority"],
            }}}),
            json!(["todos"]),
        ),
        ("skill", json!({"name": text}), json!(["name"])),
        (
            "webfetch",
            json!({
                "url": text,
                "format": {"type": "string", "enum": ["text", "markdown", "html"], "default": "markdown"},
                "timeout": {"type": "number"},
            }),
            json!(["url"]),
        ),
        (
            "websearch",
            json!({
                "query": text,
                "numResults": {"type": "number"},
                "livecrawl": {"type": "string", "enum": ["fallback", "preferred"]},
                "type": {"type": "string", "enum": ["auto", "fast", "deep"]},
                "contextMaxCharacters": {"type": "number"},
            }),
            json!(["query"]),
        ),
        (
            "lsp",
            json!({
                "operation": {"type": "string", "enum": [
                    "goToDefinition", "findReferences", "hover", "documentSymbol", "workspaceSymbol",
                    "goToImplementation", "prepareCallHierarchy", "incomingCalls", "outgoingCalls",
                    // Not in the recorded schema.
                    "diagnostics",
                ]},
                "filePath": text,
                "line": {"minimum": 1, "maximum": max, "type": "integer"},
                "character": {"minimum": 1, "maximum": max, "type": "integer"},
                "query": text,
            }),
            json!(["operation", "filePath", "line", "character"]),
        ),
        (
            "question",
            json!({"questions": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "question": text, "header": text,
                    "options": {"type": "array", "items": {
                        "type": "object", "properties": {"label": text, "description": text},
                        "required": ["label", "description"],
                    }},
                    "multiple": {"type": "boolean"},
                },
                "required": ["question", "header", "options"],
            }}}),
            json!(["questions"]),
        ),
        (
            "task",
            json!({"description": text, "prompt": text, "subagent_type": text, "task_id": text, "command": text}),
            json!(["description", "prompt", "subagent_type"]),
        ),
        ("write", json!({"content": text, "filePath": text}), json!(["content", "filePath"])),
    ];
    for (name, properties, required) in cases {
        let tool = tool_named(name);
        let mut schema = tool.parameters();
        undescribe(&mut schema);
        let expected = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "properties": properties, "required": required,
        });
        assert_eq!(schema.to_string(), expected.to_string(), "{name}");
    }
}

/// Removes the description of every property. Each must have one.
fn undescribe(schema: &mut Value) {
    for property in schema["properties"].as_object_mut().expect("properties").values_mut() {
        let description = property.as_object_mut().expect("an object").remove("description");
        assert!(description.is_some_and(|text| text.as_str().is_some_and(|text| text.len() > 10)));
        if property.get("items").is_some() {
            undescribe(&mut property["items"]);
        }
    }
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    let project = Project::new();
    let expected = "The read tool was called with invalid arguments: SchemaError(Missing key\n  at [\"filePath\"]).\nPlease rewrite the input so it satisfies the expected schema.";
    assert_eq!(project.error("read", json!({"file": "x"})).await, expected);
    let asked = project.asks("read", json!({"file": "x"})).await.expect_err("no key");
    assert_eq!(asked.to_string(), expected);
    let error = project.error("bash", json!({"command": "ls", "timeout": 0})).await;
    assert!(
        error.contains("SchemaError(Expected a value greater than 0, got 0\n  at [\"timeout\"])"),
        "{error}"
    );
}

#[tokio::test]
async fn a_short_output_is_returned_whole() {
    let project = Project::new();
    let output = trim(Output::default(), &project.cx).await.expect("trimmed");
    assert_eq!(output.metadata["truncated"], false);
}

#[tokio::test]
async fn a_long_output_is_truncated_and_saved_to_a_file() {
    let project = Project::new();
    let whole = "line\n".repeat(4000);
    let output = trim(Output::new("t", whole.clone()), &project.cx).await.expect("trimmed");
    let path = output.metadata["outputPath"].as_str().expect("a path").to_owned();
    assert_eq!(std::fs::read_to_string(&path).expect("kept"), whole);
    assert_eq!(output.metadata["truncated"], true);
    assert!(path.ends_with("/output/tool_1"), "{path}");
    let (head, rest) = output.output.split_once("\n\n").expect("a gap");
    assert_eq!(head.lines().count(), MAX_LINES);
    let mut rest = rest.lines();
    assert_eq!((rest.next(), rest.next()), (Some("...2001 lines truncated..."), Some("")));
    assert!(rest.next().is_some_and(|line| line.ends_with(&format!("Full output saved to: {path}"))));
    let output = trim(Output::new("t", "é".repeat(40_000)), &project.cx).await.expect("trimmed");
    assert!(output.output.contains(&format!("...{} bytes truncated...", 80_000 - MAX_BYTES)));
}

#[tokio::test]
async fn a_cancelled_call_returns_cancelled() {
    let project = Project::new();
    project.file("a.txt", "x");
    project.cx.cancel.cancel();
    for (tool, input) in [
        ("read", json!({"filePath": "a.txt"})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "x"})),
    ] {
        let error = project.call(tool, input).await.expect_err(tool);
        assert!(matches!(error, ToolError::Cancelled(_)), "{tool}: {error}");
    }
}
