//! Carries signals, which are not stored, to the other servers.
//!
//! Each server reads the signals of every other one as lines of JSON. So a client sees the deltas of a text, the status of a
//! session and questions wherever it is connected. Stored events come from the database and are not sent here.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse as _, Response};
use codewright_engine::{Member, NodeView, Published};
use codewright_proto::{EventId, Signal};
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderMap, Method, Uri};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::sign::Unsigned;
use super::{HEADER, Nodes, OfNode};
use crate::Error;
use crate::serve::Closing;
use crate::state::App;

/// The path of the stream.
pub(crate) const PATH: &str = "/global/node/signals";
/// The time between two signs of life.
const BEAT: Duration = Duration::from_secs(5);
/// The longest silence of another server.
const SILENCE: Duration = Duration::from_secs(15);
/// The longest line: a signal of a client may be as long as a request.
const MAX_LINE_BYTES: usize = 34 * 1024 * 1024;
/// How often the list of the other servers is compared with the connections.
const EVERY: Duration = Duration::from_secs(1);
/// The pause before another attempt to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// A line of the stream. The JSON of a signal has no directory, because clients get it beside the signal.
#[derive(Serialize, Deserialize)]
struct Line<S> {
    id: EventId,
    /// Empty if the signal names no directory, or comes from a version without the field.
    #[serde(default)]
    directory: String,
    signal: S,
}

/// Streams the signals of this server to another one.
pub(crate) async fn read(
    State(app): State<App>,
    closing: Option<Extension<Closing>>,
    request: Request,
) -> Response {
    if request.extensions().get::<OfNode>().is_none() {
        return Error::Unauthorized.into_response();
    }
    let subscription = app.engine.events().subscribe();
    let closing = Closing::token(closing);
    let lines =
        stream::unfold((subscription, interval(BEAT), closing), |(mut from, mut beat, closing)| async move {
            loop {
                let published = tokio::select! {
                    () = closing.cancelled() => return None,
                    _ = beat.tick() => return Some((Bytes::from_static(b"\n"), (from, beat, closing))),
                    published = from.next() => published.ok()?,
                };
                if let Some(line) = line(&published) {
                    return Some((line, (from, beat, closing)));
                }
            }
        });
    Response::new(Body::from_stream(lines.map(Ok::<_, Infallible>)))
}

/// Returns the line of a signal of this server that interests clients of others.
fn line(published: &Published) -> Option<Bytes> {
    let Published::Signal { id, signal, is_from_elsewhere: false } = published else { return None };
    let is_own = matches!(
        **signal,
        Signal::ServerConnected {}
            | Signal::ServerHeartbeat {}
            | Signal::InstanceDisposed { .. }
            | Signal::GlobalDisposed {}
            | Signal::CatalogUpdated { .. }
            | Signal::IntegrationUpdated { .. }
            | Signal::IntegrationConnectionUpdated { .. }
    );
    if is_own {
        return None;
    }
    let directory = signal.directory().unwrap_or_default().to_owned();
    let mut text = serde_json::to_vec(&Line { id: id.clone(), directory, signal: &**signal }).ok()?;
    text.push(b'\n');
    Some(text.into())
}

/// Reads the signals of all other servers until the router is dropped or `cancel`.
pub(crate) async fn follow(app: App, cancel: CancellationToken) {
    let mut readers: HashMap<String, CancellationToken> = HashMap::new();
    let mut tasks = JoinSet::new();
    let work = async {
        loop {
            while tasks.try_join_next().is_some() {}
            if let Some(view) = app.engine.nodes().view() {
                let others = |member: &&Member| member.id != view.members.own && member.address.is_some();
                let others: Vec<_> = view.members.all.iter().filter(others).cloned().collect();
                readers.retain(|id, reader| {
                    let is_there = others.iter().any(|member| member.id == *id);
                    if !is_there {
                        reader.cancel();
                    }
                    is_there
                });
                for member in others {
                    if readers.contains_key(&member.id) {
                        continue;
                    }
                    let token = CancellationToken::new();
                    readers.insert(member.id.clone(), token.clone());
                    let app = app.clone();
                    tasks.spawn(async move {
                        token.run_until_cancelled(listen(&app, &member)).await;
                    });
                }
            }
            sleep(EVERY).await;
        }
    };
    let _: Option<()> = cancel.run_until_cancelled(work).await;
}

/// Reads the signals of one server, again after a lost connection.
async fn listen(app: &App, member: &Member) {
    loop {
        if let Some(view) = app.engine.nodes().view()
            && let Some(nodes) = &app.nodes
        {
            // A lost connection is opened again.
            let _: Option<()> = receive(app, nodes, &view, member).await;
        }
        sleep(PAUSE).await;
    }
}

/// Publishes the signals of a server until the connection ends.
async fn receive(app: &App, nodes: &Nodes, view: &NodeView, member: &Member) -> Option<()> {
    let (connected, address) = (nodes.connected.as_ref()?, member.address.as_ref()?);
    let (method, uri, headers) = (Method::GET, Uri::from_static(PATH), HeaderMap::new());
    let unsigned = Unsigned { method: &method, uri: &uri, headers: &headers, to: &member.id, body: b"" };
    let signature = connected.secret.sign(&unsigned, view)?;
    let sending = connected.client.get(format!("{address}{PATH}")).header(HEADER, signature).send();
    let answer = timeout(SILENCE, sending).await.ok()?.ok()?.error_for_status().ok()?;
    let mut pieces = answer.bytes_stream();
    let mut text = Vec::new();
    loop {
        let piece = timeout(SILENCE, pieces.next()).await.ok()??.ok()?;
        text.extend_from_slice(&piece);
        if text.len() > MAX_LINE_BYTES {
            return None;
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let rest = text.split_off(end + 1);
            let line = std::mem::replace(&mut text, rest);
            // Empty lines are signs of life. Another version may have signals that are not known here.
            if let Ok(Line { id, directory, signal }) = serde_json::from_slice::<Line<Signal>>(&line) {
                app.engine.nodes().publish(id, signal.in_directory(directory));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// One signal of each kind that names a directory and reaches other servers.
    fn with_directories() -> Vec<Signal> {
        let kinds = [
            r#"{"type":"tui.prompt.append","properties":{"text":"x"}}"#,
            r#"{"type":"tui.command.execute","properties":{"command":"x"}}"#,
            r#"{"type":"tui.toast.show","properties":{"message":"x","variant":"info"}}"#,
            r#"{"type":"file.edited","properties":{"file":"/d/x"}}"#,
            r#"{"type":"file.watcher.updated","properties":{"file":"/d/x","event":"add"}}"#,
            r#"{"type":"vcs.branch.updated","properties":{"branch":"x"}}"#,
            r#"{"type":"worktree.ready","properties":{"name":"x"}}"#,
            r#"{"type":"worktree.failed","properties":{"message":"x"}}"#,
            r#"{"type":"lsp.updated","properties":{}}"#,
            r#"{"type":"lsp.client.diagnostics","properties":{"serverID":"x","path":"/d/x"}}"#,
            r#"{"type":"mcp.tools.changed","properties":{"server":"x"}}"#,
            r#"{"type":"mcp.browser.open.failed","properties":{"mcpName":"x","url":"http://x"}}"#,
        ];
        let parse = |text: &&str| {
            serde_json::from_str::<Signal>(text).unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        kinds.iter().map(parse).collect()
    }

    #[test]
    fn a_signal_keeps_its_directory_on_the_way_to_another_server() {
        let id = codewright_proto::Ids::new(codewright_proto::Clock::system()).event();
        for signal in with_directories() {
            assert_eq!(signal.directory(), Some(""), "{signal:?}");
            let signal = signal.in_directory("/d".to_owned());
            let sent = Published::Signal {
                id: id.clone(),
                signal: Arc::new(signal.clone()),
                is_from_elsewhere: false,
            };
            let sent = line(&sent).unwrap_or_else(|| panic!("{signal:?} is not sent"));
            let Line { directory, signal: read, .. } = serde_json::from_slice::<Line<Signal>>(&sent)
                .unwrap_or_else(|error| panic!("{signal:?}: {error}"));
            assert_eq!(read.in_directory(directory).directory(), Some("/d"), "{signal:?}");
        }
    }
}
