//! The pictures of docs/tui.md.

use std::fs;

use crate::{files, root};

/// The largest size of a picture.
const MAX_BYTES: u64 = 60 * 1024;

#[test]
fn every_picture_is_small_and_used() {
    let document = fs::read_to_string(root().join("docs/tui.md")).unwrap();
    let pictures = files(&root().join("docs/pictures"), "svg");
    assert_eq!(pictures.len(), 9);
    for path in pictures {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(document.contains(&format!("](pictures/{name})")), "{name} is not used");
        assert!(fs::metadata(&path).unwrap().len() < MAX_BYTES, "{name} is too large");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<svg ") && !text.contains("codewright-test-"), "{name}");
    }
}
