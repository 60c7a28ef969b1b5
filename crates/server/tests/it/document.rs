//! Compares the API document with that of OpenCode.
//!
//! `recorded/api.txt` is the document of OpenCode in the notation of `src/document.rs`. The table in
//! `docs/api-differences.md` lists exactly the differences, each with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use codewright_server::routes;
use codewright_testkit::Script;
use serde_json::Value;

use crate::bench::{Bench, ask, quick};

const RECORDED: &str = include_str!("recorded/api.txt");

/// Returns a schema in the short notation.
fn short(shape: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(name) = shape.get("$ref") {
        return text(name).rsplit('/').next().unwrap().to_owned();
    }
    if let Some(choices) = shape["anyOf"].as_array() {
        return format!("({})", choices.iter().map(short).collect::<Vec<_>>().join("|"));
    }
    if let Some(words) = shape["enum"].as_array() {
        let all = words.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
        return if words.len() > 1 { format!("({all})") } else { all };
    }
    match shape["type"].as_str() {
        Some("array") => format!("[{}]", short(&shape["items"])),
        Some("object") => match shape["properties"].as_object() {
            Some(properties) => {
                let required = shape["required"].as_array().cloned().unwrap_or_default();
                let mut fields: Vec<_> = properties
                    .iter()
                    .map(|(name, shape)| {
                        let mark = if required.iter().any(|one| one == name) { "" } else { "?" };
                        format!("{name}{mark}:{}", short(shape))
                    })
                    .collect();
                if shape["additionalProperties"].is_object() {
                    fields.push(format!("*:{}", short(&shape["additionalProperties"])));
                }
                format!("{{{}}}", fields.join(","))
            }
            None if shape["additionalProperties"].is_object() => {
                format!("<{}>", short(&shape["additionalProperties"]))
            }
            None => "<any>".to_owned(),
        },
        Some("string") => format!("string{}", text(&shape["pattern"])),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// Returns an operation in the short notation, without its method and path.
fn operation(value: &Value) -> String {
    let shape_of = |content: &Value| -> (String, String) {
        match content.as_object().and_then(|kinds| kinds.iter().next()) {
            None => ("-".to_owned(), "-".to_owned()),
            Some((kind, content)) => {
                let kind = match kind.as_str() {
                    "application/json" => "j",
                    "text/event-stream" => "e",
                    "application/octet-stream" => "b",
                    _ => "t",
                };
                (kind.to_owned(), short(&content["schema"]))
            }
        }
    };
    let in_query = value["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query");
    let (mut place, mut query) = ("-", Vec::new());
    for one in in_query {
        match one["name"].as_str().unwrap() {
            "directory" if place == "-" && query.is_empty() => place = "d",
            "workspace" if place == "d" => {}
            "location" => place = "l",
            name => {
                let mark = if one["required"] == true { "" } else { "?" };
                query.push(format!("{name}{mark}:{}", short(&one["schema"])));
            }
        }
    }
    let query = if query.is_empty() { "-".to_owned() } else { query.join("&") };
    let responses = value["responses"].as_object().unwrap();
    let (status, done) = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
    let (kind, answer) = shape_of(&done["content"]);
    let (_, body) = shape_of(&value["requestBody"]["content"]);
    let errors: Vec<_> = responses.keys().filter(|status| !status.starts_with('2')).cloned().collect();
    let errors = if errors.is_empty() { "-".to_owned() } else { errors.join(",") };
    let name = value["operationId"].as_str().unwrap();
    [name, place, &query, &body, status, &kind, &answer, &errors].join(" ")
}

/// The operations by method and path, and the schemas by name.
type Api = BTreeMap<String, String>;

fn recorded() -> Api {
    let (operations, shapes) = RECORDED.split_once("\n\n").unwrap();
    let operations = operations.lines().map(|line| {
        let parts: Vec<_> = line.splitn(3, ' ').collect();
        (format!("{} {}", parts[0], parts[1].replace("{*", "{")), parts[2].to_owned())
    });
    let shapes = shapes.lines().filter_map(|line| line.split_once(' '));
    operations.chain(shapes.map(|(name, shape)| (name.to_owned(), shape.to_owned()))).collect()
}

fn served(document: &Value) -> Api {
    let mut api = Api::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, value) in methods.as_object().unwrap() {
            api.insert(format!("{} {path}", method.to_uppercase()), operation(value));
        }
    }
    for (name, shape) in document["components"]["schemas"].as_object().unwrap() {
        api.insert(name.clone(), short(shape));
    }
    api
}

/// Returns the rows of the table of differences: the name and the kind of difference.
fn listed() -> BTreeSet<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api-differences.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut listed = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && !cells[2].is_empty(), "the reason is missing: {row}");
        for name in cells[0].split('`').skip(1).step_by(2) {
            assert!(listed.insert((name.to_owned(), cells[1].to_owned())), "`{name}` is listed twice");
        }
    }
    listed
}

#[tokio::test]
async fn the_document_differs_from_the_recorded_one_only_as_listed() {
    let bench = Bench::new(Script::new()).await;
    let (status, document) = ask(&bench.router(quick()), "GET", "/doc", "").await;
    assert_eq!((status, &document["openapi"]), (200, &Value::from("3.1.0")));
    let (theirs, ours) = (recorded(), served(&document));
    let mut differences = BTreeSet::new();
    for (name, shape) in &theirs {
        match ours.get(name) {
            None => drop(differences.insert((name.clone(), "missing".to_owned()))),
            Some(own) if own != shape => drop(differences.insert((name.clone(), "changed".to_owned()))),
            Some(_) => {}
        }
    }
    for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
        differences.insert((name.clone(), "more".to_owned()));
    }
    let listed = listed();
    let unlisted: Vec<_> = differences.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not listed in docs/api-differences.md: {unlisted:#?}");
    let stale: Vec<_> = listed.difference(&differences).collect();
    assert!(stale.is_empty(), "listed, but not a difference: {stale:#?}");
}

#[tokio::test]
async fn every_route_is_documented() {
    let bench = Bench::new(Script::new()).await;
    let (_, document) = ask(&bench.router(quick()), "GET", "/doc", "").await;
    for (method, path) in routes() {
        let path = path.replace("{*", "{");
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(operation.is_object(), "the operation id of {method} {path} is not in the document");
    }
}
