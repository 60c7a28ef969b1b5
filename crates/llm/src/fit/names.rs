//! The names of tools, arguments and calls on the wire, and the way back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};

use crate::ModelEvent;
use crate::aws::sign::sha256_hex;
use crate::protocol::rules::{CallId, Dialect, NameForm, ToolName};

/// The hexadecimal digits of a hash that makes a shortened name unique.
const HASH_DIGITS: usize = 8;
/// The digits of a hash in a shortened id.
const ID_HASH_DIGITS: usize = 16;
/// The longest name of a property.
const KEY_BYTES: usize = 64;
/// Alphabet and length of ids for Mistral.
const NINE: usize = 9;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The names of a request.
#[derive(Debug)]
pub(crate) struct Names {
    rule: ToolName,
    /// By the original name: the name on the wire.
    sent: HashMap<String, String>,
    /// By the name on the wire: the original name and the renamed arguments.
    original: HashMap<String, (String, BTreeMap<String, String>)>,
}

impl Names {
    pub(super) fn new(rule: ToolName) -> Self {
        Self { rule, sent: HashMap::new(), original: HashMap::new() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.sent.contains_key(name)
    }

    /// Adds a tool. Returns its name on the wire. `keys` are the renamed arguments, by their name on the wire.
    pub(super) fn add(&mut self, name: &str, keys: BTreeMap<String, String>) -> String {
        let mut sent = valid_name(name, self.rule);
        if self.original.contains_key(&sent) {
            sent = hashed(&sent, name, self.rule.most_bytes);
        }
        self.sent.insert(name.to_owned(), sent.clone());
        self.original.insert(sent.clone(), (name.to_owned(), keys));
        sent
    }

    pub(super) fn remove(&mut self, sent: &str) {
        if let Some((name, _)) = self.original.remove(sent) {
            self.sent.remove(&name);
        }
    }

    /// Returns the name of a tool on the wire, also of one that is not offered.
    pub(super) fn sent(&self, name: &str) -> String {
        self.sent.get(name).cloned().unwrap_or_else(|| valid_name(name, self.rule))
    }

    /// Returns the arguments of an old call as the model would write them now.
    pub(super) fn sent_arguments(&self, sent: &str, arguments: Value) -> Value {
        match self.original.get(sent) {
            Some((_, keys)) if !keys.is_empty() => {
                let back: BTreeMap<String, String> =
                    keys.iter().map(|(sent, original)| (original.clone(), sent.clone())).collect();
                renamed(arguments, &back)
            }
            Some(_) | None => arguments,
        }
    }

    /// Gives an event the original names.
    pub(crate) fn restore(&self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::ToolStart { id, name } => ModelEvent::ToolStart { id, name: self.restored(name) },
            ModelEvent::ToolCall { id, name, arguments } => {
                let keys = self.original.get(&name).map(|(_, keys)| keys).filter(|keys| !keys.is_empty());
                let arguments = match keys {
                    Some(keys) => match serde_json::from_str(&arguments) {
                        Ok(value) => renamed(value, keys).to_string(),
                        Err(_) => arguments,
                    },
                    None => arguments,
                };
                ModelEvent::ToolCall { id, name: self.restored(name), arguments }
            }
            event @ (ModelEvent::TextStart
            | ModelEvent::TextDelta(_)
            | ModelEvent::TextEnd
            | ModelEvent::TextWasReasoning
            | ModelEvent::ReasoningStart
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::ReasoningEnd { .. }
            | ModelEvent::ToolDelta { .. }
            | ModelEvent::ToolExcess { .. }
            | ModelEvent::Metadata { .. }
            | ModelEvent::Finish { .. }) => event,
        }
    }

    fn restored(&self, name: String) -> String {
        match self.original.get(&name) {
            Some((original, _)) => original.clone(),
            None => name,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns whether a name obeys a rule.
pub(super) fn is_valid(name: &str, rule: ToolName) -> bool {
    let is_allowed = |c: char| is_word(c) || (c == '-' && rule.form != NameForm::Word);
    let begins = |c: char| rule.form == NameForm::Plain || c.is_ascii_alphabetic() || c == '_';
    name.len() <= rule.most_bytes && name.chars().all(is_allowed) && name.chars().next().is_some_and(begins)
}

/// Returns a name that obeys a rule: the name itself if it does.
fn valid_name(name: &str, rule: ToolName) -> String {
    if is_valid(name, rule) {
        return name.to_owned();
    }
    let is_allowed = |c: char| is_word(c) || (c == '-' && rule.form != NameForm::Word);
    let mut clean: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let begins = |c: char| rule.form == NameForm::Plain || c.is_ascii_alphabetic() || c == '_';
    if !clean.chars().next().is_some_and(begins) {
        clean.insert(0, '_');
    }
    if clean.len() > rule.most_bytes { hashed(&clean, name, rule.most_bytes) } else { clean }
}

/// Returns a clean name with a hash of the original one at its end.
fn hashed(clean: &str, name: &str, most_bytes: usize) -> String {
    let kept = clean.len().min(most_bytes - HASH_DIGITS - 1);
    format!("{}_{}", &clean[..kept], &sha256_hex(name.as_bytes())[..HASH_DIGITS])
}

/// Returns an id that obeys a rule: the id itself if it does.
pub(super) fn call_id(id: &str, rule: CallId) -> String {
    match rule {
        CallId::Nine => nine(id),
        CallId::Any(most) if !id.trim().is_empty() => {
            if id.len() <= most {
                id.to_owned()
            } else {
                short_id(&word(id), id, most)
            }
        }
        CallId::Word(most) if !id.is_empty() => {
            let clean = word(id);
            if clean.len() <= most { clean } else { short_id(&clean, id, most) }
        }
        CallId::Any(_) | CallId::Word(_) => "_".to_owned(),
    }
}

fn word(id: &str) -> String {
    id.chars().map(|c| if is_word(c) || c == '-' { c } else { '_' }).collect()
}

/// Two long ids may have the same start.
fn short_id(clean: &str, id: &str, most: usize) -> String {
    let kept = clean.len().min(most - ID_HASH_DIGITS - 1);
    format!("{}_{}", &clean[..kept], &sha256_hex(id.as_bytes())[..ID_HASH_DIGITS])
}

/// Returns the id if it has nine letters and digits, otherwise its FNV-1a hash. Truncating would make similar ids
/// equal.
pub(crate) fn nine(id: &str) -> String {
    if id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The last bytes of an id affect only the low bits, so mix them before bits are dropped.
    hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    let mut text = String::with_capacity(NINE);
    for _ in 0..NINE {
        let digit = usize::try_from(hash % 62).expect("a number below 62 fits");
        text.push(char::from(DIGITS[digit]));
        hash /= 62;
    }
    text
}

/// Returns whether Anthropic accepts the name of a property.
fn is_valid_key(key: &str) -> bool {
    !key.is_empty() && key.len() <= KEY_BYTES && key.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

/// Returns a valid name for a property.
fn valid_key(key: &str) -> String {
    let clean: String =
        key.chars().map(|c| if is_word(c) || matches!(c, '.' | '-') { c } else { '_' }).collect();
    hashed(if clean.is_empty() { "_" } else { &clean }, key, KEY_BYTES)
}

/// Returns the renamed properties of a schema, by their name on the wire.
pub(super) fn key_map(schema: &Value, dialects: &[Dialect]) -> BTreeMap<String, String> {
    let mut keys = BTreeSet::new();
    if dialects.contains(&Dialect::PropertyNames) {
        collect_keys(schema, &mut keys);
    }
    keys.into_iter().map(|key| (valid_key(key), key.to_owned())).collect()
}

fn collect_keys<'a>(schema: &'a Value, keys: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            keys.extend(
                properties
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(String::as_str)
                    .filter(|key| !is_valid_key(key)),
            );
            fields.values().for_each(|value| collect_keys(value, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives the properties of a schema valid names.
pub(super) fn rename_properties(schema: Value) -> Value {
    let mut keys = BTreeSet::new();
    collect_keys(&schema, &mut keys);
    if keys.is_empty() {
        return schema;
    }
    let names: BTreeMap<String, String> =
        keys.into_iter().map(|key| (key.to_owned(), valid_key(key))).collect();
    properties_renamed(schema, &names)
}

fn properties_renamed(schema: Value, names: &BTreeMap<String, String>) -> Value {
    let name = |key: &Value| match key.as_str().and_then(|key| names.get(key)) {
        Some(sent) => Value::from(sent.as_str()),
        None => key.clone(),
    };
    match schema {
        Value::Object(fields) => {
            let field = |(word, value): (String, Value)| match (word.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let property = |(key, schema): (String, Value)| {
                        (names.get(&key).cloned().unwrap_or(key), properties_renamed(schema, names))
                    };
                    (word, Value::Object(properties.into_iter().map(property).collect()))
                }
                ("required", Value::Array(list)) => (word, list.iter().map(name).collect()),
                (_, value) => (word, properties_renamed(value, names)),
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| properties_renamed(item, names)).collect(),
        other => other,
    }
}

/// Renames the keys of objects at any depth.
fn renamed(value: Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (names.get(&key).cloned().unwrap_or(key), renamed(value, names)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(|item| renamed(item, names)).collect(),
        other => other,
    }
}
