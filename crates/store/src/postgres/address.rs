//! The address of a database: a URL with the environment and the files that users of PostgreSQL know.
//!
//! The URL wins over `PG…` variables, and both over defaults. A password comes from the URL, `PGPASSWORD` or a password
//! file. Errors never contain the URL, because a mistyped one may have the password anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

use super::tls::{Check, Identity, Roots, Tls};

/// How long one attempt to connect may take unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for an attempt that an address can set.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a connection is silent before the system asks whether the server is alive, and between two questions.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// How long the system waits for the acknowledgement of sent bytes.
const USER_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest password file that is read.
const MAX_PASSFILE_BYTES: u64 = 1024 * 1024;
/// The most hosts in an address.
const MAX_HOSTS: usize = 16;

/// The directories in which servers put their socket.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The options of a URL and the variable that has their value otherwise.
const OPTIONS: &[(&str, &str)] = &[
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("application_name", "PGAPPNAME"),
    ("options", "PGOPTIONS"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
];

/// Where a database is, and what its connection needs.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// The address without user and password, for messages.
    pub(super) label: String,
}

impl Address {
    /// Reads a URL. `home` is where the user's password file and certificates are.
    pub(super) fn parse(
        url: &str,
        variables: &BTreeMap<String, String>,
        home: Option<&Path>,
    ) -> Result<Self, String> {
        let mut options = read_url(url)?;
        for (option, variable) in OPTIONS {
            if let Some(value) = variables.get(*variable).filter(|value| !value.is_empty()) {
                options.entry(option).or_insert_with(|| value.clone());
            }
        }
        let get = |name: &str| options.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let user = get("user").map(str::to_owned).or_else(|| variables.get("USER").cloned());
        let Some(user) = user else { return Err("it names no user".to_owned()) };
        let database = get("dbname").unwrap_or(&user).to_owned();
        let hosts = hosts(get("host"), get("hostaddr"), get("port"))?;
        let mut config = Config::new();
        config
            .user(&user)
            .dbname(&database)
            .application_name(get("application_name").unwrap_or("codewright"));
        config.connect_timeout(connect_timeout(get("connect_timeout"))?);
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(2);
        config.tcp_user_timeout(USER_TIMEOUT);
        for host in &hosts {
            config.host(&host.name).port(host.port);
            if let Some(address) = host.address {
                config.hostaddr(address);
            }
        }
        if let Some(options) = get("options") {
            config.options(options);
        }
        set_choices(&mut config, get)?;
        let (mode, check) = tls(get("sslmode"), get("sslrootcert"), home)?;
        let only_sockets = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        // A socket of this machine is not encrypted, as with libpq.
        config.ssl_mode(if only_sockets { SslMode::Disable } else { mode });
        if let Some(password) = get("password") {
            config.password(password);
        } else if let Some(password) = from_passfile(get("passfile"), home, &hosts, [&database, &user])? {
            config.password(password);
        }
        let identity = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => identity(get("sslcert"), get("sslkey"), home)?,
        };
        let tls = Tls::new(&check, identity.as_ref())?;
        Ok(Self { config, tls, label: label(&hosts, &database) })
    }
}

/// A host with its port and, if it is given, its address.
struct HostAt {
    name: String,
    port: u16,
    address: Option<IpAddr>,
}

/// The address without user and password.
fn label(hosts: &[HostAt], database: &str) -> String {
    let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(200).collect() };
    let sockets = hosts.iter().all(|host| host.name.starts_with('/'));
    let names = hosts.iter().map(|host| format!("{}:{}", plain(&host.name), host.port));
    let names = names.collect::<Vec<_>>().join(",");
    if sockets {
        format!("postgres:///{}?host={names}", plain(database))
    } else {
        format!("postgres://{names}/{}", plain(database))
    }
}

/// The options of a URL by name.
fn read_url(url: &str) -> Result<BTreeMap<&'static str, String>, String> {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let Some(rest) = rest else {
        return Err("it does not start with `postgres://`".to_owned());
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) =
        authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
    let mut options = BTreeMap::new();
    if let Some(user) = user {
        let (name, password) = user.split_once(':').map_or((user, None), |(name, word)| (name, Some(word)));
        options.insert("user", decode(name)?);
        if let Some(password) = password {
            options.insert("password", decode(password)?);
        }
    }
    if !database.is_empty() {
        options.insert("dbname", decode(database)?);
    }
    if !hosts.is_empty() {
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for host in hosts.split(',') {
            let (name, port) = split_port(host);
            names.push(decode(name)?);
            ports.push(port.to_owned());
        }
        options.insert("host", names.join(","));
        if ports.iter().any(|port| !port.is_empty()) {
            options.insert("port", ports.join(","));
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some((known, _)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
            let known = OPTIONS.iter().map(|(known, _)| format!("`{known}`")).collect::<Vec<_>>().join(", ");
            // The name is not repeated, because it may be a part of the password.
            return Err(format!("it has an unknown option after `?`; the options are {known}"));
        };
        options.insert(known, decode(value)?);
    }
    Ok(options)
}

/// A host and its port, which is empty if it is missing. An IPv6 address is in brackets.
fn split_port(host: &str) -> (&str, &str) {
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, rest.strip_prefix(':').unwrap_or(""));
    }
    host.rsplit_once(':').unwrap_or((host, ""))
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| "it has a `%` sequence that is not UTF-8".to_owned())?;
    if decoded.contains('\0') { Err("it has a NUL character".to_owned()) } else { Ok(decoded.into_owned()) }
}

fn hosts(names: Option<&str>, addresses: Option<&str>, ports: Option<&str>) -> Result<Vec<HostAt>, String> {
    let names: Vec<String> = match (names, addresses) {
        (Some(names), _) => names.split(',').map(str::to_owned).collect(),
        // The host is only needed to check a certificate.
        (None, Some(addresses)) => addresses.split(',').map(str::to_owned).collect(),
        (None, None) => {
            let here = |directory: &&&str| Path::new(directory).join(".s.PGSQL.5432").exists();
            vec![(*SOCKET_DIRECTORIES.iter().find(here).unwrap_or(&"localhost")).to_owned()]
        }
    };
    if names.len() > MAX_HOSTS {
        return Err(format!("it has more than {MAX_HOSTS} hosts"));
    }
    if names.iter().any(String::is_empty) {
        return Err("one of its hosts is empty".to_owned());
    }
    let ports: Vec<u16> = match ports {
        None => vec![5432],
        Some(ports) => {
            let port = |text: &str| if text.is_empty() { Ok(5432) } else { text.parse::<u16>() };
            ports
                .split(',')
                .map(port)
                .collect::<Result<_, _>>()
                .map_err(|_| "its port is not a number".to_owned())?
        }
    };
    if ports.len() != 1 && ports.len() != names.len() {
        return Err("it has another number of ports than of hosts".to_owned());
    }
    let addresses: Vec<Option<IpAddr>> = match addresses {
        None => vec![None; names.len()],
        Some(addresses) => {
            let address = |text: &str| text.parse::<IpAddr>().map(Some);
            let read: Result<Vec<_>, _> = addresses.split(',').map(address).collect();
            read.map_err(|_| "its `hostaddr` is not an IP address".to_owned())?
        }
    };
    if addresses.len() != names.len() {
        return Err("it has another number of `hostaddr` than of hosts".to_owned());
    }
    let ports = ports.iter().cycle();
    let all = names.into_iter().zip(ports).zip(addresses);
    Ok(all.map(|((name, port), address)| HostAt { name, port: *port, address }).collect())
}

fn connect_timeout(seconds: Option<&str>) -> Result<Duration, String> {
    let Some(seconds) = seconds else { return Ok(CONNECT_TIMEOUT) };
    let seconds: u64 =
        seconds.parse().map_err(|_| "its `connect_timeout` is not a number of seconds".to_owned())?;
    // Zero means "without a limit" for libpq; nothing waits without one here.
    Ok(if seconds == 0 { MAX_CONNECT_TIMEOUT } else { Duration::from_secs(seconds).min(MAX_CONNECT_TIMEOUT) })
}

/// Sets the options that have a few possible values.
fn set_choices<'a>(config: &mut Config, get: impl Fn(&str) -> Option<&'a str>) -> Result<(), String> {
    let unknown = |name: &str, values: &str| Err(format!("its `{name}` must be one of {values}"));
    match get("channel_binding") {
        Some("disable") => _ = config.channel_binding(ChannelBinding::Disable),
        Some("prefer") | None => {}
        Some(_) => return unknown("channel_binding", "`disable` and `prefer`; `require` is not supported"),
    }
    match get("target_session_attrs") {
        // A standby cannot be written to.
        Some("any" | "read-write" | "primary") | None => {
            config.target_session_attrs(TargetSessionAttrs::Any);
            if get("target_session_attrs").is_some_and(|attrs| attrs != "any") {
                config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
        }
        Some(_) => return unknown("target_session_attrs", "`any`, `read-write` and `primary`"),
    }
    match get("load_balance_hosts") {
        Some("random") => _ = config.load_balance_hosts(LoadBalanceHosts::Random),
        Some("disable") | None => {}
        Some(_) => return unknown("load_balance_hosts", "`disable` and `random`"),
    }
    Ok(())
}

/// The mode of TLS and what is checked, as libpq decides it.
fn tls(mode: Option<&str>, roots: Option<&str>, home: Option<&Path>) -> Result<(SslMode, Check), String> {
    let usual = home.map(|home| home.join(".postgresql/root.crt"));
    let roots = match roots {
        Some("system") => Some(Roots::System),
        Some(path) => Some(Roots::File(path.into())),
        None => usual.clone().filter(|path| path.exists()).map(Roots::File),
    };
    let needed = |roots: Option<Roots>| {
        roots.ok_or_else(|| {
            "its `sslmode` checks the server's certificate, but there are no certificates of authorities: \
             set `sslrootcert` to a file or to `system`"
                .to_owned()
        })
    };
    Ok(match (mode, roots) {
        (Some("disable"), _) => (SslMode::Disable, Check::Nothing),
        (Some("allow" | "prefer"), _) => (SslMode::Prefer, Check::Nothing),
        // The certificates of the system belong to anybody, so their host is always checked.
        (Some("require" | "verify-ca" | "verify-full") | None, Some(Roots::System)) => {
            (SslMode::Require, Check::Host(Roots::System))
        }
        (None, _) => (SslMode::Prefer, Check::Nothing),
        (Some("require"), Some(roots)) => (SslMode::Require, Check::Authority(roots)),
        (Some("require"), None) => (SslMode::Require, Check::Nothing),
        (Some("verify-ca"), roots) => (SslMode::Require, Check::Authority(needed(roots)?)),
        (Some("verify-full"), roots) => (SslMode::Require, Check::Host(needed(roots)?)),
        (Some(_), _) => {
            return Err(
                "its `sslmode` must be one of `disable`, `prefer`, `require`, `verify-ca` and `verify-full`"
                    .to_owned(),
            );
        }
    })
}

/// The certificate of the user: that of the address, or the usual one if it exists.
fn identity(
    certificate: Option<&str>,
    key: Option<&str>,
    home: Option<&Path>,
) -> Result<Option<Identity>, String> {
    let usual = |name: &str| home.map(|home| home.join(".postgresql").join(name));
    let certificate = match certificate {
        Some(path) => PathBuf::from(path),
        None => match usual("postgresql.crt").filter(|path| path.exists()) {
            Some(path) => path,
            None => return Ok(None),
        },
    };
    let Some(key) = key.map(PathBuf::from).or_else(|| usual("postgresql.key")) else {
        return Err("it has `sslcert` without `sslkey`".to_owned());
    };
    check_private("private key", &key)?;
    Ok(Some(Identity { certificate, key }))
}

/// Fails if other users can read a file. A file that does not exist is reported when it is read.
fn check_private(what: &str, path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    if fs::metadata(path)
        .is_ok_and(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0)
    {
        return Err(format!("other users can read the {what} `{}`: run `chmod 600 {0}`", path.display()));
    }
    #[cfg(not(unix))]
    let _ = (what, path);
    Ok(())
}

/// The password in a password file, if the file exists and has one for this connection.
fn from_passfile(
    path: Option<&str>,
    home: Option<&Path>,
    hosts: &[HostAt],
    [database, user]: [&str; 2],
) -> Result<Option<String>, String> {
    let Some(path) = path.map(PathBuf::from).or_else(|| Some(home?.join(".pgpass"))) else { return Ok(None) };
    let Ok(found) = fs::metadata(&path) else { return Ok(None) };
    if !found.is_file() || found.len() > MAX_PASSFILE_BYTES {
        return Ok(None);
    }
    check_private("password file", &path)?;
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("the password file `{}` cannot be read: {error}", path.display()))?;
    Ok(hosts.iter().find_map(|host| password_in(&text, host, [database, user])))
}

/// The password of the first line that fits. A field `*` fits everything.
fn password_in(text: &str, host: &HostAt, [database, user]: [&str; 2]) -> Option<String> {
    let port = host.port.to_string();
    let is_socket = host.name.starts_with('/');
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let [line_host, line_port, line_database, line_user, password] = fields(line)?;
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let fits_host = fits(&line_host, &host.name) || (is_socket && line_host == "localhost");
        (fits_host && fits(&line_port, &port) && fits(&line_database, database) && fits(&line_user, user))
            .then_some(password)
    })
}

/// The five fields of a line, in which `\` protects `:` and `\`.
fn fields(line: &str) -> Option<[String; 5]> {
    let mut found = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == ':' && found.len() < 5 {
            found.push(String::new());
            continue;
        }
        let is_protected = character == '\\';
        let next = if is_protected { characters.next() } else { Some(character) };
        found.last_mut()?.extend(next);
    }
    found.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, variables: &[(&str, &str)]) -> Result<Address, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Address::parse(url, &variables.collect(), None)
    }

    fn shown(address: &Address) -> String {
        let config = &address.config;
        let password = config.get_password().map(|word| String::from_utf8_lossy(word).into_owned());
        format!(
            "{} {:?} {:?} {:?} {:?}",
            address.label,
            config.get_user(),
            config.get_dbname(),
            password,
            config.get_ssl_mode()
        )
    }

    #[test]
    fn a_url_and_the_environment_give_an_address() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: [(&str, Variables, &str); 8] = [
            (
                "postgres://me:p%40ss@db.example:6000/work?sslmode=disable",
                &[("PGUSER", "other"), ("PGPASSWORD", "other")],
                r#"postgres://db.example:6000/work Some("me") Some("work") Some("p@ss") Disable"#,
            ),
            (
                "postgresql://db.example",
                &[("PGUSER", "me"), ("PGPASSWORD", "word"), ("PGDATABASE", "work"), ("PGPORT", "7000")],
                r#"postgres://db.example:7000/work Some("me") Some("work") Some("word") Prefer"#,
            ),
            (
                "postgres://me@[::1]:6000,other/work?sslmode=require",
                &[],
                r#"postgres://::1:6000,other:5432/work Some("me") Some("work") None Require"#,
            ),
            (
                "postgres:///work?host=/run/pg&port=6000&sslmode=require",
                &[("USER", "me")],
                r#"postgres:///work?host=/run/pg:6000 Some("me") Some("work") None Disable"#,
            ),
            (
                "postgres://me@/?host=%2Frun%2Fpg",
                &[],
                r#"postgres:///me?host=/run/pg:5432 Some("me") Some("me") None Disable"#,
            ),
            (
                "postgres://a:b@c@host/d",
                &[],
                r#"postgres://host:5432/d Some("a") Some("d") Some("b@c") Prefer"#,
            ),
            ("postgres://me@h/d?sslmode=verify-full&sslrootcert=system", &[("SKIP", "")], ""),
            (
                "postgres://me@h/d",
                &[("PGSSLMODE", "require")],
                r#"postgres://h:5432/d Some("me") Some("d") None Require"#,
            ),
        ];
        for (url, variables, expected) in cases {
            match parse(url, variables) {
                Ok(address) if !expected.is_empty() => assert_eq!(shown(&address), expected, "{url}"),
                // A system without certificates.
                _ if expected.is_empty() => {}
                other => panic!("{url}: {:?}", other.map(|address| shown(&address))),
            }
        }
    }

    #[test]
    fn a_wrong_url_is_explained_without_its_text() {
        for (url, expected) in [
            ("mysql://me:hush@h/d", "does not start with `postgres://`"),
            ("postgres://me:hush@h:port/d", "port is not a number"),
            ("postgres://me:hu?sh@h/d", "unknown option after `?`"),
            ("postgres://me:hush@h/d?sslmode=yes", "`sslmode` must be one of"),
            ("postgres://me:hush@h/d?sslmode=verify-full", "set `sslrootcert`"),
            ("postgres://me:hush@h/d?connect_timeout=soon", "`connect_timeout` is not a number"),
            ("postgres://me:hush@a,b,c:1,2/d", "its port"),
            ("postgres://me:hush@h/d?channel_binding=require", "`channel_binding` must be"),
            ("postgres://me:hush@h/d?target_session_attrs=standby", "`target_session_attrs` must be"),
            ("postgres://me:hush@h/d?sslmode=require&sslrootcert=/nowhere/hush.crt", "cannot be read"),
            ("postgres://me:hush@h/d?sslcert=/nowhere/hush.crt", "`sslcert` without `sslkey`"),
            ("postgres://me:hush@h/d?sslcert=/nowhere/hush.crt&sslkey=/nowhere", "cannot be used"),
            ("postgres://me:hush%00@h/d", "NUL"),
            ("postgres://h/d", "names no user"),
        ] {
            let Err(error) = parse(url, &[]) else {
                assert!(url.contains("a,b,c"), "{url} was accepted");
                continue;
            };
            assert!(error.contains(expected) || url.contains("a,b,c"), "{url}: {error}");
            assert!(!error.replace("/nowhere/hush.crt", "").contains("hush"), "{url}: {error}");
        }
    }

    #[test]
    fn the_first_fitting_line_of_a_password_file_has_the_password() {
        let text =
            "# comment\nother:*:*:*:no\nh:6000:*:me:six\nh:*:d\\:b:me:a\\:b\\\\c\n*:*:*:*:any\nbroken\n";
        let host = |name: &str, port| HostAt { name: name.to_owned(), port, address: None };
        for (at, database, expected) in [
            (host("h", 6000), "x", "six"),
            (host("h", 5432), "d:b", "a:b\\c"),
            (host("h", 5432), "x", "any"),
            (host("/run/pg", 5432), "x", "any"),
        ] {
            assert_eq!(password_in(text, &at, [database, "me"]).as_deref(), Some(expected));
        }
        assert_eq!(
            password_in("localhost:*:*:*:word", &host("/tmp", 1), ["d", "u"]).as_deref(),
            Some("word")
        );
        assert_eq!(password_in("a:b:c", &host("a", 1), ["d", "u"]), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_password_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join(".pgpass");
        fs::write(&file, "h:5432:d:me:word\n").expect("written");
        let open = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("changed");
            Address::parse("postgres://me@h/d", &BTreeMap::new(), Some(home.path()))
        };
        assert_eq!(open(0o600).expect("read").config.get_password(), Some(&b"word"[..]));
        let Err(error) = open(0o644) else { panic!("it was read") };
        assert!(error.contains("chmod 600"), "{error}");
    }
}
