//! The compression of long JSON replies for clients that accept gzip.
//!
//! A reply is compressed while it is sent, in pieces, so the compressed reply is never in memory as a whole. Event
//! streams and replies that wait for a model are not compressed, because their bytes must not wait in the compressor.

use http::header;
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

/// Shorter replies are sent as they are. Compressing them costs more time than it saves on the way.
const MIN_BYTES: u64 = 32 * 1024;

/// Marks a response with a long body of unknown length that is ready to be sent.
#[derive(Clone, Copy)]
pub(crate) struct LongReply;

/// Returns the layer that compresses replies.
pub(crate) fn compression() -> CompressionLayer<LongJson> {
    // Most clients are on the same machine or in its network, so speed counts more than size.
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(LongJson)
}

/// Selects long JSON replies.
#[derive(Clone, Copy)]
pub(crate) struct LongJson;

impl Predicate for LongJson {
    fn should_compress<B: Body>(&self, response: &http::Response<B>) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_some_and(|kind| kind.split(';').next() == Some("application/json"));
        let bytes = response.body().size_hint().exact();
        let is_marked = response.extensions().get::<LongReply>().is_some();
        is_json && bytes.map_or(is_marked, |bytes| bytes >= MIN_BYTES)
    }
}
