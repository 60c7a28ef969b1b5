//! Runs the command of one hook.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codewright_workspace::{
    Author, Command, Confined, Confinement, Connected, Errors, Outlet, Peer, connect,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::HookEnd;

/// The largest output of a hook. A hook that writes more is ended.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// The part of the error output that is kept.
const MAX_ERRORS_BYTES: usize = 64 * 1024;
/// The time for output that was written just before the end.
const DRAIN: Duration = Duration::from_millis(500);
/// Starts the command with pipes. The connection to this program is a socket, and programs cannot open `/dev/stdin` if
/// it is one.
const WRAPPER: &str = "exec 4>&1\n\
    code=$( { cat | { sh -c \"$1\" 3>&- 4>&-; echo $? >&3; } | cat >&4; } 3>&1 )\n\
    exit \"$code\"";

/// A hook that can be started.
pub(super) struct Start {
    pub(super) command: String,
    pub(super) directory: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) env_remove: Vec<String>,
    pub(super) confinement: Confinement,
    pub(super) sandbox: Option<Arc<Confined>>,
    pub(super) deadline: Duration,
}

/// Receives a sentence for each protected file that a hook could not create.
pub(super) type Log = Box<dyn Fn(&str) + Send + Sync>;

/// Runs a hook to its end. All its processes end with it, with the deadline and with a dropped future. What the sandbox
/// refused is reported in every case, so the work is a task of its own.
pub(super) async fn run(start: Start, input: Arc<Vec<u8>>, tasks: &TaskTracker, log: Log) -> HookEnd {
    let aborted = CancellationToken::new();
    let _guard = aborted.clone().drop_guard();
    let task = tasks.spawn(async move { run_task(start, &input, &aborted, &*log).await });
    task.await.unwrap_or_else(|error| HookEnd::Failed(error.to_string()))
}

async fn run_task(
    start: Start,
    input: &[u8],
    aborted: &CancellationToken,
    log: &(dyn Fn(&str) + Send + Sync),
) -> HookEnd {
    let (deadline, seconds) = (start.deadline, start.deadline.as_secs_f64());
    let (mut connected, peer, errors) = match connect(&command(start), Outlet::Connection) {
        Ok(connected) => connected,
        Err(error) => return HookEnd::Failed(error.to_string()),
    };
    let work = timeout(deadline, converse(&mut connected, peer, errors, input, log));
    let reason = match aborted.run_until_cancelled(work).await {
        Some(Ok(Ok(end))) => return end,
        Some(Ok(Err(reason))) => reason,
        Some(Err(_)) => format!("it did not end within {seconds} seconds"),
        None => "it was aborted".to_owned(),
    };
    connected.end(Duration::ZERO, log).await;
    HookEnd::Failed(reason)
}

fn command(start: Start) -> Command {
    Command {
        program: "/bin/sh".into(),
        args: ["-c", WRAPPER, "hook", &start.command].map(Into::into).into(),
        directory: start.directory,
        env: start.env,
        env_remove: start.env_remove,
        confinement: start.confinement,
        sandbox: start.sandbox,
        author: Author::Model,
    }
}

/// Sends the input, reads the outputs and waits for the end.
async fn converse(
    connected: &mut Connected,
    peer: Peer,
    mut errors: Errors,
    input: &[u8],
    log: &(dyn Fn(&str) + Send + Sync),
) -> Result<HookEnd, String> {
    let (mut reader, mut writer) = peer.into_split();
    let write = async {
        // A hook may ignore its input.
        drop(writer.write_all(input).await);
        drop(writer.shutdown().await);
        std::future::pending::<()>().await;
    };
    let (mut said, mut stderr) = (Vec::new(), Vec::new());
    let code = {
        let read = read_all(&mut reader, &mut said);
        let read_errors = async {
            read_errors(&mut errors, &mut stderr).await;
            Ok(())
        };
        let reading = async { tokio::try_join!(read, read_errors) };
        let wait = async {
            let code = connected.wait(log).await;
            sleep(DRAIN).await;
            code
        };
        let ended = async {
            tokio::pin!(reading, wait);
            tokio::select! {
                // Both outputs have ended, so only the end of the process is waited for.
                read = &mut reading => {
                    read?;
                    Ok::<_, String>(wait.await)
                }
                code = &mut wait => Ok(code),
            }
        };
        tokio::select! {
            () = write => return Err("it cannot be reached".to_owned()),
            code = ended => code?,
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(HookEnd::Exited { code, stdout: text(said), stderr: text(stderr) })
}

/// Reads everything. Fails at the limit.
async fn read_all(reader: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> Result<(), String> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        match reader.read(&mut chunk).await {
            Ok(count) if count > 0 => into.extend_from_slice(&chunk[..count]),
            // A broken connection ends the output like a closed one.
            Ok(_) | Err(_) => return Ok(()),
        }
        if into.len() > MAX_OUTPUT_BYTES {
            return Err(format!("its output is larger than {} MiB", MAX_OUTPUT_BYTES >> 20));
        }
    }
}

/// Reads the error output and keeps its beginning.
async fn read_errors(errors: &mut Errors, into: &mut Vec<u8>) {
    let mut chunk = vec![0; 4096];
    loop {
        let count = errors.read(&mut chunk).await;
        if count == 0 {
            return;
        }
        let room = MAX_ERRORS_BYTES.saturating_sub(into.len());
        into.extend_from_slice(&chunk[..count.min(room)]);
    }
}
