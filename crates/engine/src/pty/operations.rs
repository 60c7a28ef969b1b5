//! Opening, changing and closing terminals.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use codewright_proto::{Pty, PtyId, PtyInput, PtyPatch, PtyStatus, PtyTicket, Shell, Signal};
use codewright_workspace::{Author, Command, Seated, open_terminal};
use tokio::sync::watch;

use super::{
    Attached, CHUNK_BYTES, MAX_OPEN, MAX_TICKETS, SHELLS, SIZE, TICKET_SECONDS, Terminal, UNLIKE_OTHERS,
    lock, secret,
};
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Terminals;

impl Terminals<'_> {
    /// Returns the shells of this machine.
    #[must_use]
    pub fn shells(self) -> Vec<Shell> {
        let mut listed = String::new();
        if let Ok(file) = std::fs::File::open(SHELLS.0) {
            // Unreadable entries are not listed.
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

    /// Returns the terminals of a directory.
    #[must_use]
    pub fn list(self, instance: &Instance) -> Vec<Pty> {
        let open = self.0.terminals.lock();
        open.values().filter(|one| one.directory == instance.directory).map(|one| one.info()).collect()
    }

    /// Starts a program in a new terminal.
    pub fn open(self, instance: &Instance, input: PtyInput) -> Result<Pty, Error> {
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
            env_remove: self.0.child_environment(instance).remove,
            confinement: self.0.confinement.clone(),
            sandbox: None,
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

    /// Returns one terminal.
    pub fn get(self, id: &PtyId) -> Result<Pty, Error> {
        self.0.terminals.find(id).map(|terminal| terminal.info())
    }

    /// Changes the name or size of a terminal.
    pub fn change(self, id: &PtyId, patch: PtyPatch) -> Result<Pty, Error> {
        let terminal = self.0.terminals.find(id)?;
        if let Some(size) = patch.size {
            // A program that has just ended has no size.
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
    pub fn close(self, id: &PtyId) -> Result<(), Error> {
        let terminal = self.0.terminals.find(id)?;
        terminal.closing.cancel();
        forget(self.0, id);
        Ok(())
    }

    /// Returns a ticket for one connection without other credentials.
    pub fn ticket(self, id: &PtyId) -> Result<PtyTicket, Error> {
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

    /// Removes a ticket. Returns whether it was valid for this terminal.
    #[must_use]
    pub fn redeem_ticket(self, id: &PtyId, ticket: &str) -> bool {
        let found = lock(&self.0.terminals.tickets).remove(ticket);
        found.is_some_and(|(of, until)| of == *id && until > self.0.clock.now_ms())
    }

    /// Connects to a terminal at a position in the output, or at the end.
    pub fn attach(self, id: &PtyId, from: Option<u64>) -> Result<Attached, Error> {
        let terminal = self.0.terminals.find(id)?;
        let grown = terminal.grown.subscribe();
        let end = lock(&terminal.text).end();
        Ok(Attached { terminal, grown, at: from.map_or(end, |from| from.min(end)) })
    }
}

/// Removes a terminal from the table and reports that once.
fn forget(inner: &Inner, id: &PtyId) {
    if inner.terminals.lock().remove(id).is_some() {
        inner.store.signal(Signal::PtyDeleted { id: id.clone() });
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
            // The last output. The other end is closed, so this loop ends.
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
            // A terminal whose program ended sends its own event; only a removal by a client sends this one.
            inner.terminals.lock().remove(&id);
            inner.store.signal(Signal::PtyExited { id, exit_code });
        }
        None => seated.end().await,
    }
    lock(&terminal.text).is_over = true;
    terminal.grown.send_replace(());
}
