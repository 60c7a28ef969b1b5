//! Amazon's binary event stream, read from bytes as they come.
//!
//! However the bytes are cut, the same events come out. A frame is a length,
//! the length of its headers, a checksum of both, headers, a payload and a
//! checksum of it all. What comes out is the JSON object
//! `{"<name of the event>": <payload>}`, for exceptions and errors too.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Bytes one frame may have. A server that sends more is broken or hostile.
pub(crate) const FRAME_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// Memory that is kept between reads to write events in.
const EVENT_KEPT_BYTES: usize = 64 * 1024;
/// Two lengths and their checksum; and all a frame has besides headers and payload.
const PRELUDE_BYTES: usize = 12;
const OVERHEAD_BYTES: usize = 16;

/// Why bytes are no event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A frame says it is longer than [`FRAME_LIMIT_BYTES`].
    TooLong,
    /// Lengths or headers contradict one another.
    Malformed,
    /// A checksum is wrong.
    Checksum,
    /// The very first bytes are no frame's.
    Foreign,
    /// The stream ended inside a frame.
    Cut,
}

/// The state between two reads.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The bytes of a frame whose end has not come yet.
    rest: Vec<u8>,
    /// A frame's lengths have been read well, so this is a stream of frames.
    begun: bool,
    /// Where the event of a frame is written; kept because most are small.
    event: String,
}

impl Frames {
    /// Reads `bytes` and hands every event that is now complete to `on_event`.
    ///
    /// Stops at the first error; it must not be fed after one.
    pub(crate) fn feed<E: From<Broken>>(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.rest.is_empty() {
            let used = read(bytes, (&mut self.begun, &mut self.event), &mut on_event)?;
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            self.rest.extend_from_slice(bytes);
            let used = read(&self.rest, (&mut self.begun, &mut self.event), &mut on_event)?;
            self.rest.drain(..used);
        }
        self.event.shrink_to(EVENT_KEPT_BYTES);
        Ok(())
    }

    /// The connection has ended; a frame that had begun was cut.
    pub(crate) fn finish(&self) -> Result<(), Broken> {
        if self.rest.is_empty() { Ok(()) } else { Err(Broken::Cut) }
    }
}

/// Hands over all whole frames at the beginning of `bytes`, and says how many bytes they are.
fn read<E: From<Broken>>(
    bytes: &[u8],
    (begun, written): (&mut bool, &mut String),
    on_event: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<usize, E> {
    let mut used = 0;
    while let Some(prelude) = bytes[used..].first_chunk::<PRELUDE_BYTES>() {
        let (total, headers) = lengths(prelude).map_err(|why| match why {
            Broken::Checksum if !*begun => Broken::Foreign,
            why => why,
        })?;
        *begun = true;
        let Some(frame) = bytes[used..].get(..total) else { break };
        let (covered, checksum) = frame.split_at(total - 4);
        if crc32fast::hash(covered) != number(checksum) {
            return Err(Broken::Checksum.into());
        }
        let (headers, payload) = covered[PRELUDE_BYTES..].split_at(headers);
        written.clear();
        event(&Headers::read(headers)?, payload, written);
        if !written.is_empty() {
            on_event(written)?;
        }
        used += total;
    }
    Ok(used)
}

/// The lengths of a frame and of its headers.
fn lengths(prelude: &[u8; PRELUDE_BYTES]) -> Result<(usize, usize), Broken> {
    if crc32fast::hash(&prelude[..8]) != number(&prelude[8..]) {
        return Err(Broken::Checksum);
    }
    let (total, headers) = (number(&prelude[..4]) as usize, number(&prelude[4..8]) as usize);
    if total > FRAME_LIMIT_BYTES {
        return Err(Broken::TooLong);
    }
    if total < OVERHEAD_BYTES || headers > total - OVERHEAD_BYTES {
        return Err(Broken::Malformed);
    }
    Ok((total, headers))
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// The headers that say what a frame is; all others are read over.
#[derive(Debug, Default)]
struct Headers<'a> {
    message_type: &'a str,
    event_type: &'a str,
    exception_type: &'a str,
    error_code: &'a str,
    error_message: &'a str,
}

impl<'a> Headers<'a> {
    fn read(mut bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut found = Self::default();
        while !bytes.is_empty() {
            let length = take(&mut bytes, 1)?[0];
            let name = take(&mut bytes, usize::from(length))?;
            // Kinds of value by number: what is said here is always text, the seventh.
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
                _ => return Err(Broken::Malformed),
            };
            let place = match name {
                b":message-type" => &mut found.message_type,
                b":event-type" => &mut found.event_type,
                b":exception-type" => &mut found.exception_type,
                b":error-code" => &mut found.error_code,
                b":error-message" => &mut found.error_message,
                _ => continue,
            };
            *place = std::str::from_utf8(value).map_err(|_| Broken::Malformed)?;
        }
        Ok(found)
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Broken> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(Broken::Malformed)?;
    *bytes = rest;
    Ok(taken)
}

/// Writes the event of a frame as one JSON object; nothing for a frame that carries none.
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

    fn play<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, Broken> {
        let (mut frames, mut events) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.feed::<Broken>(piece, |event| {
                events.push(event.to_owned());
                Ok(())
            })?;
        }
        frames.finish()?;
        Ok(events)
    }

    #[test]
    fn a_frame_known_from_elsewhere_is_read() {
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
    fn every_kind_of_header_is_read_over() {
        let mut head = Vec::new();
        for (kind, bytes) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
            head.extend([1, b'x', kind]);
            head.extend(std::iter::repeat_n(0u8, bytes));
        }
        head.extend([1, b'y', 6, 0, 2, 0, 0]);
        assert!(Headers::read(&head).is_ok());
        for end in 1..head.len() {
            // A cut inside a header is noticed; one between two of them cannot be.
            drop(Headers::read(&head[..end]));
        }
        assert_eq!(Headers::read(&[1, b'x', 10]).unwrap_err(), Broken::Malformed);
        assert_eq!(Headers::read(&[5, b'x']).unwrap_err(), Broken::Malformed);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut wrong = frame(EVENT, "{}");
        let last = wrong.len() - 6;
        wrong[last] ^= 1;
        assert_eq!(play([&wrong[..]]), Err(Broken::Checksum));
        wrong[0] = 1;
        assert_eq!(play([&wrong[..]]), Err(Broken::Foreign));
        assert_eq!(play([&frame(EVENT, "{}")[..], &wrong[..]]), Err(Broken::Checksum));
        assert_eq!(play([&b"{\"message\":\"not frames\"}"[..]]), Err(Broken::Foreign));

        let prelude = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
            bytes
        };
        assert_eq!(play([&prelude(FRAME_LIMIT_BYTES as u32 + 1, 0)[..]]), Err(Broken::TooLong));
        assert_eq!(play([&prelude(u32::MAX, u32::MAX)[..]]), Err(Broken::TooLong));
        assert_eq!(play([&prelude(15, 0)[..]]), Err(Broken::Malformed));
        assert_eq!(play([&prelude(20, 5)[..]]), Err(Broken::Malformed));
    }

    #[test]
    fn a_cut_stream_is_noticed() {
        let frame = frame(EVENT, r#"{"a":1}"#);
        for end in 1..frame.len() {
            assert_eq!(play([&frame[..end]]), Err(Broken::Cut), "{end}");
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
