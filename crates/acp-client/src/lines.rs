//! Lines of limited length.
//!
//! `LinesCodec` waits for more input after an invalid line, although the next line may be there already.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// One line of an input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// It is longer than the limit, and was skipped.
    TooLong,
    /// It is not UTF-8.
    NotText,
}

/// Reads the next line without its end. Returns `None` at the end of the input.
///
/// # Errors
///
/// Fails if the input cannot be read.
pub async fn next_line(
    input: &mut (impl AsyncBufRead + Unpin),
    limit_bytes: usize,
) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let (mut is_any, mut is_too_long, mut is_whole) = (false, false, false);
    while !is_whole {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            break;
        }
        is_any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        if bytes.len() + part.len() > limit_bytes {
            is_too_long = true;
            bytes = Vec::new();
        }
        if !is_too_long {
            bytes.extend_from_slice(part);
        }
        is_whole = end.is_some();
        let used = part.len() + usize::from(is_whole);
        input.consume(used);
    }
    Ok(match String::from_utf8(bytes) {
        _ if !is_any => None,
        _ if is_too_long => Some(Line::TooLong),
        Ok(text) => Some(Line::Text(text)),
        Err(_) => Some(Line::NotText),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_line_is_read_whatever_comes_before_it() {
        let mut input: &[u8] = b"one\n\nx\xff\nfour\n12345678\n123456789\nend";
        let mut read = Vec::new();
        while let Some(line) = next_line(&mut input, 8).await.unwrap() {
            read.push(line);
        }
        let text = |text: &str| Line::Text(text.to_owned());
        let expected = [
            text("one"),
            text(""),
            Line::NotText,
            text("four"),
            text("12345678"),
            Line::TooLong,
            text("end"),
        ];
        assert_eq!(read, expected);
    }
}
