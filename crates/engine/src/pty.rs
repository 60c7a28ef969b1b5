//! Terminals that clients open: their programs, what was on their screens, and who may connect.
//!
//! What a program writes goes into a bounded text that every connection reads at its own pace: one that
//! comes late or again begins where it wants, one that is too slow misses what has been dropped and nobody
//! else notices. A terminal goes when its program ends, when it is closed, and with the server.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::{Pty, PtyId, PtyInput, PtyPatch, PtyStatus, PtyTicket, Shell, Signal};
use codewright_workspace::{Author, Command, Screen, Seated, TerminalSize, open_terminal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::engine::{Engine, Inner};
use crate::error::Resource;
use crate::instance::Instance;

/// Terminals open at once.
const MAX_OPEN: usize = 64;
/// Bytes of text kept of a terminal for those who connect later.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Bytes read at a time.
const CHUNK_BYTES: usize = 16 * 1024;
/// The size of a terminal until somebody says otherwise.
const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };
/// How long a ticket is good, in seconds.
const TICKET_SECONDS: u64 = 60;
/// Tickets that wait to be used.
const MAX_TICKETS: usize = 256;
/// Shells that do not understand what the others do.
const UNLIKE_OTHERS: [&str; 2] = ["fish", "nu"];
/// The file in which the system lists its shells, and how much of it is read.
const SHELLS: (&str, u64) = ("/etc/shells", 64 * 1024);

/// The open terminals of a process.
#[derive(Default)]
pub(crate) struct Terminals {
    open: Mutex<BTreeMap<PtyId, Arc<Terminal>>>,
    /// To which terminal a ticket leads, and until when.
    tickets: Mutex<HashMap<String, (PtyId, u64)>>,
}

struct Terminal {
    info: Mutex<Pty>,
    directory: PathBuf,
    screen: Screen,
    text: Mutex<Text>,
    /// Tells that the text has grown; closed when the program has ended.
    grown: watch::Sender<()>,
    closing: CancellationToken,
}

/// The end of what was on a screen; places in it are counted as JavaScript counts, in UTF-16.
#[derive(Default)]
struct Text {
    kept: String,
    start: u64,
    /// The beginning of a character whose rest has not come yet.
    broken: Vec<u8>,
    is_over: bool,
}

/// A connection to a terminal.
pub struct Attached {
    terminal: Arc<Terminal>,
    grown: watch::Receiver<()>,
    at: u64,
}

impl Engine {
    /// The shells that this machine has.
    #[must_use]
    pub fn shells(&self) -> Vec<Shell> {
        let mut listed = String::new();
        if let Ok(file) = std::fs::File::open(SHELLS.0) {
            // What cannot be read is not listed.
            drop(file.take(SHELLS.1).read_to_string(&mut listed));
        }
        let paths = listed.lines().map(str::trim).filter(|line| line.starts_with('/'));
        let there = paths.filter(|path| Path::new(path).is_file());
        let shell = |path: &str| {
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let acceptable = !UNLIKE_OTHERS.contains(&name.as_str());
            Shell { path: path.to_owned(), name, acceptable }
        };
        there.map(shell).collect()
    }

    /// The terminals of a directory.
    #[must_use]
    pub fn terminals(&self, instance: &Instance) -> Vec<Pty> {
        let open = self.0.terminals.lock();
        open.values().filter(|one| one.directory == instance.directory).map(|one| one.info()).collect()
    }

    /// Starts a program in a new terminal.
    pub fn open_terminal(&self, instance: &Instance, input: PtyInput) -> Result<Pty, Error> {
        if self.0.terminals.lock().len() >= MAX_OPEN {
            return Err(Error::too_many(format!("there are {MAX_OPEN} terminals already")));
        }
        let id = self.0.ids.pty();
        let shell = instance.settled.shell.as_ref().unwrap_or(&self.0.shell);
        let program = input.command.unwrap_or_else(|| shell.to_string_lossy().into_owned());
        let mut args = input.args.unwrap_or_default();
        if program.ends_with("sh") {
            args.push("-l".to_owned());
        }
        let directory =
            input.cwd.map_or_else(|| instance.directory.clone(), |cwd| instance.directory.join(cwd));
        let mut env: Vec<_> = input.env.into_iter().flatten().collect();
        env.push(("TERM".to_owned(), "xterm-256color".to_owned()));
        env.push(("OPENCODE_TERMINAL".to_owned(), "1".to_owned()));
        let command = Command {
            program: PathBuf::from(&program),
            args: args.iter().map(Into::into).collect(),
            directory: directory.clone(),
            env,
            env_remove: self.0.child_env.remove.clone(),
            confinement: self.0.confinement.clone(),
            author: Author::User,
        };
        let (seated, screen) =
            open_terminal(&command, SIZE).map_err(|error| Error::machine(error.to_string()))?;
        let end: String = id.as_str().chars().rev().take(4).collect();
        let title =
            input.title.unwrap_or_else(|| format!("Terminal {}", end.chars().rev().collect::<String>()));
        let info = Pty {
            id: id.clone(),
            title,
            command: program,
            args,
            cwd: directory.to_string_lossy().into_owned(),
            status: PtyStatus::Running,
            pid: seated.id,
            exit_code: None,
        };
        let terminal = Arc::new(Terminal {
            info: Mutex::new(info.clone()),
            directory: instance.directory.clone(),
            screen,
            text: Mutex::default(),
            grown: watch::Sender::new(()),
            closing: self.0.cancel.child_token(),
        });
        self.0.terminals.lock().insert(id, Arc::clone(&terminal));
        self.0.store.signal(Signal::PtyCreated { info: info.clone() });
        self.0.tasks.spawn(keep(self.0.clone(), terminal, seated));
        Ok(info)
    }

    /// One terminal.
    pub fn terminal(&self, id: &PtyId) -> Result<Pty, Error> {
        self.0.terminals.find(id).map(|terminal| terminal.info())
    }

    /// Names a terminal anew, or changes its size.
    pub fn change_terminal(&self, id: &PtyId, patch: PtyPatch) -> Result<Pty, Error> {
        let terminal = self.0.terminals.find(id)?;
        if let Some(size) = patch.size {
            // One whose program has just ended has no size any more.
            drop(terminal.screen.resize(size.rows.get(), size.cols.get()));
        }
        if let Some(title) = patch.title {
            lock(&terminal.info).title = title;
        }
        let info = terminal.info();
        self.0.store.signal(Signal::PtyUpdated { info: info.clone() });
        Ok(info)
    }

    /// Ends a terminal and its program.
    pub fn close_terminal(&self, id: &PtyId) -> Result<(), Error> {
        let terminal = self.0.terminals.find(id)?;
        terminal.closing.cancel();
        self.0.drop_terminal(id);
        Ok(())
    }

    /// A ticket with which one connection may be made without other credentials.
    pub fn terminal_ticket(&self, id: &PtyId) -> Result<PtyTicket, Error> {
        self.0.terminals.find(id)?;
        let ticket = secret().map_err(|error| Error::machine(format!("no random numbers: {error}")))?;
        let now = self.0.clock.now_ms();
        let mut tickets = lock(&self.0.terminals.tickets);
        tickets.retain(|_, (_, until)| *until > now);
        if tickets.len() >= MAX_TICKETS {
            return Err(Error::too_many("too many tickets wait to be used"));
        }
        tickets.insert(ticket.clone(), (id.clone(), now + TICKET_SECONDS * 1000));
        Ok(PtyTicket { ticket, expires_in: TICKET_SECONDS })
    }

    /// Uses a ticket up; whether it was good for this terminal.
    #[must_use]
    pub fn redeem_ticket(&self, id: &PtyId, ticket: &str) -> bool {
        let found = lock(&self.0.terminals.tickets).remove(ticket);
        found.is_some_and(|(of, until)| of == *id && until > self.0.clock.now_ms())
    }

    /// Connects to a terminal: from a place in its text, or, without one, from what comes next.
    pub fn attach_terminal(&self, id: &PtyId, from: Option<u64>) -> Result<Attached, Error> {
        let terminal = self.0.terminals.find(id)?;
        let grown = terminal.grown.subscribe();
        let end = lock(&terminal.text).end();
        Ok(Attached { terminal, grown, at: from.map_or(end, |from| from.min(end)) })
    }
}

impl Attached {
    /// What has been written since, without waiting.
    pub fn news(&mut self) -> String {
        let text = lock(&self.terminal.text);
        let (news, end) = text.since(self.at);
        self.at = end;
        news.to_owned()
    }

    /// What is written next; none when the program has ended.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            self.grown.borrow_and_update();
            let is_over = lock(&self.terminal.text).is_over;
            let news = self.news();
            if !news.is_empty() {
                return Some(news);
            }
            // The terminal is held by this, so only its end can be missed, which was looked at before.
            if is_over || self.grown.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The position up to which this has read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Types.
    pub async fn write(&self, typed: &[u8]) {
        self.terminal.screen.write(typed).await;
    }
}

impl Terminals {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PtyId, Arc<Terminal>>> {
        lock(&self.open)
    }

    fn find(&self, id: &PtyId) -> Result<Arc<Terminal>, Error> {
        self.lock().get(id).cloned().ok_or_else(|| Error::not_found(Resource::Terminal, id))
    }
}

impl Terminal {
    fn info(&self) -> Pty {
        lock(&self.info).clone()
    }
}

impl Inner {
    /// Forgets a terminal, and says so once.
    fn drop_terminal(&self, id: &PtyId) {
        if self.terminals.lock().remove(id).is_some() {
            self.store.signal(Signal::PtyDeleted { id: id.clone() });
        }
    }
}

/// Reads a terminal until its program has ended or it is closed.
async fn keep(inner: Arc<Inner>, terminal: Arc<Terminal>, mut seated: Seated) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut is_open = true;
    let code = loop {
        tokio::select! {
            count = terminal.screen.read(&mut chunk), if is_open => {
                is_open = count > 0;
                lock(&terminal.text).push(&chunk[..count]);
                terminal.grown.send_replace(());
            }
            code = seated.wait() => break Some(code),
            () = terminal.closing.cancelled() => break None,
        }
    };
    match code {
        Some(code) => {
            // What was written last: the other end is closed, so this ends.
            while is_open {
                let count = terminal.screen.read(&mut chunk).await;
                is_open = count > 0;
                lock(&terminal.text).push(&chunk[..count]);
            }
            let exit_code = u32::try_from(code).unwrap_or_default();
            let id = {
                let mut info = lock(&terminal.info);
                (info.status, info.exit_code) = (PtyStatus::Exited, Some(exit_code));
                info.id.clone()
            };
            // That it ended says enough: only what a client takes away is said to be deleted.
            inner.terminals.lock().remove(&id);
            inner.store.signal(Signal::PtyExited { id, exit_code });
        }
        None => seated.end().await,
    }
    lock(&terminal.text).is_over = true;
    terminal.grown.send_replace(());
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        self.broken.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.broken);
        let mut rest = bytes.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.kept.push_str(text);
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.kept.push_str(&String::from_utf8_lossy(good));
                    let Some(length) = error.error_len() else {
                        self.broken = bad.to_vec();
                        break;
                    };
                    self.kept.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
        let excess = self.kept.len().saturating_sub(MAX_TEXT_BYTES);
        if excess > 0 {
            let cut = self.kept.ceil_char_boundary(excess);
            self.start += units(&self.kept[..cut]);
            self.kept.drain(..cut);
        }
    }

    fn end(&self) -> u64 {
        self.start + units(&self.kept)
    }

    /// What stands behind a place, or all that is left of it, and where it ends.
    fn since(&self, position: u64) -> (&str, u64) {
        let mut skip = position.saturating_sub(self.start);
        let at = self.kept.char_indices().find(|(_, c)| {
            let is_there = skip == 0;
            skip = skip.saturating_sub(c.len_utf16() as u64);
            is_there
        });
        let news = at.map_or("", |(at, _)| &self.kept[at..]);
        (news, self.end())
    }
}

fn units(text: &str) -> u64 {
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is whole by itself.
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number nobody can guess, written as a UUID.
fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_from_any_place_and_characters_stay_whole() {
        let mut text = Text::default();
        for byte in "a\u{e4}\u{1f600}b".bytes() {
            text.push(&[byte]);
        }
        assert_eq!(text.end(), 5);
        for (position, rest) in
            [(0, "a\u{e4}\u{1f600}b"), (1, "\u{e4}\u{1f600}b"), (2, "\u{1f600}b"), (4, "b"), (5, ""), (9, "")]
        {
            assert_eq!(text.since(position), (rest, 5), "{position}");
        }
        text.push(b"\xff\xc3");
        assert_eq!(text.since(5), ("\u{fffd}", 6));
    }

    #[test]
    fn a_text_is_bounded_and_its_places_stay() {
        let mut text = Text::default();
        for _ in 0..100 {
            text.push(&[b'x'; 20_000]);
        }
        text.push("\u{e4}end".as_bytes());
        assert_eq!((text.end(), text.kept.len() <= MAX_TEXT_BYTES), (2_000_004, true));
        assert_eq!(text.since(2_000_001).0, "end");
        assert_eq!(text.since(0).0.len(), text.kept.len());
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one != other && one.len() == 36, "{one} {other}");
    }
}
