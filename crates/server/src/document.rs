//! What the routes take and give, as an OpenAPI 3.1 document.
//!
//! `operations.txt` has a line for each route and `schemas.txt` one for each named shape, in a
//! notation that is a tenth of the document: `string^ses` begins with `ses`, `[T]` is a list,
//! `<T>` a map, `{key:T,key?:T}` an object, `(A|B)` a choice, `"a"` a constant, any other name
//! a shape. Only routes that the server has are in the document.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// A route: method, path, name, place, query, body, status, kind, answer, errors; `-` is none.
const OPERATIONS: &str = include_str!("document/operations.txt");
/// A shape: its name and what it is.
const SCHEMAS: &str = include_str!("document/schemas.txt");

/// The document as JSON.
pub(crate) fn document(routes: &[(&'static str, &'static str)]) -> Bytes {
    // The routes are those of the program, so every server of it has the same document.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT.get_or_init(|| Bytes::from(write(routes).to_string())).clone()
}

fn write(routes: &[(&str, &str)]) -> Value {
    let mut paths = Map::new();
    for line in OPERATIONS.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [method, path, name, place, query, body, status, kind, answer, errors] = parts[..] else {
            continue;
        };
        if !routes.contains(&(method, path)) {
            continue;
        }
        let mut operation = json!({
            "operationId": name,
            "parameters": parameters(path, place, query),
            "responses": responses(status, kind, answer, errors),
        });
        if body != "-" {
            operation["requestBody"] = json!({"content": content("j", body)});
        }
        let methods = paths.entry(path.replace("{*", "{")).or_insert_with(|| json!({}));
        methods[method.to_ascii_lowercase()] = operation;
    }
    let schemas = SCHEMAS.lines().filter_map(|line| line.split_once(' '));
    let schemas: Map<_, _> = schemas.map(|(name, shape)| (name.to_owned(), schema(shape))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "codewright", "version": "1.0.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn parameters(path: &str, place: &str, query: &str) -> Vec<Value> {
    let in_path = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<_> = in_path
        .map(|name| {
            let shape = json!({"type": "string"});
            json!({"name": name.trim_start_matches('*'), "in": "path", "schema": shape, "required": true})
        })
        .collect();
    let text = || json!({"type": "string"});
    match place {
        "d" => parameters.extend(
            ["directory", "workspace"]
                .map(|name| json!({"name": name, "in": "query", "schema": text(), "required": false})),
        ),
        "l" => parameters.push(json!({
            "name": "location",
            "in": "query",
            "schema": schema("{directory?:string,workspace?:string}"),
            "required": false,
            "style": "deepObject",
            "explode": true,
        })),
        _ => {}
    }
    parameters.extend(query.split('&').filter_map(|one| {
        let (name, shape) = one.split_once(':')?;
        let optional = name.strip_suffix('?');
        Some(json!({
            "name": optional.unwrap_or(name),
            "in": "query",
            "schema": schema(shape),
            "required": optional.is_none(),
        }))
    }));
    parameters
}

fn responses(status: &str, kind: &str, answer: &str, errors: &str) -> Map<String, Value> {
    let mut done = json!({"description": "Success"});
    if answer != "-" {
        done["content"] = content(kind, answer);
    }
    let mut responses = Map::from_iter([(status.to_owned(), done)]);
    for error in errors.split(',').filter(|error| *error != "-") {
        let said = match error {
            "401" => "Not signed in",
            "403" => "Not allowed",
            "404" => "Not found",
            "409" => "Busy",
            "500" | "503" => "Failed",
            _ => "Refused",
        };
        let shape = json!({"type": "object"});
        responses.insert(
            error.to_owned(),
            json!({"description": said, "content": {"application/json": {"schema": shape}}}),
        );
    }
    responses
}

fn content(kind: &str, shape: &str) -> Value {
    let kind = match kind {
        "e" => "text/event-stream",
        "b" => "application/octet-stream",
        "t" => "text/x-diff; charset=utf-8",
        _ => "application/json",
    };
    json!({kind: {"schema": schema(shape)}})
}

/// Reads the notation. It is part of the program, so whatever it is not is taken for anything.
fn schema(text: &str) -> Value {
    let mut rest = text;
    shape(&mut rest)
}

fn shape(rest: &mut &str) -> Value {
    if taken(rest, "(") {
        let choices = list(rest, '|', ")", shape);
        let is_word = |choice: &Value| choice["type"] == "string" && choice.get("enum").is_some();
        if choices.iter().all(is_word) {
            let words: Vec<_> = choices.iter().map(|choice| choice["enum"][0].clone()).collect();
            return json!({"type": "string", "enum": words});
        }
        return json!({"anyOf": choices});
    }
    if taken(rest, "[") {
        let items = list(rest, '|', "]", shape).into_iter().next().unwrap_or_default();
        return json!({"type": "array", "items": items});
    }
    if taken(rest, "<") {
        let values = list(rest, '|', ">", shape).into_iter().next().unwrap_or_default();
        return json!({"type": "object", "additionalProperties": values});
    }
    if taken(rest, "{") {
        return object(list(rest, ',', "}", field));
    }
    if taken(rest, "\"") {
        let (word, behind) = rest.split_once('"').unwrap_or((rest, ""));
        *rest = behind;
        return json!({"type": "string", "enum": [word]});
    }
    let end = rest.find([',', '|', ')', ']', '}', '>']).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    *rest = behind;
    match word {
        "any" => json!({}),
        "string" | "number" | "integer" | "boolean" | "null" => json!({"type": word}),
        "true" | "false" => json!({"type": "boolean", "enum": [word == "true"]}),
        name => match name.strip_prefix("string^") {
            Some(prefix) => json!({"type": "string", "pattern": format!("^{prefix}")}),
            None => json!({"$ref": format!("#/components/schemas/{name}")}),
        },
    }
}

fn field(rest: &mut &str) -> (String, Value) {
    let (name, behind) = rest.split_once(':').unwrap_or((rest, ""));
    *rest = behind;
    (name.to_owned(), shape(rest))
}

fn object(fields: Vec<(String, Value)>) -> Value {
    let mut object = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let mut required = Vec::new();
    for (name, shape) in fields {
        if name == "*" {
            object["additionalProperties"] = shape;
            continue;
        }
        let optional = name.strip_suffix('?').map(str::to_owned);
        let name = optional.unwrap_or_else(|| {
            required.push(name.clone());
            name
        });
        object["properties"][name] = shape;
    }
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// What stands between here and an end, divided by a character.
fn list<T>(rest: &mut &str, between: char, end: &str, one: impl Fn(&mut &str) -> T) -> Vec<T> {
    let mut found = Vec::new();
    while !rest.is_empty() && !taken(rest, end) {
        found.push(one(rest));
        if let Some(behind) = rest.strip_prefix(between) {
            *rest = behind;
        } else if !rest.starts_with(end) {
            break;
        }
    }
    found
}

fn taken(rest: &mut &str, start: &str) -> bool {
    let behind = rest.strip_prefix(start);
    *rest = behind.unwrap_or(rest);
    behind.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_is_read() {
        let text = r#"{id:string^ses,kind?:("a"|"b"),all:[(Part|null)],by:<integer>,*:any,on:true}"#;
        let expected = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "pattern": "^ses"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "all": {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Part"}, {"type": "null"}]}},
                "by": {"type": "object", "additionalProperties": {"type": "integer"}},
                "on": {"type": "boolean", "enum": [true]},
            },
            "additionalProperties": {},
            "required": ["id", "all", "by", "on"],
        });
        assert_eq!(schema(text), expected);
        assert_eq!(schema("{}"), json!({"type": "object", "properties": {}, "additionalProperties": false}));
    }

    #[test]
    fn broken_notation_does_not_loop() {
        for text in ["(", "{a", "[", "<", "\"", "{a:(b|", ")", "{,}", "(|)"] {
            schema(text);
        }
    }

    #[test]
    fn every_line_is_whole_and_every_name_is_a_shape() {
        let names: Vec<_> = SCHEMAS.lines().map(|line| line.split_once(' ').unwrap().0).collect();
        let mut all: Vec<(&str, &str)> = Vec::new();
        for line in OPERATIONS.lines() {
            let parts: Vec<_> = line.split(' ').collect();
            assert_eq!(parts.len(), 10, "{line}");
            assert!(!all.contains(&(parts[0], parts[1])), "{line} is there twice");
            all.push((parts[0], parts[1]));
        }
        let text = write(&all).to_string();
        let refs = text.split("#/components/schemas/").skip(1);
        for name in refs.map(|rest| rest.split('"').next().unwrap()) {
            assert!(names.contains(&name), "{name}");
        }
    }
}
