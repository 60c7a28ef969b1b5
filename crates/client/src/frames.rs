//! Splits a server-sent event stream into frames.
//!
//! Bytes are pushed as they arrive, and complete frames are pulled. The chunks in which the bytes arrive
//! make no difference.

/// The maximum size of a frame, and so of the buffer.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// The position to resume from, if the frame names one.
    pub(crate) id: Option<String>,
    /// Its data lines, joined by newlines.
    pub(crate) data: String,
}

/// Why a frame cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFrame {
    TooLong,
    NotUtf8,
}

impl BadFrame {
    pub(crate) fn reason(self) -> String {
        match self {
            Self::TooLong => format!("an event is larger than {} MiB", MAX_FRAME_BYTES / 1024 / 1024),
            Self::NotUtf8 => "an event is not UTF-8".to_owned(),
        }
    }
}

/// Bytes that have arrived and are not yet a complete frame.
#[derive(Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    /// The start of the first unread line.
    start: usize,
    /// The buffer has no newline between `start` and this position.
    scanned: usize,
    frame: Frame,
    has_data: bool,
}

impl Frames {
    /// Adds bytes from the network.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), BadFrame> {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.len() + self.frame.data.len() + bytes.len() > MAX_FRAME_BYTES {
            return Err(BadFrame::TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next frame with data if it has arrived completely.
    pub(crate) fn pull(&mut self) -> Result<Option<Frame>, BadFrame> {
        while let Some(length) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') {
            let end = self.scanned + length;
            let line = &self.buffer[self.start..end];
            let line = std::str::from_utf8(line).map_err(|_| BadFrame::NotUtf8)?;
            let line = line.strip_suffix('\r').unwrap_or(line);
            let ended = line.is_empty();
            read_line(line, &mut self.frame, &mut self.has_data);
            self.start = end + 1;
            self.scanned = self.start;
            if ended {
                let frame = std::mem::take(&mut self.frame);
                if std::mem::take(&mut self.has_data) {
                    return Ok(Some(frame));
                }
            }
        }
        self.scanned = self.buffer.len();
        Ok(None)
    }
}

fn read_line(line: &str, frame: &mut Frame, has_data: &mut bool) {
    let (field, value) = line.split_once(':').unwrap_or((line, ""));
    let value = value.strip_prefix(' ').unwrap_or(value);
    match field {
        "data" => {
            if std::mem::replace(has_data, true) {
                frame.data.push('\n');
            }
            frame.data.push_str(value);
        }
        "id" => frame.id = Some(value.to_owned()),
        // Comments are heartbeats. Event names and retry delays are not used by this API.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut frames = Frames::default();
        let mut read = Vec::new();
        for chunk in chunks {
            frames.push(chunk).unwrap();
            while let Some(frame) = frames.pull().unwrap() {
                read.push(frame);
            }
        }
        read
    }

    #[track_caller]
    fn check(stream: &str, expected: &[(Option<&str>, &str)]) {
        let read = read(&[stream.as_bytes()]);
        let read: Vec<_> = read.iter().map(|frame| (frame.id.as_deref(), frame.data.as_str())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn frames_end_at_an_empty_line() {
        check("data: a\n\ndata: b\n\ndata: unfinished\n", &[(None, "a"), (None, "b")]);
    }

    #[test]
    fn carriage_returns_comments_and_unknown_fields_are_skipped() {
        check(": hello\r\nevent: x\r\nid: 7\r\ndata: a\r\n\r\nretry: 5\n\n", &[(Some("7"), "a")]);
    }

    #[test]
    fn data_lines_are_joined_and_one_space_is_removed() {
        check("data:a\ndata:  b\ndata\n\n", &[(None, "a\n b\n")]);
    }

    #[test]
    fn invalid_utf8_is_rejected() {
        let mut frames = Frames::default();
        frames.push(b"data: \xff\n\n").unwrap();
        assert_eq!(frames.pull(), Err(BadFrame::NotUtf8));
    }

    #[test]
    fn an_endless_frame_is_rejected() {
        let mut frames = Frames::default();
        let chunk = vec![b'x'; MAX_FRAME_BYTES / 2];
        assert_eq!(frames.push(&chunk), Ok(()));
        assert_eq!(frames.pull(), Ok(None));
        assert_eq!(frames.push(&chunk), Ok(()));
        assert_eq!(frames.push(b"x"), Err(BadFrame::TooLong));
    }

    proptest! {
        #[test]
        fn a_stream_cut_anywhere_gives_the_same_frames(
            texts in prop::collection::vec("[a-z:\u{e4}\u{1f600} ]{0,12}", 0..6),
            cuts in prop::collection::vec(0usize..120, 0..8),
        ) {
            let stream: String =
                texts.iter().enumerate().map(|(at, text)| format!("id: {at}\ndata: {text}\r\n\n")).collect();
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[bytes]));
            prop_assert_eq!(read(&chunks).len(), texts.len());
        }
    }
}
