//! `serve` and `web`: start a server for any number of clients; `web` also opens its page.

mod beside;
mod settings;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use codewright_config::{Dirs, Env, LoadInput, env};
use codewright_engine::{Engine, Level, NodeSettings};
use codewright_server::{Announcement, Auth, Listener};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::STACK_BYTES;
use crate::cli::{Common, ListenArgs, NodeArgs, ServeArgs, WebArgs};
use crate::connection::{configure, engine_error, open_engine, set_log_level, working_directory};
use crate::style;
pub(crate) use beside::{SideListener, SideServer};
use settings::ServerSettings;

/// The port that clients try first.
const DEFAULT_PORT: u16 = 4096;
const WORKERS: usize = 2;
/// The warning about a server without a password.
const WITHOUT_PASSWORD: &str = if cfg!(target_os = "linux") {
    "OPENCODE_SERVER_PASSWORD is not set: every program of your account can use the server"
} else {
    // This system does not report the user of a connection.
    "OPENCODE_SERVER_PASSWORD is not set: on this system the server refuses all requests without a password"
};

/// The output of a server that has started to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    /// The line that clients wait for.
    Line,
    /// The addresses of the page, which is also opened.
    Page,
}

struct Server {
    listen: ListenArgs,
    socket: Option<PathBuf>,
    node: NodeArgs,
    common: Common,
    greeting: Greeting,
}

pub(crate) fn main(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let ServeArgs { listen, socket, node, common } = args;
    run(&Server { listen, socket, node, common, greeting: Greeting::Line })
}

/// Runs `web`.
pub(crate) fn web(args: WebArgs) -> anyhow::Result<ExitCode> {
    let WebArgs { listen, node, common } = args;
    run(&Server { listen, socket: None, node, common, greeting: Greeting::Page })
}

fn run(server: &Server) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKERS).thread_stack_size(STACK_BYTES).enable_all().build()?;
    runtime.block_on(serve(server))
}

async fn serve(server: &Server) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let settings = ServerSettings::new(&server.listen, &env)?;
    let options = options(&settings, &env)?;
    let engine = open_engine(env.clone(), &working_directory(None)?).await?;
    set_log_level(&engine, settings.log_level.as_deref());
    configure(&engine, &server.common);
    let node = node_settings(&server.node, &engine, &env)?;
    engine.log().set_node(&node_name());
    let endpoint = listen(server, &settings).await?;
    endpoint.name_for_plugins(&engine);
    if options.password.is_none() && options.auth.is_none() && server.socket.is_none() {
        style::warning(WITHOUT_PASSWORD);
    }
    codewright_server::raise_file_limit();
    // Before the greeting, because its reader may end the server immediately.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let announced = match endpoint.socket {
        Some(socket) => announce(socket, settings.domain.as_deref()).unwrap_or_else(|why| {
            style::warning(&why);
            None
        }),
        None => None,
    };
    match server.greeting {
        Greeting::Line => greet(&endpoint.address),
        Greeting::Page => show(&env, endpoint.socket, announced.as_ref().and(settings.domain.as_deref())),
    }
    codewright_memory::trim_after_work();
    let cancel = options.closing.clone();
    let tasks = options.tasks.clone();
    if let Some(node) = node {
        engine.nodes().join(node);
        tasks.spawn(drain_on_signal(engine.clone(), signal(SignalKind::user_defined1())?, cancel.clone()));
    }
    let router = codewright_server::router(engine.clone(), options);
    let served = codewright_server::serve(endpoint.listener, router, cancel.clone());
    let mut served = std::pin::pin!(served);
    engine.recover();
    engine.log().write(Level::Info, "server", &format!("listening on {}", endpoint.address), None).await;
    let keeper = engine.clone();
    tokio::select! {
        never = keeper.providers().keep_models_fresh() => match never {},
        ended = &mut served => ended.context("the server ended")?,
        _ = interrupt.recv() => stop(&cancel, served, &mut interrupt).await?,
        _ = terminate.recv() => stop(&cancel, served, &mut terminate).await?,
    }
    // The other servers continue the turns.
    engine.nodes().hand_over().await;
    if let Some(announced) = announced {
        announced.withdraw().await;
    }
    if let Some(path) = &server.socket {
        // If this fails, the next server removes the file.
        std::fs::remove_file(path).ok();
    }
    engine.log().write(Level::Info, "server", "ended", None).await;
    engine.close().await?;
    // Tasks of disconnected clients finish with the engine; no new ones can start.
    tasks.close();
    tasks.wait().await;
    Ok(ExitCode::SUCCESS)
}

/// The settings of this server among others, if its sessions are in a database that several servers can use.
///
/// # Errors
///
/// Fails for a setting that cannot be used.
fn node_settings(args: &NodeArgs, engine: &Engine, env: &Env) -> anyhow::Result<Option<NodeSettings>> {
    if !engine.nodes().are_possible() {
        anyhow::ensure!(
            args.node_address.is_none(),
            "`--node-address` needs a store in PostgreSQL, which all servers share: see `--store`"
        );
        return Ok(None);
    }
    let dirs = Dirs::new(env).map_err(|error| engine_error(error.into()))?;
    let nowhere = Path::new("/");
    let input = LoadInput { directory: nowhere, worktree: nowhere, env, dirs: &dirs };
    let node = codewright_config::node(input).map_err(|error| engine_error(error.into()))?;
    let secret = env.filled(env::NODE_SECRET);
    NodeSettings::read(&node, args.node_address.as_deref(), secret).map(Some).map_err(engine_error)
}

/// Begins no more turns after SIGUSR1.
async fn drain_on_signal(engine: Engine, mut requested: Signal, cancel: CancellationToken) {
    while cancel.run_until_cancelled(requested.recv()).await.flatten().is_some() {
        // It has joined other servers.
        let _: bool = engine.nodes().drain();
        engine.log().write(Level::Info, "server", "draining", None).await;
    }
}

/// The access options of the server.
///
/// # Errors
///
/// Fails if other machines could use the server without a password.
fn options(settings: &ServerSettings, env: &Env) -> anyhow::Result<codewright_server::Options> {
    let options = codewright_server::Options {
        username: env.filled(env::SERVER_USERNAME).unwrap_or("opencode").to_owned(),
        password: env.filled(env::SERVER_PASSWORD).map(str::to_owned),
        cors: settings.cors.clone(),
        auth: settings.auth.as_ref().map(|auth| users(auth, env)).transpose()?,
        metrics: settings.metrics,
        probes: settings.probes,
        sign_ins: Dirs::new(env).ok().map(|dirs| dirs.state.join("sign-ins.json")),
        report: Some(super::bug::reporter(env.clone())),
        ..codewright_server::Options::default()
    };
    options.check(SocketAddr::new(settings.ip, settings.port)).map_err(|error| {
        let why = match settings.domain {
            Some(_) => {
                "\nA server that is announced in the network (`--mdns`, `server.mdns`) can be reached from there"
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

/// The users of the server.
///
/// # Errors
///
/// Fails if the key `auth` is invalid, or if users could read the program's own files.
fn users(auth: &Value, env: &Env) -> anyhow::Result<Arc<Auth>> {
    let dirs = Dirs::new(env).map_err(|error| engine_error(error.into()))?;
    let own = [dirs.config, dirs.own_config, dirs.data, dirs.state, dirs.cache, dirs.opencode_data];
    let auth = Auth::parse(auth, &working_directory(None)?, &own).map_err(anyhow::Error::msg)?;
    if env.filled(env::SERVER_PASSWORD).is_some() {
        anyhow::bail!("the server has users (`auth`), so OPENCODE_SERVER_PASSWORD must not be set");
    }
    Ok(Arc::new(auth))
}

/// The address that the server listens on.
struct Endpoint {
    listener: Listener,
    /// In the form that clients use.
    address: String,
    /// The network address, unless the server listens on a socket file.
    socket: Option<SocketAddr>,
}

impl Endpoint {
    /// Sets the address that plugins receive. They reach the API without it too.
    fn name_for_plugins(&self, engine: &Engine) {
        if self.socket.is_some() {
            engine.extensions().set_url(format!("{}/", self.address));
        }
    }
}

async fn listen(server: &Server, settings: &ServerSettings) -> anyhow::Result<Endpoint> {
    if let Some(path) = &server.socket {
        let listener = Listener::owned(path);
        let listener = listener.with_context(|| format!("cannot listen on `{}`", path.display()))?;
        return Ok(Endpoint { listener, address: format!("unix:{}", path.display()), socket: None });
    }
    listen_on(settings).await
}

/// Listens on the network address of the settings.
async fn listen_on(settings: &ServerSettings) -> anyhow::Result<Endpoint> {
    let listener = bind(settings.ip, settings.port).await?;
    let socket = listener.local_addr().context("cannot get the listening address")?;
    let address = match &settings.name {
        Some(name) => format!("http://{name}:{}", socket.port()),
        None => format!("http://{socket}"),
    };
    Ok(Endpoint { listener: listener.into(), address, socket: Some(socket) })
}

async fn bind(ip: IpAddr, port: u16) -> anyhow::Result<TcpListener> {
    if port == 0
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(ip, DEFAULT_PORT)).await
    {
        return Ok(listener);
    }
    let address = SocketAddr::new(ip, port);
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Announces the server if it is configured.
///
/// # Errors
///
/// Returns a warning if the server cannot be announced. It works without the announcement.
fn announce(address: SocketAddr, domain: Option<&str>) -> Result<Option<Announcement>, String> {
    let Some(domain) = domain else { return Ok(None) };
    if address.ip().to_canonical().is_loopback() {
        return Err(format!("{address} can only be reached from this machine: the server is not announced"));
    }
    Announcement::begin(address, domain).map(Some).map_err(|error| {
        let hint = error.hint().map(|hint| format!(": {hint}")).unwrap_or_default();
        let error = anyhow::Error::from(error);
        format!("the server is not announced: {error:#}{hint}")
    })
}

/// Prints the address for a client that started the server.
fn greet(address: &str) {
    let mut stdout = std::io::stdout();
    // A client that closed the output does not wait for this line.
    drop(writeln!(stdout, "{} server listening on {address}", program_name()));
    drop(stdout.flush());
}

/// Prints the addresses of the page and opens it.
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
    let lines: Vec<_> = lines.iter().map(|(name, address)| format!("  {name:<20} {address}\n")).collect();
    let mut stderr = std::io::stderr();
    // Nothing can be reported to a closed terminal.
    drop(write!(stderr, "\n{}\n", lines.concat()));
    if !crate::browser::open(env, &url) {
        drop(writeln!(stderr, "  No browser was found: open the address yourself."));
    }
}

/// Shuts the server down, or stops waiting for that when the signal is repeated.
async fn stop(
    cancel: &CancellationToken,
    server: std::pin::Pin<&mut impl Future<Output = std::io::Result<()>>>,
    again: &mut Signal,
) -> anyhow::Result<()> {
    cancel.cancel();
    tokio::select! {
        ended = server => ended.context("the server ended"),
        _ = again.recv() => Ok(()),
    }
}

/// The name of this server in its log: the machine and the process.
fn node_name() -> String {
    // Other systems than Linux have no such file.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("server");
    format!("{host}-{}", std::process::id())
}

/// The name that the program was started as. Existing clients start `opencode` and wait for that name.
pub(crate) fn program_name() -> &'static str {
    let first = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&first).file_stem().unwrap_or_default();
    if name == "opencode" { "opencode" } else { "codewright" }
}
