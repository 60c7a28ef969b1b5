//! The user's clipboard, through the terminal and through programs of the desktop.
//!
//! The terminal receives a sequence (OSC 52), which also works over SSH. It does not confirm it. If the
//! environment shows a desktop, its clipboard program is run as well, with a time limit. A library would
//! add clients of three window systems to the binary, and could not keep the text after the program ends.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::msg::Reply;

/// The maximum size of a text for OSC 52. Many terminals accept at most 100,000 encoded bytes.
const MAX_TERMINAL_BYTES: usize = 74_000;
/// The maximum size of a string that GNU screen passes on.
const SCREEN_PIECE: usize = 240;
/// The time limit of a program.
const DEADLINE: Duration = Duration::from_secs(5);
/// The maximum size of a pasted picture.
const MAX_PICTURE_BYTES: usize = 20 * 1024 * 1024;
/// The maximum size of a pasted text.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// A terminal multiplexer between the program and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplexer {
    /// tmux.
    Tmux,
    /// GNU screen.
    Screen,
}

/// A desktop with a clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desktop {
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

/// The content of a clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clip {
    Text(String),
    Picture(Picture),
}

/// A program with its arguments.
type CommandLine = &'static [&'static str];

impl Desktop {
    /// Returns the programs that copy a text, best first.
    fn copy_programs(self) -> &'static [CommandLine] {
        match self {
            Self::Mac => &[&["pbcopy"]],
            Self::Wayland => &[&["wl-copy"]],
            Self::X11 => &[&["xclip", "-selection", "clipboard", "-in"], &["xsel", "--clipboard", "--input"]],
            Self::Windows => &[&["clip.exe"]],
        }
    }

    /// Returns the programs that paste a text.
    fn text_programs(self) -> &'static [CommandLine] {
        match self {
            Self::Mac => &[&["pbpaste"]],
            Self::Wayland => &[&["wl-paste", "--no-newline"]],
            Self::X11 => {
                &[&["xclip", "-selection", "clipboard", "-out"], &["xsel", "--clipboard", "--output"]]
            }
            Self::Windows => &[&["powershell.exe", "-NoProfile", "-Command", "Get-Clipboard -Raw"]],
        }
    }

    /// Returns the programs that paste a picture. They fail if the clipboard has no picture.
    fn picture_programs(self) -> &'static [CommandLine] {
        match self {
            Self::Mac => &[&["osascript", "-e", "get the clipboard as «class PNGf»"]],
            Self::Wayland => &[&["wl-paste", "--type", "image/png"]],
            Self::X11 => &[&["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]],
            Self::Windows => &[],
        }
    }
}

/// Returns the sequence that copies a text to the terminal's clipboard, or `None` if it is too long.
pub(crate) fn sequence(text: &str, multiplexer: Option<Multiplexer>) -> Option<String> {
    if text.len() > MAX_TERMINAL_BYTES {
        return None;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let plain = format!("\u{1b}]52;c;{encoded}\u{7}");
    Some(match multiplexer {
        None => plain,
        // The settings of tmux decide whether it handles the first sequence or passes on the second.
        Some(Multiplexer::Tmux) => format!("{plain}\u{1b}Ptmux;\u{1b}{plain}\u{1b}\\"),
        // GNU screen passes on only short strings. The terminal receives the pieces as one sequence.
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

/// The result of running a program.
enum Outcome {
    Done(Vec<u8>),
    /// The program is not installed.
    Missing,
    Failed(String),
}

/// Copies a text to the clipboard of a desktop. `via_terminal` is whether the terminal has received it.
pub(crate) async fn copy(text: &str, via_terminal: bool, desktops: &[Desktop]) -> Reply {
    let mut errors = Vec::new();
    let mut missing = Vec::new();
    for desktop in desktops {
        let input = match desktop {
            // `clip.exe` reads only UTF-16.
            Desktop::Windows => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Desktop::Mac | Desktop::Wayland | Desktop::X11 => text.as_bytes().to_vec(),
        };
        for line in desktop.copy_programs() {
            match run(line, Some(&input), 0).await {
                Outcome::Done(_) => {
                    let too = if via_terminal { ", and sent to the terminal (OSC 52)" } else { "" };
                    return Reply::Copied { note: format!("copied with {}{too}", line[0]), is_copied: true };
                }
                Outcome::Missing => missing.push(line[0]),
                Outcome::Failed(reason) => errors.push(format!("{}: {reason}", line[0])),
            }
        }
    }
    if errors.is_empty() && !missing.is_empty() {
        errors.push(format!("to use the clipboard of the desktop, install {}", missing.join(" or ")));
    }
    let errors = errors.join("; ");
    let note = match (via_terminal, errors.as_str()) {
        (true, "") => "sent to the terminal's clipboard (OSC 52)".to_owned(),
        (true, why) => format!("sent to the terminal's clipboard (OSC 52)\n{why}"),
        (false, "") => "too long for the terminal's clipboard; /export opens it in your editor".to_owned(),
        (false, why) => {
            format!("too long for the terminal's clipboard; /export opens it in your editor\n{why}")
        }
    };
    Reply::Copied { note, is_copied: via_terminal }
}

/// Returns the content of the clipboard: a picture, or else a text.
pub(crate) async fn paste(desktops: &[Desktop]) -> Result<Clip, String> {
    if desktops.is_empty() {
        return Err("no desktop clipboard is available here: paste with the terminal's own key \
                    (often ctrl+shift+v), or drop the picture's file on the terminal"
            .to_owned());
    }
    let mut errors = Vec::new();
    for desktop in desktops {
        for line in desktop.picture_programs() {
            match run(line, None, 2 * MAX_PICTURE_BYTES + 64).await {
                Outcome::Done(bytes) => {
                    let bytes =
                        if *desktop == Desktop::Mac { decode_mac_picture(&bytes) } else { Some(bytes) };
                    let picture = bytes.and_then(|bytes| Some(Picture { mime: mime(&bytes)?, bytes }));
                    match picture {
                        Some(picture) if picture.bytes.len() > MAX_PICTURE_BYTES => {
                            return Err(format!(
                                "the picture is larger than {} MiB",
                                MAX_PICTURE_BYTES >> 20
                            ));
                        }
                        Some(picture) => return Ok(Clip::Picture(picture)),
                        None => {}
                    }
                }
                // The clipboard has no picture.
                Outcome::Missing | Outcome::Failed(_) => {}
            }
        }
        for line in desktop.text_programs() {
            match run(line, None, MAX_TEXT_BYTES).await {
                Outcome::Done(bytes) if bytes.is_empty() => errors.push("the clipboard is empty".to_owned()),
                Outcome::Done(bytes) => return Ok(Clip::Text(String::from_utf8_lossy(&bytes).into_owned())),
                Outcome::Missing => errors.push(format!("`{}` is not installed", line[0])),
                Outcome::Failed(reason) => errors.push(format!("{}: {reason}", line[0])),
            }
        }
    }
    Err(format!("cannot paste: {}", errors.join("; ")))
}

/// Decodes a picture that macOS writes as `«data PNGf89504E…»`.
fn decode_mac_picture(written: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(written);
    let digits = text.split_once("PNGf")?.1.split('»').next()?;
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Returns the media type of a picture.
fn mime(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 3] =
        [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")];
    KINDS.iter().find(|(head, _)| bytes.starts_with(head)).map(|(_, mime)| *mime)
}

/// Runs a program to its end. `limit` is the maximum output size.
async fn run(line: CommandLine, input: Option<&[u8]>, limit: usize) -> Outcome {
    match timeout(DEADLINE, exchange(line, input, limit)).await {
        Err(_) => Outcome::Failed(format!("it took longer than {} seconds", DEADLINE.as_secs())),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Outcome::Missing,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Ok(Ok((_, written))) if written.len() > limit => {
            Outcome::Failed(format!("its output is larger than {} MiB", limit >> 20))
        }
        Ok(Ok((status, _))) if !status.success() => Outcome::Failed(format!("it exited with {status}")),
        Ok(Ok((_, written))) => Outcome::Done(written),
    }
}

async fn exchange(
    line: CommandLine,
    input: Option<&[u8]>,
    limit: usize,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).stderr(Stdio::null()).kill_on_drop(true);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    // A program that owns the selection keeps running, so its output must not be awaited.
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
            // A program with endless output is killed.
            child.start_kill()?;
        }
    }
    Ok((child.wait().await?, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_encoded_for_the_terminal() {
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
    fn a_long_text_is_split_for_screen() {
        let text = "long ".repeat(500);
        let wrapped = sequence(&text, Some(Multiplexer::Screen)).unwrap();
        let pieces: Vec<&str> = wrapped.split("\u{1b}\\").filter(|piece| !piece.is_empty()).collect();
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() <= SCREEN_PIECE + 2));
        let whole: String = pieces.iter().map(|piece| piece.strip_prefix("\u{1b}P").unwrap()).collect();
        assert_eq!(Some(whole), sequence(&text, None));
    }

    #[tokio::test]
    async fn programs_have_time_and_size_limits() {
        let done = |outcome| match outcome {
            Outcome::Done(bytes) => String::from_utf8(bytes).unwrap(),
            Outcome::Missing => "missing".to_owned(),
            Outcome::Failed(why) => why,
        };
        assert_eq!(done(run(&["cat"], Some(b"hi"), 10).await), "hi");
        assert_eq!(done(run(&["no-such-program-anywhere"], None, 10).await), "missing");
        assert!(done(run(&["sh", "-c", "exit 3"], None, 10).await).contains("exit status: 3"));
        assert!(done(run(&["sh", "-c", "yes"], None, 4 << 20).await).contains("larger than 4 MiB"));
        assert!(done(run(&["sleep", "60"], None, 10).await).contains("longer than 5 seconds"));
    }

    #[test]
    fn a_picture_is_recognized_by_its_bytes() {
        assert_eq!(mime(b"\x89PNG\r\n\x1a\n..."), Some("image/png"));
        assert_eq!(mime(b"<svg>"), None);
        let written = "«data PNGf89504E470D0A1A0A»\n";
        assert_eq!(decode_mac_picture(written.as_bytes()).as_deref(), Some(&b"\x89PNG\r\n\x1a\n"[..]));
        assert_eq!(decode_mac_picture(b"execution error"), None);
    }

    #[tokio::test]
    async fn a_failed_copy_or_paste_has_a_reason() {
        let result = |reply| match reply {
            Reply::Copied { note, is_copied } => (note, is_copied),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            result(copy("x", true, &[]).await),
            ("sent to the terminal's clipboard (OSC 52)".to_owned(), true)
        );
        let (text, is_copied) = result(copy("x", false, &[]).await);
        assert!(text.contains("too long") && !is_copied);
        assert!(paste(&[]).await.unwrap_err().contains("no desktop"));
    }
}
