//! Connections that try to lock other clients out.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::super::case::Case;
use super::super::repositories::OTHER_USER;
use super::{requests, served};

/// Returns the cases.
pub(super) fn floods() -> Vec<Case> {
    /// More connections than a server accepts.
    const MANY: usize = 1100;
    let flood = |name: &str, request: &'static str| {
        requests(&format!("flood/{name}")).play(move |scene| {
            served(scene, |wire| {
                let request = request.replace("ADDRESS", &wire.address);
                let mut connections = Vec::new();
                for _ in 0..MANY {
                    let Ok(mut stream) = wire.connect() else { break };
                    // The server may close the connection.
                    stream.write_all(request.as_bytes()).unwrap_or_default();
                    connections.push(stream);
                }
                let begun = Instant::now();
                let health = wire.bytes(
                    format!("GET /global/health HTTP/1.0\r\nHost: {}\r\n\r\n", wire.address).as_bytes(),
                    Duration::from_secs(5),
                )?;
                ensure!(
                    health.status == 200,
                    "with {} connections open a request was answered {} after {:?}",
                    connections.len(),
                    health.status,
                    begun.elapsed()
                );
                Ok(())
            })
        })
    };
    vec![
        flood("event-streams", "GET /event HTTP/1.1\r\nHost: ADDRESS\r\n\r\n"),
        flood("silent", ""),
        flood("half-heads", "GET /config HTTP/1.1\r\nHost: "),
        flood("kept-open", "GET /global/health HTTP/1.1\r\nHost: ADDRESS\r\n\r\n"),
        flood("half-bodies", "POST /session HTTP/1.1\r\nHost: ADDRESS\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"),
        requests("flood/another-user").root().play(|scene| {
            served(scene, |wire| {
                let (host, port) = wire.address.split_once(':').context("no port")?;
                // As many open connections as the shell may have files.
                let script = format!(
                    "ulimit -n 4096; i=10; while [ $i -lt 1200 ]; do eval \"exec $i<>/dev/tcp/{host}/{port}\" || break; \
                     printf 'GET /event HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&$i; i=$((i+1)); done; \
                     echo ready; sleep 20"
                );
                let run = crate::Run::new("/bin/bash", &scene.project).args(["-c", &script]).directory("/").user(OTHER_USER);
                let mut holder = run.deadline(Duration::from_secs(8)).start()?;
                drop(holder.line_that(|line| line == "ready"));
                let answer = wire.bytes(
                    format!("GET /global/health HTTP/1.0\r\nHost: {}\r\n\r\n", wire.address).as_bytes(),
                    Duration::from_secs(5),
                )?;
                ensure!(answer.status == 200, "another user's connections lock the owner out: {}", answer.status);
                Ok(())
            })
        }),
    ]
}
