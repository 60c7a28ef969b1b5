//! Pages of a list, and the cursors that lead from one to the next.
//!
//! A cursor names the item at a page's edge by its time and id. So what comes or goes meanwhile shifts
//! nothing, and an item that is gone still has its place.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Error;

/// Which end of a list comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// The oldest.
    Asc,
    /// The newest.
    Desc,
}

/// On which side of an item a list goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    /// Before it, in the order of the list.
    Previous,
    /// Behind it.
    Next,
}

/// The item at the edge of a page, and where the list goes on from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) id: String,
    pub(super) time: u64,
    pub(super) direction: Direction,
}

/// Which items of a list a page has, from the first up to the second; `keys` are theirs, oldest first.
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

/// Whether a page of a list is the items before its anchor or end, of which the last are the nearest.
pub(super) fn goes_back(order: Order, anchor: Option<&Anchor>) -> bool {
    match (anchor.map(|anchor| anchor.direction), order) {
        (None | Some(Direction::Next), Order::Desc) | (Some(Direction::Previous), Order::Asc) => true,
        (None | Some(Direction::Next), Order::Asc) | (Some(Direction::Previous), Order::Desc) => false,
    }
}

/// A cursor as clients carry it.
pub(super) fn written(cursor: &impl Serialize) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(json!(cursor).to_string())
}

/// Reads a cursor that was given out.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
    let cursor = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    cursor.ok_or(Error::Cursor("this is no cursor"))
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
    fn a_page_goes_on_at_an_item_whether_it_is_there_or_not() {
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
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let anchor = Anchor { id: "msg_c".to_owned(), time: 3, direction: Direction::Next };
        assert_eq!(read::<Anchor>(&written(&anchor)).unwrap(), anchor);
        for text in ["", "zzz", "e30", "%", &"x".repeat(5000)] {
            assert!(read::<Anchor>(text).is_err(), "{text}");
        }
    }
}
