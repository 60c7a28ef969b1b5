//! A server of a fleet. One TCP relay is between the clients and the server, and another between the server and its database.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use codewright_client::Client;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::Fleet;
use super::relay::Relay;
use crate::{Postgres, Project, Run, Running};

/// The secret that the servers have in common.
const SECRET: &str = "0123456789-secret-of-a-fleet";
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
    before: Relay,
    database: Relay,
    running: Option<Running>,
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
        at: usize,
        project: &Project,
        postgres: &Postgres,
        model: &str,
    ) -> Result<Self> {
        let home = Project::plain()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let before = Relay::start(SocketAddr::from(([127, 0, 0, 1], port))).await?;
        let database = Relay::start(address_of(postgres)?).await?;
        let mut config = Project::config(model);
        config["node"] = json!({"name": format!("node-{at}"), "drain_seconds": 5});
        home.write_config(&config)?;
        let database_url =
            format!("postgres://codewright@127.0.0.1:{}/postgres?sslmode=disable", database.address().port());
        let (binary, directory) = (plan.binary.clone(), project.directory().to_owned());
        let is_unfenced = plan.is_unfenced;
        let mut node = Self {
            binary,
            is_unfenced,
            home,
            directory,
            port,
            database_url,
            before,
            database,
            running: None,
        };
        node.restart().await?;
        Ok(node)
    }

    /// The address for clients and other servers, through the relay.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.before.address())
    }

    /// Starts the program, and waits until it listens.
    pub(super) async fn restart(&mut self) -> Result<()> {
        let (port, address) = (self.port.to_string(), self.url());
        let run = Run::new(&self.binary, &self.home)
            .args(["serve", "--port", &port, "--node-address", &address])
            .directory(&self.directory)
            .env("OPENCODE_DISABLE_LOCAL_SERVERS", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("CODEWRIGHT_STORE", &self.database_url)
            .env("CODEWRIGHT_NODE_SECRET", SECRET)
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
        let client = Client::http(&self.url(), None, None)?;
        Ok(client.drain().await.map(drop)?)
    }

    pub(super) fn stall_database(&self, is_stalled: bool) {
        self.database.stall(is_stalled);
    }

    pub(super) fn stall_others(&self, is_stalled: bool) {
        self.before.stall(is_stalled);
    }
}

/// The address of a database's port.
fn address_of(postgres: &Postgres) -> Result<SocketAddr> {
    let url = postgres.tcp_url("127.0.0.1", "");
    let host = url.rsplit_once('@').and_then(|(_, rest)| rest.split_once('/'));
    Ok(host.context("the address has no host")?.0.parse()?)
}
