//! A chunk that differs from the last only in its text.
//!
//! Most chunks of a long answer do. Comparing bytes is several times as fast
//! as parsing, and gives the same: between equal beginnings and ends stands
//! one string, and what has no quote, escape or control character is its value.

/// What stands around the text of the last chunk.
#[derive(Debug, Default)]
pub(crate) struct Repeat {
    before: String,
    after: String,
}

impl Repeat {
    /// The text of a chunk like the last one.
    pub(crate) fn text<'a>(&self, data: &'a str) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = data.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        (!text.is_empty() && is_plain(text)).then_some(text)
    }

    /// Learns a chunk that gave out `text` and nothing else, `key` being where it stands, such as `"content":"`.
    pub(crate) fn learn(&mut self, data: &str, key: &str, text: &str) {
        self.before.clear();
        self.after.clear();
        // With the key twice, it would not be sure which one was read.
        if let Some((before, rest)) = data.split_once(key)
            && !rest.contains(key)
            && is_plain(text)
            && let Some(after) = rest.strip_prefix(text).filter(|after| after.starts_with('"'))
        {
            self.before.push_str(before);
            self.before.push_str(key);
            self.after.push_str(after);
        }
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
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
            (r#"{"id":1,"content":"b\n","x":2}"#, None),
            (r#"{"id":1,"content":"b","y":"c","x":2}"#, None),
            (r#"{"id":1,"content":","x":2}"#, None),
        ] {
            assert_eq!(repeat.text(data), expected, "{data}");
        }
        for (data, text) in [
            (r#"{"content":"a","content":"a"}"#, "a"),
            (r#"{"content":"a\n"}"#, "a\n"),
            (r#"{"content": "a"}"#, "a"),
        ] {
            repeat.learn(data, key, text);
            assert_eq!(repeat.text(data), None, "{data}");
        }
    }
}
