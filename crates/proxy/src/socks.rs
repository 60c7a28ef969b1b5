//! SOCKS version 5, `CONNECT` without authentication.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::time::timeout;

use crate::{Outside, RefusalKind, Target};

/// The first byte of every message.
pub(crate) const VERSION: u8 = 5;
/// The method without authentication.
const NO_AUTHENTICATION: u8 = 0;
/// The answer if the client offers no acceptable method.
const NO_METHOD: u8 = 0xff;
/// The command that opens a connection.
const CONNECT: u8 = 1;

/// The time for a connection of a client that sends nothing more, which may have gone.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// The first byte of a reply's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Granted = 0,
    Failed = 1,
    Forbidden = 2,
    Unreachable = 4,
    Closed = 5,
    TimedOut = 6,
    NoCommand = 7,
    NoAddress = 8,
}

/// Serves a connection whose first byte was read.
pub(crate) async fn serve<S>(mut client: S, outside: &dyn Outside, deadline: Duration) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let target = match timeout(deadline, negotiate(&mut client)).await?? {
        Ok(target) => target,
        Err(reply) => return answer(&mut client, reply).await,
    };
    let (connected, early) = {
        let mut connecting = outside.connect(target);
        let mut early = [0; 1];
        // A reply may take minutes. A client that has gone needs none. One that only has nothing more to send gets an answer
        // that comes soon.
        tokio::select! {
            connected = &mut connecting => (connected, None),
            read = client.read(&mut early) => match read? {
                0 => match timeout(GRACE_PERIOD, connecting).await {
                    Ok(connected) => (connected, None),
                    Err(_) => return Ok(()),
                },
                _ => (connecting.await, Some(early)),
            },
        }
    };
    match connected {
        Ok(mut server) => {
            answer(&mut client, Reply::Granted).await?;
            if let Some(early) = early {
                server.write_all(&early).await?;
            }
            copy_bidirectional(&mut client, &mut server).await.map(drop)
        }
        Err(refusal) => {
            let reply = match refusal.kind {
                RefusalKind::Forbidden => Reply::Forbidden,
                RefusalKind::Unreachable => Reply::Unreachable,
                RefusalKind::Closed => Reply::Closed,
                RefusalKind::TimedOut => Reply::TimedOut,
                RefusalKind::Busy => Reply::Failed,
            };
            answer(&mut client, reply).await
        }
    }
}

/// Reads up to the end of the request and no further, because the bytes after it belong to the target.
async fn negotiate<S>(client: &mut S) -> io::Result<Result<Target, Reply>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let count = client.read_u8().await?;
    let mut methods = vec![0; usize::from(count)];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, reserved, kind] = bytes(client).await?;
    if version != VERSION || reserved != 0 {
        return Ok(Err(Reply::Failed));
    }
    let host = match kind {
        1 => Ipv4Addr::from(bytes::<4, _>(client).await?).to_string(),
        4 => Ipv6Addr::from(bytes::<16, _>(client).await?).to_string(),
        3 => {
            let mut name = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut name).await?;
            // An empty name is not valid.
            String::from_utf8(name).unwrap_or_default()
        }
        _ => return Ok(Err(Reply::NoAddress)),
    };
    let port = client.read_u16().await?;
    if command != CONNECT {
        return Ok(Err(Reply::NoCommand));
    }
    Ok(Target::new(&host, port).map_err(|_| Reply::Failed))
}

async fn bytes<const N: usize, S: AsyncRead + Unpin>(client: &mut S) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Sends a reply. The address of the connection is not stated.
async fn answer<S: AsyncWrite + Unpin>(client: &mut S, reply: Reply) -> io::Result<()> {
    client.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    client.flush().await
}
