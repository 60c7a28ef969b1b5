//! Runs the command of one hook.

use std::path::PathBuf;
use std::time::Duration;

use codewright_workspace::{Author, Command, Confinement, connect};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

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
    pub(super) sandbox: Option<std::sync::Arc<codewright_workspace::Confined>>,
    pub(super) deadline: Duration,
}

/// Runs a hook to its end. All its processes end with it, with the deadline and with a dropped future.
pub(super) async fn run(start: Start, input: &[u8]) -> HookEnd {
    let seconds = start.deadline.as_secs_f64();
    let command = Command {
        program: "/bin/sh".into(),
        args: ["-c", WRAPPER, "hook", &start.command].map(Into::into).into(),
        directory: start.directory,
        env: start.env,
        env_remove: start.env_remove,
        confinement: start.confinement,
        sandbox: start.sandbox,
        author: Author::Model,
    };
    let (mut connected, peer, mut errors) = match connect(&command) {
        Ok(connected) => connected,
        Err(error) => return HookEnd::Failed(error.to_string()),
    };
    let (mut reader, mut writer) = peer.into_split();
    let work = async {
        let write = async {
            // A hook may ignore its input.
            drop(writer.write_all(input).await);
            drop(writer.shutdown().await);
            std::future::pending::<()>().await;
        };
        let (mut said, mut stderr) = (Vec::new(), Vec::new());
        let mut is_flooded = false;
        let code = {
            let read = async { is_flooded = !read_all(&mut reader, &mut said).await };
            let read_errors = read_errors(&mut errors, &mut stderr);
            let wait = async {
                let code = connected.wait().await;
                sleep(DRAIN).await;
                code
            };
            let reading = async { tokio::join!(read, read_errors) };
            let ended = async {
                tokio::pin!(reading, wait);
                tokio::select! {
                    // Both outputs have ended, so only the end of the process is waited for.
                    _ = &mut reading => wait.await,
                    code = &mut wait => code,
                }
            };
            tokio::select! {
                () = write => return Err("it cannot be reached".to_owned()),
                code = ended => code,
            }
        };
        if is_flooded {
            return Err(format!("its output is larger than {} MiB", MAX_OUTPUT_BYTES >> 20));
        }
        let code = code.map_err(|error| error.to_string())?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(HookEnd::Exited { code, stdout: text(said), stderr: text(stderr) })
    };
    let done = timeout(start.deadline, work).await;
    match done {
        Ok(Ok(end)) => end,
        Ok(Err(reason)) => HookEnd::Failed(reason),
        Err(_) => HookEnd::Failed(format!("it did not end within {seconds} seconds")),
    }
}

/// Reads everything. Returns `false` at the limit.
async fn read_all(reader: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> bool {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        match reader.read(&mut chunk).await {
            Ok(count) if count > 0 => into.extend_from_slice(&chunk[..count]),
            // A broken connection ends the output like a closed one.
            Ok(_) | Err(_) => return true,
        }
        if into.len() > MAX_OUTPUT_BYTES {
            return false;
        }
    }
}

/// Reads the error output and keeps its beginning.
async fn read_errors(errors: &mut codewright_workspace::Errors, into: &mut Vec<u8>) {
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
