//! The description of a case: its setup, its acts and its proofs.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;

use super::scene::Scene;
use super::{Kind, Trust};

/// A case. Build one with [`hostile`] or [`harmless`].
#[derive(Debug, Clone)]
pub struct Case {
    /// The stable name, unique within its kind.
    pub name: String,
    /// The subject.
    pub kind: Kind,
    /// Whether it is an attack.
    pub is_hostile: bool,
    /// Whether it belongs to the short form.
    pub is_in_short: bool,
    /// Whether a harmless case leads to a permission request that a person expects.
    pub(super) is_asked: bool,
    pub(super) states: Vec<Trust>,
    pub(super) is_git: bool,
    /// Whether the project is not below the temporary directory, which the sandbox replaces.
    pub(super) is_apart: bool,
    pub(super) needs_root: bool,
    /// Why the effect cannot be shown by removing the protection, or `None` if it must occur then.
    pub(super) uncontrolled: Option<&'static str>,
    pub(super) contact: Contact,
    pub(super) setup: Vec<Setup>,
    pub(super) acts: Vec<Act>,
    pub(super) proofs: Vec<Proof>,
    /// Effects that are reported one by one, each with its name.
    pub(super) rows: Vec<(String, Proof)>,
}

/// Calls of a model, each a tool and its input as JSON.
pub(super) type CallTexts = Vec<(String, String)>;

/// When the listener may be contacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contact {
    /// Once the directory is trusted, but never with a key or a secret.
    WhenTrusted,
    /// In no state.
    Never,
    /// In every state, but never with a key or a secret.
    Always,
}

/// A step before the acts.
#[derive(Debug, Clone)]
pub(super) enum Setup {
    /// A file; a relative path is one in the project.
    File(String, String),
    /// A file that can be executed.
    Script(String, String),
    /// A symbolic link and its target.
    Link(String, String),
    /// A named pipe, which blocks a careless reader for ever.
    Fifo(String),
    /// A git command in the project.
    Git(Vec<String>),
    /// Text at the end of `.git/config`.
    GitConfig(String),
    /// An addition to the user's configuration, as JSON.
    User(String),
    /// A variable of the program.
    Env(String, String),
    /// Anything else.
    Do(Deed),
}

/// A step of a case.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Run the program with these arguments. Its exit code is ignored.
    Run(Vec<String>),
    /// Run the program with these arguments. It must exit with 0.
    RunWell(Vec<String>),
    /// Run the program in another directory.
    RunIn(String, Vec<String>),
    /// Send a prompt by `run` with these flags. The model answers with the calls of the first round, then of the next.
    Calls { flags: Vec<String>, rounds: Vec<CallTexts> },
    /// Request these paths for the project's directory from a server in another directory.
    Get(Vec<String>),
    /// Write a file.
    Write(String, String),
    /// Anything else. An error is a forbidden effect.
    Do(Deed),
}

/// The function of a [`Deed`].
type Function = dyn Fn(&Scene) -> Result<()> + Send + Sync;

/// The function of a [`Proof::Holds`]. It returns the forbidden effect.
type Check = dyn Fn(&Scene) -> Option<String> + Send + Sync;

/// A check that is a function.
#[derive(Clone)]
pub(super) struct Finding(pub(super) Arc<Check>);

impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finding")
    }
}

/// A step that is a function.
#[derive(Clone)]
pub(super) struct Deed(pub(super) Arc<Function>);

impl fmt::Debug for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deed")
    }
}

/// A check after the acts.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// The path must not exist.
    Absent(String),
    /// The path must exist.
    Present(String),
    /// The file must be the same as before the acts.
    Unchanged(String),
    /// No request to the model may contain the text.
    NotToModel(String),
    /// A request to the model must contain the text.
    ToModel(String),
    /// The program must not print the text.
    NotPrinted(String),
    /// The program must print the text.
    Printed(String),
    /// Every call of the model must have completed.
    CallsDone,
    /// The file must not contain the text, if it exists.
    NotInFile { path: String, text: String },
    /// The function must find no forbidden effect.
    Holds(Finding),
}

/// Creates an attack, which is played before the repository is trusted.
pub(super) fn hostile(kind: Kind, name: impl Into<String>) -> Case {
    Case {
        name: name.into(),
        kind,
        is_hostile: true,
        is_in_short: false,
        is_asked: false,
        states: vec![Trust::Untrusted],
        is_git: true,
        is_apart: false,
        needs_root: false,
        uncontrolled: Some("it is older than this check"),
        contact: Contact::WhenTrusted,
        setup: Vec::new(),
        acts: Vec::new(),
        proofs: Vec::new(),
        rows: Vec::new(),
    }
}

/// Creates an attack on a project that a sandbox sees at its place, whose effect must occur without the protection.
pub(super) fn attack(kind: Kind, name: impl Into<String>) -> Case {
    Case { uncontrolled: None, ..hostile(kind, name).apart() }
}

/// Creates a case that must work without a permission request in a directory that is not trusted.
pub(super) fn harmless(kind: Kind, name: impl Into<String>) -> Case {
    Case { is_hostile: false, contact: Contact::Always, ..hostile(kind, name) }
}

impl Case {
    /// Also plays the case in a trusted directory, because the effect must not occur even there.
    pub(super) fn always(mut self) -> Self {
        self.states = vec![Trust::Untrusted, Trust::All];
        self
    }

    /// Plays the case in these states only.
    pub(super) fn states(mut self, states: &[Trust]) -> Self {
        self.states = states.to_vec();
        self
    }

    /// Also plays the case when the environment trusts no directory.
    pub(super) fn also_none(mut self) -> Self {
        self.states.push(Trust::None);
        self
    }

    /// Makes the case part of the short form.
    pub(super) fn short(mut self) -> Self {
        self.is_in_short = true;
        self
    }

    /// Uses a directory that is not a repository.
    pub(super) fn plain(mut self) -> Self {
        self.is_git = false;
        self
    }

    /// Skips the case for other users than root, because it needs files or processes of another user.
    pub(super) fn root(mut self) -> Self {
        self.needs_root = true;
        self
    }

    /// Uses a directory that a sandbox does not replace, so that the home and other directories are visible in it.
    pub(super) fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Says why the effect cannot be shown by removing the protection.
    pub(super) fn uncontrolled(mut self, why: &'static str) -> Self {
        self.uncontrolled = Some(why);
        self
    }

    /// Forbids every contact of the listener, even if the directory is trusted.
    pub(super) fn no_contact(mut self) -> Self {
        self.contact = Contact::Never;
        self
    }

    /// Writes a file. A relative path is one in the project.
    pub(super) fn file(self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.with(Setup::File(path.into(), text.into()))
    }

    /// Writes the project's `opencode.json`.
    pub(super) fn config(self, json: impl Into<String>) -> Self {
        self.file("opencode.json", json)
    }

    /// Writes a shell script that can be executed.
    pub(super) fn script(self, path: impl Into<String>, lines: impl Into<String>) -> Self {
        self.with(Setup::Script(path.into(), format!("#!/bin/sh\n{}\n", lines.into())))
    }

    /// Makes a symbolic link.
    pub(super) fn link(self, path: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(Setup::Link(path.into(), to.into()))
    }

    /// Makes a named pipe, which blocks a careless reader for ever.
    pub(super) fn fifo(self, path: impl Into<String>) -> Self {
        self.with(Setup::Fifo(path.into()))
    }

    /// Runs git in the project, before anything hostile is there.
    pub(super) fn git(self, args: &[&str]) -> Self {
        self.with(Setup::Git(args.iter().map(|arg| (*arg).to_owned()).collect()))
    }

    /// Appends to `.git/config`.
    pub(super) fn git_config(self, text: impl Into<String>) -> Self {
        self.with(Setup::GitConfig(text.into()))
    }

    /// Adds to the user's own configuration.
    pub(super) fn user(self, json: impl Into<String>) -> Self {
        self.with(Setup::User(json.into()))
    }

    /// Sets a variable of the program.
    pub(super) fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(Setup::Env(name.into(), value.into()))
    }

    /// Runs a function as part of the setup.
    pub(super) fn prepare(self, prepare: impl Fn(&Scene) -> Result<()> + Send + Sync + 'static) -> Self {
        self.with(Setup::Do(Deed(Arc::new(prepare))))
    }

    fn with(mut self, setup: Setup) -> Self {
        self.setup.push(setup);
        self
    }

    /// Runs the program and ignores its exit code.
    pub(super) fn run(mut self, args: &[&str]) -> Self {
        self.acts.push(Act::Run(owned(args)));
        self
    }

    /// Runs the program, which must exit with 0.
    pub(super) fn run_well(mut self, args: &[&str]) -> Self {
        self.acts.push(Act::RunWell(owned(args)));
        self
    }

    /// Runs the program in another directory.
    pub(super) fn run_in(mut self, directory: &str, args: &[&str]) -> Self {
        self.acts.push(Act::RunIn(directory.to_owned(), owned(args)));
        self
    }

    /// Sends a prompt that the model answers with text.
    pub(super) fn prompt(self) -> Self {
        self.run(&["run", "hello"])
    }

    /// Sends a prompt that the model answers with these calls.
    pub(super) fn calls<const N: usize>(self, calls: [(&str, &str); N]) -> Self {
        let calls = calls.map(|(tool, input)| (tool.to_owned(), input.to_owned())).to_vec();
        self.rounds(&[], vec![calls])
    }

    /// Sends a prompt with these flags of `run`. The model answers with one round of calls after the other.
    pub(super) fn rounds(mut self, flags: &[&str], rounds: Vec<CallTexts>) -> Self {
        self.acts.push(Act::Calls { flags: owned(flags), rounds });
        self
    }

    /// Sends a prompt that the model answers with a `bash` call.
    pub(super) fn bash(self, command: &str) -> Self {
        self.commands(&[], &[command])
    }

    /// Sends a prompt with these flags of `run`. The model answers with one command after the other.
    pub(super) fn commands(self, flags: &[&str], commands: &[&str]) -> Self {
        let round = |command: &&str| {
            let input = serde_json::json!({"command": command, "description": "Runs a command"}).to_string();
            vec![("bash".to_owned(), input)]
        };
        self.rounds(flags, commands.iter().map(round).collect())
    }

    /// Requests these paths from a server in another directory.
    pub(super) fn get(mut self, paths: &[&str]) -> Self {
        self.acts.push(Act::Get(owned(paths)));
        self
    }

    /// Opens the project in all ways that run git or read configuration.
    pub(super) fn opens(self) -> Self {
        // Git itself waits at a named pipe until its deadline, so the routes that run `git diff` are left out.
        // Nothing else may wait.
        if self.setup.iter().any(|setup| matches!(setup, Setup::Fifo(_))) {
            return self.run(&["models"]).bash("true").get(&["/path", "/config", "/agent", "/file?path=."]);
        }
        self.run(&["models"]).calls([("write", r#"{"filePath": "new.txt", "content": "x\n"}"#)]).get(&[
            "/vcs",
            "/vcs/status",
            "/vcs/diff?mode=git",
            "/vcs/diff?mode=branch",
            "/vcs/diff/raw",
            "/file/status",
            "/project/current",
            "/config",
            "/command",
            "/agent",
            "/skill",
        ])
    }

    /// Writes a file as an act.
    pub(super) fn then_file(mut self, path: &str, text: &str) -> Self {
        self.acts.push(Act::Write(path.to_owned(), text.to_owned()));
        self
    }

    /// Runs a function as an act. An error is a forbidden effect.
    pub(super) fn play(mut self, act: impl Fn(&Scene) -> Result<()> + Send + Sync + 'static) -> Self {
        self.acts.push(Act::Do(Deed(Arc::new(act))));
        self
    }

    /// Requires that a path does not exist after the acts.
    pub(super) fn absent(self, path: impl Into<String>) -> Self {
        self.proof(Proof::Absent(path.into()))
    }

    /// Requires that a path exists after the acts.
    pub(super) fn present(self, path: impl Into<String>) -> Self {
        self.proof(Proof::Present(path.into()))
    }

    /// Requires that the acts do not change a file.
    pub(super) fn unchanged(self, path: impl Into<String>) -> Self {
        self.proof(Proof::Unchanged(path.into()))
    }

    /// Requires that no request to the model contains a text.
    pub(super) fn not_to_model(self, text: impl Into<String>) -> Self {
        self.proof(Proof::NotToModel(text.into()))
    }

    /// Requires that a request to the model contains a text.
    pub(super) fn model_gets(self, text: impl Into<String>) -> Self {
        self.proof(Proof::ToModel(text.into()))
    }

    /// Requires that the program does not print a text.
    pub(super) fn not_printed(self, text: impl Into<String>) -> Self {
        self.proof(Proof::NotPrinted(text.into()))
    }

    /// Requires that the program prints a text.
    pub(super) fn printed(self, text: impl Into<String>) -> Self {
        self.proof(Proof::Printed(text.into()))
    }

    /// Requires that the harmless case leads to a permission request.
    pub(super) fn asked(mut self) -> Self {
        self.is_asked = true;
        self
    }

    /// Requires that every call of the model completes.
    pub(super) fn done(self) -> Self {
        self.proof(Proof::CallsDone)
    }

    /// Requires that a file does not contain a text.
    pub(super) fn not_in_file(self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.proof(Proof::NotInFile { path: path.into(), text: text.into() })
    }

    /// Requires that a function finds no forbidden effect.
    pub(super) fn holds(self, check: impl Fn(&Scene) -> Option<String> + Send + Sync + 'static) -> Self {
        self.proof(Proof::Holds(Finding(Arc::new(check))))
    }

    /// Adds an effect that is reported under its own name: a path that must not exist.
    pub(super) fn row_absent(mut self, name: impl Into<String>, path: impl Into<String>) -> Self {
        self.rows.push((name.into(), Proof::Absent(path.into())));
        self
    }

    /// Adds an effect that is reported under its own name.
    pub(super) fn row(
        mut self,
        name: impl Into<String>,
        check: impl Fn(&Scene) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.rows.push((name.into(), Proof::Holds(Finding(Arc::new(check)))));
        self
    }

    fn proof(mut self, proof: Proof) -> Self {
        self.proofs.push(proof);
        self
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
