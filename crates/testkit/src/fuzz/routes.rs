//! The routes of the API document, and random requests to them.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::Ids;
use super::dice::Dice;
use super::wire::Wire;

/// The largest depth of a body.
const DEPTH: usize = 6;
/// Queries that the document does not mention for a route but that the route may read.
const QUERIES: [&str; 8] = ["limit", "cursor", "before", "after", "search", "path", "auth_token", "ticket"];
/// Keys that no body has: a directory could be any of the machine, and a server without a shell or providers
/// does little.
const EXCLUDED: [&str; 5] = ["directory", "cwd", "shell", "enabled_providers", "disabled_providers"];
/// The id prefixes of path parameters.
const ID_PREFIXES: [(&str, &str); 7] = [
    ("sessionID", "ses"),
    ("messageID", "msg"),
    ("partID", "prt"),
    ("permissionID", "per"),
    ("requestID", "que"),
    ("ptyID", "pty"),
    ("projectID", "prj"),
];

/// A route with its parameters.
pub(super) struct Route {
    pub(super) method: String,
    template: String,
    queries: Vec<String>,
    schema: Option<Value>,
    /// The named schemas of the document.
    shapes: std::sync::Arc<Value>,
}

/// Returns every route of the document, the web page, an unknown path and an unknown method.
pub(super) fn read(wire: &Wire) -> Result<Vec<Route>> {
    let document = wire.get("/doc")?;
    let paths = document["paths"].as_object().context("the document has no paths")?.clone();
    let shapes = std::sync::Arc::new(document["components"]["schemas"].clone());
    let plain = |method: &str, template: &str| Route {
        method: method.to_owned(),
        template: template.to_owned(),
        queries: Vec::new(),
        schema: None,
        shapes: std::sync::Arc::clone(&shapes),
    };
    let mut routes =
        vec![plain("GET", "/"), plain("GET", "/nowhere/{sessionID}"), plain("TRACE", "/session")];
    for (template, methods) in &paths {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let queries =
                parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
            // Some routes write into the directory, which could be any of the machine.
            let queries =
                queries.filter(|name| !matches!(*name, "directory" | "location") && !name.contains('['));
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            routes.push(Route {
                queries: queries.map(str::to_owned).collect(),
                schema: Some(schema.clone()).filter(|schema| !schema.is_null()),
                ..plain(&method.to_uppercase(), template)
            });
        }
    }
    Ok(routes)
}

impl Route {
    /// Returns the method and the path template.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.template)
    }

    /// Whether the route answers only after an event, or with an endless stream.
    pub(super) fn waits(&self) -> bool {
        ["/event", "/sync-event", "/control/next", "/wait", "/connect"]
            .iter()
            .any(|end| self.template.ends_with(end))
    }

    /// Whether the route returns the whole model catalog.
    pub(super) fn is_long(&self) -> bool {
        const LONG: [&str; 5] =
            ["/provider", "/config/providers", "/api/model", "/api/provider", "/provider/auth"];
        LONG.contains(&self.template.as_str()) || self.template == "/doc"
    }

    /// Whether the route connects to a terminal.
    pub(super) fn is_socket(&self) -> bool {
        self.template.ends_with("/connect") && self.method == "GET"
    }

    /// Returns the path with random parameters and queries.
    pub(super) fn path(&self, dice: &mut Dice, ids: &Ids) -> String {
        let parts = self.template.split('/').map(|part| match part.strip_prefix('{') {
            Some(name) => parameter(name.trim_end_matches('}'), dice, ids),
            None => part.to_owned(),
        });
        let mut path = parts.collect::<Vec<_>>().join("/");
        if dice.one_in(60) {
            path = match dice.roll(5) {
                0 => format!("{path}/"),
                1 => format!("/{path}"),
                2 => path.replace('/', "/./"),
                3 => format!("{path}%"),
                _ => format!("{path}/{}", "a".repeat(dice.roll(20_000))),
            };
        }
        let of = |dice: &mut Dice| match self.queries.len() {
            0 => (*dice.pick(&QUERIES)).to_owned(),
            _ if dice.one_in(5) => (*dice.pick(&QUERIES)).to_owned(),
            _ => dice.pick(&self.queries).clone(),
        };
        let queries: Vec<_> = (0..dice.roll(4))
            .map(|_| {
                let (name, value) = (of(dice), dice.text());
                if dice.one_in(12) { name } else { format!("{name}={}", escaped(&value)) }
            })
            .collect();
        if queries.is_empty() { path } else { format!("{path}?{}", queries.join("&")) }
    }

    /// Returns a body that follows the schema, nearly follows it, or is random.
    pub(super) fn body(&self, dice: &mut Dice, ids: &Ids) -> Vec<u8> {
        if self.method == "GET" && !dice.one_in(20) {
            return Vec::new();
        }
        match dice.roll(16) {
            0 => Vec::new(),
            1 => b"{\"a\":".to_vec(),
            2 => dice.bytes(),
            3 => "[".repeat(dice.roll(20_000)).into_bytes(),
            4 => dice.value().to_string().into_bytes(),
            5 => format!("\"{}\"", "x".repeat(dice.roll(400_000))).into_bytes(),
            6 => {
                let entry = json!({"type": "text", "text": "x"});
                json!({"parts": vec![entry; dice.roll(3000)]}).to_string().into_bytes()
            }
            _ => match &self.schema {
                Some(schema) => self.value(schema, dice, ids, DEPTH).to_string().into_bytes(),
                None => dice.value().to_string().into_bytes(),
            },
        }
    }

    fn value(&self, schema: &Value, dice: &mut Dice, ids: &Ids, depth: usize) -> Value {
        if depth == 0 || dice.one_in(14) {
            return dice.value();
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            return self.value(&self.shapes[name], dice, ids, depth - 1);
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            if let Some(shapes) = schema[choice].as_array().filter(|shapes| !shapes.is_empty()) {
                return self.value(dice.pick(shapes), dice, ids, depth);
            }
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return dice.pick(values).clone();
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut object = Map::new();
                for (name, shape) in schema["properties"].as_object().into_iter().flatten() {
                    let is_required =
                        schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
                    if (is_required || dice.one_in(2)) && !EXCLUDED.contains(&name.as_str()) {
                        object.insert(name.clone(), self.value(shape, &mut *dice, ids, depth - 1));
                    }
                }
                Value::Object(object)
            }
            Some("array") => {
                (0..dice.roll(4)).map(|_| self.value(&schema["items"], &mut *dice, ids, depth - 1)).collect()
            }
            Some("string") => json!(text(schema, dice, ids)),
            Some("number" | "integer") => dice.number(),
            Some("boolean") => json!(dice.one_in(2)),
            _ => dice.value(),
        }
    }
}

fn text(schema: &Value, dice: &mut Dice, ids: &Ids) -> String {
    let prefix = schema["pattern"].as_str().map(|pattern| pattern.trim_start_matches('^'));
    let id = prefix.and_then(|prefix| ids.any(prefix.get(..3)?, dice));
    match (id, dice.roll(4)) {
        (Some(id), 0..=2) => id,
        (None, 0) => "mock".to_owned(),
        (None, 1) => "plain-model".to_owned(),
        _ => dice.text(),
    }
}

fn parameter(name: &str, dice: &mut Dice, ids: &Ids) -> String {
    let prefix = ID_PREFIXES.iter().find(|(other, _)| *other == name).map(|(_, prefix)| *prefix);
    let id = prefix.and_then(|prefix| ids.any(prefix, dice));
    match (id, dice.roll(8)) {
        (Some(id), 0..=5) => id,
        (_, 6) => format!("{}_x0000", prefix.unwrap_or("zzz")),
        // An empty parameter would match another route.
        _ => format!("x{}", escaped(&dice.text())),
    }
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02X}"))
}
