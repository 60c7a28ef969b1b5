//! A parser for Amazon's binary event stream.
//!
//! The events do not depend on how the bytes are cut into pieces. A frame consists of its length,
//! the headers' length, a checksum of both, headers, a payload and a checksum of the frame.
//! Each event, exception and error becomes a JSON object `{"<name of the event>": <payload>}`.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Limit of one frame. A server that sends more is broken or malicious.
pub(crate) const FRAME_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// Limit of the buffer that is kept between reads.
const EVENT_KEPT_BYTES: usize = 64 * 1024;
/// Size of both lengths and their checksum, and of everything in a frame except headers and
/// payload.
const PRELUDE_BYTES: usize = 12;
const OVERHEAD_BYTES: usize = 16;

/// The reason why bytes are not an event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// A frame's length exceeds [`FRAME_LIMIT_BYTES`].
    TooLong,
    /// Lengths or headers contradict each other.
    Malformed,
    /// A checksum is wrong.
    Checksum,
    /// The first bytes are not a frame.
    Foreign,
    /// The stream ended inside a frame.
    Cut,
}

/// A parser, with its state between two reads.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The start of an incomplete frame.
    rest: Vec<u8>,
    /// The lengths of a frame were valid, so the bytes are a stream of frames.
    begun: bool,
    /// Buffer for the event of a frame, kept to save allocations.
    event: String,
}

impl Frames {
    /// Parses `bytes` and passes each complete event to `on_event`.
    ///
    /// Stops at the first error. Must not be called again after an error.
    pub(crate) fn feed<E: From<FrameError>>(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.rest.is_empty() {
            let used = read(bytes, &mut self.begun, &mut self.event, &mut on_event)?;
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            self.rest.extend_from_slice(bytes);
            let used = read(&self.rest, &mut self.begun, &mut self.event, &mut on_event)?;
            self.rest.drain(..used);
        }
        self.event.shrink_to(EVENT_KEPT_BYTES);
        Ok(())
    }

    /// Fails if the connection ended inside a frame.
    pub(crate) fn finish(&self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FrameError::Cut) }
    }
}

/// Passes the events of all complete frames in `bytes` to `on_event`. Returns the number of bytes
/// used.
fn read<E: From<FrameError>>(
    bytes: &[u8],
    begun: &mut bool,
    event_text: &mut String,
    on_event: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<usize, E> {
    let mut used = 0;
    while let Some(prelude) = bytes[used..].first_chunk::<PRELUDE_BYTES>() {
        let (total, headers) = lengths(prelude).map_err(|why| match why {
            FrameError::Checksum if !*begun => FrameError::Foreign,
            why => why,
        })?;
        *begun = true;
        let Some(frame) = bytes[used..].get(..total) else { break };
        let (covered, checksum) = frame.split_at(total - 4);
        if crc32fast::hash(covered) != number(checksum) {
            return Err(FrameError::Checksum.into());
        }
        let (headers, payload) = covered[PRELUDE_BYTES..].split_at(headers);
        event_text.clear();
        event(&Headers::read(headers)?, payload, event_text);
        if !event_text.is_empty() {
            on_event(event_text)?;
        }
        used += total;
    }
    Ok(used)
}

/// Returns the length of a frame and the length of the headers.
fn lengths(prelude: &[u8; PRELUDE_BYTES]) -> Result<(usize, usize), FrameError> {
    if crc32fast::hash(&prelude[..8]) != number(&prelude[8..]) {
        return Err(FrameError::Checksum);
    }
    let (total, headers) = (number(&prelude[..4]) as usize, number(&prelude[4..8]) as usize);
    if total > FRAME_LIMIT_BYTES {
        return Err(FrameError::TooLong);
    }
    if total < OVERHEAD_BYTES || headers > total - OVERHEAD_BYTES {
        return Err(FrameError::Malformed);
    }
    Ok((total, headers))
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// The headers that describe a frame. Others are skipped.
#[derive(Debug, Default)]
struct Headers<'a> {
    message_type: &'a str,
    event_type: &'a str,
    exception_type: &'a str,
    error_code: &'a str,
    error_message: &'a str,
}

impl<'a> Headers<'a> {
    fn read(mut bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut found = Self::default();
        while !bytes.is_empty() {
            let length = take(&mut bytes, 1)?[0];
            let name = take(&mut bytes, usize::from(length))?;
            // The number is the type of the value. The headers used here are strings (type 7).
            let value = match take(&mut bytes, 1)?[0] {
                0 | 1 => &[],
                2 => take(&mut bytes, 1)?,
                3 => take(&mut bytes, 2)?,
                4 => take(&mut bytes, 4)?,
                5 | 8 => take(&mut bytes, 8)?,
                6 | 7 => {
                    let length = take(&mut bytes, 2)?;
                    take(&mut bytes, usize::from(length[0]) << 8 | usize::from(length[1]))?
                }
                9 => take(&mut bytes, 16)?,
                _ => return Err(FrameError::Malformed),
            };
            let field = match name {
                b":message-type" => &mut found.message_type,
                b":event-type" => &mut found.event_type,
                b":exception-type" => &mut found.exception_type,
                b":error-code" => &mut found.error_code,
                b":error-message" => &mut found.error_message,
                _ => continue,
            };
            *field = std::str::from_utf8(value).map_err(|_| FrameError::Malformed)?;
        }
        Ok(found)
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], FrameError> {
    let (head, rest) = bytes.split_at_checked(count).ok_or(FrameError::Malformed)?;
    *bytes = rest;
    Ok(head)
}

/// Writes the event of a frame as a JSON object. Writes nothing if the frame has no event.
fn event(headers: &Headers, payload: &[u8], out: &mut String) {
    let payload = String::from_utf8_lossy(payload);
    match headers.message_type {
        "event" if headers.event_type.is_empty() => {}
        "event" => object(headers.event_type, filled(&payload), out),
        "exception" => {
            let is_object = payload.trim_start().starts_with('{');
            let body = if is_object { payload } else { json!({"message": payload}).to_string().into() };
            let name = match headers.exception_type {
                "" => "unknownException",
                name => name,
            };
            object(name, &body, out);
        }
        "error" => {
            let (code, message) = (headers.error_code, headers.error_message);
            object("error", &json!({"code": code, "message": message}).to_string(), out);
        }
        _ => {}
    }
}

fn object(name: &str, body: &str, out: &mut String) {
    out.push('{');
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        out.extend(["\"", name, "\""]);
    } else {
        out.push_str(&Value::from(name).to_string());
    }
    out.extend([":", body, "}"]);
}

fn filled<'a>(payload: &'a Cow<'a, str>) -> &'a str {
    if payload.trim().is_empty() { "{}" } else { payload }
}

/// Writes a frame, for tests.
#[cfg(test)]
pub(crate) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&(value.len() as u16).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let mut frame = Vec::new();
    frame.extend_from_slice(&((OVERHEAD_BYTES + head.len() + payload.len()) as u32).to_be_bytes());
    frame.extend_from_slice(&(head.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EVENT: &[(&str, &str)] = &[
        (":event-type", "contentBlockDelta"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];

    fn play<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, FrameError> {
        let (mut frames, mut events) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.feed::<FrameError>(piece, |event| {
                events.push(event.to_owned());
                Ok(())
            })?;
        }
        frames.finish()?;
        Ok(events)
    }

    #[test]
    fn a_published_example_is_parsed() {
        // The empty message and the one with a payload of the format's published examples.
        let empty = [0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(play([&empty[..]]), Ok(vec![]));
        assert_eq!(frame(&[], ""), empty);
    }

    #[test]
    fn events_and_exceptions_become_objects_named_for_them() {
        let exception = |name| [(":message-type", "exception"), (":exception-type", name)];
        for (frame, expected) in [
            (frame(EVENT, r#"{"a":1}"#), r#"{"contentBlockDelta":{"a":1}}"#),
            (frame(EVENT, ""), r#"{"contentBlockDelta":{}}"#),
            (
                frame(&exception("throttlingException"), r#"{"message":"slow"}"#),
                r#"{"throttlingException":{"message":"slow"}}"#,
            ),
            (frame(&exception("x"), "plain"), r#"{"x":{"message":"plain"}}"#),
            (
                frame(&[(":message-type", "error"), (":error-code", "c"), (":error-message", "m")], ""),
                r#"{"error":{"code":"c","message":"m"}}"#,
            ),
        ] {
            assert_eq!(play([&frame[..]]), Ok(vec![expected.to_owned()]));
        }
    }

    #[test]
    fn every_type_of_header_is_skipped() {
        let mut head = Vec::new();
        for (kind, bytes) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
            head.extend([1, b'x', kind]);
            head.extend(std::iter::repeat_n(0u8, bytes));
        }
        head.extend([1, b'y', 6, 0, 2, 0, 0]);
        assert!(Headers::read(&head).is_ok());
        for end in 1..head.len() {
            // A cut between two headers cannot be detected.
            drop(Headers::read(&head[..end]));
        }
        assert_eq!(Headers::read(&[1, b'x', 10]).unwrap_err(), FrameError::Malformed);
        assert_eq!(Headers::read(&[5, b'x']).unwrap_err(), FrameError::Malformed);
    }

    #[test]
    fn invalid_frames_are_rejected() {
        let mut wrong = frame(EVENT, "{}");
        let last = wrong.len() - 6;
        wrong[last] ^= 1;
        assert_eq!(play([&wrong[..]]), Err(FrameError::Checksum));
        wrong[0] = 1;
        assert_eq!(play([&wrong[..]]), Err(FrameError::Foreign));
        assert_eq!(play([&frame(EVENT, "{}")[..], &wrong[..]]), Err(FrameError::Checksum));
        assert_eq!(play([&b"{\"message\":\"not frames\"}"[..]]), Err(FrameError::Foreign));

        let prelude = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            bytes
        };
        assert_eq!(play([&prelude(FRAME_LIMIT_BYTES as u32 + 1, 0)[..]]), Err(FrameError::TooLong));
        assert_eq!(play([&prelude(u32::MAX, u32::MAX)[..]]), Err(FrameError::TooLong));
        assert_eq!(play([&prelude(15, 0)[..]]), Err(FrameError::Malformed));
        assert_eq!(play([&prelude(20, 5)[..]]), Err(FrameError::Malformed));
    }

    #[test]
    fn a_cut_stream_is_noticed() {
        let frame = frame(EVENT, r#"{"a":1}"#);
        for end in 1..frame.len() {
            assert_eq!(play([&frame[..end]]), Err(FrameError::Cut), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(
            payloads in proptest::collection::vec("[a-zäß€😀]{0,40}", 1..8),
            cuts in proptest::collection::vec(0usize..600, 0..12),
        ) {
            let bytes: Vec<u8> =
                payloads.iter().flat_map(|text| frame(EVENT, &json!({"t": text}).to_string())).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let whole = play([&bytes[..]]);
            prop_assert_eq!(whole.as_ref().map(Vec::len), Ok(payloads.len()));
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(play(pieces), whole.clone());
            prop_assert_eq!(play(bytes.chunks(1)), whole);
        }

        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let whole = play([&bytes[..]]);
            prop_assert_eq!(play(bytes.chunks(3)).is_err(), whole.is_err());
            drop(Headers::read(&bytes));
        }
    }
}
