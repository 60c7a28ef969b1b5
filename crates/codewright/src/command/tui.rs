//! The terminal client, on an engine in this process or on a server.

mod plain;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_config::{Dirs, Env, TerminalConfig, Trust, env, terminal_config};
use codewright_proto::Clock;
use codewright_tui::{
    Channel, Depth, Desktop, Ended, First, Ide, Links, Mode, Multiplexer, Options, Sequence, Signs, Zone,
};

use super::STACK_BYTES;
use super::serve::{SideListener, SideServer};
use crate::cli::{AttachArgs, OpenArgs, RunArgs, TuiArgs};
use crate::connection::{
    Connection, Credentials, VERSION, client_error, interrupted, set_sandbox, working_directory,
};
use crate::style;

/// The number of worker threads. Two, so that drawing does not wait for a turn.
const THREADS: usize = 2;

pub(crate) fn main(args: TuiArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let directory = project(args.project.as_deref())?;
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if let Some(message) = args.message.clone().filter(|_| !is_terminal && !args.open.mini) {
        return super::run::main(RunArgs {
            message: vec![message],
            continue_last: args.open.continue_last,
            session: args.open.session,
            fork: args.open.fork,
            model: args.model,
            agent: args.agent,
            auto: args.auto,
            common: args.common,
            ..RunArgs::default()
        });
    }
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
    codewright_memory::trim_after_work();
    let code = runtime.block_on(work);
    // A pending read of the keyboard must not delay the exit.
    runtime.shutdown_background();
    code
}

/// The directory argument. The error also mentions commands, because a mistyped command is parsed as a directory.
fn project(argument: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = working_directory(argument)?;
    if let Some(argument) = argument.filter(|_| !directory.is_dir()) {
        bail!("there is no directory or command `{}`; `--help` lists the commands", argument.display());
    }
    directory.canonicalize().with_context(|| format!("cannot work in `{}`", directory.display()))
}

/// Whether to run the plain client instead of the full-screen one.
///
/// # Errors
///
/// Fails without a terminal, with the alternatives.
fn is_plain(env: &Env, open: &OpenArgs) -> anyhow::Result<bool> {
    if open.fork && !open.continue_last && open.session.is_none() {
        bail!("--fork requires --continue or --session");
    }
    let instead =
        "use `run \"...\"` for a single prompt, `--mini` for plain lines, or `serve` for other clients";
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let is_dumb = env.get(env::TERM).is_some_and(|term| term == "dumb");
    if open.mini && (!is_terminal || is_dumb) {
        return Ok(true);
    }
    if !is_terminal {
        bail!("the terminal client needs a terminal as standard input and output; {instead}");
    }
    if is_dumb {
        style::warning("this terminal (TERM=dumb) cannot position the cursor: using plain lines");
        return Ok(true);
    }
    Ok(false)
}

async fn local(args: TuiArgs, env: Env, directory: PathBuf, is_plain: bool) -> anyhow::Result<ExitCode> {
    let listener = SideListener::open(&args.listen(), &env).await?;
    if is_plain {
        let connection = Connection::local(env, &directory).await?;
        connection.configure(&args.common);
        let beside = serve_beside(listener, &connection);
        for note in beside.iter().flat_map(|beside| &beside.notes) {
            style::note(note);
        }
        let run = RunArgs {
            message: args.message.or(args.prompt).into_iter().collect(),
            model: args.model,
            agent: args.agent,
            auto: args.auto,
            ..RunArgs::default()
        };
        let code = plain::converse(&connection, &args.open, run).await;
        close(connection, beside).await;
        return code;
    }
    let (connection, notes) = Connection::local_with_warnings(env.clone(), &directory).await?;
    let mut options = options(&env, &directory, &args.open, connection.trust())?;
    options.notes.extend(notes);
    let beside = serve_beside(listener, &connection);
    options.notes.extend(beside.iter().flat_map(|beside| beside.notes.clone()));
    options.sends_prompt = args.message.is_some();
    options.prompt = args.message.or(args.prompt);
    options.agent = args.agent;
    options.model = args.model;
    options.auto = args.auto;
    if let Some(engine) = connection.engine() {
        set_sandbox(engine, &args.common);
        engine.recover();
    }
    let ended = {
        let client = codewright_tui::run(connection.client.clone(), options, Clock::system());
        match connection.engine().cloned() {
            None => client.await,
            Some(engine) => tokio::select! {
                never = engine.providers().keep_models_fresh() => match never {},
                ended = client => ended,
            },
        }
    };
    close(connection, beside).await;
    finish(ended)
}

/// Serves the engine of this process to other clients.
fn serve_beside(listener: Option<SideListener>, connection: &Connection) -> Option<SideServer> {
    Some(listener?.serve(connection.engine()?))
}

/// Closes the server for other clients and then the engine.
async fn close(connection: Connection, beside: Option<SideServer>) {
    if let Some(beside) = beside {
        beside.close().await;
    }
    connection.close().await;
}

async fn remote(args: AttachArgs, env: Env, is_plain: bool) -> anyhow::Result<ExitCode> {
    let credentials = Credentials { username: args.username, password: args.password };
    let connection = Connection::remote(&env, &args.url, credentials, args.dir)?;
    // A wrong address or password is reported before the screen is drawn.
    let path = connection.client.path().await.map_err(client_error)?;
    if is_plain {
        return plain::converse(&connection, &args.open, RunArgs::default()).await;
    }
    let here = working_directory(None)?;
    let mut options = options(&env, &here, &args.open, connection.trust())?;
    options.directory = path.directory;
    options.has_local_files = is_on_this_machine(&args.url);
    let ended = codewright_tui::run(connection.client.clone(), options, Clock::system()).await;
    connection.close().await;
    finish(ended)
}

fn options(env: &Env, directory: &Path, open: &OpenArgs, trust: Trust) -> anyhow::Result<Options> {
    let dirs = Dirs::new(env)?;
    let TerminalConfig { value, themes, problems } = terminal_config(&dirs, env, directory, trust);
    let fork = open.fork;
    let first = match (&open.session, open.continue_last) {
        (Some(id), _) => First::Session { id: id.clone(), fork },
        (None, true) => First::Last { fork },
        (None, false) => First::Home,
    };
    let links = links(env, &value);
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
        ide: ide(env),
        nvim: env.filled(env::NVIM).map(str::to_owned),
        channel: env.filled(env::EDITOR_CHANNEL).and_then(Channel::parse),
        programs: env.filled(env::PATH).unwrap_or_default().to_owned(),
        private_variables: private_variables(),
        links,
        has_local_files: true,
        multiplexer: multiplexer(env),
        desktops: desktops(env),
        mini: open.mini.then(|| replay(open)),
        ascii: is_ascii(env),
        zone: Zone::of_system(codewright_config::zone_file(env).as_deref()),
        first,
        prompt: None,
        sends_prompt: false,
        agent: None,
        model: None,
        auto: false,
        notification: notification(env),
        ignores_copies: ignores_copies(env),
        notes: problems,
    })
}

/// How many earlier messages of the opened session are printed.
fn replay(open: &OpenArgs) -> usize {
    match open.replay_limit {
        _ if open.no_replay => 0,
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None => usize::MAX,
    }
}

/// Whether the locale limits the terminal to ASCII. Without a locale UTF-8 is assumed, which nearly every terminal
/// supports.
fn is_ascii(env: &Env) -> bool {
    let locale = [env::LC_ALL, env::LC_CTYPE, env::LANG].into_iter().find_map(|name| env.filled(name));
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase().replace('-', "");
        !locale.contains("utf8")
    })
}

/// The terminal multiplexer that the program runs in.
fn multiplexer(env: &Env) -> Option<Multiplexer> {
    let has = |name| env.filled(name).is_some();
    has(env::TMUX).then_some(Multiplexer::Tmux).or_else(|| has(env::STY).then_some(Multiplexer::Screen))
}

/// The desktops of this session, in the order in which their clipboards are tried.
fn desktops(env: &Env) -> Vec<Desktop> {
    let has = |name| env.filled(name).is_some();
    [
        (Desktop::Mac, cfg!(target_os = "macos")),
        (Desktop::Wayland, has(env::WAYLAND_DISPLAY)),
        (Desktop::X11, has(env::DISPLAY) && !cfg!(target_os = "macos")),
        (Desktop::Windows, has(env::WSL_DISTRO_NAME)),
    ]
    .into_iter()
    .filter_map(|(desk, is_there)| is_there.then_some(desk))
    .collect()
}

/// Whether a server's address is one of this machine.
fn is_on_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if url.starts_with("unix:") {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    name == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The editor in whose terminal the program runs.
fn ide(env: &Env) -> Option<Ide> {
    let value = |name| env.filled(name).unwrap_or_default();
    Ide::detect(&Signs {
        term_program: value(env::TERM_PROGRAM),
        git_askpass: value(env::GIT_ASKPASS),
        vscode_askpass: value(env::VSCODE_GIT_ASKPASS_MAIN),
        vscode: [env::VSCODE_IPC_HOOK_CLI, env::VSCODE_INJECTION]
            .map(value)
            .into_iter()
            .max()
            .unwrap_or_default(),
        zed: value(env::ZED_TERM),
        emulator: value(env::TERMINAL_EMULATOR),
        nvim: value(env::NVIM),
        emacs: value(env::INSIDE_EMACS),
    })
}

/// The variables with this program's settings and secrets.
fn private_variables() -> Vec<String> {
    let own = env::OWN.iter().map(|(name, _)| *name);
    own.flat_map(|name| [name.to_owned(), name.replacen("OPENCODE_", "CODEWRIGHT_", 1)]).collect()
}

/// The links that the terminal displays: those of the key `hyperlinks`, or those of terminals known to have links.
/// Others could display the sequences as text.
fn links(env: &Env, config: &serde_json::Value) -> Links {
    let is_supported = config["hyperlinks"].as_bool().unwrap_or_else(|| has_links(env));
    let program = env.filled(env::TERM_PROGRAM).unwrap_or_default();
    match is_supported {
        false => Links::None,
        // The terminal is on another machine, unless it belongs to an editor that is connected to this one.
        true if env.filled(env::SSH_CONNECTION).is_some() && program != "vscode" => Links::Urls,
        true => Links::All,
    }
}

/// Whether the terminal is known to have links.
fn has_links(env: &Env) -> bool {
    const PROGRAMS: [&str; 8] =
        ["Hyper", "iTerm.app", "terminology", "WezTerm", "vscode", "ghostty", "zed", "WarpTerminal"];
    const TERMINALS: [&str; 8] =
        ["alacritty", "contour", "foot", "ghostty", "kitty", "mintty", "tmux", "wezterm"];
    /// Version 0.50 of the library.
    const VTE: u32 = 5_000;
    let term = env.filled(env::TERM).unwrap_or_default();
    // Older versions of GNU screen display the sequences as text.
    if term == "dumb" || term == "linux" || env.filled(env::STY).is_some() {
        return false;
    }
    let program = env.filled(env::TERM_PROGRAM).unwrap_or_default();
    let vte = env.filled(env::VTE_VERSION).and_then(|version| version.parse::<u32>().ok());
    let is_marked = [env::KONSOLE_VERSION, env::WT_SESSION].iter().any(|name| env.filled(name).is_some());
    PROGRAMS.contains(&program)
        || TERMINALS.iter().any(|name| term.contains(name))
        || vte.is_some_and(|version| version >= VTE)
        || is_marked
}

/// The sequence with which the terminal notifies the desktop. A console has no desktop.
fn notification(env: &Env) -> Option<Sequence> {
    let term = env.filled(env::TERM).unwrap_or_default();
    let program = env.filled(env::TERM_PROGRAM).unwrap_or_default();
    if term == "dumb" || term == "linux" {
        return None;
    }
    Some(if term.contains("kitty") {
        Sequence::Osc99
    } else if term.contains("rxvt") || term.contains("foot") || program == "WarpTerminal" {
        Sequence::Osc777
    } else {
        Sequence::Osc9
    })
}

/// Whether the terminal is known to ignore texts that programs copy (OSC 52). A multiplexer keeps them itself.
fn ignores_copies(env: &Env) -> bool {
    let has = |name| env.filled(name).is_some();
    let program = env.filled(env::TERM_PROGRAM).unwrap_or_default();
    let term = env.filled(env::TERM).unwrap_or_default();
    let is_inside = has(env::TMUX) || has(env::STY);
    !is_inside && (program == "Apple_Terminal" || term == "linux" || has(env::VTE_VERSION))
}

/// The number of colours of the terminal.
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

/// Whether the terminal's background is light or dark, if it reports that.
fn mode(env: &Env) -> Option<Mode> {
    let background: u8 = env.filled(env::COLORFGBG)?.rsplit(';').next()?.parse().ok()?;
    Some(if matches!(background, 7 | 9..=15) { Mode::Light } else { Mode::Dark })
}

/// Prints the command that continues the session, after the terminal was restored.
fn finish(ended: Result<Ended, codewright_tui::Error>) -> anyhow::Result<ExitCode> {
    let ended = ended?;
    if let Some((id, title)) = ended.session {
        let title = crate::clean::clean_line(&title);
        let text = format!("\n  {title}\n  codewright -s {id}\n\n");
        // If standard error is closed, there is no other way to report this.
        drop(std::io::stdout().write_all(text.as_bytes()));
    }
    Ok(ended.signal.map_or(ExitCode::SUCCESS, interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_limits_the_terminal_to_ascii() {
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
    fn variables_set_the_colour_depth_and_mode() {
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
    #[test]
    fn only_terminals_with_links_get_links() {
        for (variables, config, expected) in [
            (&[("TERM", "xterm-256color")][..], "{}", Links::None),
            (&[("TERM", "xterm-kitty")], "{}", Links::All),
            (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/t")], "{}", Links::All),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "4600")], "{}", Links::None),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")], "{}", Links::All),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], "{}", Links::All),
            (&[("TERM", "xterm-kitty"), ("STY", "1.tty")], "{}", Links::None),
            (&[("TERM", "linux"), ("TERM_PROGRAM", "vscode")], "{}", Links::None),
            (&[("TERM", "xterm-kitty"), ("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")], "{}", Links::Urls),
            (
                &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode"), ("SSH_CONNECTION", "x")],
                "{}",
                Links::All,
            ),
            (&[("TERM", "xterm-kitty")], r#"{"hyperlinks": false}"#, Links::None),
            (&[("TERM", "xterm-256color")], r#"{"hyperlinks": true}"#, Links::All),
        ] {
            let config = serde_json::from_str(config).unwrap();
            assert_eq!(
                links(&Env::from_pairs(variables.iter().copied()), &config),
                expected,
                "{variables:?}"
            );
        }
    }

    #[test]
    fn only_files_of_this_machine_can_be_opened() {
        for (url, expected) in [
            ("http://localhost:4096", true),
            ("http://127.0.0.1:4096/x", true),
            ("http://[::1]:4096", true),
            ("unix:/run/socket", true),
            ("http://192.168.0.2:4096", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(is_on_this_machine(url), expected, "{url}");
        }
    }
}
