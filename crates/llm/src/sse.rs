//! A parser for server-sent events.
//!
//! The events do not depend on how the bytes are cut into pieces. The protocols here use only
//! `data`, so event names, ids, retry times and comments are skipped. Lines end in LF, CRLF or CR.

/// Limit of one event. A server that sends more is broken or malicious.
pub(crate) const EVENT_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// An event exceeds [`EVENT_LIMIT_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// A parser, with its state between two reads.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The data of an incomplete event.
    data: Vec<u8>,
    has_data: bool,
    /// The last line ended in CR, so a following LF belongs to it.
    after_cr: bool,
    /// The first line was parsed, so a byte order mark is data from now on.
    begun: bool,
}

impl Parser {
    /// Parses `bytes` and passes the data of each complete event to `on_event`.
    ///
    /// Stops at the first error. Must not be called again after an error.
    pub(crate) fn feed<E: From<TooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(at);
            if let Some((data, after)) = self.whole(line, rest) {
                self.begun = true;
                emit(data, &mut on_event)?;
                bytes = after;
                continue;
            }
            if self.line.is_empty() {
                self.take_line(line, &mut on_event)?;
            } else {
                self.check_limit(line.len())?;
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take_line(&whole, &mut on_event)?;
                // Keep the allocation for the next line that comes in pieces.
                whole.clear();
                self.line = whole;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                rest => &rest[1..],
            };
        }
        self.check_limit(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Parses the remaining bytes of a connection that ended without a last blank line.
    pub(crate) fn finish<E: From<TooLong>>(
        &mut self,
        mut on_event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut on_event)?;
        }
        self.dispatch(&mut on_event)
    }

    fn take_line<E: From<TooLong>>(
        &mut self,
        line: &[u8],
        on_event: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = match self.begun {
            true => line,
            false => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
        };
        self.begun = true;
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let Some(value) = line.strip_prefix(b"data") else { return Ok(()) };
        let value = match value {
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            [] => value,
            // Another field whose name starts with `data`.
            _ => return Ok(()),
        };
        self.check_limit(value.len())?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch<E>(&mut self, on_event: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        if !self.has_data {
            return Ok(());
        }
        self.has_data = false;
        let result = emit(&self.data, on_event);
        self.data.clear();
        result
    }

    /// Returns the data of an event that consists of this line, and the bytes after the event,
    /// without copying.
    fn whole<'a>(&self, line: &'a [u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let after = rest.strip_prefix(b"\n\n").or_else(|| rest.strip_prefix(b"\r\n\r\n"))?;
        let is_alone = self.line.is_empty() && !self.has_data;
        let data = line.strip_prefix(b"data: ").filter(|_| is_alone && line.len() <= EVENT_LIMIT_BYTES)?;
        Some((data, after))
    }

    fn check_limit(&self, more: usize) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() + more > EVENT_LIMIT_BYTES { Err(TooLong) } else { Ok(()) }
    }
}

fn emit<E>(data: &[u8], on_event: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    match std::str::from_utf8(data) {
        Ok(data) => on_event(data),
        // One invalid character must not lose the whole answer.
        Err(_) => on_event(&String::from_utf8_lossy(data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser
                .feed::<TooLong>(piece, |data| {
                    events.push(data.to_owned());
                    Ok(())
                })
                .unwrap();
        }
        parser
            .finish::<TooLong>(|data| {
                events.push(data.to_owned());
                Ok(())
            })
            .unwrap();
        events
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(read([text.as_bytes()]), expected, "in one piece");
        assert_eq!(read(text.as_bytes().chunks(1)), expected, "byte by byte");
    }

    #[test]
    fn an_event_ends_at_a_blank_line() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
    }

    #[test]
    fn every_line_ending_is_accepted() {
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"]);
    }

    #[test]
    fn one_space_after_the_colon_is_not_data() {
        check("data:a\n\ndata:  b\n\ndata\n\n", &["a", " b", ""]);
    }

    #[test]
    fn names_ids_and_comments_are_skipped() {
        check(": keep-alive\n\nevent: x\nid: 1\nretry: 5\ndata: a\n: c\n\ndatabase: no\n\n", &["a"]);
    }

    #[test]
    fn several_data_lines_are_one_event() {
        check("data: a\ndata:\ndata: b\n\n", &["a\n\nb"]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        check("\u{feff}data: a\n\n", &["a"]);
    }

    #[test]
    fn an_event_at_the_end_needs_no_blank_line() {
        check("data: a\n\ndata: b", &["a", "b"]);
    }

    #[test]
    fn a_broken_character_is_replaced() {
        assert_eq!(read([&b"data: a\xFFb\n\n"[..]]), ["a\u{fffd}b"]);
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; 1024 * 1024];
        let mut fed = 0;
        while parser.feed::<TooLong>(&piece, |_| Ok(())).is_ok() {
            fed += piece.len();
            assert!(fed <= EVENT_LIMIT_BYTES);
        }
        assert_eq!(fed, EVENT_LIMIT_BYTES);
    }

    fn lines() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just(String::new()),
            Just(": ping".to_owned()),
            Just("event: x".to_owned()),
            "data: [a-zäß€😀 ]{0,12}",
            "data:[a-z:]{0,5}",
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
        // A line ending in CR before a blank line ending in LF is the same as one CRLF.
        (proptest::collection::vec(line, 0..24), end)
            .prop_map(|(lines, end)| lines.iter().map(|line| format!("{line}{end}")).collect())
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(text in lines(), cuts in proptest::collection::vec(0usize..400, 0..12)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(pieces), read([bytes]));
        }

        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let whole = read([&bytes[..]]);
            prop_assert_eq!(read(bytes.chunks(3)), whole);
        }
    }
}
