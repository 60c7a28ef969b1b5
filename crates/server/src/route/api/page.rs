//! The pages of a list, and the cursors between them.
//!
//! A cursor contains the time and the id of the item at the edge of a page. So pages do not shift when
//! items are added or removed, and the cursor stays valid even if its item is deleted.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Error;

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// The side of an item on which the page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    /// Before the item, in the order of the list.
    Previous,
    /// After the item.
    Next,
}

/// The item at the edge of a page, and the side of the next page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) id: String,
    pub(super) time: u64,
    pub(super) direction: Direction,
}

/// Returns the start and end indices of a page. `keys` are the times and ids of all items, oldest first.
pub(super) fn window(
    keys: &[(u64, &str)],
    order: Order,
    anchor: Option<&Anchor>,
    limit: usize,
) -> (usize, usize) {
    let until = |end: usize| (end.saturating_sub(limit), end);
    let from = |start: usize| (start, keys.len().min(start.saturating_add(limit)));
    let own = |anchor: &Anchor| (anchor.time, anchor.id.clone());
    match (anchor.map(|anchor| (anchor.direction, own(anchor))), order) {
        (None, Order::Desc) => until(keys.len()),
        (None, Order::Asc) => from(0),
        (Some((Direction::Next, (time, id))), Order::Desc)
        | (Some((Direction::Previous, (time, id))), Order::Asc) => {
            until(keys.partition_point(|key| *key < (time, id.as_str())))
        }
        (Some((Direction::Previous, (time, id))), Order::Desc)
        | (Some((Direction::Next, (time, id))), Order::Asc) => {
            from(keys.partition_point(|key| *key <= (time, id.as_str())))
        }
    }
}

/// Returns whether a page consists of the last items before its anchor or before the end, in order of `keys`.
pub(super) fn goes_back(order: Order, anchor: Option<&Anchor>) -> bool {
    match (anchor.map(|anchor| anchor.direction), order) {
        (None | Some(Direction::Next), Order::Desc) | (Some(Direction::Previous), Order::Asc) => true,
        (None | Some(Direction::Next), Order::Asc) | (Some(Direction::Previous), Order::Desc) => false,
    }
}

/// Encodes a cursor for clients.
pub(super) fn encode(cursor: &impl Serialize) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(json!(cursor).to_string())
}

/// Decodes a cursor.
///
/// # Errors
///
/// Fails if the text is not a cursor of this server.
pub(super) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
    let cursor = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    cursor.ok_or(Error::Cursor("invalid cursor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(order: Order, at: Option<(Direction, u64)>, expected: (usize, usize)) {
        let keys = [(1, "msg_a"), (2, "msg_b"), (3, "msg_c"), (5, "msg_d"), (6, "msg_e")];
        let anchor = at.map(|(direction, time)| Anchor { id: "msg_c".to_owned(), time, direction });
        assert_eq!(window(&keys, order, anchor.as_ref(), 2), expected, "{order:?} {at:?}");
    }

    #[test]
    fn a_page_continues_at_an_item_even_if_it_was_deleted() {
        check(Order::Desc, None, (3, 5));
        check(Order::Asc, None, (0, 2));
        check(Order::Desc, Some((Direction::Next, 3)), (0, 2));
        check(Order::Desc, Some((Direction::Previous, 3)), (3, 5));
        check(Order::Asc, Some((Direction::Next, 3)), (3, 5));
        check(Order::Asc, Some((Direction::Previous, 3)), (0, 2));
        check(Order::Desc, Some((Direction::Next, 4)), (1, 3));
        check(Order::Asc, Some((Direction::Next, 4)), (3, 5));
        check(Order::Asc, Some((Direction::Next, 9)), (5, 5));
        check(Order::Desc, Some((Direction::Next, 0)), (0, 0));
    }

    #[test]
    fn only_encoded_cursors_are_decoded() {
        let anchor = Anchor { id: "msg_c".to_owned(), time: 3, direction: Direction::Next };
        assert_eq!(decode::<Anchor>(&encode(&anchor)).unwrap(), anchor);
        for text in ["", "zzz", "e30", "%", &"x".repeat(5000)] {
            assert!(decode::<Anchor>(text).is_err(), "{text}");
        }
    }
}
