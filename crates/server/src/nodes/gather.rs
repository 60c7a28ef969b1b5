//! Joins the answers of all servers to a list of what they have in memory.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use codewright_engine::Member;
use futures_util::future::join_all;
use http::header;
use serde_json::Value;
use tokio::time::timeout;

use super::forward::{Outcome, Sent};
use crate::state::App;

/// How long another server may take. Without an answer its items are missing.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The largest list of one server.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Answers a request with the items of all servers. Servers that do not answer in time are left out.
pub(super) async fn everywhere(app: &App, request: Request, next: Next) -> Response {
    let view = app.engine.nodes().view();
    let nodes = app.nodes.as_ref().filter(|nodes| nodes.connected.is_some());
    let (Some(view), Some(nodes)) = (view, nodes) else { return next.run(request).await };
    let is_other = |member: &&Member| member.id != view.members.own && member.address.is_some();
    let others: Vec<_> = view.members.all.iter().filter(is_other).collect();
    if others.is_empty() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let requests = others.into_iter().map(|member| {
        let mut parts = parts.clone();
        let view = &view;
        async move {
            let sent = Sent { parts: &mut parts, body: &Bytes::new(), directory: None, has_deadline: true };
            let answered = async {
                match nodes.forward(app, view, member, sent).await {
                    Outcome::Answered(response) if response.status().is_success() => {
                        read(response.into_body()).await
                    }
                    Outcome::Answered(_) | Outcome::NotReceived | Outcome::Broken(_) => None,
                }
            };
            timeout(TIMEOUT, answered).await.ok().flatten()
        }
    });
    let (own, others) = tokio::join!(next.run(Request::from_parts(parts.clone(), body)), join_all(requests));
    let others: Vec<_> = others.into_iter().flatten().collect();
    let (mut head, body) = own.into_parts();
    let own = if head.status.is_success() { read(body).await } else { None };
    let mut all = own.into_iter().chain(others);
    let Some(mut joined) = all.next() else { return Response::from_parts(head, Body::empty()) };
    all.for_each(|more| join(&mut joined, more));
    head.status = http::StatusCode::OK;
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(joined.to_string()))
}

async fn read(body: Body) -> Option<Value> {
    let bytes = to_bytes(body, MAX_BYTES).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Adds the items of a list, and the entries of an object that are missing.
fn join(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Array(all), Value::Array(more)) => all.extend(more),
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                match all.get_mut(&key) {
                    Some(known) => join(known, value),
                    None => drop(all.insert(key, value)),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_objects_are_joined() {
        let mut all = json!({"data": [1], "a": {"type": "busy"}});
        join(&mut all, json!({"data": [2, 3], "a": {"type": "idle"}, "b": 1}));
        assert_eq!(all, json!({"data": [1, 2, 3], "a": {"type": "busy"}, "b": 1}));
        let mut all = json!([1]);
        join(&mut all, json!({"not": "a list"}));
        assert_eq!(all, json!([1]));
    }
}
