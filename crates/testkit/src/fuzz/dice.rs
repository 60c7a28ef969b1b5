//! Reproducible random numbers, texts and JSON values.

use serde_json::{Map, Value, json};

/// Texts that are easy to handle wrongly. None is a command with an effect or a path that a route may write to.
const TEXTS: [&str; 30] = [
    "",
    " ",
    "..",
    "../../x",
    ".",
    "nul\u{0}l",
    "ses_",
    "ses_x0000",
    "msg_x",
    "prt_",
    "-1",
    "0",
    "NaN",
    "true",
    "null",
    "undefined",
    "1e309",
    "18446744073709551616",
    "\u{202e}x",
    "\u{feff}",
    "\u{1f600}\u{200d}\u{1f468}",
    "e\u{301}\u{301}\u{301}",
    "{\"a\":1}",
    "%",
    "%00",
    "(",
    "[[[",
    "src/main.rs",
    "a\r\nb: c",
    "__proto__",
];
const NUMBERS: [f64; 10] =
    [0.0, -1.0, 0.5, 1e300, -1e300, 9_007_199_254_740_993.0, 4_294_967_296.0, 1e-300, 255.0, 65_536.0];
const KEYS: [&str; 16] = [
    "parts",
    "type",
    "text",
    "url",
    "mime",
    "model",
    "providerID",
    "modelID",
    "agent",
    "messageID",
    "title",
    "time",
    "metadata",
    "__proto__",
    "",
    "\u{202e}",
];
/// The largest depth of a value.
const DEPTH: usize = 5;

pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        // Neighbouring seeds should not start alike, and 0 would stay 0.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % sides.max(1) as u64) as usize
    }

    /// Returns true once in `times` calls on average.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }

    pub(super) fn text(&mut self) -> String {
        match self.roll(10) {
            0 => "x".repeat(self.roll(3000)),
            1 => "\u{e4}".repeat(self.roll(300)),
            2 => (0..self.roll(20)).filter_map(|_| char::from_u32(self.roll(0x11_0000) as u32)).collect(),
            _ => (*self.pick(&TEXTS)).to_owned(),
        }
    }

    pub(super) fn number(&mut self) -> Value {
        match self.roll(4) {
            0 => json!(self.roll(100)),
            1 => json!(u64::MAX),
            2 => json!(i64::MIN),
            _ => json!(*self.pick(&NUMBERS)),
        }
    }

    pub(super) fn value(&mut self) -> Value {
        self.value_of(DEPTH)
    }

    fn value_of(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => self.number(),
            3 | 4 => json!(self.text()),
            5 => (0..self.roll(5)).map(|_| self.value_of(depth - 1)).collect(),
            _ => {
                let entries = 0..self.roll(6);
                let entries = entries.map(|_| ((*self.pick(&KEYS)).to_owned(), self.value_of(depth - 1)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    pub(super) fn bytes(&mut self) -> Vec<u8> {
        (0..self.roll(600)).map(|_| self.roll(256) as u8).collect()
    }
}
