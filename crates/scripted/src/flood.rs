//! Long deterministic text in many pieces.
//!
//! The words are pseudo-random, because some clients stop a stream that repeats itself. There is no
//! clock and no random source: the two numbers of a [`Flood`] determine the text.

/// Limit of a flood's text.
pub(crate) const FLOOD_LIMIT_BYTES: usize = 64 << 20;
/// Limit of a flood's pieces.
pub(crate) const FLOOD_LIMIT_DELTAS: usize = 400_000;

/// The number of pieces per line.
const PIECES_A_LINE: usize = 12;
const WORDS: [&str; 16] = [
    "the", "model", "reads", "a", "file", "and", "writes", "another", "while", "tests", "run", "in", "quick",
    "small", "steps", "again",
];

/// `bytes` of ASCII text in `deltas` pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flood {
    /// The length of the text.
    pub bytes: usize,
    /// The number of pieces.
    pub deltas: usize,
}

impl Flood {
    /// Returns the nearest flood within the limits that has no empty piece.
    pub(crate) fn clamped(self) -> Self {
        let bytes = self.bytes.min(FLOOD_LIMIT_BYTES);
        Self { bytes, deltas: self.deltas.clamp(1, FLOOD_LIMIT_DELTAS).min(bytes.max(1)) }
    }

    /// Returns the pieces in order. Together they are [`Flood::text`].
    pub fn pieces(self) -> impl Iterator<Item = String> {
        let Self { bytes, deltas } = self.clamped();
        let mut state = 12_345_u32;
        (0..deltas).map(move |at| {
            // The first pieces get the remainder of the division.
            let size = bytes / deltas + usize::from(at < bytes % deltas);
            piece(&mut state, at, size)
        })
    }

    /// Returns the whole text.
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
    fn a_flood_has_the_exact_number_of_bytes_and_pieces() {
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
