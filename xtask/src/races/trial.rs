//! The calls that race with the exchanges: every file tool, and undo.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use codewright_snapshot::{Effect, File, Kind, Options, Respect, Snapshots, Step, TreeId};
use codewright_tools::{AnyTool, Opening, Output, Setup, ToolCx, builtin};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::scene::{Exchanger, MARK, PICTURE, Scene};
use super::shared;

/// The tree without files.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Something that races with exchanges.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) run: fn(&Scene, Opening, &Exchanger) -> Result<Tally>,
}

/// The results of calls.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) exchanges: u64,
    pub(super) calls: u64,
    /// Calls that succeeded.
    pub(super) done: u64,
    /// Calls that ended with an error.
    pub(super) failed: u64,
    /// Calls that needed permission for an outside directory, which nobody gives.
    pub(super) asked: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.calls += other.calls;
        self.done += other.done;
        self.failed += other.failed;
        self.asked += other.asked;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }

    /// Counts the outside bytes in a text.
    fn saw(&mut self, text: &str) {
        self.read_bytes += (text.matches(MARK).count() * MARK.len()) as u64;
    }
}

/// Every subject.
pub(super) const SUBJECTS: &[Subject] = &[
    Subject { name: "read", run: |scene, opening, left| tools(scene, opening, left, &reads()) },
    Subject { name: "write", run: |scene, opening, left| tools(scene, opening, left, &writes()) },
    Subject { name: "edit", run: |scene, opening, left| tools(scene, opening, left, &edits()) },
    Subject { name: "multiedit", run: |scene, opening, left| tools(scene, opening, left, &multiedits()) },
    Subject { name: "apply_patch", run: |scene, opening, left| tools(scene, opening, left, &patches()) },
    Subject { name: "glob", run: |scene, opening, left| tools(scene, opening, left, &globs()) },
    Subject { name: "grep", run: |scene, opening, left| tools(scene, opening, left, &greps()) },
    Subject { name: "list", run: |scene, opening, left| tools(scene, opening, left, &lists()) },
    Subject { name: "undo", run: undo },
    Subject { name: "snapshot", run: snapshot },
    Subject { name: "caches", run: shared::caches },
    Subject { name: "private", run: shared::private },
    Subject { name: "attachments", run: shared::attachments },
    Subject { name: "directories", run: shared::directories },
    Subject { name: "arguments", run: shared::arguments },
];

/// A call that uses names after a check, which must be caught.
pub(super) const CONTROL: Subject = Subject { name: "control", run: shared::by_name };

type Calls = Vec<(&'static str, Value)>;

fn reads() -> Calls {
    ["d/f.txt", "file.txt", "d/deep/g.txt", "d", "d/deep", "d/pic.png"]
        .map(|path| ("read", json!({ "filePath": path })))
        .into()
}

fn writes() -> Calls {
    ["d/f.txt", "file.txt", "d/new/made/w.txt", "d/deep/g.txt", "new/w.txt"]
        .map(|path| ("write", json!({ "filePath": path, "content": "inside one\n" })))
        .into()
}

fn edits() -> Calls {
    let mut calls = Calls::new();
    for path in ["d/f.txt", "file.txt", "d/deep/g.txt"] {
        for (old, new) in [("one", "two"), ("two", "one")] {
            calls.push(("edit", json!({ "filePath": path, "oldString": old, "newString": new })));
        }
    }
    calls
}

fn multiedits() -> Calls {
    let mut calls = Calls::new();
    for path in ["d/f.txt", "file.txt"] {
        for (old, new) in [("one", "two"), ("two", "one")] {
            let edits = json!([{ "oldString": old, "newString": new }]);
            calls.push(("multiedit", json!({ "filePath": path, "edits": edits })));
        }
    }
    calls
}

fn patches() -> Calls {
    let parts = [
        "*** Add File: d/p.txt\n+one\n",
        "*** Update File: d/p.txt\n@@\n-one\n+two\n",
        "*** Update File: d/p.txt\n*** Move to: d/deep/q.txt\n@@\n-two\n+three\n",
        "*** Delete File: d/deep/q.txt\n",
        "*** Update File: file.txt\n@@\n-inside one\n+inside two\n*** Update File: d/f.txt\n@@\n-inside one\n+inside two\n",
        "*** Update File: file.txt\n@@\n-inside two\n+inside one\n*** Update File: d/f.txt\n@@\n-inside two\n+inside one\n",
        "*** Add File: d/p.txt\n+one\n*** Delete File: d/p.txt\n",
    ];
    let patch = |part: &str| format!("*** Begin Patch\n{part}*** End Patch");
    parts.map(|part| ("apply_patch", json!({ "patchText": patch(part) }))).into()
}

fn globs() -> Calls {
    vec![
        ("glob", json!({ "pattern": "**/*.txt" })),
        ("glob", json!({ "pattern": "*.txt", "path": "d" })),
        ("glob", json!({ "pattern": "*", "path": "d/deep" })),
    ]
}

fn greps() -> Calls {
    vec![
        ("grep", json!({ "pattern": "inside" })),
        ("grep", json!({ "pattern": "inside", "path": "d" })),
        ("grep", json!({ "pattern": "inside", "path": "d/f.txt" })),
        ("grep", json!({ "pattern": "inside", "path": "file.txt" })),
    ]
}

fn lists() -> Calls {
    vec![("list", json!({})), ("list", json!({ "path": "d" })), ("list", json!({ "path": "d/deep" }))]
}

/// Makes the calls again and again.
fn tools(scene: &Scene, opening: Opening, left: &Exchanger, calls: &Calls) -> Result<Tally> {
    let all = builtin(&Setup { has_background_tasks: false, ..Setup::everything(2026) });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let mut tally = Tally::default();
    for (name, input) in calls.iter().cycle() {
        let tool = all.iter().find(|tool| tool.name() == *name).context("a tool")?;
        let cx = ToolCx { opening, ..ToolCx::alone(&scene.root, &scene.root.join("output")) };
        runtime.block_on(call(tool, input, &cx, &mut tally));
        if !left.goes_on() {
            break;
        }
    }
    Ok(tally)
}

async fn call(tool: &Arc<dyn AnyTool>, input: &Value, cx: &ToolCx, tally: &mut Tally) {
    tally.calls += 1;
    let asks = match tool.asks(input, cx).await {
        Ok(asks) => asks,
        Err(error) => {
            tally.failed += 1;
            tally.saw(&error.to_string());
            return;
        }
    };
    if asks.iter().any(|ask| ask.permission == "external_directory") {
        tally.asked += 1;
        return;
    }
    for ask in asks {
        tally.saw(&Value::Object(ask.metadata).to_string());
    }
    match tool.run(input.clone(), cx).await {
        Ok(output) => {
            tally.done += 1;
            returned(&output, tally);
        }
        Err(error) => {
            tally.failed += 1;
            tally.saw(&error.to_string());
        }
    }
}

fn returned(output: &Output, tally: &mut Tally) {
    tally.saw(&output.output);
    tally.saw(&Value::Object(output.metadata.clone()).to_string());
    let inside = codewright_tools::Attachment::new("image/png", PICTURE);
    let others = output.attachments.iter().filter(|attachment| attachment.url != inside.url);
    tally.read_bytes += others.map(|attachment| attachment.url.len() as u64).sum::<u64>();
}

/// Undoes and redoes the changes of a step again and again.
fn undo(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    let data = tempfile::tempdir()?;
    let snapshots = Snapshots::new(Options::new(data.path(), "races", &scene.root, &scene.root));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut tally = Tally::default();
        let mut step = Step::default();
        let file = |text: &str| Some(File { kind: Kind::File, bytes: text.as_bytes().to_vec() });
        for (path, before, after, made) in [
            ("d/f.txt", file("inside one\n"), file("inside two\n"), 0),
            ("d/deep/g.txt", file("inside one\n"), None, 0),
            ("d/new/made/h.txt", None, file("inside one\n"), 2),
            ("file.txt", file("inside one\n"), file("inside two\n"), 0),
        ] {
            let effect = Effect { path: PathBuf::from(path), before, after, made };
            snapshots.report(&mut step, effect).await?;
        }
        let steps = [snapshots.close(step).await?.context("a step with changes")?];
        let (mut from, mut to) = (0, 1);
        loop {
            tally.calls += 1;
            let outcome = snapshots.travel(&steps, from, to, Respect::Nothing).await?;
            let is_done = outcome.failed.is_empty() && outcome.kept.is_empty();
            if is_done {
                tally.done += 1;
            } else {
                tally.failed += 1;
            }
            let look = snapshots.look(Path::new("d/f.txt")).await?;
            tally.saw(
                &look.file.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default(),
            );
            (from, to) = (to, from);
            if !left.goes_on() {
                return Ok(tally);
            }
        }
    })
}

/// Changes files and takes snapshots again and again. Without git there is nothing to try.
fn snapshot(scene: &Scene, opening: Opening, left: &Exchanger) -> Result<Tally> {
    let data = tempfile::tempdir()?;
    let snapshots = Snapshots::new(Options::new(data.path(), "races", &scene.root, &scene.root));
    let empty = TreeId::parse(EMPTY_TREE).context("an id")?;
    let all = builtin(&Setup { has_background_tasks: false, ..Setup::everything(2026) });
    let write = all.iter().find(|tool| tool.name() == "write").context("a tool")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut tally = Tally::default();
        loop {
            // The number of calls makes each content new.
            for path in ["d/f.txt", "d/deep/g.txt", "file.txt"] {
                let cx = ToolCx { opening, ..ToolCx::alone(&scene.root, &scene.root.join("output")) };
                let content = format!("inside {}\n", tally.calls);
                call(write, &json!({ "filePath": path, "content": content }), &cx, &mut Tally::default())
                    .await;
            }
            tally.calls += 1;
            let taken = snapshots.track(&CancellationToken::new()).await;
            match taken {
                Ok(taken) => {
                    tally.done += 1;
                    for diff in snapshots.diff_full(empty, taken.tree).await? {
                        tally.saw(&diff.file.unwrap_or_default());
                        tally.saw(&diff.patch.unwrap_or_default());
                    }
                }
                Err(_) => tally.failed += 1,
            }
            if !left.goes_on() {
                return Ok(tally);
            }
        }
    })
}
