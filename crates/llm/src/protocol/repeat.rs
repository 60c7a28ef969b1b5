//! Fast path for chunks that differ from the previous one only in their text.
//!
//! Most chunks of a long answer do. Comparing bytes is several times as fast as parsing, with the
//! same result: between an equal start and an equal end there is one string. Some unused fields
//! that change with every chunk, such as its number, may differ too.

use std::borrow::Cow;

/// The fields whose value may differ.
const FREE: &[&str] = &[
    "\"obfuscation\":\"",
    "\"sequence_number\":",
    "\"promptTokenCount\":",
    "\"candidatesTokenCount\":",
    "\"thoughtsTokenCount\":",
    "\"totalTokenCount\":",
];

/// The parts of the previous chunk around its text.
#[derive(Debug, Default)]
pub(crate) struct Repeat {
    before: String,
    /// The text after the string. Between two elements there is the value of a free field.
    after: Vec<String>,
}

impl Repeat {
    /// Returns the text of a chunk that matches the previous one.
    pub(crate) fn text<'a>(&self, data: &'a str) -> Option<Cow<'a, str>> {
        if self.before.is_empty() {
            return None;
        }
        let rest = data.strip_prefix(self.before.as_str())?;
        let (text, has_escapes) = string(rest)?;
        let mut tail = &rest[text.len()..];
        for (at, literal) in self.after.iter().enumerate() {
            if at > 0 {
                tail = &tail[free(tail, self.after[at - 1].ends_with('"'))?..];
            }
            tail = tail.strip_prefix(literal.as_str())?;
        }
        if text.is_empty() || !tail.is_empty() {
            return None;
        }
        if !has_escapes {
            return is_plain(text).then_some(Cow::Borrowed(text));
        }
        // The quotes around the text belong to the equal parts.
        let start = self.before.len() - 1;
        serde_json::from_str(&data[start..start + text.len() + 2]).ok().map(Cow::Owned)
    }

    /// Forgets the previous chunk.
    pub(crate) fn forget(&mut self) {
        self.before.clear();
        self.after.clear();
    }

    /// Remembers a chunk that emitted only `text`. `key` precedes the text in the chunk, such as
    /// `"content":"`.
    pub(crate) fn learn(&mut self, data: &str, key: &str, text: &str) {
        self.forget();
        // If the key occurs twice, the text could belong to either.
        if let Some((before, rest)) = data.split_once(key)
            && !rest.contains(key)
            && let Some((raw, has_escapes)) = string(rest)
            && (has_escapes || raw == text)
        {
            let mut after = &rest[raw.len()..];
            self.before.push_str(before);
            self.before.push_str(key);
            let first_free = |text: &str| {
                let ends =
                    FREE.iter().filter_map(|key| Some((text.find(key)? + key.len(), key.ends_with('"'))));
                ends.min()
            };
            while let Some((end, is_text)) = first_free(after) {
                let Some(length) = free(&after[end..], is_text) else { break };
                self.after.push(after[..end].to_owned());
                after = &after[end + length..];
            }
            self.after.push(after.to_owned());
        }
    }
}

/// Returns the text before the closing quote of a string, and whether it contains escapes.
fn string(rest: &str) -> Option<(&str, bool)> {
    let bytes = rest.as_bytes();
    let (mut at, mut has_escapes) = (0, false);
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some((&rest[..at], has_escapes));
        }
        has_escapes = true;
        at += 2;
    }
}

/// Returns the length of a free field's value: a string without its quotes, or a whole number.
fn free(rest: &str, is_text: bool) -> Option<usize> {
    if is_text {
        return string(rest)
            .filter(|(text, has_escapes)| !has_escapes && is_plain(text))
            .map(|(text, _)| text.len());
    }
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    (length == 1 || length > 1 && !rest.starts_with('0')).then_some(length)
}

/// Returns whether the text has no control character. Checking all bytes is faster than stopping
/// early.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |is_plain, byte| is_plain & (byte >= b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_may_differ() {
        let mut repeat = Repeat::default();
        let key = "\"content\":\"";
        assert_eq!(repeat.text(r#"{"content":"a"}"#), None);
        repeat.learn(r#"{"id":1,"content":"a","x":2}"#, key, "a");
        for (data, expected) in [
            (r#"{"id":1,"content":"bc ä","x":2}"#, Some("bc ä")),
            (r#"{"id":2,"content":"b","x":2}"#, None),
            (r#"{"id":1,"content":"b","x":3}"#, None),
            (r#"{"id":1,"content":"","x":2}"#, None),
            (r#"{"id":1,"content":"b\n\"","x":2}"#, Some("b\n\"")),
            (r#"{"id":1,"content":"b\q","x":2}"#, None),
            ("{\"id\":1,\"content\":\"b\n\",\"x\":2}", None),
            (r#"{"id":1,"content":"b","y":"c","x":2}"#, None),
            (r#"{"id":1,"content":","x":2}"#, None),
        ] {
            assert_eq!(repeat.text(data).as_deref(), expected, "{data}");
        }
        for (data, text) in [(r#"{"content":"a","content":"a"}"#, "a"), (r#"{"content": "a"}"#, "a")] {
            repeat.learn(data, key, text);
            assert_eq!(repeat.text(data), None, "{data}");
        }
    }

    #[test]
    fn unused_fields_may_differ() {
        let mut repeat = Repeat::default();
        let data = r#"{"delta":"a","obfuscation":"xY","i":0,"sequence_number":4}"#;
        repeat.learn(data, "\"delta\":\"", "a");
        for (data, expected) in [
            (r#"{"delta":"b","obfuscation":"","i":0,"sequence_number":15}"#, Some("b")),
            (r#"{"delta":"b","obfuscation":"z","i":1,"sequence_number":5}"#, None),
            (r#"{"delta":"b","obfuscation":"z","i":0,"sequence_number":05}"#, None),
            (r#"{"delta":"b","obfuscation":"z","i":0,"sequence_number":}"#, None),
            (r#"{"delta":"b","obfuscation":"\"z","i":0,"sequence_number":5}"#, None),
            (r#"{"delta":"b","obfuscation":"z","i":0,"sequence_number":5},"#, None),
        ] {
            assert_eq!(repeat.text(data).as_deref(), expected, "{data}");
        }
        repeat.learn(r#"{"delta":"a\n"}"#, "\"delta\":\"", "a\n");
        assert_eq!(repeat.text(r#"{"delta":"b"}"#).as_deref(), Some("b"));
        repeat.forget();
        assert_eq!(repeat.text(data), None);
    }
}
