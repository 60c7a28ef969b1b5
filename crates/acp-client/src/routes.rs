//! The prompts that run, and the messages of the agent that belong to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    RequestPermissionRequest, SessionNotification, TerminalOutputRequest, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::host::Host;
use crate::peer::{METHOD_NOT_FOUND, Responder, Route, RpcError};
use crate::turn::Event;

/// A request of the agent during a prompt.
#[derive(Debug)]
pub enum Request {
    Permission(Box<RequestPermissionRequest>),
    ReadTextFile(Box<ReadTextFileRequest>),
    WriteTextFile(Box<WriteTextFileRequest>),
    CreateTerminal(Box<CreateTerminalRequest>),
    TerminalOutput(TerminalOutputRequest),
    WaitForTerminalExit(WaitForTerminalExitRequest),
    KillTerminal(KillTerminalRequest),
    ReleaseTerminal(ReleaseTerminalRequest),
}

/// The prompts of one agent that run.
pub(crate) struct Routes {
    agent: String,
    host: Arc<dyn Host>,
    turns: Mutex<HashMap<String, mpsc::Sender<Event>>>,
}

impl Routes {
    pub(crate) fn new(agent: &str, host: Arc<dyn Host>) -> Self {
        Self { agent: agent.to_owned(), host, turns: Mutex::default() }
    }

    /// Sends the messages about a session to the owner of its prompt.
    pub(crate) fn open(&self, session: &str, events: mpsc::Sender<Event>) {
        self.turns().insert(session.to_owned(), events);
    }

    /// Ignores messages about a session from now on.
    pub(crate) fn close(&self, session: &str) {
        self.turns().remove(session);
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Event>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, session: &Value) -> Option<mpsc::Sender<Event>> {
        self.turns().get(session.as_str()?).cloned()
    }
}

impl Route for Routes {
    /// Updates without a running prompt, such as those after a cancelled one, are ignored.
    async fn notified(&self, method: &str, params: Value) {
        if method != "session/update" {
            return;
        }
        let Some(turn) = self.turn(&params["sessionId"]) else { return };
        // An update of an unknown kind is ignored.
        let Ok(update) = serde_json::from_value::<SessionNotification>(params) else { return };
        // If this fails, the prompt has ended.
        drop(turn.send(Event::Update(Box::new(update.update))).await);
    }

    async fn requested(&self, method: &str, params: Value, responder: Responder) {
        let turn = self.turn(&params["sessionId"]);
        let request = match request(method, params) {
            Ok(request) => request,
            Err(error) => return responder.respond(Err(error)).await,
        };
        let Some(turn) = turn else {
            let error = RpcError::invalid("there is no running prompt in this session");
            return responder.respond(Err(error)).await;
        };
        // If this fails, the prompt has ended, and the request is answered by being dropped.
        drop(turn.send(Event::Request(request, responder)).await);
    }

    fn log(&self, text: &str) {
        self.host.log(&self.agent, text);
    }
}

fn request(method: &str, params: Value) -> Result<Request, RpcError> {
    fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
        serde_json::from_value(params).map_err(|error| RpcError::invalid(error.to_string()))
    }
    Ok(match method {
        "session/request_permission" => Request::Permission(read(params)?),
        "fs/read_text_file" => Request::ReadTextFile(read(params)?),
        "fs/write_text_file" => Request::WriteTextFile(read(params)?),
        "terminal/create" => Request::CreateTerminal(read(params)?),
        "terminal/output" => Request::TerminalOutput(read(params)?),
        "terminal/wait_for_exit" => Request::WaitForTerminalExit(read(params)?),
        "terminal/kill" => Request::KillTerminal(read(params)?),
        "terminal/release" => Request::ReleaseTerminal(read(params)?),
        _ => {
            let message = format!("there is no method `{}`", method.escape_debug());
            return Err(RpcError { code: METHOD_NOT_FOUND, message });
        }
    })
}
