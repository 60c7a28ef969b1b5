//! A relay of TCP connections that can stall, like a network that loses everything.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A relay in front of an address. Its connections end when it is dropped.
pub(super) struct Relay {
    address: SocketAddr,
    stalled: watch::Sender<bool>,
    _task: JoinSet<()>,
}

impl Relay {
    /// Relays connections of this machine to an address.
    pub(super) async fn start(target: SocketAddr) -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, target).await
    }

    /// Relays connections to an address of this machine.
    pub(super) async fn start_at(address: Ipv4Addr, target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let (stalled, is_stalled) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                connections.spawn(carry(client, target, is_stalled.clone()));
            }
        });
        Ok(Self { address, stalled, _task: task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops or continues carrying bytes. Nothing is lost: the bytes arrive late.
    pub(super) fn stall(&self, is_stalled: bool) {
        self.stalled.send_replace(is_stalled);
    }
}

async fn carry(mut client: TcpStream, target: SocketAddr, mut stalled: watch::Receiver<bool>) {
    // The relay is gone if the sender is, and the task with it.
    if stalled.wait_for(|is_stalled| !is_stalled).await.is_err() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let mut copy = std::pin::pin!(tokio::io::copy_bidirectional(&mut client, &mut server));
    loop {
        tokio::select! {
            changed = stalled.wait_for(|is_stalled| *is_stalled) => {
                if changed.is_err() {
                    return;
                }
            }
            // Both ends see that the connection is closed.
            _ = &mut copy => return,
        }
        if stalled.wait_for(|is_stalled| !is_stalled).await.is_err() {
            return;
        }
    }
}
