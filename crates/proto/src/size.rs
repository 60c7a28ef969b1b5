//! The size of a value as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// Returns the length of a value's JSON in bytes, without storing the JSON. If serializing fails, the bytes up to the
/// failure count.
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
    // The caller that stores or sends the value gets the error.
    drop(serde_json::to_writer(&mut count, value));
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_value_is_the_length_of_its_json() {
        for value in [json!(null), json!({"a": ["\u{e4}\n", 1.5, true]}), json!("x".repeat(5000))] {
            assert_eq!(json_bytes(&value), value.to_string().len(), "{value}");
        }
    }
}
