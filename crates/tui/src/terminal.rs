//! The terminal: taken over, drawn on, and given back as it was.
//!
//! It is given back on every way out: at the end, when the program stops for a while, and
//! when it panics. A panic of another thread does not end the client and is not shown:
//! whoever waits for that thread tells what came of it.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;

use crate::clipboard::{self, Multiplexer};
use crate::mini::Mini;
use crate::state::{Options, State};
use crate::view;

/// Whether the terminal is taken over.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the whole screen is.
static WHOLE: AtomicBool = AtomicBool::new(false);

type Backend = CrosstermBackend<BufWriter<Stdout>>;

/// The terminal while it is ours.
pub(crate) struct Terminal {
    inner: ratatui::Terminal<Backend>,
    /// The small client, if that is what is drawn.
    mini: Option<Mini>,
    mouse: bool,
    multiplexer: Option<Multiplexer>,
}

impl Terminal {
    /// Takes the terminal over.
    pub(crate) fn take(options: &Options, mouse: bool) -> io::Result<Self> {
        hook();
        let mini = options.mini.map(|_| Mini::default());
        let mouse = mouse && mini.is_none();
        enter(mouse, mini.is_none())?;
        let made = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())));
        match made {
            Ok(inner) => Ok(Self { inner, mini, mouse, multiplexer: options.multiplexer }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws the state; only cells that changed are written.
    pub(crate) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        let size = self.inner.size()?;
        state.size = (size.width, size.height);
        if let Some(mini) = &mut self.mini {
            return mini.draw(state, self.inner.backend_mut());
        }
        view::arrange(state);
        queue!(self.inner.backend_mut(), BeginSynchronizedUpdate)?;
        self.inner.draw(|frame| view::view(state, frame))?;
        execute!(self.inner.backend_mut(), EndSynchronizedUpdate)
    }

    /// Gives the terminal to another program for a while.
    pub(crate) fn lend(&mut self) {
        self.leave();
        give_back();
    }

    /// Takes away what is drawn anew, and leaves what was printed.
    fn leave(&mut self) {
        if let Some(mini) = self.mini.as_mut().filter(|_| TAKEN.load(Ordering::SeqCst)) {
            // Nobody is left to be told when this fails.
            drop(mini.leave(self.inner.backend_mut()));
        }
    }

    /// Takes it again.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        enter(self.mouse, self.mini.is_none())?;
        // Made anew, so that all is drawn again; clearing would ask the terminal where its cursor is, which not
        // every one answers.
        self.inner = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))?;
        Ok(())
    }

    pub(crate) fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on && self.mini.is_none();
        match self.mouse {
            true => execute!(self.inner.backend_mut(), EnableMouseCapture),
            false => execute!(self.inner.backend_mut(), DisableMouseCapture),
        }
    }

    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<()> {
        execute!(self.inner.backend_mut(), SetTitle(window_title(title)))
    }

    /// Hands a text to the terminal's clipboard; false if it is too long for one.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<bool> {
        let Some(sequence) = clipboard::sequence(text, self.multiplexer) else { return Ok(false) };
        let writer = self.inner.backend_mut();
        writer.write_all(sequence.as_bytes())?;
        Write::flush(writer)?;
        Ok(true)
    }
}

/// What a window is named for a session; the window system puts it into its order.
fn window_title(title: &str) -> String {
    let title = crate::clean::clean_line(title);
    let title = if title.is_empty() { "Codewright".to_owned() } else { format!("CW | {title}") };
    crate::wrap::cut(&title, 60)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
        give_back();
    }
}

fn enter(mouse: bool, whole: bool) -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    WHOLE.store(whole, Ordering::SeqCst);
    let mut stdout = io::stdout();
    if whole && let Err(error) = execute!(stdout, EnterAlternateScreen) {
        give_back();
        return Err(error);
    }
    let entered = execute!(
        stdout,
        EnableBracketedPaste,
        // Text is put into its order here; a terminal that turned lines around would turn borders with them.
        Print("\u{1b}[8l"),
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    );
    let entered = entered.and_then(|()| if mouse { execute!(stdout, EnableMouseCapture) } else { Ok(()) });
    if entered.is_err() {
        give_back();
    }
    entered
}

/// Leaves the terminal as it was; does nothing if that was done already.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    // Nobody is left to be told when this fails.
    drop(execute!(
        stdout,
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableBracketedPaste,
        Print("\u{1b}[8h"),
        Show
    ));
    if WHOLE.load(Ordering::SeqCst) {
        drop(execute!(stdout, LeaveAlternateScreen, Show));
    }
    drop(disable_raw_mode());
}

/// Gives the terminal back before a panic is told.
fn hook() {
    let before = std::panic::take_hook();
    let drawing = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == drawing {
            give_back();
        }
        if !TAKEN.load(Ordering::SeqCst) {
            before(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;

    /// Runs a test of this file on a terminal of its own, under a shell that looks at the terminal before and
    /// behind it; what was written, and the terminal's settings before and after.
    fn on_a_terminal(test: &str) -> (String, String, String) {
        let directory = tempfile::tempdir().unwrap();
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 80, ..PtySize::default() }).unwrap();
        let mut command = CommandBuilder::new("sh");
        let script = "stty -a > before; \"$0\" --exact \"$1\" --ignored --nocapture; stty -a > after";
        let program = std::env::current_exe().unwrap();
        command.args(["-c", script]);
        command.arg(program);
        command.arg(format!("terminal::tests::{test}"));
        command.cwd(directory.path());
        command.env("TERM", "xterm-256color");
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut written = Vec::new();
        // A terminal nobody is left on ends with an error.
        drop(pair.master.try_clone_reader().unwrap().read_to_end(&mut written));
        child.wait().unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        (String::from_utf8_lossy(&written).into_owned(), read("before"), read("after"))
    }

    #[track_caller]
    fn check_given_back((written, before, after): &(String, String, String)) {
        for (on, off) in [
            ("\u{1b}[?1049h", "\u{1b}[?1049l"),
            ("\u{1b}[?2004h", "\u{1b}[?2004l"),
            ("\u{1b}[?1000h", "\u{1b}[?1000l"),
            ("\u{1b}[>1u", "\u{1b}[<1u"),
            ("\u{1b}[8l", "\u{1b}[8h"),
            ("\u{1b}[?25l", "\u{1b}[?25h"),
        ] {
            assert!(written.rfind(on) < written.rfind(off) && written.contains(on), "{on:?} {written:?}");
        }
        assert!(before.contains("echo") && before == after, "{before}\n{after}");
    }

    fn taken() -> Terminal {
        let mut terminal = Terminal::take(&crate::tests::options(), true).unwrap();
        terminal.inner.draw(|frame| frame.buffer_mut()[(0, 0)].set_symbol("x").reset()).unwrap();
        terminal
    }

    #[test]
    fn a_window_is_named_in_the_order_of_reading() {
        for (title, named) in [("", "Codewright"), ("Fix it", "CW | Fix it"), ("שלום", "CW | שלום")] {
            assert_eq!(window_title(title), named);
        }
        assert_eq!(window_title(&"ש".repeat(80)), format!("CW | {}…", "ש".repeat(54)));
    }

    #[test]
    #[ignore = "another test runs it on a terminal"]
    fn panics() {
        let _terminal = taken();
        panic!("what went wrong");
    }

    #[test]
    #[ignore = "another test runs it on a terminal"]
    fn panics_elsewhere() {
        let terminal = taken();
        assert!(std::thread::spawn(|| panic!("what went wrong elsewhere")).join().is_err());
        assert!(TAKEN.load(Ordering::SeqCst));
        drop(terminal);
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let ended = on_a_terminal("panics");
        check_given_back(&ended);
        let (written, ..) = &ended;
        assert!(written.find("what went wrong") > written.rfind("\u{1b}[?1049l"), "{written:?}");
    }

    #[test]
    fn a_panic_of_another_thread_does_not_disturb_the_screen() {
        let ended = on_a_terminal("panics_elsewhere");
        check_given_back(&ended);
        assert!(!ended.0.contains("what went wrong elsewhere"), "{:?}", ended.0);
    }
}
