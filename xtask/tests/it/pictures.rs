//! The pictures of docs/tui.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use codewright_llm::catalog::Catalog;

use crate::{files, root};

/// The largest size of a picture.
const MAX_BYTES: u64 = 60 * 1024;

fn pictures() -> Vec<PathBuf> {
    files(&root().join("docs/pictures"), "svg")
}

/// Returns everything that a picture may show: the sources, the script of the pictures and the models.
fn sources() -> String {
    let mut text = fs::read_to_string(root().join("xtask/src/pictures.rs")).unwrap();
    for extension in ["rs", "txt"] {
        for path in files(&root().join("crates"), extension) {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    // A backslash continues a string literal on the next line.
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let code: Vec<&str> = lines.map(|line| line.trim_end_matches('\\').trim_end()).collect();
    let catalog = Catalog::embedded();
    let models = catalog.providers().flat_map(|provider| catalog.models(&provider.id).unwrap());
    let names: Vec<String> = models.map(|model| model.name).collect();
    format!("{} {}", code.join(" "), names.join(" "))
}

/// Returns the phrases in the texts of a picture: words that are separated by single spaces.
fn phrases(picture: &str) -> BTreeSet<String> {
    let texts = picture.split("</text>").filter_map(|piece| Some(piece.rsplit_once('>')?.1));
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(char::is_alphabetic);
    let mut phrases = BTreeSet::new();
    for text in texts {
        let words: Vec<&str> = text.split(' ').collect();
        for phrase in words.split(|word| !is_word(word)).filter(|phrase| !phrase.is_empty()) {
            phrases.insert(phrase.join(" "));
        }
    }
    phrases
}

#[test]
fn every_picture_is_small_and_used() {
    let document = fs::read_to_string(root().join("docs/tui.md")).unwrap();
    let pictures = pictures();
    assert_eq!(pictures.len(), 9);
    for path in pictures {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(document.contains(&format!("](pictures/{name})")), "{name} is not used");
        assert!(fs::metadata(&path).unwrap().len() < MAX_BYTES, "{name} is too large");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<svg ") && !text.contains("codewright-test-"), "{name}");
    }
}

#[test]
fn every_text_of_a_picture_is_in_the_sources() {
    let sources = sources();
    let mut stale = Vec::new();
    for path in pictures() {
        let text = fs::read_to_string(&path).unwrap();
        let missing = phrases(&text).into_iter().filter(|phrase| !sources.contains(phrase.as_str()));
        stale.extend(missing.map(|phrase| format!("{}: {phrase}", crate::display(&path))));
    }
    assert_eq!(stale, [""; 0], "run `cargo xtask pictures`");
}
