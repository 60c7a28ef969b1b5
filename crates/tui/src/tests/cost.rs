//! Tests of the cost of a frame, which depends on the rows of the screen and not on the rows above them.

use std::cell::Cell;

use ratatui::text::Line;

use super::*;
use crate::transcript::{Draw, Place, Transcript};

/// Counts the rendered blocks.
struct Counting<'a> {
    inner: &'a dyn Draw,
    rendered: &'a Cell<usize>,
}

impl Draw for Counting<'_> {
    fn blocks(&self, transcript: &Transcript, entry: usize, part: usize) -> usize {
        self.inner.blocks(transcript, entry, part)
    }

    fn lines(&self, transcript: &Transcript, place: Place) -> Vec<Line<'static>> {
        self.rendered.set(self.rendered.get() + 1);
        self.inner.lines(transcript, place)
    }

    fn stamp(&self, transcript: &Transcript, place: Place) -> Option<u64> {
        self.inner.stamp(transcript, place)
    }

    fn joins(&self, transcript: &Transcript, before: Place, place: Place) -> bool {
        self.inner.joins(transcript, before, place)
    }
}

const HEIGHT: usize = 30;

/// Returns the number of blocks that a frame renders.
fn frame(stage: &mut Stage) -> usize {
    let rendered = Cell::new(0);
    let mut transcript = stage.state.mirror.transcripts.remove(&id(SESSION)).unwrap();
    let look = stage.state.look(80);
    let rows = transcript.rows(&Counting { inner: &look, rendered: &rendered }, HEIGHT);
    assert!(rows.len() <= HEIGHT);
    stage.state.mirror.transcripts.insert(id(SESSION), transcript);
    rendered.get()
}

#[test]
fn a_frame_of_a_long_transcript_renders_only_visible_blocks() {
    let mut stage = Stage::in_session(80, 40);
    let message = |nth: u64| json!({"info": user(nth), "parts": [part(nth, nth, text("a prompt"))]});
    let messages = (1..20_000).map(|nth| serde_json::from_value(message(nth)).unwrap()).collect();
    stage.reply(Reply::Messages { session: id(SESSION), messages, older: None });
    assert!(frame(&mut stage) <= HEIGHT);
    // Cached blocks are not rendered again, except the end of the last message.
    assert!(frame(&mut stage) <= 1);
    stage.control('g');
    assert!(frame(&mut stage) <= HEIGHT);
}

#[test]
fn a_long_answer_is_read_once_and_only_its_end_is_rendered() {
    for piece in ["word ", "a line of text\n", "a paragraph\n\n", "x"] {
        let mut stage = Stage::in_session(80, 40);
        stage.message(user(1));
        stage.message(assistant(2, None));
        stage.part(part(2, 2, text("")));
        let delta = json!({
            "sessionID": SESSION, "messageID": message_id(2), "partID": part(2, 2, json!({}))["id"],
            "field": "text", "delta": piece.repeat(2_000),
        });
        let mut most = 0;
        let pieces = 2 * 1024 * 1024 / (piece.len() * 2_000);
        for _ in 0..pieces.min(200) {
            let json = json!({"id": "evt_000000000001aaaaaaaaaaaaaa", "type": "message.part.delta", "properties": delta});
            stage.state.mirror.apply(Notice::parse(&json.to_string()).unwrap());
            most = most.max(frame(&mut stage));
        }
        assert!(most <= HEIGHT + 2, "{most} blocks in a frame of {piece:?}");
        let transcript = &stage.state.mirror.transcripts[&id(SESSION)];
        let text = transcript.entries[1].parts[0].text().unwrap();
        assert_eq!(text.text.len(), pieces.min(200) * piece.len() * 2_000);
    }
}
