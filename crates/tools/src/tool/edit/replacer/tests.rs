use super::*;
use proptest::{prop_assert, prop_assert_eq, proptest};

/// Finds a text and returns what would be replaced.
fn found(text: &str, find: &str) -> Result<(Strategy, String), Miss> {
    locate(text, find, Wanted::One).map(|found| (found.strategy, text[found.ranges[0].clone()].to_owned()))
}

#[track_caller]
fn check(text: &str, find: &str, expected: Result<(Strategy, &str), Miss>) {
    assert_eq!(found(text, find), expected.map(|(strategy, part)| (strategy, part.to_owned())), "{find:?}");
}

fn one(search: Search, text: &str, find: &str) -> Vec<String> {
    let ranges = search(&Text::new(text), &Piece::new(find));
    ranges.into_iter().map(|range| text[range].to_owned()).collect()
}

#[test]
fn an_exact_copy_is_found_if_it_is_the_only_one() {
    check("a\nb\nc\n", "b", Ok((Strategy::Simple, "b")));
    check("foo\nbar\nfoo\n", "foo", Err(Miss::Ambiguous(vec![0..3, 8..11])));
    check("aaa", "aa", Err(Miss::Ambiguous(vec![0..2, 1..3])));
    check("foo\n", "zzz", Err(Miss::NotFound));
    check("a\n", "   ", Err(Miss::NotFound));
}

#[test]
fn blanks_at_the_ends_of_lines_do_not_count() {
    check("a  \nb\t\nc\n", "a\nb\n", Ok((Strategy::LineTrimmed, "a  \nb\t\n")));
    check("a\nb", "a \nb\n", Ok((Strategy::LineTrimmed, "a\nb")));
    assert!(one(line_trimmed, "  a\nb\n", "a\nb").is_empty());
}

#[test]
fn blanks_beside_punctuation_do_not_count_in_a_block() {
    let text = "fn one() {\n    let total = compute(1, 2);\n    total\n}\n\nfn two() {\n    other();\n    total\n}\n";
    let find = "fn one() {\n    let total = compute(1,2);\n    total\n}";
    check(
        text,
        find,
        Ok((Strategy::BlockAnchor, "fn one() {\n    let total = compute(1, 2);\n    total\n}")),
    );
    check("begin\n  say(\"ab\")\nend\n", "begin\n  say(\"a b\")\nend", Err(Miss::NotFound));
    assert!(one(block_anchor, "{\n a\n}\n", "{\n a \n}").is_empty(), "braces anchor nothing");
}

#[test]
fn text_that_was_not_quoted_is_not_replaced() {
    let text = "fn one() {\n    delete_everything();\n    and_more();\n}\n";
    check(text, "fn one() {\n    let x = 1;\n    x\n}", Err(Miss::NotFound));
    let text = "start here\n  same line\n  another line that nobody quoted 1\nstop here\n";
    let find = "start here\n  same line\n  another line that nobody quoted 2\nstop here";
    check(text, find, Err(Miss::NotFound));
    assert_eq!(locate(text, find, Wanted::All), Err(Miss::NotFound));
    // One line more, and one less.
    check("begin\n  a\n  b\nfinish\n", "begin\n  a\nfinish", Err(Miss::NotFound));
    check("begin\n  a\nfinish\n", "begin\n  a\n  b\nfinish", Err(Miss::NotFound));
}

#[test]
fn a_block_with_other_indentation_wins_over_a_longer_one() {
    let text = "func a() {\n\t\tif x {\n\t\t\ty()\n\t\t}\n\t}\n}\n";
    check(
        text,
        "\tif x {\n\t\ty()\n\t}",
        Ok((Strategy::IndentationFlexible, "\t\tif x {\n\t\t\ty()\n\t\t}")),
    );
    let text = "a ( b )\n\ta (  b )\nz\n  a ( b )  // c\n";
    check(text, "\t\ta (  b )", Ok((Strategy::IndentationFlexible, "\ta (  b )")));
}

#[test]
fn the_width_of_blanks_does_not_count() {
    check("x = a   +\tb;\n", "a + b", Ok((Strategy::WhitespaceNormalized, "a   +\tb")));
    check(
        "\tif  (x) {\n\t\ty( );\n",
        "\tif (x) {\n\t\ty(  );",
        Ok((Strategy::IndentationFlexible, "\tif  (x) {\n\t\ty( );")),
    );
    check("xa  bx\n", "a b", Err(Miss::NotFound));
    check("  let  a = 1;\n", " let a = 1;", Ok((Strategy::IndentationFlexible, "  let  a = 1;")));
}

#[test]
fn the_depth_of_indentation_does_not_count() {
    let text = "def f():\n    if x:\n        return 1\n    return 2\n";
    check(text, "if x:\n  return 1", Ok((Strategy::IndentationFlexible, "    if x:\n        return 1")));
    check("\tfoo()\n", "    foo()", Ok((Strategy::IndentationFlexible, "\tfoo()")));
    let two = "if x:\n\ty\nz\n    if x:\n    y\n";
    check(two, "  if x:\n      y", Ok((Strategy::IndentationFlexible, "if x:\n\ty")));
    check("foobar\n", "  foo", Err(Miss::NotFound));
}

#[test]
fn escapes_are_resolved() {
    check("say(\"hi\");\n", "say(\\\"hi\\\");", Ok((Strategy::EscapeNormalized, "say(\"hi\");")));
    check("a\nb\n", "a\\nb", Ok((Strategy::EscapeNormalized, "a\nb")));
    check("print(\"a\\tb\")\n", "print(\"a\tb\")", Ok((Strategy::EscapeNormalized, "print(\"a\\tb\")")));
}

#[test]
fn empty_lines_around_a_piece_do_not_count() {
    check("x\nfoo\nbar\ny\n", "\n\nfoo\nbar\n\n", Ok((Strategy::TrimmedBoundary, "\nfoo\nbar\n")));
    check("foobar\n", "foo\n\n", Err(Miss::NotFound));
}

#[test]
fn empty_lines_inside_a_block_do_not_count() {
    let text = "start here\n  one line\n\n  two lines\nstop here\n";
    check(
        text,
        "start here\n  one line\n  two lines\nstop here",
        Ok((Strategy::ContextAware, text.trim_end())),
    );
    check(text, "start here\n\n  one line\n  two lines\n\n\nstop here\n", Ok((Strategy::ContextAware, text)));
    check(text, "start here\n  one line\nstop here", Err(Miss::NotFound));
    let twice = format!("{text}{text}");
    assert!(matches!(
        found(&twice, "start here\n  one line\n  two lines\nstop here"),
        Err(Miss::Ambiguous(_))
    ));
}

#[test]
fn of_several_places_the_exact_copy_is_meant() {
    let text = "  a\n  b \nx\na \nb \n";
    assert_eq!(one(line_trimmed, "a \nb\na\nb \n", "a\nb"), ["a \nb", "a\nb "]);
    check(text, "  a\n  b\n", Ok((Strategy::LineTrimmed, "  a\n  b \n")));
    let text = "a \nb \nc\nx\na \nb\nc\n";
    check(text, "a\nb\nc", Ok((Strategy::MultiOccurrence, "a \nb\nc")));
    check("one \ntwo\nz\nx\none\ntwo \nz\n", "one\ntwo\nz", Err(Miss::Ambiguous(vec![0..10, 13..23])));
}

#[test]
fn all_places_can_be_found() {
    let found = locate("foo\nbar\nfoo\n", "foo", Wanted::All).expect("found");
    assert_eq!(found.ranges, [0..3, 8..11]);
    let overlapping = locate("aaa", "aa", Wanted::All).expect("found").ranges;
    assert_eq!((overlapping.len(), overlapping[0].clone()), (1, 0..2));
}

proptest! {
    #[test]
    fn a_place_is_always_one_of_the_text(
        text in "([ab{}\"\\\\]| |\t|\n|\u{e9}|foo){0,60}", find in "([ab{}\"\\\\]| |\t|\n|\u{e9}|foo){1,20}",
    ) {
        for wanted in [Wanted::One, Wanted::All] {
            if let Ok(found) = locate(&text, &find, wanted) {
                prop_assert!(!found.ranges.is_empty());
                prop_assert!(wanted == Wanted::All || found.ranges.len() == 1);
                let mut at = 0;
                for range in found.ranges {
                    prop_assert!(range.start >= at && text.get(range.clone()).is_some());
                    at = range.end;
                }
            }
        }
    }

    #[test]
    fn the_only_copy_is_always_found(before in "[ab\n ]{0,30}", after in "[ab\n ]{0,30}", piece in "X[ab\n ]{0,9}Y") {
        let text = format!("{before}{piece}{after}");
        let found = locate(&text, &piece, Wanted::One).expect("it is there");
        prop_assert_eq!(found.ranges, vec![before.len()..before.len() + piece.len()]);
    }
}
