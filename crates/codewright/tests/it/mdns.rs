//! The announcement of a server in the local network.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use codewright_testkit::Script;
use mdns_sd::{Receiver, ResolvedService, ServiceDaemon, ServiceEvent};

use crate::support::{DEADLINE, Stage, check_code, check_has, program, serve, wait_until};

/// Fails unless multicast messages are received on this machine.
fn has_multicast() -> Result<()> {
    let group = Ipv4Addr::new(239, 255, 42, 99);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.send_to(b"here", (group, socket.local_addr()?.port()))?;
    socket.recv(&mut [0; 4])?;
    Ok(())
}

fn until<T>(heard: &Receiver<ServiceEvent>, mut wanted: impl FnMut(ServiceEvent) -> Option<T>) -> Result<T> {
    let end = Instant::now() + DEADLINE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let event = heard.recv_timeout(left).context("nothing of the kind was heard")?;
        if let Some(found) = wanted(event) {
            return Ok(found);
        }
    }
}

fn resolved(name: &str, event: ServiceEvent) -> Option<Box<ResolvedService>> {
    match event {
        ServiceEvent::ServiceResolved(service) if service.get_fullname() == name => Some(service),
        _ => None,
    }
}

#[test]
fn a_server_is_announced_while_it_runs() -> Result<()> {
    if let Err(why) = has_multicast() {
        // Announcements can only be received by multicast.
        eprintln!("skipped: this machine has no multicast ({why:#})");
        return Ok(());
    }
    let stage = Stage::plain(Script::new())?;
    let domain = format!("codewright-{}.local", std::process::id());
    let listener = ServiceDaemon::new()?;
    let heard = listener.browse("_http._tcp.local.")?;
    let run = program(&stage.project, ["serve", "--mdns", "--mdns-domain", &domain]);
    let (server, url) = serve(run.env("OPENCODE_SERVER_PASSWORD", "secret"))?;
    let port: u16 = url.strip_prefix("http://0.0.0.0:").context(url.clone())?.parse()?;
    let name = format!("opencode-{port}._http._tcp.local.");
    let service = until(&heard, |event| resolved(&name, event))?;
    assert_eq!((service.get_hostname(), service.get_port()), (format!("{domain}.").as_str(), port));
    assert_eq!(service.get_property_val_str("path"), Some("/"));
    assert!(service.get_addresses().iter().all(mdns_sd::ScopedIp::is_ipv4), "{service:?}");
    server.terminate()?;
    check_code(&server.finish()?, 0);
    until(&heard, |event| match event {
        ServiceEvent::ServiceRemoved(_, gone) if gone == name => Some(()),
        _ => None,
    })?;
    if listener.shutdown().is_err() {
        bail!("the listener cannot be ended");
    }
    Ok(())
}

#[test]
fn a_server_without_a_password_or_on_loopback_is_not_announced() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let done = program(&stage.project, ["serve", "--mdns"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["0.0.0.0", "without a password", "--mdns", "OPENCODE_SERVER_PASSWORD"]);
    let (server, url) = serve(program(&stage.project, ["serve", "--mdns", "--hostname", "127.0.0.1"]))?;
    check_has(&url, &["http://127.0.0.1:"]);
    // Standard error is a separate pipe.
    let local = "only be reached from this machine: the server is not announced";
    wait_until("the reason", || server.so_far().contains(local))?;
    let run = program(&stage.project, ["serve", "--port", "0", "--mdns", "--mdns-domain", "two words"]);
    let (server, _) = serve(run.env("OPENCODE_SERVER_PASSWORD", "secret"))?;
    wait_until("the reason", || server.so_far().contains("ends with `.local`"))?;
    check_has(&server.so_far(), &["is not announced: `two words`"]);
    Ok(())
}
