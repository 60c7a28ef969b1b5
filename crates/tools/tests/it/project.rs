//! A temporary project and calls of tools in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use codewright_tools::{AnyTool, Ask, Judged, Output, Progress, Setup, ToolCx, ToolError, builtin};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// The progress of running calls.
pub(crate) type Shown = Arc<Mutex<Vec<Map<String, Value>>>>;

/// A temporary directory `proj`.
pub(crate) struct Project {
    _outer: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) cx: ToolCx,
    pub(crate) shown: Shown,
}

impl Project {
    pub(crate) fn new() -> Self {
        let outer = TempDir::new().expect("a directory");
        let outside = outer.path().canonicalize().expect("exists");
        let root = outside.join("proj");
        std::fs::create_dir(&root).expect("made");
        let shown = Shown::default();
        let (sink, next) = (Arc::clone(&shown), AtomicUsize::new(1));
        let cx = ToolCx {
            home: Some(outside.join("home")),
            new_output_id: Arc::new(move || format!("tool_{}", next.fetch_add(1, Ordering::Relaxed))),
            progress: Progress::new(move |metadata, _| sink.lock().expect("lock").push(metadata)),
            can_delegate: true,
            ..ToolCx::alone(&root, &outside.join("output"))
        };
        Self { _outer: outer, root, cx, shown }
    }

    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, content).expect("written");
        path
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).expect("read")
    }

    /// Replaces `$P` in a table by the project's directory.
    pub(crate) fn at(&self, text: &str) -> String {
        text.replace("$P", self.root.to_str().expect("UTF-8"))
    }

    pub(crate) fn input(&self, input: &Value) -> Value {
        serde_json::from_str(&self.at(&input.to_string())).expect("JSON")
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<Output, ToolError> {
        let tool = tool_named(tool);
        tool.run(self.input(&input), &self.fresh()).await
    }

    pub(crate) async fn asks(&self, tool: &str, input: Value) -> Result<Vec<Ask>, ToolError> {
        let tool = tool_named(tool);
        tool.asks(&self.input(&input), &self.fresh()).await
    }

    /// The context of a new call.
    pub(crate) fn fresh(&self) -> ToolCx {
        ToolCx { judged: Judged::default(), ..self.cx.clone() }
    }

    /// Runs a call that must fail and returns its error.
    pub(crate) async fn error(&self, tool: &str, input: Value) -> String {
        match self.call(tool, input).await {
            Ok(output) => panic!("expected an error, got {}", output.output),
            Err(error) => self.plain(&error.to_string()),
        }
    }

    /// Replaces the project's directory in an output by `$P`.
    pub(crate) fn plain(&self, output: &str) -> String {
        output.replace(self.root.to_str().expect("UTF-8"), "$P")
    }
}

/// The built-in tool of that name.
pub(crate) fn tool_named(name: &str) -> Arc<dyn AnyTool> {
    let tools = builtin(&Setup { has_background_tasks: false, ..Setup::everything(2026) });
    tools.into_iter().find(|tool| tool.name() == name).expect("a tool")
}

pub(crate) fn is_outside(ask: &Ask, directory: &Path) -> bool {
    ask.permission == "external_directory" && ask.patterns == [format!("{}/*", directory.display())]
}
