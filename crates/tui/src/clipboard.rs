//! The clipboard of whoever sits at the terminal, by two roads.
//!
//! The terminal is handed a sequence (OSC 52), which works over SSH too; whether it heeds
//! it cannot be known. Where variables speak of a desktop its own program is run as well,
//! which is bounded by a deadline. A library instead of the programs would be a client of
//! three window systems in the binary, and could not hold a selection after the end.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::msg::Reply;

/// How much a terminal's clipboard takes: many take no more than 100,000 encoded bytes.
const MAX_TERMINAL_BYTES: usize = 74_000;
/// How much of a sequence GNU screen lets through at once.
const SCREEN_PIECE: usize = 240;
/// How long a program may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// How much is taken from a clipboard.
const MAX_PICTURE_BYTES: usize = 20 * 1024 * 1024;
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// What stands between the program and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplexer {
    /// tmux.
    Tmux,
    /// GNU screen.
    Screen,
}

/// A desktop with a clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desk {
    /// macOS.
    Mac,
    /// Wayland.
    Wayland,
    /// X11.
    X11,
    /// Windows, from its subsystem for Linux.
    Windows,
}

/// A picture from a clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) mime: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// What was in a clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clip {
    Text(String),
    Picture(Picture),
}

/// A program with its arguments.
type Line = &'static [&'static str];

impl Desk {
    /// The programs that take a text, the usual one first.
    fn copies(self) -> &'static [Line] {
        match self {
            Self::Mac => &[&["pbcopy"]],
            Self::Wayland => &[&["wl-copy"]],
            Self::X11 => &[&["xclip", "-selection", "clipboard", "-in"], &["xsel", "--clipboard", "--input"]],
            Self::Windows => &[&["clip.exe"]],
        }
    }

    /// The programs that give the text.
    fn texts(self) -> &'static [Line] {
        match self {
            Self::Mac => &[&["pbpaste"]],
            Self::Wayland => &[&["wl-paste", "--no-newline"]],
            Self::X11 => {
                &[&["xclip", "-selection", "clipboard", "-out"], &["xsel", "--clipboard", "--output"]]
            }
            Self::Windows => &[&["powershell.exe", "-NoProfile", "-Command", "Get-Clipboard -Raw"]],
        }
    }

    /// The programs that give a picture; they fail if there is none.
    fn pictures(self) -> &'static [Line] {
        match self {
            Self::Mac => &[&["osascript", "-e", "get the clipboard as «class PNGf»"]],
            Self::Wayland => &[&["wl-paste", "--type", "image/png"]],
            Self::X11 => &[&["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]],
            Self::Windows => &[],
        }
    }
}

/// What makes a terminal put a text into its clipboard; none if it is too long for one.
pub(crate) fn sequence(text: &str, multiplexer: Option<Multiplexer>) -> Option<String> {
    if text.len() > MAX_TERMINAL_BYTES {
        return None;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let plain = format!("\u{1b}]52;c;{encoded}\u{7}");
    Some(match multiplexer {
        None => plain,
        // Whether it understands the one or lets the other through is its setting.
        Some(Multiplexer::Tmux) => format!("{plain}\u{1b}Ptmux;\u{1b}{plain}\u{1b}\\"),
        // It hands on strings only, and no long ones; the terminal sees the pieces as one.
        Some(Multiplexer::Screen) => {
            let mut rest = plain.as_str();
            let mut wrapped = String::new();
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.len().min(SCREEN_PIECE));
                wrapped.push_str(&format!("\u{1b}P{piece}\u{1b}\\"));
                rest = more;
            }
            wrapped
        }
    })
}

/// What came of a program.
enum Outcome {
    Done(Vec<u8>),
    /// It is not installed.
    Missing,
    Failed(String),
}

/// Puts a text into the clipboards of desks; `handed` says whether the terminal has it already.
pub(crate) async fn copy(text: &str, handed: bool, desks: &[Desk]) -> Reply {
    let mut why = Vec::new();
    let mut missing = Vec::new();
    for desk in desks {
        let input = match desk {
            // It takes UTF-16 only, and would turn anything else into other letters.
            Desk::Windows => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Desk::Mac | Desk::Wayland | Desk::X11 => text.as_bytes().to_vec(),
        };
        for line in desk.copies() {
            match run(line, Some(&input), 0).await {
                Outcome::Done(_) => {
                    let too = if handed { ", and handed to the terminal (OSC 52)" } else { "" };
                    return Reply::Copied { told: format!("copied with {}{too}", line[0]), done: true };
                }
                Outcome::Missing => missing.push(line[0]),
                Outcome::Failed(reason) => why.push(format!("{}: {reason}", line[0])),
            }
        }
    }
    if why.is_empty() && !missing.is_empty() {
        why.push(format!("for the desktop's own clipboard install {}", missing.join(" or ")));
    }
    let why = why.join("; ");
    let told = match (handed, why.as_str()) {
        (true, "") => "handed to the terminal's clipboard (OSC 52)".to_owned(),
        (true, why) => format!("handed to the terminal's clipboard (OSC 52)\n{why}"),
        (false, "") => "too long for a terminal's clipboard; /export opens it in your editor".to_owned(),
        (false, why) => {
            format!("too long for a terminal's clipboard; /export opens it in your editor\n{why}")
        }
    };
    Reply::Copied { told, done: handed }
}

/// What is in the clipboard: a picture, or else a text.
pub(crate) async fn paste(desks: &[Desk]) -> Result<Clip, String> {
    if desks.is_empty() {
        return Err(
            "no desktop is known here whose clipboard could be read: paste with the terminal's own key \
                    (often ctrl+shift+v), or drop the picture's file on the terminal"
                .to_owned(),
        );
    }
    let mut why = Vec::new();
    for desk in desks {
        for line in desk.pictures() {
            match run(line, None, 2 * MAX_PICTURE_BYTES + 64).await {
                Outcome::Done(bytes) => {
                    let bytes = if *desk == Desk::Mac { unquoted(&bytes) } else { Some(bytes) };
                    let picture = bytes.and_then(|bytes| Some(Picture { mime: mime(&bytes)?, bytes }));
                    match picture {
                        Some(picture) if picture.bytes.len() > MAX_PICTURE_BYTES => {
                            return Err(format!("the picture has more than {} MiB", MAX_PICTURE_BYTES >> 20));
                        }
                        Some(picture) => return Ok(Clip::Picture(picture)),
                        None => {}
                    }
                }
                // There is no picture, or there is something else in its place.
                Outcome::Missing | Outcome::Failed(_) => {}
            }
        }
        for line in desk.texts() {
            match run(line, None, MAX_TEXT_BYTES).await {
                Outcome::Done(bytes) if bytes.is_empty() => why.push("the clipboard is empty".to_owned()),
                Outcome::Done(bytes) => return Ok(Clip::Text(String::from_utf8_lossy(&bytes).into_owned())),
                Outcome::Missing => why.push(format!("`{}` is not installed", line[0])),
                Outcome::Failed(reason) => why.push(format!("{}: {reason}", line[0])),
            }
        }
    }
    Err(format!("nothing could be pasted: {}", why.join("; ")))
}

/// The bytes that macOS writes as `«data PNGf89504E…»`.
fn unquoted(written: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(written);
    let digits = text.split_once("PNGf")?.1.split('»').next()?;
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What kind of picture bytes are.
fn mime(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 3] =
        [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")];
    KINDS.iter().find(|(head, _)| bytes.starts_with(head)).map(|(_, mime)| *mime)
}

/// Runs a program to its end, with a text for it and at most so much from it.
async fn run(line: Line, input: Option<&[u8]>, limit: usize) -> Outcome {
    match timeout(DEADLINE, exchange(line, input, limit)).await {
        Err(_) => Outcome::Failed(format!("it took longer than {} seconds", DEADLINE.as_secs())),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Outcome::Missing,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Ok(Ok((_, written))) if written.len() > limit => {
            Outcome::Failed(format!("it gave more than {} MiB", limit >> 20))
        }
        Ok(Ok((status, _))) if !status.success() => Outcome::Failed(format!("it ended with {status}")),
        Ok(Ok((_, written))) => Outcome::Done(written),
    }
}

async fn exchange(line: Line, input: Option<&[u8]>, limit: usize) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).stderr(Stdio::null()).kill_on_drop(true);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    // A program that holds the selection stays behind; nothing of it may be waited for.
    command.stdout(if limit > 0 { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input).await?;
        stdin.shutdown().await?;
    }
    let mut written = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        stdout.take(most).read_to_end(&mut written).await?;
        if written.len() > limit {
            // Whoever writes without end is not waited for.
            child.start_kill()?;
        }
    }
    Ok((child.wait().await?, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_the_text_encoded() {
        assert_eq!(sequence("hi", None).unwrap(), "\u{1b}]52;c;aGk=\u{7}");
        let tmux = sequence("hi", Some(Multiplexer::Tmux)).unwrap();
        assert!(tmux.contains("\u{1b}Ptmux;\u{1b}\u{1b}]52;c;aGk=\u{7}\u{1b}\\"), "{tmux:?}");
        assert_eq!(
            sequence("hi", Some(Multiplexer::Screen)).unwrap(),
            "\u{1b}P\u{1b}]52;c;aGk=\u{7}\u{1b}\\"
        );
        assert_eq!(sequence(&"x".repeat(80_000), None), None);
    }

    #[test]
    fn screen_gets_a_long_text_in_pieces_that_are_one_when_put_together() {
        let text = "long ".repeat(500);
        let wrapped = sequence(&text, Some(Multiplexer::Screen)).unwrap();
        let pieces: Vec<&str> = wrapped.split("\u{1b}\\").filter(|piece| !piece.is_empty()).collect();
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() <= SCREEN_PIECE + 2));
        let whole: String = pieces.iter().map(|piece| piece.strip_prefix("\u{1b}P").unwrap()).collect();
        assert_eq!(Some(whole), sequence(&text, None));
    }

    #[tokio::test]
    async fn programs_are_waited_for_and_bounded() {
        let done = |outcome| match outcome {
            Outcome::Done(bytes) => String::from_utf8(bytes).unwrap(),
            Outcome::Missing => "missing".to_owned(),
            Outcome::Failed(why) => why,
        };
        assert_eq!(done(run(&["cat"], Some(b"hi"), 10).await), "hi");
        assert_eq!(done(run(&["no-such-program-anywhere"], None, 10).await), "missing");
        assert!(done(run(&["sh", "-c", "exit 3"], None, 10).await).contains("exit status: 3"));
        assert!(done(run(&["sh", "-c", "yes"], None, 4 << 20).await).contains("more than 4 MiB"));
        assert!(done(run(&["sleep", "60"], None, 10).await).contains("longer than 5 seconds"));
    }

    #[test]
    fn a_picture_is_told_by_its_bytes() {
        assert_eq!(mime(b"\x89PNG\r\n\x1a\n..."), Some("image/png"));
        assert_eq!(mime(b"<svg>"), None);
        let written = "«data PNGf89504E470D0A1A0A»\n";
        assert_eq!(unquoted(written.as_bytes()).as_deref(), Some(&b"\x89PNG\r\n\x1a\n"[..]));
        assert_eq!(unquoted(b"execution error"), None);
    }

    #[tokio::test]
    async fn it_is_said_why_nothing_was_copied_or_pasted() {
        let told = |reply| match reply {
            Reply::Copied { told, done } => (told, done),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            told(copy("x", true, &[]).await),
            ("handed to the terminal's clipboard (OSC 52)".to_owned(), true)
        );
        let (text, done) = told(copy("x", false, &[]).await);
        assert!(text.contains("too long") && !done);
        assert!(paste(&[]).await.unwrap_err().contains("no desktop"));
    }
}
