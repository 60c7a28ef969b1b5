//! Decodes an answer that is already in memory.

use super::framing::Framing;
use super::stream::DecodeError;
use crate::protocol::Decoder;
use crate::{Error, ModelEvent, Protocol};

/// Decodes the pieces of one answer and passes the events to `on_event`.
///
/// Works like [`EventStream`](crate::EventStream) without the network and its deadlines. Fails if
/// the answer is incomplete.
pub fn decode<'a>(
    protocol: Protocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    mut on_event: impl FnMut(ModelEvent),
) -> Result<(), Error> {
    let mut framing = Framing::of(protocol);
    let mut decoder = Decoder::new(protocol);
    let mut decoded = Vec::new();
    for piece in pieces {
        framing.feed(piece, |data| decoder.push(data, &mut decoded).map_err(DecodeError::Protocol))?;
        decoded.drain(..).for_each(&mut on_event);
    }
    framing.finish(|data| decoder.push(data, &mut decoded).map_err(DecodeError::Protocol))?;
    decoder.finish(&mut decoded)?;
    decoded.into_iter().for_each(on_event);
    Ok(())
}
