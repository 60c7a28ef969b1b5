//! Cuts the output of a server into messages: headers with a length, an empty line, and the content.
//!
//! Lines before a header are ignored up to a limit, because some programs print to their output by mistake. The content
//! of a message that is too long is skipped without being stored.

/// The longest message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The longest message that is skipped. A longer one ends the connection.
const MAX_SKIPPED_BYTES: usize = 1024 * 1024 * 1024;
/// The longest line of a header.
const MAX_LINE_BYTES: usize = 4096;
/// The number of lines that are no headers.
const MAX_STRAY_LINES: usize = 100;
/// The capacity that the buffer keeps after a long message.
const KEPT_BYTES: usize = 64 * 1024;
/// The characters of a stray line in an error.
const SHOWN_CHARS: usize = 80;

/// A piece of the output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The content of a message.
    Message(Vec<u8>),
    /// A message of this length, which was skipped.
    TooLong(usize),
}

/// Collects the output and returns its messages.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    /// The part of the buffer that was read.
    start: usize,
    state: State,
    strays: usize,
    first_stray: String,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Headers,
    /// After the header with the length of the content.
    Length(usize),
    Content(usize),
    Skip {
        left: usize,
        length: usize,
    },
}

impl Frames {
    /// The buffer to read more output into.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        &mut self.buffer
    }

    /// The beginning of the first line that was no header, if there was one.
    pub(crate) fn stray(&self) -> Option<&str> {
        (self.strays > 0).then_some(self.first_stray.as_str())
    }

    /// The next message, or `None` if more must be read.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the output is not the protocol.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, String> {
        loop {
            match self.state {
                State::Content(length) => {
                    let Some(content) = self.buffer.get(self.start..self.start + length) else {
                        return Ok(None);
                    };
                    let content = content.to_vec();
                    self.start += length;
                    self.state = State::Headers;
                    return Ok(Some(Frame::Message(content)));
                }
                State::Skip { left, length } => {
                    let count = left.min(self.buffer.len() - self.start);
                    self.start += count;
                    if count < left {
                        self.state = State::Skip { left: left - count, length };
                        return Ok(None);
                    }
                    self.state = State::Headers;
                    return Ok(Some(Frame::TooLong(length)));
                }
                State::Headers | State::Length(_) => match self.line()? {
                    Some(line) => self.header(&line)?,
                    None => return Ok(None),
                },
            }
        }
    }

    /// The next complete line.
    fn line(&mut self) -> Result<Option<String>, String> {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let Some(end) = rest.iter().take(MAX_LINE_BYTES + 1).position(|byte| *byte == b'\n') else {
            if rest.len() > MAX_LINE_BYTES {
                return Err(foreign(&String::from_utf8_lossy(&rest[..MAX_LINE_BYTES])));
            }
            return Ok(None);
        };
        let line = String::from_utf8_lossy(&rest[..end]).trim_end_matches('\r').to_owned();
        self.start += end + 1;
        Ok(Some(line))
    }

    fn header(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            if let State::Length(length) = self.state {
                self.state = match length {
                    0..=MAX_MESSAGE_BYTES => State::Content(length),
                    length => State::Skip { left: length, length },
                };
            }
            return Ok(());
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.trim().parse().ok().filter(|length| *length <= MAX_SKIPPED_BYTES);
            let Some(length) = length else {
                return Err(format!("The server sent the length `{}` of a message.", shown(value.trim())));
            };
            self.state = State::Length(length);
        } else if !name.eq_ignore_ascii_case("content-type") {
            if self.strays == 0 {
                self.first_stray = shown(line);
            }
            self.strays += 1;
            if self.strays > MAX_STRAY_LINES {
                return Err(foreign(&self.first_stray));
            }
        }
        Ok(())
    }
}

fn foreign(line: &str) -> String {
    format!("The output of the server is not the Language Server Protocol. It begins with `{}`.", shown(line))
}

fn shown(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS).collect()
}

/// A message with its header.
pub(crate) fn framed(content: &[u8]) -> Vec<u8> {
    let mut message = format!("Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    message.extend_from_slice(content);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<Frame>, String> {
        let mut frames = Frames::default();
        let mut read = Vec::new();
        for piece in pieces {
            frames.buffer().extend_from_slice(piece);
            while let Some(frame) = frames.next()? {
                read.push(frame);
            }
            assert!(frames.buffer().len() <= MAX_MESSAGE_BYTES + MAX_LINE_BYTES);
        }
        Ok(read)
    }

    #[test]
    fn messages_may_be_cut_anywhere() {
        let stream = b"noise\nContent-Type: x\r\nContent-Length: 2\r\n\r\n{}content-length:1\n\n7";
        let whole = read(&[stream]).unwrap();
        assert_eq!(whole, [Frame::Message(b"{}".to_vec()), Frame::Message(b"7".to_vec())]);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), whole);
        assert_eq!(framed(b"{}"), b"Content-Length: 2\r\n\r\n{}");
    }

    #[test]
    fn a_message_that_is_too_long_is_skipped() {
        let junk = vec![b'x'; 1024 * 1024];
        let header = format!("Content-Length: {}\r\n\r\n", 100 * junk.len());
        let mut pieces: Vec<&[u8]> = vec![header.as_bytes()];
        pieces.extend(std::iter::repeat_n(&junk[..], 100));
        pieces.push(b"Content-Length: 2\r\n\r\n{}");
        let read = read(&pieces).unwrap();
        assert_eq!(read, [Frame::TooLong(100 * junk.len()), Frame::Message(b"{}".to_vec())]);
    }

    #[test]
    fn output_that_is_not_the_protocol_ends_the_connection() {
        let lines = "<html>\n".repeat(MAX_STRAY_LINES + 1);
        assert!(read(&[lines.as_bytes()]).unwrap_err().contains("begins with `<html>`"));
        let long = "x".repeat(MAX_LINE_BYTES + 2);
        assert!(read(&[long.as_bytes()]).unwrap_err().contains("not the Language Server Protocol"));
        for length in ["-1", "x", "99999999999999999999", "1073741825"] {
            let error = read(&[format!("Content-Length: {length}\r\n\r\n").as_bytes()]).unwrap_err();
            assert!(error.contains(length), "{error}");
        }
    }
}
