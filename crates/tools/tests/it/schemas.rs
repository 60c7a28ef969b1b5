//! Each tool's schema and its argument type agree.
//!
//! The schemas are written by hand, because models get exactly this text. These tests find a property that is
//! in one of the two only, one that is required in one of the two only, and one with another type.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use codewright_tools::{
    ApplyPatch, Background, Bash, Batch, CodeSearch, Edit, Glob, Grep, List, LoadSkill, Lsp, MultiEdit,
    PlanEnter, PlanExit, Question, Read, Setup, Task, TodoRead, TodoWrite, Tool, WebFetch, WebSearch, Write,
    builtin,
};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Value, json};

/// The path of an object in the arguments and the names of its properties.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// Properties that an argument type accepts but models are not offered: the tool, the object and the property.
const NOT_OFFERED: [(&str, &str, &str); 3] =
    [("question", "/questions/0", "custom"), ("read", "", "files"), ("todowrite", "", "explanation")];

#[test]
fn every_schema_agrees_with_its_argument_type() {
    let checked = [
        check(ApplyPatch),
        check(Background),
        check(Bash),
        check(Batch),
        check(CodeSearch),
        check(Edit),
        check(Glob),
        check(Grep),
        check(List),
        check(Lsp),
        check(MultiEdit),
        check(PlanEnter),
        check(PlanExit),
        check(Question),
        check(Read),
        check(LoadSkill),
        check(Task { background: true }),
        check(TodoRead),
        check(TodoWrite),
        check(WebFetch),
        check(WebSearch { year: 2026 }),
        check(Write),
    ];
    let all = builtin(&Setup::everything(2026));
    let all: BTreeSet<&str> = all.iter().map(|tool| tool.name()).collect();
    assert_eq!(BTreeSet::from(checked), all, "every tool is checked");
}

fn check<T: Tool>(tool: T) -> &'static str {
    let schema = tool.parameters();
    let sample = sample(&schema);
    let parse = |input: &Value| {
        let seen = RefCell::default();
        let parsed = T::Input::deserialize(Probe { value: input, at: String::new(), seen: &seen });
        parsed.map(|_| seen.into_inner())
    };
    let name = T::NAME;
    let mut of_type: Fields = parse(&sample).unwrap_or_else(|error| panic!("{name}: {sample}: {error}"));
    for (_, at, field) in NOT_OFFERED.iter().filter(|(tool, ..)| *tool == name) {
        assert!(of_type.get_mut(*at).is_some_and(|fields| fields.remove(*field)), "{name}{at}/{field}");
    }
    let (mut of_schema, mut properties) = (Fields::new(), Vec::new());
    walk(&schema, String::new(), &mut of_schema, &mut properties);
    of_type.entry(String::new()).or_default();
    assert_eq!(of_type, of_schema, "{name}: the properties of the type and of the schema");
    for Property { at, field, is_required, schema } in properties {
        let path = format!("{name}{at}/{field}");
        let change = |value: Option<Value>| {
            let mut changed = sample.clone();
            let object = changed.pointer_mut(&at).and_then(Value::as_object_mut).expect("an object");
            match value {
                Some(value) => drop(object.insert(field.clone(), value)),
                None => drop(object.remove(&field)),
            }
            parse(&changed)
        };
        assert_eq!(change(None).is_err(), is_required, "{path}: required");
        let wrong = if schema["type"] == "object" { json!("wrong") } else { json!({ "wrong": 1 }) };
        change(Some(wrong)).expect_err(&path);
        for option in schema["enum"].as_array().into_iter().flatten() {
            change(Some(option.clone())).unwrap_or_else(|error| panic!("{path}: {option}: {error}"));
        }
    }
    name
}

/// A property of a schema.
struct Property {
    /// The pointer to its object in the sample.
    at: String,
    field: String,
    is_required: bool,
    schema: Value,
}

fn walk(schema: &Value, at: String, fields: &mut Fields, properties: &mut Vec<Property>) {
    if let Some(items) = schema.get("items") {
        walk(items, format!("{at}/0"), fields, properties);
    }
    let Some(of_schema) = schema.get("properties").and_then(Value::as_object) else { return };
    fields.insert(at.clone(), of_schema.keys().cloned().collect());
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (field, schema) in of_schema {
        let is_required = required.iter().any(|name| name == field);
        let (at, field, schema) = (at.clone(), field.clone(), schema.clone());
        walk(&schema, format!("{at}/{field}"), fields, properties);
        properties.push(Property { at, field, is_required, schema });
    }
}

/// Arguments with every property of a schema.
fn sample(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), sample(schema))).collect()
        }
        Some("array") => json!([sample(&schema["items"])]),
        Some("string") => schema.pointer("/enum/0").cloned().unwrap_or_else(|| json!("text")),
        Some("integer" | "number") => json!(1000),
        Some("boolean") => json!(true),
        other => panic!("{other:?} is not a type of arguments"),
    }
}

/// Deserializes a value, and notes the fields of each struct on the way.
struct Probe<'a> {
    value: &'a Value,
    /// The pointer to the value.
    at: String,
    seen: &'a RefCell<Fields>,
}

impl<'a> Probe<'a> {
    fn inside(&self, value: &'a Value, step: &str) -> Self {
        Self { value, at: format!("{}/{step}", self.at), seen: self.seen }
    }
}

impl<'a> Deserializer<'a> for Probe<'a> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.value.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.value.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.value.as_array() {
            Some(items) => visitor.visit_seq(Items { probe: self, items, next: 0 }),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let names = fields.iter().map(|name| (*name).to_owned()).collect();
        self.seen.borrow_mut().insert(self.at.clone(), names);
        match self.value.as_object() {
            Some(object) => visitor.visit_map(Entries { fields: object.iter(), value: None, probe: self }),
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    probe: Probe<'a>,
    items: &'a [Value],
    next: usize,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = serde_json::Error;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let probe = self.probe.inside(item, &self.next.to_string());
        self.next += 1;
        seed.deserialize(probe).map(Some)
    }
}

struct Entries<'a> {
    probe: Probe<'a>,
    fields: serde_json::map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
}

impl<'a> MapAccess<'a> for Entries<'a> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        let (name, value) = self.value.take().expect("a key comes first");
        seed.deserialize(self.probe.inside(value, name))
    }
}
