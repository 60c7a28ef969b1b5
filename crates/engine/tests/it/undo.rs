//! Undoing and redoing sessions together with the files that their steps changed.
//!
//! The test records the steps itself, so that each case states exactly what the agent did.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use codewright_engine::{Error, Published};
use codewright_proto::{
    Event, MessageId, Part, PartBody, PartId, PromptInput, RevertInput, Session, Signal, UnrevertInput,
};
use codewright_scripted::{Script, Turn};
use codewright_snapshot::{Effect, Options, Snapshots, Step};

use crate::desk::{DEADLINE, Desk, prompt};

/// A session whose turns change files.
struct Bench {
    desk: Desk,
    session: Session,
    snapshots: Snapshots,
    parts: std::cell::Cell<u32>,
}

impl Bench {
    async fn new(script: Script) -> Self {
        let desk = Desk::new(script).await;
        git(&desk, &["init", "--quiet", "--initial-branch=main"]);
        let session = desk.session().await;
        let data = desk.project.parent().unwrap().join("home/.local/share/codewright");
        let project = desk.instance.project();
        let worktree = PathBuf::from(&desk.instance.path().worktree);
        let options = Options::new(&data, project.id.as_str(), &worktree, &desk.project);
        Self { snapshots: Snapshots::new(options), desk, session, parts: std::cell::Cell::new(0) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.desk.project.join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Every file of the project with its bytes and whether it is executable.
    fn files(&self) -> Vec<(String, Vec<u8>, bool)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.desk.project.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with(".git") {
                    continue;
                }
                if path.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let name = path.strip_prefix(&self.desk.project).unwrap().display().to_string();
                let runs = path.metadata().unwrap().permissions().mode() & 0o100 != 0;
                found.push((name, fs::read(&path).unwrap(), runs));
            }
        }
        found.sort();
        found
    }

    /// A prompt whose answer changes files. A change is a name and bytes, or `None` to remove the file.
    async fn turn(&self, changes: &[(&str, Option<&[u8]>)]) -> MessageId {
        let input = PromptInput { no_reply: Some(true), ..prompt("go") };
        let message = self.desk.engine.sessions().prompt(&self.session.id, input).await.unwrap();
        let id = message.info.id().clone();
        let mut step = Step::default();
        for (name, bytes) in changes {
            let path = self.path(name);
            let before = self.snapshots.look(&path).await.unwrap();
            match bytes {
                Some(bytes) => self.write(name, bytes),
                None => fs::remove_file(&path).unwrap(),
            }
            let after = self.snapshots.look(&path).await.unwrap();
            let made = if before.file.is_none() { before.missing } else { 0 };
            let effect = Effect { path, before: before.file, after: after.file, made };
            self.snapshots.report(&mut step, effect).await.unwrap();
        }
        if let Some(change) = self.snapshots.close(step).await.unwrap() {
            let files =
                change.files.iter().map(|file| self.path(file.to_str().unwrap()).display().to_string());
            let after = Some(change.after.to_string());
            self.record(
                &id,
                PartBody::Patch { hash: change.before.to_string(), files: files.collect(), after },
            )
            .await;
        }
        id
    }

    async fn record(&self, message: &MessageId, body: PartBody) {
        self.parts.set(self.parts.get() + 1);
        let id = PartId::parse(&format!("prt_zz{:04}", self.parts.get())).unwrap();
        let part = Part { id, session_id: self.session.id.clone(), message_id: message.clone(), body };
        self.desk.engine.sessions().update_part(part).await.unwrap();
    }

    async fn revert(&self, message: &MessageId, force: bool) -> Session {
        let input = RevertInput { message_id: message.clone(), part_id: None, force: force.then_some(true) };
        self.desk.engine.sessions().revert(&self.session.id, input).await.unwrap()
    }

    async fn unrevert(&self) -> Vec<String> {
        let done =
            self.desk.engine.sessions().unrevert(&self.session.id, UnrevertInput::default()).await.unwrap();
        assert_eq!(done.session.revert, None);
        done.kept.into_iter().map(|kept| format!("{}: {}", kept.file, kept.reason)).collect()
    }
}

fn git(desk: &Desk, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"]).args(args);
    let done = command.current_dir(&desk.project).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn kept_files(session: &Session) -> Vec<String> {
    let revert = session.revert.as_ref().expect("it is taken back");
    revert.kept.iter().map(|kept| format!("{}: {}", kept.file, kept.reason)).collect()
}

#[tokio::test]
async fn undo_and_redo_restore_every_byte() {
    let bench = Bench::new(Script::new()).await;
    bench.write("crlf.txt", "one\r\ntwo\r\n");
    bench.write("bom.txt", "\u{feff}text\n");
    bench.write("binary", [0, 255, 1, 254, 13, 10]);
    bench.write("gone.txt", "old\n");
    bench.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(bench.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.write("user.txt", "the user's\n");
    let start = bench.files();
    let first = bench
        .turn(&[
            ("crlf.txt", Some(b"one\nthree\n")),
            ("bom.txt", Some(b"text\n")),
            ("binary", Some(&[7, 0, 7])),
            ("run.sh", Some(b"#!/bin/sh\necho\n")),
            ("new/deep/file.txt", Some(b"new")),
        ])
        .await;
    let middle = bench.files();
    let second =
        bench.turn(&[("gone.txt", None), ("moved.txt", Some(b"old\n")), ("crlf.txt", Some(b"x"))]).await;
    let end = bench.files();
    let session = bench.revert(&second, false).await;
    assert_eq!((bench.files(), kept_files(&session)), (middle.clone(), vec![]));
    let session = bench.revert(&first, false).await;
    assert_eq!((bench.files(), kept_files(&session)), (start.clone(), vec![]));
    assert!(!bench.path("new").exists(), "directories that the agent made go with their files");
    assert_eq!(session.revert.as_ref().unwrap().message_id, first);
    // Redo one prompt, then all.
    bench.revert(&second, false).await;
    assert_eq!(bench.files(), middle);
    assert_eq!(bench.unrevert().await, Vec::<String>::new());
    assert_eq!(bench.files(), end);
    assert!(bench.path("run.sh").metadata().unwrap().permissions().mode() & 0o100 != 0);
}

#[tokio::test]
async fn the_revert_state_of_a_session_is_as_recorded() {
    let bench = Bench::new(Script::new().text("third")).await;
    bench.write("util.py", "def add(a, b):\n    return a + b\n");
    bench.turn(&[("util.py", Some(b"def add(a, b):\n    return 0\n"))]).await;
    let second = bench.turn(&[("extra.py", Some(b"x = 1\n"))]).await;
    let mut events = bench.desk.engine.events().subscribe();
    let session = bench.revert(&second, false).await;
    let revert = session.revert.clone().unwrap();
    assert_eq!((revert.message_id, revert.part_id), (second.clone(), None));
    assert!(revert.snapshot.is_some_and(|tree| tree.len() == 40));
    let expected = "diff --git a/extra.py b/extra.py\ndeleted file mode 100644\nindex 7d4290a..0000000\n--- a/extra.py\n+++ \
                    /dev/null\n@@ -1 +0,0 @@\n-x = 1";
    assert_eq!(revert.diff.as_deref(), Some(expected));
    let summary = session.summary.clone().unwrap();
    assert_eq!((summary.additions, summary.deletions, summary.files, &summary.diffs), (1, 0, 1, &None));
    let Published::Signal { signal, .. } = events.next().await.unwrap() else {
        panic!("the diff comes first")
    };
    let Signal::SessionDiff { diff, .. } = &*signal else { panic!("{signal:?}") };
    assert_eq!((diff[0].file.as_deref(), diff[0].status.as_deref()), (Some("extra.py"), Some("added")));
    let Published::Event(envelope) = events.next().await.unwrap() else { panic!("then the session") };
    assert_eq!(
        envelope.event,
        Event::SessionUpdated { session_id: session.id.clone(), info: session.clone() }
    );
    assert_eq!(bench.desk.engine.sessions().diff(&session.id, None).await.unwrap(), *diff);
    assert_eq!(bench.desk.transcript(&bench.session).await.len(), 2, "messages stay until the next prompt");
    // A fork contains only the visible messages.
    let fork = bench.desk.engine.sessions().fork(&session.id, None).await.unwrap();
    assert_eq!(bench.desk.transcript(&fork).await.len(), 1);
    let mut events = bench.desk.engine.events().subscribe();
    bench.desk.prompt(&bench.session, "third").await;
    let Published::Event(envelope) = events.next().await.unwrap() else { panic!("a removal") };
    assert_eq!(envelope.event, Event::MessageRemoved { session_id: session.id.clone(), message_id: second });
    let Published::Event(envelope) = events.next().await.unwrap() else { panic!("the session") };
    assert!(matches!(&envelope.event, Event::SessionUpdated { info, .. } if info.revert.is_none()));
    assert_eq!(bench.desk.engine.sessions().diff(&session.id, None).await.unwrap(), []);
    assert!(!bench.path("extra.py").exists());
    bench.desk.assert_clean();
}

#[tokio::test]
async fn the_users_changes_are_kept_and_named_unless_forced() {
    let bench = Bench::new(Script::new()).await;
    bench.write("a.txt", "start\n");
    let first = bench.turn(&[("a.txt", Some(b"agent\n")), ("b.txt", Some(b"agent\n"))]).await;
    bench.write("a.txt", "agent\nand user\n");
    bench.write("mine.txt", "user\n");
    let edited = bench.files();
    let session = bench.revert(&first, false).await;
    assert_eq!(kept_files(&session), ["a.txt: it was changed since"]);
    assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "agent\nand user\n");
    assert!(!bench.path("b.txt").exists());
    assert_eq!(bench.unrevert().await, ["a.txt: it was changed since"]);
    assert_eq!(bench.files(), edited, "forth again is the same to the byte");
    let session = bench.revert(&first, true).await;
    assert_eq!(kept_files(&session), Vec::<String>::new());
    assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "start\n");
    assert_eq!(fs::read_to_string(bench.path("mine.txt")).unwrap(), "user\n");
    assert_eq!(bench.unrevert().await, Vec::<String>::new());
    assert_eq!(bench.files(), edited, "what was insisted on comes back as the user had it");
}

#[tokio::test]
async fn commits_are_not_reverted() {
    let bench = Bench::new(Script::new()).await;
    bench.write("a.txt", "start\n");
    git(&bench.desk, &["add", "--all"]);
    git(&bench.desk, &["commit", "--quiet", "--message=First"]);
    let first = bench.turn(&[("a.txt", Some(b"agent\n"))]).await;
    git(&bench.desk, &["commit", "--quiet", "--all", "--message=Second"]);
    let head = || fs::read_to_string(bench.path(".git/refs/heads/main")).unwrap();
    let before = head();
    bench.revert(&first, false).await;
    assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "start\n");
    assert_eq!(head(), before, "the commit is the user's");
    bench.unrevert().await;
    assert_eq!(fs::read_to_string(bench.path("a.txt")).unwrap(), "agent\n");
}

#[tokio::test]
async fn an_interrupted_undo_is_finished_by_the_same_call() {
    let bench = Bench::new(Script::new()).await;
    bench.write("a.txt", "a\n");
    bench.write("b.txt", "b\n");
    let start = bench.files();
    let first =
        bench.turn(&[("a.txt", Some(b"A\n")), ("b.txt", Some(b"B\n")), ("c.txt", Some(b"C\n"))]).await;
    let end = bench.files();
    // The state that a process leaves if it dies between two files.
    bench.write("a.txt", "a\n");
    let session = bench.revert(&first, false).await;
    assert_eq!((bench.files(), kept_files(&session)), (start, vec![]));
    bench.write("b.txt", "B\n");
    assert_eq!(bench.unrevert().await, Vec::<String>::new());
    assert_eq!(bench.files(), end);
}

#[tokio::test]
async fn steps_of_other_programs_are_named_and_not_reverted() {
    let bench = Bench::new(Script::new()).await;
    bench.write("known.txt", "k\n");
    bench.write("strange.txt", "now\n");
    let outside = bench.desk.project.parent().unwrap().join("outside.txt");
    fs::write(&outside, "outside\n").unwrap();
    let first = bench.turn(&[("known.txt", Some(b"K\n")), ("both.txt", Some(b"b\n"))]).await;
    let files = ["strange.txt", "both.txt"].map(|name| bench.path(name).display().to_string());
    let files = files.into_iter().chain([outside.display().to_string()]).collect();
    let hash = "9e68d8dd4c0d1a685135a6284c52f6e1fa8f806b".to_owned();
    bench.record(&first, PartBody::Patch { hash, files, after: None }).await;
    for force in [false, true] {
        let session = bench.revert(&first, force).await;
        let expected = [
            format!("{}: it lies outside of the session's directory", outside.display()),
            "both.txt: what it held before is not known here".to_owned(),
            "strange.txt: what it held before is not known here".to_owned(),
        ];
        assert_eq!(kept_files(&session), expected);
        assert_eq!(fs::read_to_string(bench.path("known.txt")).unwrap(), "k\n");
        assert_eq!(fs::read_to_string(bench.path("both.txt")).unwrap(), "b\n");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "outside\n");
        bench.unrevert().await;
        assert_eq!(fs::read_to_string(bench.path("known.txt")).unwrap(), "K\n");
    }
}

#[tokio::test]
async fn a_missing_message_changes_nothing_and_a_running_session_is_refused() {
    let hang = Turn::steps().text("x").hang();
    let bench = Bench::new(Script::new().turn(hang)).await;
    let first = bench.turn(&[("a.txt", Some(b"A\n"))]).await;
    let before = bench.desk.engine.sessions().get(&bench.session.id).await.unwrap();
    assert_eq!(bench.revert(&MessageId::parse("msg_nope").unwrap(), false).await, before);
    assert_eq!(bench.unrevert().await, Vec::<String>::new());
    bench.desk.engine.sessions().prompt_async(&bench.session.id, prompt("work")).await.unwrap();
    bench.desk.server.wait_for_request(1, DEADLINE).await.unwrap();
    let input = || RevertInput { message_id: first.clone(), part_id: None, force: None };
    let refused = bench.desk.engine.sessions().revert(&bench.session.id, input()).await;
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    let refused = bench.desk.engine.sessions().unrevert(&bench.session.id, UnrevertInput::default()).await;
    assert!(matches!(refused, Err(Error::Busy { .. })));
    bench.desk.engine.sessions().abort(&bench.session.id).await.unwrap();
    bench.desk.engine.sessions().revert(&bench.session.id, input()).await.unwrap();
    assert!(!bench.path("a.txt").exists());
}
