//! The terminal: sets it up, draws on it and restores it.
//!
//! It is restored at the end, when the program is suspended, and when it panics. A panic of another thread
//! does not end the client and is not displayed, because the code that waits for the thread reports it.

use std::cell::RefCell;
use std::io::{self, BufWriter, Stdout, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;

use crate::clipboard::{self, Multiplexer};
use crate::link::{self, Cells, Link, Linked, Targets};
use crate::mini::Mini;
use crate::notification::Notification;
use crate::state::{Links, Options, State};
use crate::view;

/// Whether the terminal is set up.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Whether the client uses the whole screen.
static IS_FULL_SCREEN: AtomicBool = AtomicBool::new(false);

type Backend = Linked<CrosstermBackend<BufWriter<Stdout>>>;

/// The terminal while the client uses it.
pub(crate) struct Terminal {
    inner: ratatui::Terminal<Backend>,
    /// The small client, if it is used.
    mini: Option<Mini>,
    mouse: bool,
    multiplexer: Option<Multiplexer>,
    /// The links of the last frame.
    cells: Rc<RefCell<Cells>>,
    targets: Targets,
}

impl Terminal {
    /// Sets up the terminal.
    pub(crate) fn open(options: &Options, mouse: bool) -> io::Result<Self> {
        install_panic_hook();
        let mini = options.mini.map(|_| Mini::default());
        let mouse = mouse && mini.is_none();
        enter(mouse, mini.is_none())?;
        let cells = Rc::default();
        match ratatui::Terminal::new(backend(&cells)) {
            Ok(inner) => {
                let (multiplexer, targets) = (options.multiplexer, Targets::default());
                Ok(Self { inner, mini, mouse, multiplexer, cells, targets })
            }
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws the state. Only changed cells are written.
    pub(crate) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        let size = self.inner.size()?;
        state.size = (size.width, size.height);
        if let Some(mini) = &mut self.mini {
            return mini.draw(state, self.inner.backend_mut());
        }
        view::arrange(state);
        queue!(self.inner.backend_mut(), BeginSynchronizedUpdate)?;
        let links = link_targets(state, &mut self.targets);
        let area = state.screen.layout.transcript;
        let cells = &self.cells;
        self.inner.draw(|frame| {
            view::view(state, frame);
            let placed = link::place(frame.buffer_mut(), area, &links, &cells.borrow());
            *cells.borrow_mut() = placed;
        })?;
        execute!(self.inner.backend_mut(), EndSynchronizedUpdate)
    }

    /// Restores the terminal for another program.
    pub(crate) fn suspend(&mut self) {
        self.leave();
        restore();
    }

    /// Removes the bottom lines of the small client.
    fn leave(&mut self) {
        if let Some(mini) = self.mini.as_mut().filter(|_| IS_OPEN.load(Ordering::SeqCst)) {
            // An error here cannot be reported, because the terminal is being closed.
            drop(mini.leave(self.inner.backend_mut()));
        }
    }

    /// Sets up the terminal again.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        enter(self.mouse, self.mini.is_none())?;
        // A new terminal redraws everything. Clearing would query the cursor position, which not every
        // terminal answers.
        self.cells.borrow_mut().clear();
        self.inner = ratatui::Terminal::new(backend(&self.cells))?;
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

    pub(crate) fn notify(&mut self, notification: &Notification) -> io::Result<()> {
        let bytes = notification.bytes(self.multiplexer);
        let writer = self.inner.backend_mut();
        writer.write_all(bytes.as_bytes())?;
        Write::flush(writer)
    }

    /// Copies a text to the terminal's clipboard. Returns `false` if it is too long.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<bool> {
        let Some(sequence) = clipboard::sequence(text, self.multiplexer) else { return Ok(false) };
        let writer = self.inner.backend_mut();
        writer.write_all(sequence.as_bytes())?;
        Write::flush(writer)?;
        Ok(true)
    }
}

fn backend(cells: &Rc<RefCell<Cells>>) -> Backend {
    Linked::new(CrosstermBackend::new(BufWriter::new(io::stdout())), Rc::clone(cells))
}

/// Returns the links of the screen that the terminal can open, with their targets.
fn link_targets<'a>(state: &'a State, targets: &mut Targets) -> Vec<(&'a Link, Rc<str>)> {
    let links = &state.screen.links;
    if links.is_empty() || state.options.links == Links::None {
        return Vec::new();
    }
    let with_files = state.options.links == Links::All && state.options.has_local_files;
    targets.refresh(state.roots());
    let found = targets.of(links.iter().map(|link| &link.reference), with_files);
    links.iter().zip(found).filter_map(|(link, target)| Some((link, target?))).collect()
}

/// Returns the window title for a session. It is in logical order, because the window system reorders it.
fn window_title(title: &str) -> String {
    let title = crate::clean::clean_line(title);
    let title = if title.is_empty() { "Codewright".to_owned() } else { format!("CW | {title}") };
    crate::wrap::cut(&title, 60)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
        restore();
    }
}

fn enter(mouse: bool, whole: bool) -> io::Result<()> {
    enable_raw_mode()?;
    IS_OPEN.store(true, Ordering::SeqCst);
    IS_FULL_SCREEN.store(whole, Ordering::SeqCst);
    let mut stdout = io::stdout();
    if whole && let Err(error) = execute!(stdout, EnterAlternateScreen) {
        restore();
        return Err(error);
    }
    let entered = execute!(
        stdout,
        EnableBracketedPaste,
        EnableFocusChange,
        // The client reorders right-to-left text itself. A terminal would also reorder borders.
        Print("\u{1b}[8l"),
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    );
    let entered = entered.and_then(|()| if mouse { execute!(stdout, EnableMouseCapture) } else { Ok(()) });
    if entered.is_err() {
        restore();
    }
    entered
}

/// Restores the terminal. Does nothing if it is restored already.
fn restore() {
    if !IS_OPEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    // An error here cannot be reported, because the terminal is being closed.
    drop(execute!(
        stdout,
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableFocusChange,
        DisableBracketedPaste,
        Print("\u{1b}[8h"),
        Show
    ));
    if IS_FULL_SCREEN.load(Ordering::SeqCst) {
        drop(execute!(stdout, LeaveAlternateScreen, Show));
    }
    drop(disable_raw_mode());
}

/// Installs a panic hook that restores the terminal before the panic is reported.
fn install_panic_hook() {
    let before = std::panic::take_hook();
    let drawing = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == drawing {
            restore();
        }
        if !IS_OPEN.load(Ordering::SeqCst) {
            before(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;

    /// Runs a test of this file on a separate terminal. Returns its output, and the terminal's settings before
    /// and after the test.
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
        // Reading a terminal without processes ends with an error.
        drop(pair.master.try_clone_reader().unwrap().read_to_end(&mut written));
        child.wait().unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        (String::from_utf8_lossy(&written).into_owned(), read("before"), read("after"))
    }

    #[track_caller]
    fn check_restored((written, before, after): &(String, String, String)) {
        for (on, off) in [
            ("\u{1b}[?1049h", "\u{1b}[?1049l"),
            ("\u{1b}[?2004h", "\u{1b}[?2004l"),
            ("\u{1b}[?1004h", "\u{1b}[?1004l"),
            ("\u{1b}[?1000h", "\u{1b}[?1000l"),
            ("\u{1b}[>1u", "\u{1b}[<1u"),
            ("\u{1b}[8l", "\u{1b}[8h"),
            ("\u{1b}[?25l", "\u{1b}[?25h"),
        ] {
            assert!(written.rfind(on) < written.rfind(off) && written.contains(on), "{on:?} {written:?}");
        }
        assert!(before.contains("echo") && before == after, "{before}\n{after}");
    }

    fn open_terminal() -> Terminal {
        let mut terminal = Terminal::open(&crate::tests::options(), true).unwrap();
        terminal.inner.draw(|frame| frame.buffer_mut()[(0, 0)].set_symbol("x").reset()).unwrap();
        terminal
    }

    #[test]
    fn a_window_title_is_in_logical_order() {
        for (title, named) in [("", "Codewright"), ("Fix it", "CW | Fix it"), ("שלום", "CW | שלום")] {
            assert_eq!(window_title(title), named);
        }
        assert_eq!(window_title(&"ש".repeat(80)), format!("CW | {}…", "ש".repeat(54)));
    }

    #[test]
    #[ignore = "another test runs it on a terminal"]
    fn panics() {
        let _terminal = open_terminal();
        panic!("the drawing thread panics");
    }

    #[test]
    #[ignore = "another test runs it on a terminal"]
    fn panics_elsewhere() {
        let terminal = open_terminal();
        assert!(std::thread::spawn(|| panic!("another thread panics")).join().is_err());
        assert!(IS_OPEN.load(Ordering::SeqCst));
        drop(terminal);
    }

    #[test]
    fn a_panic_restores_the_terminal_before_it_is_reported() {
        let ended = on_a_terminal("panics");
        check_restored(&ended);
        let (written, ..) = &ended;
        assert!(written.find("the drawing thread panics") > written.rfind("\u{1b}[?1049l"), "{written:?}");
    }

    #[test]
    fn a_panic_of_another_thread_does_not_disturb_the_screen() {
        let ended = on_a_terminal("panics_elsewhere");
        check_restored(&ended);
        assert!(!ended.0.contains("another thread panics"), "{:?}", ended.0);
    }
}
