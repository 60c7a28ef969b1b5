//! The channel of the editor in whose terminal the client runs: JSON lines over the loopback interface.
//!
//! `editors/README.md` describes it. The client opens files and differences through it, and reads the selection and the
//! problems. Everything that the editor sends is untrusted text. Without the channel, or if it fails, the client works as
//! in any other terminal.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::clean;

/// The time in which an editor must answer.
const DEADLINE: Duration = Duration::from_secs(2);
/// The longest answer.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
/// The longest request, as editors limit it.
const MAX_REQUEST_BYTES: usize = 8 << 20;
/// The number of problems that a prompt contains.
const MAX_PROBLEMS: usize = 200;
/// The lengths of a token.
const TOKEN_DIGITS: std::ops::RangeInclusive<usize> = 32..=128;

/// How the channel of an editor is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Channel {
    editor: String,
    port: u16,
    token: String,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("editor", &self.editor)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// What a prompt can get from the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    Selection,
    Problems,
}

impl Context {
    pub(crate) const ALL: [Self; 2] = [Self::Selection, Self::Problems];

    /// The name after `@`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Selection => "selection",
            Self::Problems => "problems",
        }
    }

    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Selection => "the selected text in the editor",
            Self::Problems => "the problems that the editor shows",
        }
    }
}

/// A text of the editor for a prompt, and the label that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) label: String,
    pub(crate) text: String,
}

impl Channel {
    /// Reads the value of `CODEWRIGHT_EDITOR`: `<editor>:<port>:<token>`. Returns `None` if it has another form.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.split(':');
        let (editor, port, token) = (parts.next()?, parts.next()?, parts.next()?);
        let is_name =
            !editor.is_empty() && editor.len() <= 32 && editor.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_token =
            TOKEN_DIGITS.contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        if !is_name || !is_token || !is_number || parts.next().is_some() {
            return None;
        }
        let port = port.parse().ok().filter(|port| *port != 0)?;
        Some(Self { editor: editor.to_owned(), port, token: token.to_owned() })
    }

    /// Opens a file at a line and a column, both counted from 1.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the editor does not open it.
    pub(crate) async fn open(
        &self,
        path: &str,
        line: Option<u32>,
        column: Option<u32>,
    ) -> Result<(), String> {
        let mut params = json!({ "path": path });
        if let Some(line) = line {
            params["line"] = line.into();
            params["character"] = column.unwrap_or(1).into();
        }
        self.request("open", params).await.map(drop)
    }

    /// Shows two versions of a file side by side. Without `after`, the right side is the file.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the editor does not show them.
    pub(crate) async fn diff(&self, path: &str, before: &str, after: Option<&str>) -> Result<(), String> {
        let mut params = json!({ "path": path, "before": before });
        if let Some(after) = after {
            params["after"] = after.into();
        }
        self.request("diff", params).await.map(drop)
    }

    /// Reads a text for a prompt.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the editor does not answer or has nothing.
    pub(crate) async fn context(&self, context: Context, directory: &str) -> Result<Attachment, String> {
        let answer = self.request(context.name(), Value::Null).await?;
        match context {
            Context::Selection => selection(&answer, directory),
            Context::Problems => problems(&answer, directory),
        }
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        let editor = &self.editor;
        match timeout(DEADLINE, self.converse(method, params)).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(why)) => Err(format!("the editor `{editor}` failed: {why}")),
            Err(_) => Err(format!("the editor `{editor}` does not answer")),
        }
    }

    async fn converse(&self, method: &str, params: Value) -> Result<Value, String> {
        let failed = |error: std::io::Error| error.to_string();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.map_err(failed)?;
        let hello = json!({ "id": 1, "method": "hello", "params": { "token": self.token } });
        let mut request = json!({ "id": 2, "method": method });
        if !params.is_null() {
            request["params"] = params;
        }
        let text = format!("{hello}\n{request}\n");
        if text.len() > MAX_REQUEST_BYTES {
            return Err("the text is too long".to_owned());
        }
        let (input, mut output) = stream.into_split();
        let mut lines = BufReader::new(input.take(MAX_ANSWER_BYTES)).lines();
        output.write_all(text.as_bytes()).await.map_err(failed)?;
        for id in [1, 2] {
            let line = lines.next_line().await.map_err(failed)?;
            let line = line.ok_or_else(|| "it closed the connection".to_owned())?;
            let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if answer["id"] != id {
                return Err("it answered another request".to_owned());
            }
            if let Some(message) = answer["error"]["message"].as_str() {
                return Err(clean::clean_line(&message.chars().take(200).collect::<String>()));
            }
            if id == 2 {
                return Ok(answer["result"].clone());
            }
        }
        Err("it sent no answer".to_owned())
    }
}

/// The path of a file for people: relative to the directory if it is inside.
fn shown_path(value: &Value, directory: &str) -> String {
    let path = value.as_str().unwrap_or_default();
    let inside = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
    clean::clean_line(inside.unwrap_or(path))
}

/// A line of a position, counted from 1.
fn line(position: &Value) -> u64 {
    position["line"].as_u64().unwrap_or(0).saturating_add(1)
}

fn selection(answer: &Value, directory: &str) -> Result<Attachment, String> {
    let text = clean::clean(answer["text"].as_str().unwrap_or_default());
    if text.trim().is_empty() {
        return Err("nothing is selected in the editor".to_owned());
    }
    let path = shown_path(&answer["path"], directory);
    let (first, mut last) = (line(&answer["start"]), line(&answer["end"]));
    if answer["end"]["character"] == 0 && last > first {
        last -= 1;
    }
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let cut = if answer["truncated"] == true { " (the beginning of it)" } else { "" };
    let fence = fence(&text);
    let text = format!(
        "The selection in `{path}`, lines {lines}{cut}:\n{fence}\n{}\n{fence}\n",
        text.trim_end_matches('\n')
    );
    let name = path.rsplit('/').next().unwrap_or(&path);
    Ok(Attachment { label: format!("[{name}:{lines}]"), text })
}

fn problems(answer: &Value, directory: &str) -> Result<Attachment, String> {
    let list = answer["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    let list = &list[..list.len().min(MAX_PROBLEMS)];
    if list.is_empty() {
        return Err("the editor shows no problems".to_owned());
    }
    let mut text = "The problems that the editor shows:\n".to_owned();
    for problem in list {
        let path = shown_path(&problem["path"], directory);
        let word = |key: &str| clean::clean_line(problem[key].as_str().unwrap_or_default());
        text.push_str(&format!(
            "- {path}:{} {}: {}\n",
            line(&problem["start"]),
            word("severity"),
            word("message")
        ));
    }
    let count = list.len();
    Ok(Attachment { label: format!("[{count} {}]", if count == 1 { "problem" } else { "problems" }), text })
}

/// A fence of code that the text does not contain.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_value_is_a_channel() {
        let token = "0123456789abcdef0123456789abcdef";
        for (value, is_channel) in [
            (format!("vscode:4711:{token}"), true),
            (format!("nvim:65535:{token}{token}"), true),
            (format!("vscode:0:{token}"), false),
            (format!("vscode:65536:{token}"), false),
            (format!("vscode:+80:{token}"), false),
            (format!("VSCode:4711:{token}"), false),
            (format!(":4711:{token}"), false),
            (format!("vscode:4711:{token}:x"), false),
            ("vscode:4711:short".to_owned(), false),
            (format!("vscode:4711:{}", "z".repeat(32)), false),
            (format!("vscode:4711:{}", "a".repeat(129)), false),
            (String::new(), false),
        ] {
            assert_eq!(Channel::parse(&value).is_some(), is_channel, "{value}");
        }
        let channel = Channel::parse(&format!("vscode:4711:{token}")).unwrap();
        assert!(!format!("{channel:?}").contains(token), "a token is not displayed");
    }

    #[test]
    fn what_the_editor_sends_becomes_clean_text() {
        let answer = json!({"path": "/w/src/a\u{1b}[2J.rs", "text": "let a = ```;\u{7}\nb\n",
                            "start": {"line": 2, "character": 0}, "end": {"line": 4, "character": 0}});
        let attached = selection(&answer, "/w").unwrap();
        assert!(!attached.text.contains(['\u{1b}', '\u{7}']) && !attached.label.contains('\u{1b}'));
        assert!(attached.text.contains("lines 3-4:\n````\nlet a = ```;"), "{}", attached.text);
        assert!(attached.label.ends_with(":3-4]"), "{}", attached.label);
        assert!(selection(&Value::Null, "/w").is_err() && selection(&json!({"text": " \n"}), "/w").is_err());
        let one = json!({"problems": [{"path": "/w/a.rs", "start": {"line": 0}, "severity": "error", "message": "no\u{1b}[m\nway"}]});
        let attached = problems(&one, "/w").unwrap();
        assert_eq!(attached.label, "[1 problem]");
        assert!(attached.text.contains("- a.rs:1 error: no"), "{}", attached.text);
        assert!(problems(&json!({"problems": 5}), "/w").is_err());
    }

    /// An editor that answers with these lines.
    #[expect(clippy::disallowed_methods, reason = "the test owns the task")]
    async fn editor(lines: &'static [&'static str]) -> (Channel, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = tokio::task::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (input, mut output) = stream.into_split();
            let mut read = BufReader::new(input).lines();
            let hello = read.next_line().await.unwrap().unwrap();
            let request = read.next_line().await.unwrap().unwrap();
            for line in lines {
                output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
            format!("{hello}\n{request}")
        });
        let token = "0123456789abcdef0123456789abcdef";
        (Channel::parse(&format!("vscode:{port}:{token}")).unwrap(), served)
    }

    #[tokio::test]
    async fn a_request_follows_the_token() {
        let (channel, served) = editor(&[r#"{"id":1,"result":{}}"#, r#"{"id":2,"result":{}}"#]).await;
        channel.open("/w/a.rs", Some(3), None).await.unwrap();
        let sent = served.await.unwrap();
        assert!(sent.contains("0123456789abcdef") && sent.contains(r#""character":1"#), "{sent}");
    }

    #[tokio::test]
    async fn an_editor_that_answers_wrongly_is_an_error() {
        for lines in [
            &[r#"{"id":1,"error":{"message":"no\u001b[2J"}}"#][..],
            &["no json"],
            &[r#"{"id":2,"result":{}}"#],
            &[r#"{"id":1,"result":{}}"#],
            &[],
        ] {
            let (channel, _served) = editor(lines).await;
            let failed = channel.open("/w/a.rs", None, None).await.unwrap_err();
            assert!(failed.starts_with("the editor `vscode`") && !failed.contains('\u{1b}'), "{failed}");
        }
    }
}
