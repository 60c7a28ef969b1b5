//! What the program says it can be asked, and askings made of it.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::Ids;
use super::dice::Dice;
use super::wire::Wire;

/// The deepest body that is made of a description.
const DEPTH: usize = 6;
/// Queries that no description names, but some route may heed.
const QUERIES: [&str; 8] = ["limit", "cursor", "before", "after", "search", "path", "auth_token", "ticket"];
/// What no body has: directories could be any of the machine's, and a server without shell or providers does little.
const LEFT_OUT: [&str; 5] = ["directory", "cwd", "shell", "enabled_providers", "disabled_providers"];
/// Which ids stand in which place of a path.
const PLACES: [(&str, &str); 7] = [
    ("sessionID", "ses"),
    ("messageID", "msg"),
    ("partID", "prt"),
    ("permissionID", "per"),
    ("requestID", "que"),
    ("ptyID", "pty"),
    ("projectID", "prj"),
];

/// A route, and what it wants.
pub(super) struct Route {
    pub(super) method: String,
    template: String,
    queries: Vec<String>,
    schema: Option<Value>,
    /// Where the description keeps shapes that have names.
    shapes: std::sync::Arc<Value>,
}

/// Every route of the program; the page and a path that is none besides.
pub(super) fn of(wire: &Wire) -> Result<Vec<Route>> {
    let document = wire.get("/doc")?;
    let paths = document["paths"].as_object().context("the description has no paths")?.clone();
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
            // Some routes write into the directory, and it could be any of the machine's.
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
    /// As it is counted.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.template)
    }

    /// Whether it answers only when something happens, or never ends.
    pub(super) fn waits(&self) -> bool {
        ["/event", "/control/next", "/wait", "/connect"].iter().any(|end| self.template.ends_with(end))
    }

    /// Whether it tells of every model that there is.
    pub(super) fn is_long(&self) -> bool {
        const LONG: [&str; 5] =
            ["/provider", "/config/providers", "/api/model", "/api/provider", "/provider/auth"];
        LONG.contains(&self.template.as_str()) || self.template == "/doc"
    }

    /// Whether it speaks to a terminal.
    pub(super) fn is_socket(&self) -> bool {
        self.template.ends_with("/connect") && self.method == "GET"
    }

    /// Its path with something in its places, and a query.
    pub(super) fn path(&self, dice: &mut Dice, ids: &Ids) -> String {
        let parts = self.template.split('/').map(|part| match part.strip_prefix('{') {
            Some(place) => in_place(place.trim_end_matches('}'), dice, ids),
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

    /// A body in the shape that is wanted, nearly that, or in none.
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
                Some(schema) => self.made(schema, (dice, ids), DEPTH).to_string().into_bytes(),
                None => dice.value().to_string().into_bytes(),
            },
        }
    }

    fn made(&self, schema: &Value, (dice, ids): (&mut Dice, &Ids), depth: usize) -> Value {
        if depth == 0 || dice.one_in(14) {
            return dice.value();
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            return self.made(&self.shapes[name], (dice, ids), depth - 1);
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            if let Some(shapes) = schema[choice].as_array().filter(|shapes| !shapes.is_empty()) {
                return self.made(dice.pick(shapes), (dice, ids), depth);
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
                let mut made = Map::new();
                for (name, shape) in schema["properties"].as_object().into_iter().flatten() {
                    let is_wanted =
                        schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
                    if (is_wanted || dice.one_in(2)) && !LEFT_OUT.contains(&name.as_str()) {
                        made.insert(name.clone(), self.made(shape, (&mut *dice, ids), depth - 1));
                    }
                }
                Value::Object(made)
            }
            Some("array") => {
                (0..dice.roll(4)).map(|_| self.made(&schema["items"], (&mut *dice, ids), depth - 1)).collect()
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
    let known = prefix.and_then(|prefix| ids.any(prefix.get(..3)?, dice));
    match (known, dice.roll(4)) {
        (Some(known), 0..=2) => known,
        (None, 0) => "mock".to_owned(),
        (None, 1) => "plain-model".to_owned(),
        _ => dice.text(),
    }
}

fn in_place(place: &str, dice: &mut Dice, ids: &Ids) -> String {
    let prefix = PLACES.iter().find(|(name, _)| *name == place).map(|(_, prefix)| *prefix);
    let known = prefix.and_then(|prefix| ids.any(prefix, dice));
    match (known, dice.roll(8)) {
        (Some(known), 0..=5) => known,
        (_, 6) => format!("{}_x0000", prefix.unwrap_or("zzz")),
        // An empty one is another route.
        _ => format!("x{}", escaped(&dice.text())),
    }
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02X}"))
}
