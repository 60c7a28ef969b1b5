//! A reusable buffer for responses.
//!
//! Fresh memory is provided by the system page by page, which for a long transcript costs as much as copying it. So one
//! buffer is kept between responses.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest buffer that is kept. Larger ones are freed.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// The unused buffer, if there is one.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<u8>>);

impl Spare {
    /// An empty buffer with at least this capacity.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        buffer.reserve(bytes);
        buffer
    }

    fn put(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if (kept.capacity()..=MAX_KEPT_BYTES).contains(&buffer.capacity()) {
            *kept = buffer;
        }
    }
}

/// JSON as clients receive it.
pub struct Json {
    bytes: Vec<u8>,
    spare: Arc<Spare>,
}

impl Json {
    pub(crate) fn new(bytes: Vec<u8>, spare: &Arc<Spare>) -> Self {
        Self { bytes, spare: Arc::clone(spare) }
    }
}

impl Deref for Json {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for Json {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        self.spare.put(std::mem::take(&mut self.bytes));
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of JSON", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_buffer_within_the_limit_is_reused_empty() {
        let spare = Arc::new(Spare::default());
        let used = |bytes: usize| drop(Json::new(spare.take(bytes), &spare));
        used(1000);
        let (large, small) = (Json::new(vec![7; 5000], &spare), Json::new(vec![7; 2000], &spare));
        drop(large);
        drop(small);
        let kept = spare.take(0);
        assert!(kept.is_empty() && kept.capacity() >= 5000, "{}", kept.capacity());
        drop(Json::new(vec![7; MAX_KEPT_BYTES + 1], &spare));
        assert_eq!(spare.take(0).capacity(), 0, "a buffer above the limit is freed");
    }
}
