//! An HTTP server of files on a loopback address.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// The address of a server without a name. Programs do not exclude it from their proxy, as they do `127.0.0.1`.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The time limit of a request.
const DEADLINE: Duration = Duration::from_secs(60);

/// A server of files. Each request is one connection.
pub struct FileServer {
    name: String,
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    files: TempDir,
}

impl FileServer {
    /// Starts a server at the address 127.0.0.2.
    pub fn start() -> Result<Self> {
        Self::at(ADDRESS.into(), ADDRESS.to_string())
    }

    /// Starts a server that is reached by the name of this machine. Some programs never use a proxy for a loopback
    /// address. `None` if the name has no loopback address.
    pub fn named() -> Result<Option<Self>> {
        let output = Command::new("uname").arg("-n").output().context("cannot start `uname`")?;
        let name = String::from_utf8(output.stdout)?.trim().to_lowercase();
        let Ok(mut addresses) = (name.as_str(), 0).to_socket_addrs() else { return Ok(None) };
        let address = addresses.find(|address| address.is_ipv4()).map(|address| address.ip());
        let is_usable = name != "localhost" && !name.is_empty();
        match address.filter(|address| is_usable && address.is_loopback()) {
            Some(address) => Self::at(address, name).map(Some),
            None => Ok(None),
        }
    }

    /// Starts a server at a loopback address.
    pub fn on(address: IpAddr) -> Result<Self> {
        let name = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        Self::at(address, name)
    }

    fn at(address: IpAddr, name: String) -> Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        let port = listener.local_addr()?.port();
        let files = tempfile::tempdir()?;
        let (requests, connections) = (Arc::new(Mutex::default()), Arc::new(AtomicUsize::new(0)));
        let server = Self {
            name,
            port,
            requests: Arc::clone(&requests),
            connections: Arc::clone(&connections),
            files,
        };
        let root = server.files.path().to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::Relaxed);
                let (requests, root) = (Arc::clone(&requests), root.clone());
                // A client may break off.
                thread::spawn(move || serve(&stream, &root, &requests).ok());
            }
        });
        Ok(server)
    }

    /// Returns the name and port, as in a URL.
    pub fn host(&self) -> String {
        format!("{}:{}", self.name, self.port)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Writes a file.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.files.path().join(path);
        fs::create_dir_all(path.parent().context("a path has a parent")?)?;
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Runs a shell script in the directory of the files.
    pub fn run(&self, script: &str) -> Result<()> {
        let done = Command::new("/bin/sh").args(["-ec", script]).current_dir(self.files.path()).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the first line, the host and the authorization of each request so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers one request with a file, or with the file `index` of a directory.
fn serve(stream: &TcpStream, root: &Path, requests: &Mutex<Vec<String>>) -> Result<()> {
    stream.set_read_timeout(Some(DEADLINE))?;
    let mut lines = BufReader::new(stream).lines();
    let line = lines.next().context("no request")??;
    let mut host = String::new();
    for header in lines {
        let header = header?;
        if header.to_lowercase().starts_with("host:") {
            host.push_str(&header);
        }
        if header.to_lowercase().starts_with("authorization:") {
            host.push(' ');
            host.push_str(&header);
        }
        if header.is_empty() {
            break;
        }
    }
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{line} {host}"));
    let path = line.split(' ').nth(1).context("no path")?.split('?').next().context("no path")?;
    let mut path = root.join(path.trim_matches('/'));
    if path.is_dir() {
        path = path.join("index");
    }
    let mut stream = stream;
    match fs::read(&path) {
        Ok(content) => {
            let kind = if path.ends_with("index") { "text/html" } else { "application/octet-stream" };
            let head = "HTTP/1.1 200 OK\r\nConnection: close";
            write!(stream, "{head}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", content.len())?;
            stream.write_all(&content)?;
        }
        Err(_) => {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?;
        }
    }
    Ok(())
}
