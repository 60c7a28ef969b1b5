//! Resolves a permitted target and connects to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use codewright_proxy::{Refusal, RefusalKind, Stream, Target};
use codewright_tools::{Web, WebError};
use codewright_workspace::listeners;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::judge::{Reach, is_public};

/// The time to resolve a name.
const RESOLVE_DEADLINE: Duration = Duration::from_secs(10);
/// The time to connect to one address.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// The time to connect to one of all addresses.
const ALL_DEADLINE: Duration = Duration::from_secs(30);

/// Returns the addresses of a target, at least one. Returns `None` if one of them is not permitted: a name whose answers
/// differ could otherwise lead to a private address.
pub(super) async fn addresses(
    web: &dyn Web,
    target: &Target,
    reach: Reach,
) -> Result<Option<Vec<SocketAddr>>, Refusal> {
    let addresses = resolve(web, target).await?;
    let is_permitted = reach == Reach::Anywhere || addresses.iter().all(|address| is_public(address.ip()));
    Ok(is_permitted.then_some(addresses))
}

async fn resolve(web: &dyn Web, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
    let port = target.port();
    if let Some(address) = target.address() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if target.is_localhost() {
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]);
    }
    let unreachable = |why: &str| Err(Refusal::new(RefusalKind::Unreachable, format!("{target}: {why}")));
    match timeout(RESOLVE_DEADLINE, web.look_up(&target.host(), port)).await {
        Ok(Ok(addresses)) if !addresses.is_empty() => {
            // The port is the judged one, whatever the resolver returns.
            Ok(addresses
                .into_iter()
                .map(|address| SocketAddr::new(address.ip().to_canonical(), port))
                .collect())
        }
        Ok(Ok(_)) => unreachable("the name has no address"),
        Ok(Err(WebError::Unreachable(why))) => unreachable(&why),
        Ok(Err(WebError::TooLarge)) => unreachable("the name has too many addresses"),
        Err(_) => {
            Err(Refusal::new(RefusalKind::TimedOut, format!("{target}: the name was not resolved in time")))
        }
    }
}

/// Connects to the first address that accepts.
pub(super) async fn connect(addresses: &[SocketAddr]) -> Result<Box<dyn Stream>, Refusal> {
    let until = Instant::now() + ALL_DEADLINE;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        if address.ip().is_loopback() && is_own(address.port()).await {
            last = io::ErrorKind::PermissionDenied.into();
            continue;
        }
        let deadline = until.min(Instant::now() + CONNECT_DEADLINE);
        match timeout_at(deadline, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small messages are sent at once. The connection also works without the option.
                stream.set_nodelay(true).ok();
                return Ok(Box::new(stream));
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    let kind = match last.kind() {
        io::ErrorKind::ConnectionRefused => RefusalKind::Closed,
        io::ErrorKind::PermissionDenied => RefusalKind::Forbidden,
        io::ErrorKind::TimedOut => RefusalKind::TimedOut,
        _ => RefusalKind::Unreachable,
    };
    Err(Refusal::new(kind, format!("the host could not be reached: {last}")))
}

/// Reports whether this process listens on a port: its own server takes this process for the user.
async fn is_own(port: u16) -> bool {
    // Without an answer the port counts as our own.
    tokio::task::spawn_blocking(move || listens(port)).await.unwrap_or(Ok(true)).unwrap_or(true)
}

fn listens(port: u16) -> io::Result<bool> {
    let own = own_sockets()?;
    // A socket at any address counts.
    let every = [Ipv4Addr::LOCALHOST.into(), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    for address in every {
        let found = listeners(SocketAddr::new(address, port))?;
        if found.iter().any(|number| own.contains(number)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The numbers of the sockets of this process.
pub(super) fn own_sockets() -> io::Result<Vec<u64>> {
    sockets_in(Path::new("/proc/self/fd"))
}

/// The numbers of the sockets in a directory with the descriptors of a process.
pub(super) fn sockets_in(descriptors: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(descriptors)? {
        // The descriptor of the directory itself is gone by now.
        let Ok(link) = std::fs::read_link(entry?.path()) else { continue };
        let link = link.to_string_lossy();
        let number = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        found.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Mutex;

    use codewright_tools::{Sent, WebAnswer, WebRequest};
    use url::Url;

    use super::*;

    /// A resolver with one answer for each question.
    struct Answers(Mutex<Vec<Vec<&'static str>>>);

    impl Web for Answers {
        fn has_proxy(&self, _url: &Url) -> bool {
            false
        }

        fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> Sent<'a, Vec<SocketAddr>> {
            let answer = self.0.lock().unwrap().remove(0);
            // The port of a resolver has no meaning.
            let at = |address: &str| SocketAddr::new(address.parse::<IpAddr>().unwrap(), 1);
            Box::pin(async move { Ok(answer.into_iter().map(at).collect()) })
        }

        fn send<'a>(&'a self, _request: &'a WebRequest) -> Sent<'a, WebAnswer> {
            Box::pin(async { Err(WebError::Unreachable(String::new())) })
        }
    }

    #[tokio::test]
    async fn a_name_is_resolved_once_and_its_addresses_are_judged() {
        for (answer, expected) in [
            (vec!["8.8.8.8", "2606:4700::1111"], true),
            (vec!["64:ff9b::808:808"], true),
            (vec!["127.0.0.1"], false),
            (vec!["8.8.8.8", "10.0.0.1"], false),
            (vec!["169.254.169.254"], false),
            (vec!["::ffff:127.0.0.1"], false),
            (vec!["64:ff9b::7f00:1"], false),
            (vec!["fe80::1"], false),
            (vec!["0.0.0.0"], false),
        ] {
            // A second question would get a private address.
            let web = Answers(Mutex::new(vec![answer.clone(), vec!["127.0.0.1"]]));
            let target = Target::new("rebinding.test", 443).unwrap();
            let found = addresses(&web, &target, Reach::Internet).await.unwrap();
            assert_eq!(found.is_some(), expected, "{answer:?}");
            assert!(found.into_iter().flatten().all(|address| address.port() == 443));
            assert_eq!(web.0.lock().unwrap().len(), 1, "one question");
            let web = Answers(Mutex::new(vec![answer.clone()]));
            assert!(addresses(&web, &target, Reach::Anywhere).await.unwrap().is_some());
        }
        let web = Answers(Mutex::new(vec![Vec::new()]));
        let refused = addresses(&web, &Target::new("empty.test", 1).unwrap(), Reach::Internet).await;
        assert_eq!(refused.unwrap_err().kind, RefusalKind::Unreachable);
    }

    #[tokio::test]
    async fn addresses_are_not_resolved() {
        let web = Answers(Mutex::default());
        for target in ["localhost:80", "a.localhost:80", "127.0.0.1:80"] {
            let target = Target::of_authority(target, None).unwrap();
            assert_eq!(addresses(&web, &target, Reach::Internet).await, Ok(None));
            assert!(addresses(&web, &target, Reach::Anywhere).await.unwrap().is_some());
        }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn the_own_server_is_not_reached() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            assert!(listens(address.port()).unwrap());
            let target = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port());
            let refused = connect(&[target]).await.err().unwrap();
            assert_eq!(refused.kind, RefusalKind::Forbidden);
            drop(listener);
            assert!(!listens(address.port()).unwrap());
            assert_eq!(connect(&[target]).await.err().unwrap().kind, RefusalKind::Closed);
        }
    }
}
