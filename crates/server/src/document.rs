//! The API document: the requests and replies of all routes in OpenAPI 3.1.
//!
//! The rows of `route/table/` describe the routes, and `schemas.txt` has a line for each named schema. Their notation is
//! a tenth of the size of the document: `string^ses` is a string that starts with `ses`, `[T]` is a list, `<T>` a map,
//! `{key:T,key?:T}` an object, `(A|B)` a union, `'a'` a constant, and any other name a named schema.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// A line per named schema: its name and its notation.
const SCHEMAS: &str = include_str!("document/schemas.txt");

/// A route in the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// Its unique name.
    pub(crate) id: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) shape: Shape,
}

/// The requests and replies of a route. Types are in the notation of the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) location: Location,
    /// Other parameters of the query: `name:type` or `name?:type`, joined by `&`.
    pub(crate) query: &'static str,
    /// The type of the request body.
    pub(crate) body: Option<&'static str>,
    /// The status of success.
    pub(crate) status: &'static str,
    /// What the reply is.
    pub(crate) kind: Kind,
    /// The type of the reply; `None` if it is empty.
    pub(crate) reply: Option<&'static str>,
    /// The statuses of errors.
    pub(crate) errors: &'static [u16],
}

impl Shape {
    /// A route without parameters, whose reply is empty.
    pub(crate) const NOTHING: Self = Self {
        location: Location::None,
        query: "",
        body: None,
        status: "200",
        kind: Kind::Json,
        reply: None,
        errors: &[],
    };
}

/// How a request names the directory that it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Location {
    /// Not at all.
    None,
    /// The parameters `directory` and `workspace` of the query.
    Directory,
    /// The object `location` of the query.
    Object,
}

/// What a reply is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Json,
    /// A stream of events.
    Events,
    /// A file.
    Bytes,
    /// A text.
    Text,
}

impl Kind {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Events => "text/event-stream",
            Self::Bytes => "application/octet-stream",
            Self::Text => "text/x-diff; charset=utf-8",
        }
    }
}

/// Returns the document as JSON.
pub(crate) fn document(operations: impl Iterator<Item = Operation>) -> Bytes {
    // All servers of the program have the same routes, and therefore the same document.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT.get_or_init(|| Bytes::from(write(operations).to_string())).clone()
}

fn write(operations: impl Iterator<Item = Operation>) -> Value {
    let mut paths = Map::new();
    for Operation { id, method, path, shape } in operations {
        let mut operation = json!({
            "operationId": id,
            "parameters": parameters(path, &shape),
            "responses": responses(&shape),
        });
        if let Some(body) = shape.body {
            operation["requestBody"] = json!({"content": content(Kind::Json, body)});
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

fn parameters(path: &str, shape: &Shape) -> Vec<Value> {
    let in_path = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<_> = in_path
        .map(|name| {
            let shape = json!({"type": "string"});
            json!({"name": name.trim_start_matches('*'), "in": "path", "schema": shape, "required": true})
        })
        .collect();
    let text = || json!({"type": "string"});
    match shape.location {
        Location::Directory => parameters.extend(
            ["directory", "workspace"]
                .map(|name| json!({"name": name, "in": "query", "schema": text(), "required": false})),
        ),
        Location::Object => parameters.push(json!({
            "name": "location",
            "in": "query",
            "schema": schema("{directory?:string,workspace?:string}"),
            "required": false,
            "style": "deepObject",
            "explode": true,
        })),
        Location::None => {}
    }
    parameters.extend(shape.query.split('&').filter_map(|one| {
        let (name, kind) = one.split_once(':')?;
        let optional = name.strip_suffix('?');
        Some(json!({
            "name": optional.unwrap_or(name),
            "in": "query",
            "schema": schema(kind),
            "required": optional.is_none(),
        }))
    }));
    parameters
}

fn responses(shape: &Shape) -> Map<String, Value> {
    let mut success = json!({"description": "Success"});
    if let Some(reply) = shape.reply {
        success["content"] = content(shape.kind, reply);
    }
    let mut responses = Map::from_iter([(shape.status.to_owned(), success)]);
    for error in shape.errors {
        let description = match error {
            401 => "Not signed in",
            403 => "Not allowed",
            404 => "Not found",
            409 => "Busy",
            500 | 503 => "Failed",
            _ => "Refused",
        };
        let body = json!({"application/json": {"schema": {"type": "object"}}});
        responses.insert(error.to_string(), json!({"description": description, "content": body}));
    }
    responses
}

fn content(kind: Kind, shape: &str) -> Value {
    json!({kind.media_type(): {"schema": schema(shape)}})
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
    if strip(rest, "'") {
        let (word, tail) = rest.split_once('\'').unwrap_or((rest, ""));
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
        let text = "{id:string^ses,kind?:('a'|'b'),all:[(Part|null)],by:<integer>,*:any,on:true}";
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
    fn invalid_notation_does_not_loop() {
        for text in ["(", "{a", "[", "<", "'", "{a:(b|", ")", "{,}", "(|)"] {
            schema(text);
        }
    }

    #[test]
    fn every_name_is_a_schema() {
        let names: Vec<_> = SCHEMAS.lines().map(|line| line.split_once(' ').unwrap().0).collect();
        let text = write(operations()).to_string();
        let refs = text.split("#/components/schemas/").skip(1);
        for name in refs.map(|rest| rest.split('"').next().unwrap()) {
            assert!(names.contains(&name), "{name}");
        }
    }
}
