//! Colours for code: comments, strings, numbers, keywords, types and calls.
//!
//! One small scanner serves all languages. A language is a row with its comments, strings and keywords.
//! Lines are scanned one at a time with the state after the previous line, so a growing block is scanned
//! once. Text in unknown languages has no colours.

use ratatui::style::{Color, Style};
use ratatui::text::Span;

use crate::theme::Theme;

/// The state at the start of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Ordinary code.
    #[default]
    Code,
    /// An open comment.
    Comment,
    /// An open multi-line string, by its index in `long_quotes`.
    Text(u8),
}

struct Language {
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// The quotes of strings in one line.
    quotes: &'static [char],
    /// The quotes of multi-line strings.
    long_quotes: &'static [&'static str],
    keywords: &'static str,
}

const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &['"'],
        long_quotes: &[],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
    },
    Language {
        names: &[
            "js",
            "javascript",
            "jsx",
            "ts",
            "typescript",
            "tsx",
            "mjs",
            "cjs",
            "mts",
            "cts",
            "vue",
            "svelte",
        ],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &['"', '\''],
        long_quotes: &["`"],
        keywords: "abstract any as async await boolean break case catch class const continue declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace never new null number of private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown var void while yield",
    },
    Language {
        names: &["py", "python", "pyi"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        long_quotes: &["\"\"\"", "'''"],
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
    },
    Language {
        names: &["go", "golang"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &['"', '\''],
        long_quotes: &["`"],
        keywords: "any bool break byte case chan const continue default defer else error fallthrough false for func go goto if import int interface map nil package range return rune select string struct switch true type var",
    },
    Language {
        names: &[
            "c", "h", "cpp", "cc", "cxx", "hpp", "c++", "objc", "cuda", "java", "kt", "kotlin", "scala",
            "swift", "cs", "csharp", "c#", "dart", "zig", "proto", "groovy", "php",
        ],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "abstract as auto base bool boolean break byte case catch char class const constexpr continue data default defer delete do double else enum explicit export extends extension extern false final finally float for foreach func fun function get goto guard if implements import in inline instanceof int interface internal is lateinit let long message mutable namespace new nil null nullptr object open operator out override package private protected public readonly record repeated require return sealed set short signed sizeof static string struct super switch template this throw throws trait true try typedef typename union unsigned use using val var virtual void volatile when while yield",
    },
    Language {
        names: &["sh", "bash", "zsh", "shell", "console", "fish", "dockerfile", "makefile", "make", "ps1"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "case do done elif else esac export fi for from function if in local return set then unset until while cd echo exit source run copy workdir cmd entrypoint env arg",
    },
    Language {
        names: &["json", "jsonc", "json5"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &['"'],
        long_quotes: &[],
        keywords: "true false null",
    },
    Language {
        names: &["yaml", "yml", "toml", "ini", "conf", "cfg", "properties", "env", "nix", "hcl", "tf"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        long_quotes: &["\"\"\"", "'''"],
        keywords: "true false null yes no on off",
    },
    Language {
        names: &["rb", "ruby", "ex", "exs", "elixir", "cr", "pl", "perl", "r", "jl", "julia"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        long_quotes: &["\"\"\""],
        keywords: "alias and begin break case class def defmodule defp do else elsif end ensure false fn for function if import in module my new next nil not or our raise require rescue return self sub super then true unless until use using when while yield",
    },
    Language {
        names: &["sql", "sqlite", "postgres", "mysql"],
        line_comments: &["--"],
        block_comment: C_COMMENT,
        quotes: &['\'', '"'],
        long_quotes: &[],
        keywords: "add all alter and as asc begin between by case check column commit constraint create default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null on or order outer primary references returning right rollback select set table then true union unique update using values view when where with",
    },
    Language {
        names: &["lua"],
        line_comments: &["--"],
        block_comment: Some(("--[[", "]]")),
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
    },
    Language {
        names: &[
            "hs", "haskell", "elm", "ml", "ocaml", "fs", "fsharp", "clj", "clojure", "lisp", "el", "scheme",
        ],
        line_comments: &["--", ";;"],
        block_comment: Some(("{-", "-}")),
        quotes: &['"'],
        long_quotes: &[],
        keywords: "case class data def defn defun deriving do else exposing forall fun function if import in infix instance let match module mutable newtype of open qualified rec then type val where with",
    },
    Language {
        names: &["css", "scss", "less", "sass"],
        line_comments: &[],
        block_comment: C_COMMENT,
        quotes: &['"', '\''],
        long_quotes: &[],
        keywords: "important media import from to keyframes include mixin use",
    },
    Language {
        names: &["html", "xml", "svg", "xhtml", "htm"],
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        quotes: &['"'],
        long_quotes: &[],
        keywords: "",
    },
];

/// Returns the spans of a line of code, and the state at the next line.
pub(crate) fn line(
    language: &str,
    inside: Inside,
    text: &str,
    theme: &Theme,
) -> (Vec<Span<'static>>, Inside) {
    let plain = theme.code_block;
    let Some(language) = find(language) else {
        return (vec![Span::styled(text.to_owned(), Style::new().fg(plain))], Inside::Code);
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let after = scan(language, inside, text, &mut |piece, class| {
        let colour = class.map_or(plain, |class| class.colour(theme));
        push(&mut spans, piece, colour);
    });
    (spans, after)
}

/// Returns the state after some lines of code.
pub(crate) fn after(language: &str, inside: Inside, lines: &str) -> Inside {
    let Some(language) = find(language) else { return Inside::Code };
    lines.lines().fold(inside, |inside, line| scan(language, inside, line, &mut |_, _| {}))
}

/// Returns the language of a file.
pub(crate) fn of_file(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

fn find(name: &str) -> Option<&'static Language> {
    let name = name.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()))
}

fn push(spans: &mut Vec<Span<'static>>, piece: &str, colour: Color) {
    let style = Style::new().fg(colour);
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(piece),
        _ => spans.push(Span::styled(piece.to_owned(), style)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Comment,
    Text,
    Number,
    Keyword,
    Kind,
    Function,
}

impl Class {
    fn colour(self, theme: &Theme) -> Color {
        match self {
            Self::Comment => theme.comment,
            Self::Text => theme.string,
            Self::Number => theme.number,
            Self::Keyword => theme.keyword,
            Self::Kind => theme.kind,
            Self::Function => theme.function,
        }
    }
}

fn scan(
    language: &Language,
    inside: Inside,
    text: &str,
    emit: &mut dyn FnMut(&str, Option<Class>),
) -> Inside {
    let mut at = 0;
    let mut inside = inside;
    while at < text.len() {
        let rest = &text[at..];
        let (length, class) = match inside {
            Inside::Comment => {
                let close = language.block_comment.map_or("", |(_, close)| close);
                let (length, closed) = until(rest, close);
                inside = if closed { Inside::Code } else { inside };
                (length, Some(Class::Comment))
            }
            Inside::Text(which) => {
                let close = language.long_quotes.get(usize::from(which)).copied().unwrap_or_default();
                let (length, closed) = until(rest, close);
                inside = if closed { Inside::Code } else { inside };
                (length, Some(Class::Text))
            }
            Inside::Code => {
                let (length, class, next) = token(language, rest);
                inside = next;
                (length, class)
            }
        };
        emit(&rest[..length], class);
        at += length;
    }
    inside
}

/// Returns the length up to and including `close`, and whether it was found.
fn until(rest: &str, close: &str) -> (usize, bool) {
    match rest.find(close) {
        Some(at) if !close.is_empty() => (at + close.len(), true),
        Some(_) | None => (rest.len(), false),
    }
}

/// Returns the length and class of the next piece of code, and the state after it.
fn token(language: &Language, rest: &str) -> (usize, Option<Class>, Inside) {
    let code = |length, class| (length, class, Inside::Code);
    if let Some((open, _)) = language.block_comment.filter(|(open, _)| rest.starts_with(open)) {
        return (open.len(), Some(Class::Comment), Inside::Comment);
    }
    if language.line_comments.iter().any(|comment| rest.starts_with(comment)) {
        return code(rest.len(), Some(Class::Comment));
    }
    for (which, quote) in (0..).zip(language.long_quotes) {
        if rest.starts_with(quote) {
            return (quote.len(), Some(Class::Text), Inside::Text(which));
        }
    }
    let Some(first) = rest.chars().next() else { return code(rest.len(), None) };
    if language.quotes.contains(&first) {
        return code(quoted_length(rest, first), Some(Class::Text));
    }
    if first.is_ascii_digit() {
        let length =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_'))).unwrap_or(rest.len());
        return code(length, Some(Class::Number));
    }
    if first.is_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..length];
        return code(length, word_class(language, word, &rest[length..]));
    }
    code(first.len_utf8(), None)
}

fn word_class(language: &Language, word: &str, after: &str) -> Option<Class> {
    let is_keyword = |word: &str| language.keywords.split(' ').any(|keyword| keyword == word);
    let is_sql = language.names.contains(&"sql");
    if is_keyword(word) || (is_sql && is_keyword(&word.to_ascii_lowercase())) {
        return Some(Class::Keyword);
    }
    if after.starts_with('(') || after.starts_with("!(") {
        return Some(Class::Function);
    }
    word.starts_with(char::is_uppercase).then_some(Class::Kind)
}

/// Returns the length of a string that starts here. An open string ends with the line.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the coloured pieces as `class:text`.
    fn classes(language: &str, inside: Inside, text: &str) -> (Vec<String>, Inside) {
        let mut found = Vec::new();
        let language = find(language).unwrap();
        let after = scan(language, inside, text, &mut |piece, class| {
            if let Some(class) = class {
                found.push(format!("{class:?}:{piece}"));
            }
        });
        (found, after)
    }

    #[test]
    fn code_is_told_apart() {
        let (found, _) = classes("rust", Inside::Code, "let x: Vec<u8> = call(\"a\\\"b\", 0x1f); // note");
        let expected =
            ["Keyword:let", "Kind:Vec", "Function:call", "Text:\"a\\\"b\"", "Number:0x1f", "Comment:// note"];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_closed_goes_on_in_the_next_line() {
        let (found, after) = classes("python", Inside::Code, "x = \"\"\"open");
        assert_eq!((found.last().unwrap().as_str(), after), ("Text:open", Inside::Text(0)));
        let (found, after) = classes("python", after, "close\"\"\" if");
        assert_eq!(
            (found, after),
            (vec!["Text:close\"\"\"".to_owned(), "Keyword:if".to_owned()], Inside::Code)
        );
        assert_eq!(super::after("c", Inside::Code, "/* a\nb"), Inside::Comment);
    }

    #[test]
    fn a_line_loses_nothing() {
        for (language, _) in [("rust", 0), ("html", 0), ("unknown", 0), ("sql", 0)] {
            let text = "ä \"unclosed 漢字 /* x --[[ <!-- `";
            let theme =
                Theme::parse(&crate::theme::built_in::file("nord").unwrap(), crate::theme::Mode::Dark)
                    .unwrap();
            let (spans, _) = line(language, Inside::Code, text, &theme);
            let whole: String = spans.iter().map(|span| span.content.as_ref()).collect();
            assert_eq!(whole, text);
        }
    }
}
