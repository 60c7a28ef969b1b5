//! Much text in many pieces, the same every time.
//!
//! The words are pseudo-random, because some clients stop a stream that repeats
//! itself; no clock and no random source is asked, so whoever knows the two
//! numbers knows the text.

/// The most text one flood may hold.
pub(crate) const FLOOD_LIMIT_BYTES: usize = 64 << 20;
/// The most pieces one flood may have.
pub(crate) const FLOOD_LIMIT_DELTAS: usize = 400_000;

/// Every so many pieces end a line.
const PIECES_A_LINE: usize = 12;
const WORDS: [&str; 16] = [
    "the", "model", "reads", "a", "file", "and", "writes", "another", "while", "tests", "run", "in", "quick",
    "small", "steps", "again",
];

/// `bytes` of ASCII text in `deltas` pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flood {
    /// How much text in all.
    pub bytes: usize,
    /// How many pieces it comes in.
    pub deltas: usize,
}

impl Flood {
    /// The nearest flood within the limits that has no empty piece.
    pub(crate) fn bounded(self) -> Self {
        let bytes = self.bytes.min(FLOOD_LIMIT_BYTES);
        Self { bytes, deltas: self.deltas.clamp(1, FLOOD_LIMIT_DELTAS).min(bytes.max(1)) }
    }

    /// The pieces, in order; together they are [`Flood::text`].
    pub fn pieces(self) -> impl Iterator<Item = String> {
        let Self { bytes, deltas } = self.bounded();
        let mut state = 12_345_u32;
        (0..deltas).map(move |at| {
            // The rest of the division is spread over the first pieces.
            let size = bytes / deltas + usize::from(at < bytes % deltas);
            piece(&mut state, at, size)
        })
    }

    /// The whole text.
    pub fn text(self) -> String {
        self.pieces().collect()
    }
}

fn piece(state: &mut u32, at: usize, size: usize) -> String {
    let mut piece = String::with_capacity(size + 16);
    while piece.len() < size {
        *state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        piece.push_str(WORDS[(*state >> 8) as usize % WORDS.len()]);
        if state.is_multiple_of(3) {
            piece.push_str(&(*state % 9_973).to_string());
        }
        piece.push(' ');
    }
    piece.truncate(size.saturating_sub(1));
    if size > 0 {
        piece.push(if (at + 1).is_multiple_of(PIECES_A_LINE) { '\n' } else { ' ' });
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: usize, deltas: usize, pieces: usize) {
        let flood = Flood { bytes, deltas };
        assert_eq!(flood.text().len(), bytes);
        assert_eq!(flood.pieces().count(), pieces);
        assert_eq!(flood.text(), flood.text());
    }

    #[test]
    fn a_flood_has_exactly_its_bytes_and_pieces() {
        check(2_000_000, 40_000, 40_000);
        check(100, 7, 7);
        check(10, 10, 10);
    }

    #[test]
    fn a_flood_never_has_an_empty_piece() {
        check(3, 10, 3);
        assert!(Flood { bytes: 3, deltas: 10 }.pieces().all(|piece| !piece.is_empty()));
    }
}
