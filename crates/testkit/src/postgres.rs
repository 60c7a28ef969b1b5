//! A private PostgreSQL server for tests.
//!
//! It has its own directory and listens on a socket there and on a free port of this machine. It ends with the test,
//! even with one that is killed, because a shell waits for the end of its input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Makes a database and runs the server. It reads orders, a word per line, and answers each with a line. The server
/// refuses to run as root.
const SCRIPT: &str = r#"
set -e
d=$(mktemp -d /tmp/codewright-pg.XXXXXX)
chmod 755 "$d"
trap 'rm -rf "$d"' EXIT
"$BIN/initdb" -D "$d/data" -U codewright -A trust --no-sync -E "$ENCODING" --locale=C >"$d/log" 2>&1
cat >"$d/data/pg_hba.conf" <<'RULES'
local all locked scram-sha-256
local all all trust
host all locked 127.0.0.1/32 scram-sha-256
hostssl all certified 127.0.0.1/32 cert
host all all 127.0.0.1/32 trust
RULES
[ -z "$NETWORK" ] || echo "host all all $NETWORK trust" >>"$d/data/pg_hba.conf"
tls=off
if command -v openssl >/dev/null; then
    (
        cd "$d/data"
        k='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $k -keyout ca.key -out ca.crt -subj /CN=tests -days 2
        openssl req $k -keyout server.key -out server.csr -subj /CN=localhost
        echo 'subjectAltName=DNS:localhost' >names
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt
        openssl req -x509 $k -keyout other.key -out other.crt -subj /CN=other -days 2
        openssl req $k -keyout certified.key -out certified.csr -subj /CN=certified
        echo basicConstraints=CA:FALSE >plain
        openssl x509 -req -in certified.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile plain -out certified.crt
        cp ca.crt other.crt certified.crt certified.key ..
        # The user of the tests may be another one, and reads a copy.
        chmod 644 ../certified.key
    ) >"$d/log" 2>&1
    tls="on -c ssl_ca_file=ca.crt"
fi
begin() {
    : >"$d/log"
    env ${LIBRARY:+LD_PRELOAD="$LIBRARY"} \
        "$BIN/postgres" -D "$d/data" -k "$d" -p "$PORT" -c listen_addresses="$ADDRESS" -c max_connections=200 \
        -c ssl=$tls -c fsync="$FSYNC" -c shared_buffers=32MB -c log_min_messages=warning >>"$d/log" 2>&1 </dev/null &
    p=$!
    n=0
    while ! grep -q 'ready to accept connections' "$d/log"; do
        kill -0 $p || { cat "$d/log" >&2; exit 1; }
        n=$((n + 1)); [ $n -lt 600 ] || exit 1
        sleep 0.1
    done
}
begin
echo "$d"
while read -r order; do
    case $order in
        stop) kill -INT $p; wait $p || true; echo stopped;;
        crash) kill -QUIT $p; wait $p || true; echo crashed;;
        start) begin; echo started;;
    esac
done
kill -QUIT $p 2>/dev/null || true
wait $p || true
"#;

/// A running server.
pub struct Postgres {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    directory: PathBuf,
    port: u16,
}

/// Where a server runs that is not one of this machine.
pub(crate) struct Machine<'a> {
    /// The network namespace.
    pub(crate) namespace: &'a str,
    /// The address to listen at.
    pub(crate) address: Ipv4Addr,
    /// The library that the server loads, and the variable that it reads with its value.
    pub(crate) library: Option<(&'a Path, (&'static str, &'a Path))>,
}

impl Postgres {
    /// Starts a server. Prints why and returns `None` if its programs are not installed.
    pub fn start() -> Option<Self> {
        Self::with("UTF8", "off")
    }

    /// Starts a server whose databases have another encoding, or that waits for the disk (`fsync` is `on`).
    pub fn with(encoding: &str, fsync: &str) -> Option<Self> {
        Self::begin(encoding, fsync, None)
    }

    /// Starts a server on another machine, which waits for the disk.
    pub(crate) fn on(machine: &Machine<'_>) -> Option<Self> {
        Self::begin("UTF8", "on", Some(machine))
    }

    fn begin(encoding: &str, fsync: &str, machine: Option<&Machine<'_>>) -> Option<Self> {
        let Some(programs) = programs() else {
            let reason =
                "skipped: the programs of a PostgreSQL server (`postgres`, `initdb`) are not installed";
            // A closed output changes nothing.
            drop(writeln!(std::io::stderr(), "{reason}"));
            return None;
        };
        let port = free_port();
        let mut command = match machine {
            Some(machine) => {
                let inner = unprivileged();
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{}", machine.namespace));
                command.arg(inner.get_program()).args(inner.get_args());
                command
            }
            None => unprivileged(),
        };
        let address = machine.map_or(Ipv4Addr::LOCALHOST, |machine| machine.address);
        command.args(["sh", "-c", SCRIPT]).env_clear();
        if let Some(machine) = machine {
            command.env("NETWORK", format!("{address}/24"));
            if let Some((library, variable)) = machine.library {
                command.envs([("LIBRARY", library), variable]);
            }
        }
        command
            .env("ADDRESS", address.to_string())
            .env("PATH", search_path())
            .env("BIN", &programs)
            .env("PORT", port.to_string())
            .env("ENCODING", encoding)
            .env("FSYNC", fsync)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("a shell starts");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Self { child, orders, answers, directory: PathBuf::new(), port };
        server.directory = server.answer().into();
        Some(server)
    }

    /// The address through the socket, with options such as `&options=…` at its end.
    #[must_use]
    pub fn url(&self, database: &str, more: &str) -> String {
        format!(
            "postgres://codewright@/{database}?host={}&port={}{more}",
            self.directory.display(),
            self.port
        )
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The address through the port.
    #[must_use]
    pub fn tcp_url(&self, host: &str, more: &str) -> String {
        format!("postgres://codewright@{host}:{}/postgres{more}", self.port)
    }

    /// The certificate of the server's authority and that of another one, if the server uses TLS.
    #[must_use]
    pub fn authorities(&self) -> Option<[PathBuf; 2]> {
        let both = ["ca.crt", "other.crt"].map(|name| self.directory.join(name));
        both.iter().all(|path| path.exists()).then_some(both)
    }

    /// The files of a certificate and its key for the user `certified`, if the server uses TLS. Others can read the key.
    #[must_use]
    pub fn certified(&self) -> Option<[PathBuf; 2]> {
        let both = ["certified.crt", "certified.key"].map(|name| self.directory.join(name));
        both.iter().all(|path| path.exists()).then_some(both)
    }

    /// Ends the server, so that its connections break. An order is `stop`, `crash` or `start`.
    pub fn order(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("a pipe");
        writeln!(orders, "{order}").expect("the shell reads");
        self.answer();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("readable");
        assert!(!line.is_empty(), "the server did not start");
        line.trim_end().to_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The end of its input.
        drop(self.orders.take());
        drop(self.child.wait());
    }
}

/// A command that does not run as root.
fn unprivileged() -> Command {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        #[cfg(unix)]
        return std::os::unix::fs::MetadataExt::uid(&own) == 0;
        #[cfg(not(unix))]
        return false;
    });
    if !is_root {
        return Command::new("env");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "env"]);
    command
}

/// The directory of the server's programs: that of Debian's packages, or of the search path.
fn programs() -> Option<PathBuf> {
    let has_all = |directory: &Path| ["postgres", "initdb"].iter().all(|name| directory.join(name).exists());
    let packaged = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut packaged: Vec<_> = packaged.map(|entry| entry.path().join("bin")).collect();
    packaged.sort();
    let path = search_path();
    let all = packaged.into_iter().rev().chain(std::env::split_paths(&path));
    all.into_iter().find(|directory| has_all(directory))
}

#[expect(clippy::disallowed_methods, reason = "the tests' own search path, not configuration of the program")]
fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}
