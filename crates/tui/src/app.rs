//! The main loop: applies messages to the state, starts commands and draws frames.
//!
//! A frame is drawn only if something changed, at most sixty times a second. Input of the user is drawn
//! at once. No timer runs while nothing changes.

use std::io;
use std::time::Duration;

use codewright_client::Client;
use codewright_proto::{Clock, Fact, Notice, Signal};
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::link::FileReference;
use crate::local::Files;
use crate::msg::ShownChange;
use crate::msg::{Cmd, EditTarget, Msg, Reply};
use crate::notification::Focus;
use crate::opener::{self, Opening};
use crate::review::apply::{Version, other};
use crate::runner::Runner;
use crate::state::{Options, State};
use crate::terminal::Terminal;
use crate::update::update;
use crate::{Error, local};

/// The largest file whose change an editor shows.
const MAX_SHOWN_BYTES: u64 = 2 << 20;
/// The shortest time between two frames, unless the user did something.
const FRAME: Duration = Duration::from_millis(16);
/// The shortest time between two frames in any case, because a program may send keys quickly.
const SHORTEST_FRAME: Duration = Duration::from_millis(4);
/// The capacity of the message channel; senders wait when it is full.
const MAX_WAITING: usize = 1_024;
/// How many messages are applied before a frame is drawn.
const MAX_AT_ONCE: usize = 2_048;
/// How long messages are applied before a frame is drawn.
const MAX_AT_ONCE_TIME: Duration = Duration::from_millis(4);

/// The signal that a stopped program receives when it continues.
const SIGCONT: i32 = nix::sys::signal::Signal::SIGCONT as i32;

/// The result of running the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// The id and the title of the session on the screen.
    pub session: Option<(String, String)>,
    /// The signal that ended the client.
    pub signal: Option<u8>,
}

/// Runs the client on this terminal until it ends.
pub async fn run(client: Client, options: Options, clock: Clock) -> Result<Ended, Error> {
    let files = Files::new(options.state.clone());
    let (choices, broken) = files.choices();
    let (themes, warnings) = local::themes(&options.themes);
    let mouse = options.config["mouse"].as_bool().or(choices.mouse).unwrap_or(true);
    let mut state = State::new(options, choices, themes, clock.now_ms());
    state.prompt.history = files.history();
    state.dismissed = files.dismissed();
    for note in broken.into_iter().chain(warnings) {
        state.warn(note);
    }
    let signals = Signals::new().map_err(Error::Terminal)?;
    let terminal = Terminal::open(&state.options, mouse).map_err(Error::Terminal)?;
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    // An agent or a model that the user named may be that of a plugin, so its list is waited for.
    let is_named =
        state.options.agent.is_some() || state.options.model.is_some() || state.options.sends_prompt;
    let client = if is_named { client } else { client.with_quick_lists() };
    let runner = Runner::new(client, state.options.first.clone(), sender);
    let app = App {
        state,
        terminal,
        runner,
        receiver,
        input: Some(EventStream::new()),
        signals,
        resumed: signal(SignalKind::from_raw(SIGCONT)).map_err(Error::Terminal)?,
        files,
        clock,
        dirty: true,
        urgent: false,
        drawn: None,
        quit: false,
    };
    app.run().await.map_err(Error::Terminal)
}

struct App {
    state: State,
    terminal: Terminal,
    runner: Runner,
    receiver: mpsc::Receiver<Msg>,
    /// The input of the terminal; `None` while another program uses the terminal.
    input: Option<EventStream>,
    signals: Signals,
    resumed: UnixSignal,
    files: Files,
    clock: Clock,
    dirty: bool,
    /// Whether the user did something that is not drawn yet.
    urgent: bool,
    drawn: Option<Instant>,
    quit: bool,
}

/// The event that woke the loop.
enum Wake {
    Input(Option<io::Result<Event>>),
    Msg(Option<Msg>),
    Time,
    /// The program continues after it was stopped; another program used the terminal meanwhile.
    Resumed,
    Signal(u8),
}

impl App {
    async fn run(mut self) -> io::Result<Ended> {
        let mut ended = Ended::default();
        self.runner.watch();
        while !self.quit {
            self.draw()?;
            match self.wait().await {
                Wake::Input(Some(event)) => self.event(event?).await?,
                // The terminal was closed.
                Wake::Input(None) | Wake::Msg(None) => break,
                Wake::Msg(Some(msg)) => self.messages(msg).await?,
                Wake::Time if self.dirty => {}
                Wake::Time => self.apply(Msg::Tick).await?,
                Wake::Resumed => self.resume()?,
                Wake::Signal(signal) => {
                    ended.signal = Some(signal);
                    break;
                }
            }
        }
        ended.session = self.state.session().map(|session| (session.id.to_string(), session.title.clone()));
        self.runner.close().await;
        Ok(ended)
    }

    async fn wait(&mut self) -> Wake {
        let until = self.next_wake();
        let Some(input) = &mut self.input else { return Wake::Time };
        tokio::select! {
            // Input comes first, however many messages the server sends.
            biased;
            event = input.next() => Wake::Input(event),
            signal = self.signals.next() => Wake::Signal(signal),
            _ = self.resumed.recv() => Wake::Resumed,
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => Wake::Time,
            msg = self.receiver.recv() => Wake::Msg(msg),
        }
    }

    /// Returns the time of the next frame or of the next change that time causes.
    fn next_wake(&self) -> Option<Instant> {
        let now = Instant::now();
        if self.dirty {
            return Some(self.drawn.map_or(now, |drawn| drawn + self.frame()));
        }
        let change = self.state.next_change()?;
        Some(now + Duration::from_millis(change.saturating_sub(self.clock.now_ms()).max(1)))
    }

    /// Returns the shortest time until the next frame.
    fn frame(&self) -> Duration {
        if self.urgent { SHORTEST_FRAME } else { FRAME }
    }

    fn draw(&mut self) -> io::Result<()> {
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= self.frame());
        if self.dirty && due {
            self.terminal.draw(&mut self.state)?;
            (self.dirty, self.urgent) = (false, false);
            self.drawn = Some(Instant::now());
        }
        Ok(())
    }

    async fn event(&mut self, event: Event) -> io::Result<()> {
        let msg = match event {
            Event::Key(key) => Msg::Key(key),
            Event::Paste(text) => Msg::Paste(text),
            Event::Mouse(mouse) => Msg::Mouse(mouse),
            Event::Resize(width, height) => Msg::Resize(width, height),
            Event::FocusGained => Msg::Focus(Focus::Gained),
            Event::FocusLost => Msg::Focus(Focus::Lost),
        };
        self.urgent = true;
        self.apply(msg).await
    }

    /// Applies a message and the messages queued after it.
    async fn messages(&mut self, first: Msg) -> io::Result<()> {
        let mut next = Some(first);
        let start = Instant::now();
        for _ in 0..MAX_AT_ONCE {
            let Some(msg) = next.take() else { break };
            self.apply(msg).await?;
            if start.elapsed() >= MAX_AT_ONCE_TIME {
                break;
            }
            next = self.receiver.try_recv().ok();
        }
        if let Some(msg) = next {
            self.apply(msg).await?;
        }
        Ok(())
    }

    async fn apply(&mut self, msg: Msg) -> io::Result<()> {
        self.dirty |= matters(&self.state, &msg);
        let cmds = update(&mut self.state, msg, self.clock.now_ms());
        for cmd in cmds {
            self.execute(cmd).await?;
        }
        Ok(())
    }

    /// Executes a command. Commands for the server are started in the background.
    async fn execute(&mut self, cmd: Cmd) -> io::Result<()> {
        match cmd {
            Cmd::Quit => self.quit = true,
            Cmd::Enter(directory) => self.runner.enter(directory),
            Cmd::Title(title) => self.terminal.set_title(&title)?,
            Cmd::Mouse(on) => self.terminal.set_mouse(on)?,
            Cmd::Notify(notification) => self.terminal.notify(&notification)?,
            Cmd::Copy(text) => {
                let via_terminal = self.terminal.copy(&text)?;
                self.runner.begin(Cmd::CopyToDesktop {
                    text,
                    via_terminal,
                    desktops: self.state.options.desktops.clone(),
                });
            }
            Cmd::Save(choices) => {
                if let Err(error) = self.files.save(&choices) {
                    self.state.warn(format!("cannot save your choices: {error}"));
                }
            }
            Cmd::Remember(text) => {
                if let Err(error) = self.files.remember(&text) {
                    self.state.warn(format!("cannot save the prompt: {error}"));
                }
            }
            Cmd::KeepDismissed { session, key } => {
                if let Err(error) = self.files.dismiss(session.as_str(), &key) {
                    self.state.warn(format!("cannot save that the finding is dismissed: {error}"));
                }
            }
            Cmd::Edit { text, then } => self.edit(&text, then).await?,
            Cmd::OpenFile(file) => self.open_file(&file).await?,
            Cmd::ReadContext(context) => {
                let directory = self.state.mirror.directory.clone();
                if let Some(channel) = &self.state.options.channel {
                    let reply = Reply::Context(channel.context(context, &directory).await);
                    // The update for a text of the editor returns no commands.
                    drop(update(&mut self.state, Msg::Reply(reply), self.clock.now_ms()));
                }
            }
            Cmd::ShowChange(change) => {
                if let Err(why) = self.show_change(&change).await {
                    self.state.warn(why);
                }
            }
            Cmd::Suspend => self.suspend()?,
            other => self.runner.begin(other),
        }
        Ok(())
    }

    /// Opens a text in the user's editor.
    async fn edit(&mut self, text: &str, then: EditTarget) -> io::Result<()> {
        let Some(editor) = self.state.options.editor.clone() else {
            self.state.warn("no editor is configured: set VISUAL or EDITOR");
            return Ok(());
        };
        let written = self.lend_terminal(crate::runner::edit(&editor, text)).await?;
        let reply = match written {
            Ok(_) if then == EditTarget::Discard => return Ok(()),
            Ok(text) => Reply::Edited(text),
            Err(error) => Reply::Failed(format!("the editor `{editor}` failed: {error}")),
        };
        // The update for an edited text returns no commands.
        drop(update(&mut self.state, Msg::Reply(reply), self.clock.now_ms()));
        Ok(())
    }

    /// Opens a file in the user's editor.
    async fn open_file(&mut self, file: &FileReference) -> io::Result<()> {
        if let Some(channel) = &self.state.options.channel
            && let Some((path, _)) = self.state.roots().file(file)
        {
            let opened = channel.open(&path.to_string_lossy(), file.line, file.column).await;
            if opened.is_ok() {
                return Ok(());
            }
            // The editor may have closed. Its program, or another editor, opens the file.
        }
        match opener::plan(&self.state.options, &self.state.roots(), file) {
            Ok(Opening::Window(command)) => self.runner.begin(Cmd::StartEditor(command)),
            Ok(Opening::Terminal(command)) => {
                if let Err(error) = self.lend_terminal(opener::run(&command)).await? {
                    self.state.fail(format!("the editor `{}` failed: {error}", command.program.display()));
                }
            }
            Err(why) => self.state.warn(why),
        }
        Ok(())
    }

    /// Shows a change side by side in the editor of this terminal.
    async fn show_change(&self, change: &ShownChange) -> Result<(), String> {
        let Some(channel) = &self.state.options.channel else { return Ok(()) };
        let file = FileReference { path: change.file.clone(), line: None, column: None };
        let shown = crate::clean::clean_name(&change.file);
        let found = self.state.roots().file(&file);
        let text = match &found {
            Some((path, metadata)) if metadata.is_file() && metadata.len() <= MAX_SHOWN_BYTES => {
                tokio::fs::read_to_string(path).await.map_err(|error| format!("`{shown}`: {error}"))?
            }
            Some(_) => {
                return Err(format!("`{shown}` cannot be shown: it is no text file of a few megabytes"));
            }
            // It was removed, or does not exist yet.
            None => String::new(),
        };
        let path = found.map_or_else(
            || format!("{}/{}", self.state.mirror.directory, change.file),
            |(path, _)| path.to_string_lossy().into_owned(),
        );
        let given = if change.is_made { Version::After } else { Version::Before };
        let other = other(&text, &change.patch, given);
        let other =
            other.ok_or_else(|| format!("`{shown}` has changed since, so its change cannot be shown"))?;
        match given {
            Version::After => channel.diff(&path, &other, Some(&text)).await,
            Version::Before => channel.diff(&path, &text, Some(&other)).await,
        }
    }

    /// Waits for a program that uses the terminal.
    async fn lend_terminal<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        self.input = None;
        self.terminal.suspend();
        let done = work.await;
        self.terminal.resume()?;
        self.input = Some(EventStream::new());
        // An interrupt during the work was meant for the program, which had the terminal.
        self.signals.forget_interrupts()?;
        self.dirty = true;
        Ok(done)
    }

    /// Stops the program until the shell continues it.
    fn suspend(&mut self) -> io::Result<()> {
        self.input = None;
        self.terminal.suspend();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP)?;
        self.resume()?;
        self.resumed = signal(SignalKind::from_raw(SIGCONT))?;
        Ok(())
    }

    /// Sets the terminal up again, in whatever state it is.
    fn resume(&mut self) -> io::Result<()> {
        self.input = None;
        self.terminal.suspend();
        self.terminal.resume()?;
        self.input = Some(EventStream::new());
        self.dirty = true;
        Ok(())
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.terminal.suspend();
    }
}

/// Whether a message changes the screen.
fn matters(state: &State, msg: &Msg) -> bool {
    let Msg::Notice(notice) = msg else { return true };
    let Notice { fact, .. } = notice.as_ref();
    match fact {
        Fact::Signal(Signal::ServerHeartbeat {} | Signal::ServerConnected {}) => false,
        // Texts of other sessions are not on the screen.
        Fact::Signal(Signal::PartDelta { session_id, .. }) => state.session_id() == Some(session_id),
        Fact::Event(_) | Fact::Signal(_) => true,
    }
}

/// The signals that end the client.
struct Signals {
    interrupt: UnixSignal,
    terminate: UnixSignal,
    hangup: UnixSignal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Discards the interrupts received so far.
    fn forget_interrupts(&mut self) -> io::Result<()> {
        self.interrupt = signal(SignalKind::interrupt())?;
        Ok(())
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
            _ = self.hangup.recv() => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_interrupt_for_the_editor_does_not_end_the_client() {
        let mut signals = Signals::new().unwrap();
        let mut other = signal(SignalKind::interrupt()).unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT).unwrap();
        other.recv().await.unwrap();
        signals.forget_interrupts().unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGHUP).unwrap();
        assert_eq!(signals.next().await, 1);
    }
}
