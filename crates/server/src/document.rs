//! The API document: the requests and replies of all routes in OpenAPI 3.1.
//!
//! `operations.txt` has a line for each route, which starts with its operation id, and `schemas.txt`
//! one for each named schema. Their notation is a tenth of the size of the document: `string^ses` is a
//! string that starts with `ses`, `[T]` is a list, `<T>` a map, `{key:T,key?:T}` an object, `(A|B)` a
//! union, `"a"` a constant, and any other name a named schema.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// A line per route, in the order of the document: operation id, location parameters (`d`: `directory` and `workspace`,
/// `l`: a `location` object), query, request body, status, content type of the reply, reply, error statuses. `-` stands
/// for an empty column.
const OPERATIONS: &str = include_str!("document/operations.txt");
/// A line per named schema: its name and its notation.
const SCHEMAS: &str = include_str!("document/schemas.txt");

/// A route: its operation id, method and path.
type Route = (&'static str, &'static str, &'static str);

/// Returns the document as JSON.
pub(crate) fn document(routes: &[Route]) -> Bytes {
    // All servers of the program have the same routes, and therefore the same document.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT.get_or_init(|| Bytes::from(write(routes).to_string())).clone()
}

fn write(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for line in OPERATIONS.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [id, location, query, body, status, kind, reply, errors] = parts[..] else {
            continue;
        };
        let Some((_, method, path)) = routes.iter().find(|(operation, ..)| *operation == id) else {
            continue;
        };
        let mut operation = json!({
            "operationId": id,
            "parameters": parameters(path, location, query),
            "responses": responses(status, kind, reply, errors),
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

fn parameters(path: &str, location: &str, query: &str) -> Vec<Value> {
    let in_path = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<_> = in_path
        .map(|name| {
            let shape = json!({"type": "string"});
            json!({"name": name.trim_start_matches('*'), "in": "path", "schema": shape, "required": true})
        })
        .collect();
    let text = || json!({"type": "string"});
    match location {
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

fn responses(status: &str, kind: &str, reply: &str, errors: &str) -> Map<String, Value> {
    let mut success = json!({"description": "Success"});
    if reply != "-" {
        success["content"] = content(kind, reply);
    }
    let mut responses = Map::from_iter([(status.to_owned(), success)]);
    for error in errors.split(',').filter(|error| *error != "-") {
        let description = match error {
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
            json!({"description": description, "content": {"application/json": {"schema": shape}}}),
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

/// Parses the notation. It is part of the program, so errors in it are not reported: the result is then any schema.
fn schema(text: &str) -> Value {
    let mut rest = text;
    shape(&mut rest)
}

fn shape(rest: &mut &str) -> Value {
    if strip(rest, "(") {
        let choices = list(rest, '|', ")", shape);
        let is_word = |choice: &Value| choice["type"] == "string" && choice.get("enum").is_some();
        if choices.iter().all(is_word) {
            let words: Vec<_> = choices.iter().map(|choice| choice["enum"][0].clone()).collect();
            return json!({"type": "string", "enum": words});
        }
        return json!({"anyOf": choices});
    }
    if strip(rest, "[") {
        let items = list(rest, '|', "]", shape).into_iter().next().unwrap_or_default();
        return json!({"type": "array", "items": items});
    }
    if strip(rest, "<") {
        let values = list(rest, '|', ">", shape).into_iter().next().unwrap_or_default();
        return json!({"type": "object", "additionalProperties": values});
    }
    if strip(rest, "{") {
        return object(list(rest, ',', "}", field));
    }
    if strip(rest, "\"") {
        let (word, tail) = rest.split_once('"').unwrap_or((rest, ""));
        *rest = tail;
        return json!({"type": "string", "enum": [word]});
    }
    let end = rest.find([',', '|', ')', ']', '}', '>']).unwrap_or(rest.len());
    let (word, tail) = rest.split_at(end);
    *rest = tail;
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
    let (name, tail) = rest.split_once(':').unwrap_or((rest, ""));
    *rest = tail;
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

/// Parses items up to an end marker, divided by a separator.
fn list<T>(rest: &mut &str, separator: char, end: &str, one: impl Fn(&mut &str) -> T) -> Vec<T> {
    let mut items = Vec::new();
    while !rest.is_empty() && !strip(rest, end) {
        items.push(one(rest));
        if let Some(tail) = rest.strip_prefix(separator) {
            *rest = tail;
        } else if !rest.starts_with(end) {
            break;
        }
    }
    items
}

/// Removes a prefix; returns whether it was there.
fn strip(rest: &mut &str, prefix: &str) -> bool {
    let tail = rest.strip_prefix(prefix);
    *rest = tail.unwrap_or(rest);
    tail.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::operations;

    #[test]
    fn the_notation_becomes_a_json_schema() {
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
    fn every_line_belongs_to_a_route() {
        let routes = operations();
        for line in OPERATIONS.lines() {
            let id = line.split(' ').next();
            assert_eq!(routes.iter().filter(|(operation, ..)| Some(*operation) == id).count(), 1, "{line}");
        }
    }

    #[test]
    fn invalid_notation_does_not_loop() {
        for text in ["(", "{a", "[", "<", "\"", "{a:(b|", ")", "{,}", "(|)"] {
            schema(text);
        }
    }

    #[test]
    fn every_line_is_complete_and_every_name_is_a_schema() {
        let names: Vec<_> = SCHEMAS.lines().map(|line| line.split_once(' ').unwrap().0).collect();
        let mut all: Vec<Route> = Vec::new();
        for line in OPERATIONS.lines() {
            let parts: Vec<_> = line.split(' ').collect();
            assert_eq!(parts.len(), 8, "{line}");
            assert!(!all.iter().any(|(id, ..)| *id == parts[0]), "`{line}` is a duplicate");
            all.push((parts[0], "GET", parts[0]));
        }
        let text = write(&all).to_string();
        let refs = text.split("#/components/schemas/").skip(1);
        for name in refs.map(|rest| rest.split('"').next().unwrap()) {
            assert!(names.contains(&name), "{name}");
        }
    }
}
