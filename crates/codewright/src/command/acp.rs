//! `acp`: serves an editor over the standard streams with the Agent Client Protocol.
//!
//! The command is an API client of an engine in this process, so sessions of an editor are sessions of every other
//! client too. Standard output belongs to the protocol; everything else is printed on standard error.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use codewright_acp::{Documents, EditorFiles, Identity};
use codewright_config::Env;
use codewright_engine::Engine;
use codewright_proto::SessionId;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::STACK_BYTES;
use super::serve::SideListener;
use crate::cli::AcpArgs;
use crate::connection::{Connection, VERSION, interrupted, working_directory};
use crate::style;

/// The number of worker threads. Two, so that a long answer does not delay the requests of other sessions.
const THREADS: usize = 2;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

pub(crate) fn main(args: AcpArgs) -> anyhow::Result<ExitCode> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(THREADS).thread_stack_size(STACK_BYTES).enable_all().build()?;
    let code = runtime.block_on(serve(args));
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    code
}

async fn serve(args: AcpArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let listener = SideListener::open(&args.listen, &env).await?;
    let connection = Connection::local(env, &working_directory(args.cwd.as_deref())?).await?;
    connection.configure(&args.common);
    let beside = listener.zip(connection.engine()).map(|(listener, engine)| listener.serve(engine));
    for note in beside.iter().flat_map(|beside| &beside.notes) {
        style::note(note);
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let identity = Identity { version: VERSION, sign_in: "codewright providers login" };
    let documents = connection.engine().map(|engine| {
        let documents = EngineDocuments { engine: engine.clone(), runtime: Handle::current() };
        Arc::new(documents) as Arc<dyn Documents>
    });
    let (client, input, output) = (connection.client.clone(), tokio::io::stdin(), tokio::io::stdout());
    let served = codewright_acp::serve(client, identity, documents, input, output);
    let code = tokio::select! {
        ended = served => match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                style::warning(&format!("the connection to the editor ended: {error}"));
                ExitCode::FAILURE
            }
        },
        _ = interrupt.recv() => interrupted(SIGINT),
        _ = terminate.recv() => interrupted(SIGTERM),
    };
    if let Some(beside) = beside {
        beside.close().await;
    }
    connection.close().await;
    Ok(code)
}

/// Gives the tools of a session the files of its editor.
struct EngineDocuments {
    engine: Engine,
    runtime: Handle,
}

impl Documents for EngineDocuments {
    fn opened(&self, session: &SessionId, files: EditorFiles) {
        let files = BlockingFiles { files, runtime: self.runtime.clone() };
        self.engine.set_documents(session, Some(Arc::new(files)));
    }

    fn closed(&self, session: &SessionId) {
        self.engine.set_documents(session, None);
    }
}

/// The files of an editor for the threads on which tools read and write.
#[derive(Debug)]
struct BlockingFiles {
    files: EditorFiles,
    runtime: Handle,
}

impl codewright_engine::Documents for BlockingFiles {
    fn read(&self, path: &Path) -> Option<String> {
        self.runtime.block_on(self.files.read(path))
    }

    fn write(&self, path: &Path, text: &str) -> bool {
        self.runtime.block_on(self.files.write(path, text))
    }
}
