//! Random content of conversations. Equal seeds give equal content.

use serde_json::{Map, Value, json};

/// A picture of one pixel, another of 3000 x 2, and a JPEG of 8 x 8.
const PNG: &str = include_str!("../../../crates/testkit/fixtures/pixel.png.base64");
const WIDE_PNG: &str = include_str!("../../../crates/testkit/fixtures/wide.png.base64");
const JPEG: &str = include_str!("../../../crates/testkit/fixtures/small.jpeg.base64");

/// The deepest nesting of schemas.
const DEPTH: u64 = 3;

/// A source of random content (SplitMix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.below(list.len() as u64);
        &list[usize::try_from(at).unwrap_or_default()]
    }

    pub(super) fn text(&mut self) -> String {
        let text = *self.of(&[
            "",
            " ",
            "\n\t",
            "yes",
            "a text",
            "<think>x</think>",
            "\u{0}\u{7}",
            "üñí \u{1f600}",
            "ends with space ",
        ]);
        text.to_owned()
    }

    pub(super) fn id(&mut self) -> String {
        match self.below(8) {
            0 => String::new(),
            1 => "call_1".to_owned(),
            2 => "functions.read:0".to_owned(),
            3 => "ü ñ".to_owned(),
            4 => "x".repeat(450),
            5 => format!("{}{}", "y".repeat(63), self.below(3)),
            6 => "abcDEF123".to_owned(),
            _ => format!("toolu_{}", self.below(4)),
        }
    }

    pub(super) fn name(&mut self) -> String {
        let name = *self.of(&[
            "read",
            "bash",
            "docs_find",
            "my.tool",
            "my-tool",
            "my_tool",
            "1st",
            "",
            "größe",
            "a b/c",
            "Read",
        ]);
        if self.one_in(12) { name.repeat(40) + "z" } else { name.to_owned() }
    }

    pub(super) fn input(&mut self) -> Value {
        let text = self.text();
        self.of(&[
            json!({}),
            json!({"path": text}),
            json!({"$top": 1, "": 2}),
            json!([1]),
            json!("x"),
            Value::Null,
        ])
        .clone()
    }

    /// Returns the declared type and the address of a file.
    pub(super) fn file(&mut self) -> (&'static str, String) {
        let mime = *self.of(&[
            "image/png",
            "image/jpeg",
            "image/gif",
            "application/pdf",
            "image/svg+xml",
            "application/octet-stream",
        ]);
        let data = *self.of(&[
            PNG.trim(),
            WIDE_PNG.trim(),
            JPEG.trim(),
            "",
            "AAAA",
            "not base64",
            "JVBERi0xLjQK",
            "PHN2Zy8+",
        ]);
        let url = match self.below(8) {
            0 => "https://example.com/a.png".to_owned(),
            1 => "file:///a.png".to_owned(),
            2 => "data:image/png,%00".to_owned(),
            _ => format!("data:{mime};base64,{data}"),
        };
        (mime, url)
    }

    /// Returns a schema as servers write them, valid or not.
    pub(super) fn schema(&mut self, depth: u64) -> Value {
        if depth >= DEPTH {
            return self
                .of(&[
                    json!({"type": "string"}),
                    json!({}),
                    json!(true),
                    Value::Null,
                    json!({"$ref": "#/$defs/d", "description": "d"}),
                ])
                .clone();
        }
        let mut fields = Map::new();
        if depth > 0 || !self.one_in(3) {
            let kinds = [
                json!("object"),
                json!("array"),
                json!("string"),
                json!(["string", "null"]),
                json!("any"),
                json!("OBJECT"),
            ];
            fields.insert("type".to_owned(), self.of(&kinds).clone());
        }
        for _ in 0..self.below(4) {
            let (word, value) = self.keyword(depth);
            fields.insert(word.to_owned(), value);
        }
        if depth == 0 {
            fields.insert(
                "$defs".to_owned(),
                json!({"d": {"type": "object", "properties": {"again": {"$ref": "#/$defs/d"}}}}),
            );
        }
        Value::Object(fields)
    }

    fn keyword(&mut self, depth: u64) -> (&'static str, Value) {
        let inner = self.schema(depth + 1);
        let key = *self.of(&["path", "$filter", "", "größe", "a b", "ok-1", "type", "enum"]);
        match self.below(14) {
            0 => ("oneOf", json!([inner, self.schema(depth + 1)])),
            1 => ("anyOf", json!([inner, self.schema(depth + 1)])),
            2 => ("allOf", json!([inner, self.schema(depth + 1)])),
            3 => ("items", json!([inner, self.schema(depth + 1)])),
            4 => ("items", inner),
            5 => ("required", json!([key, key, 1])),
            6 => ("enum", json!(["a", "", null, 1])),
            7 => ("$ref", json!("#/$defs/d")),
            8 => ("additionalProperties", inner),
            9 => ("const", json!(1)),
            10 => ("not", inner),
            11 => ("minimum", json!("1")),
            12 => ("$schema", json!("http://json-schema.org/draft-07/schema#")),
            _ => ("properties", json!({key: inner})),
        }
    }
}
