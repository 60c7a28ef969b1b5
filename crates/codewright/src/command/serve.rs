//! `serve`: a server that any number of clients attach to; and `web`, the same with its page shown.

mod browser;
mod wanted;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use codewright_config::{Env, env};
use codewright_engine::Level;
use codewright_server::{Announcement, Listener};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::STACK_BYTES;
use crate::cli::{Common, ListenArgs, ServeArgs, WebArgs};
use crate::connection::{keep_log, note_from, open_engine, working_directory};
use crate::style;
use wanted::Wanted;

/// Where clients look for a server first.
const USUAL_PORT: u16 = 4096;
const WORKERS: usize = 2;

/// What is told once the server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    /// The line that clients wait for.
    Line,
    /// The addresses of the page, which is opened.
    Page,
}

struct Server {
    listen: ListenArgs,
    socket: Option<PathBuf>,
    common: Common,
    greeting: Greeting,
}

pub(crate) fn main(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let ServeArgs { listen, socket, common } = args;
    run(&Server { listen, socket, common, greeting: Greeting::Line })
}

/// `web`.
pub(crate) fn web(args: WebArgs) -> anyhow::Result<ExitCode> {
    let WebArgs { listen, common } = args;
    run(&Server { listen, socket: None, common, greeting: Greeting::Page })
}

fn run(wanted: &Server) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKERS).thread_stack_size(STACK_BYTES).enable_all().build()?;
    runtime.block_on(serve(wanted))
}

async fn serve(server: &Server) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let wanted = Wanted::new(&server.listen, &env)?;
    let options = options(&wanted, &env)?;
    let engine = open_engine(env.clone(), &working_directory(None)?).await?;
    note_from(&engine, wanted.log_level.as_deref());
    keep_log(&engine, &server.common);
    let place = listen(server, &wanted).await?;
    if options.password.is_none() && server.socket.is_none() {
        style::warning(if cfg!(target_os = "linux") {
            "OPENCODE_SERVER_PASSWORD is not set: every program of your account may use the server"
        } else {
            // Whose a connection is cannot be told here.
            "OPENCODE_SERVER_PASSWORD is not set: on this system the server answers nobody without a password"
        });
    }
    codewright_server::raise_file_limit();
    // Before anyone is told: whoever waits for the line may end the server at once.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let announced = place.socket.and_then(|socket| announce(socket, wanted.domain.as_deref()));
    match server.greeting {
        Greeting::Line => greet(&place.address),
        Greeting::Page => show(&env, place.socket, announced.as_ref().and(wanted.domain.as_deref())),
    }
    let cancel = CancellationToken::new();
    let tasks = options.tasks.clone();
    let router = codewright_server::router(engine.clone(), options);
    let served = codewright_server::serve(place.listener, router, cancel.clone());
    let mut served = std::pin::pin!(served);
    engine.recover();
    engine.note(Level::Info, "server", &format!("listening on {}", place.address), None).await;
    let keeper = engine.clone();
    tokio::select! {
        never = keeper.keep_models_fresh() => match never {},
        ended = &mut served => ended.context("the server ended")?,
        _ = interrupt.recv() => stop(&cancel, served, &mut interrupt).await?,
        _ = terminate.recv() => stop(&cancel, served, &mut terminate).await?,
    }
    if let Some(announced) = announced {
        announced.withdraw().await;
    }
    if let Some(path) = &server.socket {
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

/// Who may use the server; refused where that would be everybody.
fn options(wanted: &Wanted, env: &Env) -> anyhow::Result<codewright_server::Options> {
    let options = codewright_server::Options {
        username: env.filled(env::SERVER_USERNAME).unwrap_or("opencode").to_owned(),
        password: env.filled(env::SERVER_PASSWORD).map(str::to_owned),
        cors: wanted.cors.clone(),
        ..codewright_server::Options::default()
    };
    options.check(SocketAddr::new(wanted.ip, wanted.port)).map_err(|error| {
        let why = match wanted.domain {
            Some(_) => {
                "\nA server that is announced to the network (`--mdns`, `server.mdns`) is reached from there"
            }
            None => "",
        };
        match error.hint() {
            Some(hint) => anyhow::anyhow!("{error}{why}\n{hint}"),
            None => error.into(),
        }
    })?;
    Ok(options)
}

/// Where the server listens.
struct Place {
    listener: Listener,
    /// As clients write it.
    address: String,
    /// Of the network, unless it is a file.
    socket: Option<SocketAddr>,
}

async fn listen(server: &Server, wanted: &Wanted) -> anyhow::Result<Place> {
    if let Some(path) = &server.socket {
        let listener = Listener::owned(path);
        let listener = listener.with_context(|| format!("cannot listen on `{}`", path.display()))?;
        return Ok(Place { listener, address: format!("unix:{}", path.display()), socket: None });
    }
    let listener = bind(wanted.ip, wanted.port).await?;
    let socket = listener.local_addr().context("the listening address is unknown")?;
    let address = match &wanted.name {
        Some(name) => format!("http://{name}:{}", socket.port()),
        None => format!("http://{socket}"),
    };
    Ok(Place { listener: listener.into(), address, socket: Some(socket) })
}

async fn bind(ip: IpAddr, port: u16) -> anyhow::Result<TcpListener> {
    if port == 0
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(ip, USUAL_PORT)).await
    {
        return Ok(listener);
    }
    let address = SocketAddr::new(ip, port);
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Announces the server where that is wanted; it works without.
fn announce(address: SocketAddr, domain: Option<&str>) -> Option<Announcement> {
    let domain = domain?;
    if address.ip().to_canonical().is_loopback() {
        style::warning(&format!("{address} is reached from this machine alone: the server is not announced"));
        return None;
    }
    let announced = Announcement::begin(address, domain).map_err(|error| {
        let hint = error.hint().map(|hint| format!(": {hint}")).unwrap_or_default();
        let error = anyhow::Error::from(error);
        style::warning(&format!("the server is not announced: {error:#}{hint}"));
    });
    announced.ok()
}

/// Tells clients that start a server where it listens.
fn greet(address: &str) {
    let mut stdout = std::io::stdout();
    // They wait for this line; whoever closed its output does not.
    drop(writeln!(stdout, "{} server listening on {address}", program_name()));
    drop(stdout.flush());
}

/// Tells a person where the page is, and opens it.
fn show(env: &Env, socket: Option<SocketAddr>, domain: Option<&str>) {
    let Some(socket) = socket else { return };
    let port = socket.port();
    let mut lines = Vec::new();
    let url = if socket.ip().is_unspecified() {
        lines.push(("Local access:", format!("http://localhost:{port}")));
        let others = codewright_server::addresses().into_iter();
        lines.extend(others.map(|ip| ("Network access:", format!("http://{}", SocketAddr::new(ip, port)))));
        lines.extend(domain.map(|domain| ("mDNS:", format!("{domain}:{port}"))));
        format!("http://localhost:{port}/")
    } else {
        let url = format!("http://{socket}/");
        lines.push(("Web interface:", url.clone()));
        url
    };
    let told: Vec<_> = lines.iter().map(|(what, address)| format!("  {what:<20} {address}\n")).collect();
    let mut stderr = std::io::stderr();
    // A closed terminal cannot be told anything.
    drop(write!(stderr, "\n{}\n", told.concat()));
    if !browser::open(env, &url) {
        drop(writeln!(stderr, "  No browser was found here: open the address yourself."));
    }
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

/// The name that the program was started under: existing clients start `opencode` and wait for that name.
fn program_name() -> &'static str {
    let first = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&first).file_stem().unwrap_or_default();
    if name == "opencode" { "opencode" } else { "codewright" }
}
