//! A server of a fleet, and what connects it: relays on the loopback interface of this machine, or cables in networks.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use codewright_client::Client;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::Fleet;
use super::network::{Net, Network};
use super::relay::Relay;
use super::shim::Shim;
use crate::{Postgres, Project, Run, Running};

/// The secret that the servers have in common.
const SECRET: &str = "0123456789-secret-of-a-fleet";
/// The password of all servers.
const PASSWORD: &str = "password-of-a-fleet";
/// The longest life of a server.
const DEADLINE: Duration = Duration::from_secs(4 * 3600);

/// A server of a fleet.
pub(super) struct Node {
    binary: PathBuf,
    is_unfenced: bool,
    /// Its own settings and data.
    home: Project,
    directory: PathBuf,
    port: u16,
    database_url: String,
    links: Links,
    clock: Option<Shim>,
    running: Option<Running>,
}

/// What connects a server.
enum Links {
    /// A relay between clients or other servers and the server, and one between the server and its database.
    Relays { before: Relay, database: Relay },
    /// The machine with this number in networks.
    Cables(Arc<Network>, usize),
}

/// Where a server runs.
pub(super) struct Place {
    /// The number of the server.
    pub(super) at: usize,
    /// The networks in which its number is its machine. `None` is this machine.
    pub(super) network: Option<Arc<Network>>,
    /// What moves its clock.
    pub(super) clock: Option<Shim>,
}

/// A paused server. It continues when this is dropped.
pub(super) struct Paused(Pid);

impl Paused {
    pub(super) fn resume(self) -> Result<()> {
        Ok(kill(self.0, Signal::SIGCONT)?)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // It may have continued or ended already.
        let _: Result<(), nix::errno::Errno> = kill(self.0, Signal::SIGCONT);
    }
}

impl Node {
    /// Starts a server in a project that others share.
    pub(super) async fn start(
        plan: &Fleet,
        place: Place,
        project: &Project,
        postgres: &Postgres,
        model: &str,
    ) -> Result<Self> {
        let home = Project::plain()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let Place { at, network, clock } = place;
        let (links, database) = match network {
            None => {
                let before = Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
                let database = Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, postgres.port()))).await?;
                let address = database.address();
                (Links::Relays { before, database }, address)
            }
            Some(network) => {
                let address = network.address(Net::Database, network.database());
                (Links::Cables(network, at), SocketAddr::from((address, postgres.port())))
            }
        };
        let mut config = Project::config(model);
        config["node"] = json!({"name": format!("node-{at}"), "drain_seconds": 5});
        home.write_config(&config)?;
        let database_url = format!("postgres://codewright@{database}/postgres?sslmode=disable");
        let (binary, directory) = (plan.binary.clone(), project.directory().to_owned());
        let is_unfenced = plan.is_unfenced;
        let mut node =
            Self { binary, is_unfenced, home, directory, port, database_url, links, clock, running: None };
        node.restart().await?;
        Ok(node)
    }

    /// A client of the server.
    pub(super) fn client(&self) -> Result<Client> {
        let auth = ("opencode".to_owned(), PASSWORD.to_owned());
        Ok(Client::http(&self.url(), Some(auth), None)?)
    }

    /// The address for clients.
    fn url(&self) -> String {
        match &self.links {
            Links::Relays { before, .. } => format!("http://{}", before.address()),
            Links::Cables(network, at) => {
                format!("http://{}:{}", network.address(Net::Clients, *at), self.port)
            }
        }
    }

    /// The address for other servers.
    fn peer_url(&self) -> String {
        match &self.links {
            Links::Relays { .. } => self.url(),
            Links::Cables(network, at) => {
                format!("http://{}:{}", network.address(Net::Servers, *at), self.port)
            }
        }
    }

    /// Starts the program, and waits until it listens.
    pub(super) async fn restart(&mut self) -> Result<()> {
        let (port, address) = (self.port.to_string(), self.peer_url());
        let run = match &self.links {
            Links::Relays { .. } => Run::new(&self.binary, &self.home).args(["serve"]),
            Links::Cables(network, at) => {
                let space = format!("--net=/run/netns/{}", network.namespace(*at));
                let run = Run::new("nsenter", &self.home).args([space.as_str(), "env"]);
                let run = match &self.clock {
                    Some(clock) => {
                        let (name, value) = clock.variable();
                        run.args([format!("LD_PRELOAD={}", clock.library().display())]).env(name, value)
                    }
                    None => run,
                };
                run.args([self.binary.as_path()]).args(["serve", "--hostname", "0.0.0.0"])
            }
        };
        let run = run
            .args(["--port", &port, "--node-address", &address])
            .directory(&self.directory)
            .env("OPENCODE_DISABLE_LOCAL_SERVERS", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("CODEWRIGHT_STORE", &self.database_url)
            .env("CODEWRIGHT_NODE_SECRET", SECRET)
            .env("OPENCODE_SERVER_PASSWORD", PASSWORD)
            .deadline(DEADLINE);
        let run = if self.is_unfenced { run.env("CODEWRIGHT_TEST_UNFENCED", "1") } else { run };
        let started = tokio::task::spawn_blocking(move || -> Result<Running> {
            let mut server = run.start()?;
            server.line_that(|line| line.contains("listening on"))?;
            Ok(server)
        });
        self.running = Some(started.await??);
        Ok(())
    }

    fn pid(&self) -> Result<Pid> {
        let running = self.running.as_ref().context("the server does not run")?;
        Ok(Pid::from_raw(i32::try_from(running.id())?))
    }

    /// Kills the program. Returns its process id.
    pub(super) fn kill(&mut self) -> u32 {
        // Dropping it kills the process and waits for its end.
        self.running.take().map_or(0, |running| running.id())
    }

    pub(super) fn pause(&self) -> Result<Paused> {
        let pid = self.pid()?;
        kill(pid, Signal::SIGSTOP)?;
        Ok(Paused(pid))
    }

    /// Ends the program with SIGTERM.
    pub(super) async fn end(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        running.terminate()?;
        tokio::task::spawn_blocking(move || running.finish()).await??;
        Ok(())
    }

    /// Takes the server out of service.
    pub(super) async fn drain(&self) -> Result<()> {
        Ok(self.client()?.drain().await.map(drop)?)
    }

    /// Cuts the server off from a network, or connects it again. A relay is in front of the server for clients and for
    /// other servers, so both are cut off.
    pub(super) fn cut(&self, net: Net, is_cut: bool) -> Result<()> {
        match &self.links {
            Links::Relays { before, database } => {
                if net == Net::Database { database } else { before }.stall(is_cut);
                Ok(())
            }
            Links::Cables(network, at) => network.cut(net, *at, is_cut),
        }
    }

    /// Moves the clock of the server, if it is on another machine.
    pub(super) fn move_clock(&self, seconds: i64) -> Result<()> {
        self.clock.as_ref().map_or(Ok(()), |clock| clock.move_clock(seconds))
    }
}
