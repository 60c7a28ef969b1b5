//! `serve`: a server that any number of clients attach to.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use codewright_config::{Dirs, Env, LoadInput, env};
use codewright_engine::Level;
use codewright_server::Listener;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::ServeArgs;
use crate::connection::{explained, keep_log, note_from, open_engine, working_directory};
use crate::style;

/// Where clients look for a server first.
const USUAL_PORT: u16 = 4096;
/// Where a server listens if nothing else is wanted.
const LOOPBACK: &str = "127.0.0.1";
const WORKERS: usize = 2;

pub(crate) fn main(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let Wanted { hostname, port, cors, log_level } = wanted(args, &env)?;
    let options = codewright_server::Options {
        username: env.filled(env::SERVER_USERNAME).unwrap_or("opencode").to_owned(),
        password: env.filled(env::SERVER_PASSWORD).map(str::to_owned),
        cors,
        ..codewright_server::Options::default()
    };
    if args.mdns || args.mdns_domain.is_some() {
        style::warning(
            "--mdns is not offered: the server does not announce itself; give clients its address instead",
        );
    }
    let ip = ip(&hostname)?;
    options.check(SocketAddr::new(ip, port)).map_err(|error| match error.hint() {
        Some(hint) => anyhow::anyhow!("{error}\n{hint}"),
        None => error.into(),
    })?;
    let engine = open_engine(env, &working_directory(None)?).await?;
    note_from(&engine, log_level.as_deref());
    keep_log(&engine, &args.common);
    let (listener, address) = match &args.socket {
        Some(path) => {
            let listener = Listener::owned(path);
            let listener = listener.with_context(|| format!("cannot listen on `{}`", path.display()))?;
            (listener, format!("unix:{}", path.display()))
        }
        None => {
            let listener = listen(ip, port).await?;
            let address = listener.local_addr().context("the listening address is unknown")?;
            (listener.into(), format!("http://{address}"))
        }
    };
    if options.password.is_none() && args.socket.is_none() {
        style::warning(
            "OPENCODE_SERVER_PASSWORD is not set: every program on this machine may use the server",
        );
    }
    // Before anyone is told: whoever waits for the line may end the server at once.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut stdout = std::io::stdout();
    // Clients that start a server wait for this line; whoever closed its output does not.
    drop(writeln!(stdout, "{} server listening on {address}", program_name()));
    drop(stdout.flush());
    let cancel = CancellationToken::new();
    let tasks = options.tasks.clone();
    let router = codewright_server::router(engine.clone(), options);
    let server = codewright_server::serve(listener, router, cancel.clone());
    let mut server = std::pin::pin!(server);
    engine.recover();
    engine.note(Level::Info, "server", &format!("listening on {address}"), None).await;
    let keeper = engine.clone();
    tokio::select! {
        never = keeper.keep_models_fresh() => match never {},
        ended = &mut server => ended.context("the server ended")?,
        _ = interrupt.recv() => stop(&cancel, server, &mut interrupt).await?,
        _ = terminate.recv() => stop(&cancel, server, &mut terminate).await?,
    }
    if let Some(path) = &args.socket {
        // Whoever starts the next server would take it away too.
        std::fs::remove_file(path).ok();
    }
    engine.note(Level::Info, "server", "ended", None).await;
    engine.close().await?;
    // What clients began and left is finished with the engine; nothing new can come.
    tasks.close();
    tasks.wait().await;
    Ok(ExitCode::SUCCESS)
}

/// Where a server is wanted, and whose pages may use it.
struct Wanted {
    hostname: String,
    port: u16,
    cors: Vec<String>,
    log_level: Option<String>,
}

/// What the flags say, and where they say nothing the user's own configuration.
///
/// That of a directory has no say: a repository must not open its reader's machine to others.
fn wanted(args: &ServeArgs, env: &Env) -> anyhow::Result<Wanted> {
    let dirs = Dirs::new(env).map_err(|error| explained(error.into()))?;
    let nowhere = Path::new("/");
    let input = LoadInput { directory: nowhere, worktree: nowhere, env, dirs: &dirs };
    let config = codewright_config::global(input).map_err(|error| explained(error.into()))?;
    let server = &config["server"];
    let port = match args.port {
        None | Some(0) => {
            server["port"].as_u64().map_or(Ok(0), u16::try_from).context("`server.port` is no port")?
        }
        Some(port) => port,
    };
    let hostname = args.hostname.as_deref().or(server["hostname"].as_str()).unwrap_or(LOOPBACK).to_owned();
    let more = server["cors"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    let cors = args.cors.iter().cloned().chain(more.map(str::to_owned)).collect();
    let log_level = config["logLevel"].as_str().map(str::to_owned);
    Ok(Wanted { hostname, port, cors, log_level })
}

/// Ends the server in order, or at once when the signal comes again.
async fn stop(
    cancel: &CancellationToken,
    server: std::pin::Pin<&mut impl Future<Output = std::io::Result<()>>>,
    again: &mut tokio::signal::unix::Signal,
) -> anyhow::Result<()> {
    cancel.cancel();
    tokio::select! {
        ended = server => ended.context("the server ended"),
        _ = again.recv() => Ok(()),
    }
}

fn ip(hostname: &str) -> anyhow::Result<IpAddr> {
    if hostname == "localhost" {
        return Ok(IpAddr::from([127, 0, 0, 1]));
    }
    hostname.parse().with_context(|| format!("`--hostname {hostname}` is not an IP address or `localhost`"))
}

async fn listen(ip: IpAddr, port: u16) -> anyhow::Result<TcpListener> {
    if port == 0
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(ip, USUAL_PORT)).await
    {
        return Ok(listener);
    }
    let address = SocketAddr::new(ip, port);
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// The name that the program was started under: existing clients start `opencode` and wait for that name.
fn program_name() -> &'static str {
    let first = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&first).file_stem().unwrap_or_default();
    if name == "opencode" { "opencode" } else { "codewright" }
}
