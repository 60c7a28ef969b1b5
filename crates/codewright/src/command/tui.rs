//! The terminal client: on an engine in this process, or on a server.

mod plain;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_config::{Dirs, Env, TerminalConfig, Trust, env, terminal_config};
use codewright_proto::Clock;
use codewright_tui::{Depth, Desk, Ended, First, Mode, Multiplexer, Options, Zone};

use super::STACK_BYTES;
use crate::cli::{AttachArgs, OpenArgs, RunArgs, TuiArgs};
use crate::connection::{Connection, Credentials, VERSION, client_error, interrupted, working_directory};
use crate::style;

/// How many threads serve the client and its engine: drawing must not wait for a turn's work.
const THREADS: usize = 2;

pub(crate) fn main(args: TuiArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let directory = project(args.project.as_deref())?;
    let is_plain = is_plain(&env, &args.open)?;
    block_on(local(args, env, directory, is_plain))
}

pub(crate) fn attach(args: AttachArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let is_plain = is_plain(&env, &args.open)?;
    block_on(remote(args, env, is_plain))
}

fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(THREADS).thread_stack_size(STACK_BYTES).enable_all().build()?;
    let code = runtime.block_on(work);
    // Reads of the keyboard never end and must not hold the program.
    runtime.shutdown_background();
    code
}

/// The directory that the user names, which is easily a command that does not exist.
fn project(wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = working_directory(wanted)?;
    if let Some(wanted) = wanted.filter(|_| !directory.is_dir()) {
        bail!(
            "there is no directory `{}`, and no command of that name; `--help` lists the commands",
            wanted.display()
        );
    }
    directory.canonicalize().with_context(|| format!("cannot work in `{}`", directory.display()))
}

/// Whether lines are read and printed; where the client cannot be shown it is said what to do instead.
fn is_plain(env: &Env, open: &OpenArgs) -> anyhow::Result<bool> {
    if open.fork && !open.continue_last && open.session.is_none() {
        bail!("--fork requires --continue or --session");
    }
    let instead =
        "for a single prompt use `run \"...\"`, for lines of plain text `--mini`, for other clients `serve`";
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let is_dumb = env.get(env::TERM).is_some_and(|term| term == "dumb");
    if open.mini && (!is_terminal || is_dumb) {
        return Ok(true);
    }
    if !is_terminal {
        bail!("the terminal client needs a terminal for its input and output; {instead}");
    }
    if is_dumb {
        style::warning("this terminal (TERM=dumb) cannot draw: lines of plain text are read and printed");
        return Ok(true);
    }
    Ok(false)
}

async fn local(args: TuiArgs, env: Env, directory: PathBuf, is_plain: bool) -> anyhow::Result<ExitCode> {
    if is_plain {
        let connection = Connection::local(env, &directory).await?;
        let run = RunArgs {
            message: args.prompt.into_iter().collect(),
            model: args.model,
            agent: args.agent,
            auto: args.auto,
            ..RunArgs::default()
        };
        let code = plain::converse(&connection, &args.open, run).await;
        connection.close().await;
        return code;
    }
    let (connection, notes) = Connection::local_quietly(env.clone(), &directory).await?;
    let mut options = options(&env, &directory, &args.open, connection.trust())?;
    options.notes.extend(notes);
    options.prompt = args.prompt;
    options.agent = args.agent;
    options.model = args.model;
    options.auto = args.auto;
    if let Some(engine) = connection.engine() {
        engine.recover();
    }
    let ended = {
        let client = codewright_tui::run(connection.client.clone(), options, Clock::system());
        match connection.engine().cloned() {
            None => client.await,
            Some(engine) => tokio::select! {
                never = engine.keep_models_fresh() => match never {},
                ended = client => ended,
            },
        }
    };
    connection.close().await;
    leave(ended)
}

async fn remote(args: AttachArgs, env: Env, is_plain: bool) -> anyhow::Result<ExitCode> {
    let credentials = Credentials { username: args.username, password: args.password };
    let connection = Connection::remote(&env, &args.url, credentials, args.dir)?;
    // What is wrong with the address or the password is said before the screen is taken.
    let path = connection.client.path().await.map_err(client_error)?;
    if is_plain {
        return plain::converse(&connection, &args.open, RunArgs::default()).await;
    }
    let here = working_directory(None)?;
    let mut options = options(&env, &here, &args.open, connection.trust())?;
    options.directory = path.directory;
    let ended = codewright_tui::run(connection.client.clone(), options, Clock::system()).await;
    connection.close().await;
    leave(ended)
}

fn options(env: &Env, directory: &Path, open: &OpenArgs, trust: Trust) -> anyhow::Result<Options> {
    let dirs = Dirs::new(env)?;
    let TerminalConfig { value, themes, wrong } = terminal_config(&dirs, env, directory, trust);
    let fork = open.fork;
    let first = match (&open.session, open.continue_last) {
        (Some(id), _) => First::Session { id: id.clone(), fork },
        (None, true) => First::Last { fork },
        (None, false) => First::Home,
    };
    let editor = [env::VISUAL, env::EDITOR].into_iter().find_map(|name| env.filled(name));
    Ok(Options {
        version: VERSION,
        directory: directory.to_string_lossy().into_owned(),
        home: dirs.home.to_string_lossy().into_owned(),
        state: dirs.state,
        themes,
        config: value,
        depth: depth(env),
        mode: mode(env),
        editor: editor.map(str::to_owned),
        multiplexer: multiplexer(env),
        desks: desks(env),
        mini: open.mini.then(|| replay(open)),
        ascii: is_ascii(env),
        zone: Zone::system(),
        first,
        prompt: None,
        agent: None,
        model: None,
        auto: false,
        notes: wrong,
    })
}

/// How many messages of a session that is opened are printed first.
fn replay(open: &OpenArgs) -> usize {
    match open.replay_limit {
        _ if open.no_replay => 0,
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None => usize::MAX,
    }
}

/// Whether the locale says that the terminal knows nothing but ASCII. Where nothing is said it is taken to know all
/// letters, as nearly every one does.
fn is_ascii(env: &Env) -> bool {
    let said = [env::LC_ALL, env::LC_CTYPE, env::LANG].into_iter().find_map(|name| env.filled(name));
    said.is_some_and(|locale| {
        let letters = locale.to_ascii_lowercase().replace('-', "");
        !letters.contains("utf8")
    })
}

/// What stands between the program and the terminal.
fn multiplexer(env: &Env) -> Option<Multiplexer> {
    let has = |name| env.filled(name).is_some();
    has(env::TMUX).then_some(Multiplexer::Tmux).or_else(|| has(env::STY).then_some(Multiplexer::Screen))
}

/// The desks that the variables speak of, the nearest first.
fn desks(env: &Env) -> Vec<Desk> {
    let has = |name| env.filled(name).is_some();
    [
        (Desk::Mac, cfg!(target_os = "macos")),
        (Desk::Wayland, has(env::WAYLAND_DISPLAY)),
        (Desk::X11, has(env::DISPLAY) && !cfg!(target_os = "macos")),
        (Desk::Windows, has(env::WSL_DISTRO_NAME)),
    ]
    .into_iter()
    .filter_map(|(desk, is_there)| is_there.then_some(desk))
    .collect()
}

/// How many colours the terminal has.
fn depth(env: &Env) -> Depth {
    if env.filled(env::NO_COLOR).is_some() {
        return Depth::None;
    }
    let says = |name: &str, words: &[&str]| {
        env.filled(name).is_some_and(|value| words.iter().any(|word| value.contains(word)))
    };
    let is_full = says(env::COLORTERM, &["truecolor", "24bit"])
        || says(env::TERM, &["direct", "kitty", "ghostty", "alacritty", "wezterm"]);
    if is_full { Depth::Full } else { Depth::Palette }
}

/// What lies behind the text, where the terminal says so.
fn mode(env: &Env) -> Option<Mode> {
    let back: u8 = env.filled(env::COLORFGBG)?.rsplit(';').next()?.parse().ok()?;
    Some(if matches!(back, 7 | 9..=15) { Mode::Light } else { Mode::Dark })
}

/// Says how to come back, once the terminal is as it was.
fn leave(ended: Result<Ended, codewright_tui::Error>) -> anyhow::Result<ExitCode> {
    let ended = ended?;
    if let Some((id, title)) = ended.session {
        let title = crate::clean::clean_line(&title);
        let text = format!("\n  {title}\n  codewright -s {id}\n\n");
        // Nobody is left to be told when this fails.
        drop(std::io::stdout().write_all(text.as_bytes()));
    }
    Ok(ended.signal.map_or(ExitCode::SUCCESS, interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_told_by_the_locale() {
        for (variables, expected) in [
            (&[][..], false),
            (&[("LANG", "C")], true),
            (&[("LANG", "POSIX")], true),
            (&[("LANG", "C.UTF-8")], false),
            (&[("LANG", "de_DE.ISO-8859-1")], true),
            (&[("LANG", "C"), ("LC_ALL", "en_US.utf8")], false),
            (&[("LANG", "en_US.UTF-8"), ("LC_CTYPE", "C")], true),
        ] {
            assert_eq!(is_ascii(&Env::from_pairs(variables.iter().copied())), expected, "{variables:?}");
        }
    }

    #[test]
    fn colours_are_told_by_the_variables() {
        for (variables, expected) in [
            (&[("COLORTERM", "truecolor")][..], Depth::Full),
            (&[("TERM", "xterm-256color")], Depth::Palette),
            (&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")], Depth::None),
        ] {
            assert_eq!(depth(&Env::from_pairs(variables.iter().copied())), expected, "{variables:?}");
        }
        for (value, expected) in [("0;15", Some(Mode::Light)), ("15;0", Some(Mode::Dark)), ("x", None)] {
            assert_eq!(mode(&Env::from_pairs([("COLORFGBG", value)])), expected);
        }
    }
}
