//! Sign-ins of the user to MCP servers.
//!
//! A sign-in waits in its own task for the browser or for a text that the user pastes. It then stores the tokens and connects
//! the server again. Each server has at most one.

use std::sync::Arc;
use std::time::Duration;

use codewright_llm::oauth::{Loopback, RedirectResult};
use codewright_mcp::auth::{Pending, SignInRequest, begin};
use codewright_mcp::{Config, Kind, OAuth, Remote, Servers};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use url::Url;

use super::host;
use super::pending::SignIn;
use super::tokens::blocking;
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;

/// The time in which the user must sign in.
const LIFE: Duration = Duration::from_secs(15 * 60);
/// The port and path of OpenCode's callback, which users have registered at their servers.
const CALLBACK: &str = "http://127.0.0.1:19876/mcp/oauth/callback";
/// The callback at any free port.
const ANY_CALLBACK: &str = "http://127.0.0.1:0/mcp/oauth/callback";

/// Returns the remote server with this name if it can have a sign-in. Returns `None` if the server is unknown.
pub(crate) fn remote(servers: &Servers, name: &str) -> Option<Option<Remote>> {
    let config = servers.config(name)?;
    let Ok(Config { kind: Kind::Remote(remote), .. }) = config else { return Some(None) };
    Some(Some(remote).filter(|remote| remote.oauth != OAuth::Off))
}

/// Begins a sign-in.
pub(crate) async fn start(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    name: &str,
) -> Result<Arc<SignIn>, Error> {
    let servers = host::opened(inner, instance);
    let Some(Some(remote)) = remote(&servers, name) else {
        return Err(Error::invalid(format!("the MCP server `{name}` has no sign-in")));
    };
    inner.mcp.sign_ins.cancel(&instance.directory, name).await;
    let loopback = listen(&remote).await?;
    let challenge = servers.challenge(name);
    let request = SignInRequest {
        remote: &remote,
        challenge: challenge.as_deref(),
        redirect: &loopback.redirect,
        web: inner.mcp.tokens.web(),
    };
    let pending = begin(request).await.map_err(|failure| Error::invalid(failure.to_string()))?;
    let (pasted, receiver) = mpsc::channel(1);
    let (sender, outcome) = watch::channel(None);
    let cancel = inner.cancel.child_token();
    let sign_in = Arc::new(SignIn {
        url: pending.url.clone(),
        state: pending.state.clone(),
        listens: loopback.listens(),
        pasted,
        outcome,
        cancel: cancel.clone(),
    });
    let key = (instance.directory.clone(), name.to_owned());
    // Another request may have begun one meanwhile.
    if let Some(other) = inner.mcp.sign_ins.lock().insert(key, sign_in.clone()) {
        other.cancel.cancel();
    }
    let (inner, name) = (inner.clone(), name.to_owned());
    let tasks = inner.tasks.clone();
    tasks.spawn(async move {
        let waiting = redirect(loopback, &pending.state, receiver);
        let result = match cancel.run_until_cancelled(waiting).await {
            Some(Ok(result)) => complete(&inner, &name, &remote.url, pending, result).await,
            Some(Err(why)) => Err(why),
            None => Err("The sign-in was cancelled.".to_owned()),
        };
        if result.is_ok() {
            // The result is the status of the server.
            servers.connect(&name).await;
        }
        sender.send_replace(Some(result));
    });
    Ok(sign_in)
}

/// Listens for the redirect. If the usual port is in use, another one serves as well, unless the user registered it.
async fn listen(remote: &Remote) -> Result<Loopback, Error> {
    let OAuth::On { client_id, redirect_uri, callback_port, .. } = &remote.oauth else {
        return Err(Error::invalid("`oauth` is `false`"));
    };
    let address = match redirect_uri {
        Some(address) => address.as_str(),
        None => CALLBACK,
    };
    let mut url = Url::parse(address)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some())
        .ok_or_else(|| Error::invalid("`oauth.redirectUri` is not a URL"))?;
    if let Some(port) = callback_port {
        // Every URL with a host has a port.
        let _ = url.set_port(Some(*port));
    }
    let loopback = Loopback::at(&url).await;
    let is_free = redirect_uri.is_none() && callback_port.is_none() && client_id.is_none();
    match Url::parse(ANY_CALLBACK) {
        Ok(any) if is_free && !loopback.listens() => Ok(Loopback::at(&any).await),
        Ok(_) | Err(_) => Ok(loopback),
    }
}

/// Waits for the browser or for the pasted text.
async fn redirect(
    loopback: Loopback,
    state: &str,
    mut pasted: mpsc::Receiver<RedirectResult>,
) -> Result<RedirectResult, String> {
    tokio::select! {
        result = loopback.wait(state) => result.map_err(|error| sentence(&error.to_string())),
        Some(result) = pasted.recv() => Ok(result),
        () = sleep(LIFE) => Err(format!("The sign-in was not completed within {} minutes.", LIFE.as_secs() / 60)),
    }
}

/// Exchanges the code for tokens and stores them.
async fn complete(
    inner: &Arc<Inner>,
    name: &str,
    url: &Url,
    pending: Pending,
    result: RedirectResult,
) -> Result<(), String> {
    let now_ms = inner.clock.now_ms();
    let grant = pending.finish(&result.text, result.issuer.as_deref(), now_ms).await;
    let grant = grant.map_err(|failure| failure.to_string())?;
    let (file, name, url) = (inner.mcp.tokens.file().clone(), name.to_owned(), url.clone());
    blocking(move || file.store(&name, &url, &grant)).await
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}
