//! The terminals of another agent: commands that run here, with the permissions and in the sandbox of the session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_acp_client::schema::TerminalExitStatus;
use codewright_proto::ToolState;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The number of terminals of one answer that are not released.
pub(crate) const MAX_TERMINALS: usize = 32;
/// The mark of an output whose beginning is missing.
const CUT: &str = "...\n\n";

/// The terminals of one answer.
#[derive(Default)]
pub(crate) struct Terminals {
    open: Mutex<HashMap<String, Arc<Terminal>>>,
}

/// A command and its output.
pub(crate) struct Terminal {
    /// Cancelled when the command must end.
    pub(crate) cancel: CancellationToken,
    /// The most output that the agent wants.
    limit: usize,
    state: watch::Sender<Option<ToolState>>,
}

/// The output of a terminal.
#[derive(Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) text: String,
    pub(crate) is_truncated: bool,
    pub(crate) exit: Option<TerminalExitStatus>,
}

impl Terminals {
    /// Adds a terminal. Returns `None` if there are too many.
    pub(crate) fn add(&self, id: &str, limit: usize, cancel: CancellationToken) -> Option<Arc<Terminal>> {
        let mut open = self.lock();
        if open.len() >= MAX_TERMINALS {
            return None;
        }
        let terminal = Arc::new(Terminal { cancel, limit, state: watch::Sender::new(None) });
        open.insert(id.to_owned(), terminal.clone());
        Some(terminal)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Terminal>> {
        self.lock().get(id).cloned()
    }

    /// Ends the command of a terminal and forgets it. Returns whether it existed.
    pub(crate) fn release(&self, id: &str) -> bool {
        let terminal = self.lock().remove(id);
        terminal.inspect(|terminal| terminal.cancel.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Terminal>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    /// Records the state of the call that runs the command.
    pub(crate) fn record(&self, state: ToolState) {
        self.state.send_replace(Some(state));
    }

    /// Waits until the command has started or failed. Returns the reason why it did not start.
    pub(crate) async fn started(&self) -> Result<(), String> {
        let mut state = self.state.subscribe();
        let is_known = |state: &Option<ToolState>| match state {
            Some(ToolState::Running { metadata, .. }) => metadata.is_some(),
            Some(ToolState::Completed { .. } | ToolState::Error { .. }) => true,
            Some(ToolState::Pending { .. }) | None => false,
        };
        match state.wait_for(is_known).await.as_deref() {
            Ok(Some(ToolState::Error { error, .. })) => Err(error.clone()),
            Ok(_) => Ok(()),
            Err(_) => Err("the command was not started".to_owned()),
        }
    }

    /// Waits until the command has ended.
    pub(crate) async fn ended(&self) -> Output {
        let mut state = self.state.subscribe();
        let has_ended = |state: &Option<ToolState>| state.as_ref().is_some_and(|state| !state.is_open());
        // The sender is gone only with the terminal.
        drop(state.wait_for(has_ended).await);
        self.output()
    }

    /// Returns the output so far.
    pub(crate) fn output(&self) -> Output {
        let state = self.state.borrow();
        let Some(state) = &*state else {
            return Output { text: String::new(), is_truncated: false, exit: None };
        };
        output(state, self.limit)
    }
}

fn output(state: &ToolState, limit: usize) -> Output {
    let (metadata, exit) = match state {
        ToolState::Pending { .. } => (None, None),
        ToolState::Running { metadata, .. } => (metadata.as_ref(), None),
        ToolState::Completed { metadata, .. } => {
            let code = metadata.get("exit").and_then(serde_json::Value::as_i64);
            let code = code.and_then(|code| u32::try_from(code).ok());
            let signal = code.is_none().then(|| "SIGTERM".to_owned());
            (Some(metadata), Some(TerminalExitStatus::new().exit_code(code).signal(signal)))
        }
        ToolState::Error { error, .. } => {
            let exit = Some(TerminalExitStatus::new().signal("SIGTERM".to_owned()));
            return Output { text: error.clone(), is_truncated: false, exit };
        }
    };
    let text = metadata.and_then(|metadata| metadata.get("output")?.as_str()).unwrap_or_default();
    let (text, was_cut) = text.strip_prefix(CUT).map_or((text, false), |rest| (rest, true));
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    Output { text: text[start..].to_owned(), is_truncated: was_cut || start > 0, exit }
}

/// Returns the command line of a terminal. Without arguments the command is a line for the shell already.
pub(crate) fn line(command: &str, args: &[String], variables: &[(String, String)]) -> Result<String, String> {
    let mut line = String::new();
    for (name, value) in variables {
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return Err(format!("`{}` is not the name of a variable", name.escape_debug()));
        }
        line.push_str(&format!("export {name}={}; ", quoted(value)));
    }
    if args.is_empty() {
        line.push_str(command);
        return Ok(line);
    }
    let words = std::iter::once(command).chain(args.iter().map(String::as_str)).map(quoted);
    line.push_str(&words.collect::<Vec<_>>().join(" "));
    Ok(line)
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let is_plain =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use codewright_proto::{Map, Span, ToolSpan};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_command_becomes_a_line_for_the_shell() {
        let args = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        for (command, given, expected) in [
            ("ls -l | wc", args(&[]), "ls -l | wc"),
            ("ls", args(&["-l", "a b"]), "ls -l 'a b'"),
            ("echo", args(&["it's; $(x)"]), "echo 'it'\\''s; $(x)'"),
            ("echo", args(&[""]), "echo ''"),
        ] {
            assert_eq!(line(command, &given, &[]).unwrap(), expected);
        }
        let variables = [("A".to_owned(), "1; rm x".to_owned())];
        assert_eq!(line("ls", &[], &variables).unwrap(), "export A='1; rm x'; ls");
        for name in ["", "1a", "a b", "a;b", "a=b"] {
            assert!(line("ls", &[], &[(name.to_owned(), String::new())]).is_err(), "{name}");
        }
    }

    #[test]
    fn the_output_is_the_end_of_what_the_command_wrote() {
        let metadata: Map = [("output".to_owned(), json!("...\n\nabc\u{e4}"))].into_iter().collect();
        let time = Span { start: 1, end: None };
        let running = ToolState::Running { input: Value::Null, title: None, metadata: Some(metadata), time };
        let expected = Output { text: "c\u{e4}".to_owned(), is_truncated: true, exit: None };
        assert_eq!(output(&running, 3), expected);
        let metadata: Map =
            [("output".to_owned(), json!("x")), ("exit".to_owned(), json!(3))].into_iter().collect();
        let time = ToolSpan { start: 1, end: 2, compacted: None };
        let (input, output_text, title) = (Value::Null, String::new(), String::new());
        let done =
            ToolState::Completed { input, output: output_text, title, metadata, time, attachments: None };
        assert_eq!(output(&done, 10).exit.unwrap().exit_code, Some(3));
    }
}
