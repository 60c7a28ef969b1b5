//! How large a value is.

use std::io::{self, Write};

use serde::Serialize;

/// How many bytes a value of the vocabulary has as JSON; none of it is kept. What has no JSON counts as far as it has.
#[must_use]
pub fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Whoever stores or sends the value is told what is wrong with it.
    drop(serde_json::to_writer(&mut count, value));
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_as_large_as_its_json() {
        for value in [json!(null), json!({"a": ["\u{e4}\n", 1.5, true]}), json!("x".repeat(5000))] {
            assert_eq!(json_bytes(&value), value.to_string().len(), "{value}");
        }
    }
}
