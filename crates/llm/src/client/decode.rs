//! An answer that is at hand already, read as one that comes in.

use super::framing::Framing;
use super::stream::Stopped;
use crate::protocol::Decoder;
use crate::{Error, ModelEvent, Protocol};

/// Decodes the stream of one answer, cut as the network cuts it, and hands over its events.
///
/// What [`EventStream`](crate::EventStream) does without the network and its deadlines; an answer
/// that ends before it is complete is an error.
pub fn decode<'a>(
    protocol: Protocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    mut on_event: impl FnMut(ModelEvent),
) -> Result<(), Error> {
    let mut framing = Framing::of(protocol);
    let mut decoder = Decoder::new(protocol);
    let mut decoded = Vec::new();
    for piece in pieces {
        framing.feed(piece, |data| decoder.push(data, &mut decoded).map_err(Stopped::Decoded))?;
        decoded.drain(..).for_each(&mut on_event);
    }
    framing.finish(|data| decoder.push(data, &mut decoded).map_err(Stopped::Decoded))?;
    decoder.finish(&mut decoded)?;
    decoded.into_iter().for_each(on_event);
    Ok(())
}
