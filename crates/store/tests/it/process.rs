//! Runs this test binary as another process.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use codewright_proto::Event;
use codewright_store::{Claim, Condition, Error, Store};

use crate::support::*;

/// Another process. It is killed when dropped.
pub(crate) struct Actor {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts a process that opens the file.
    pub(crate) fn start(path: &Path) -> Self {
        let binary = std::env::current_exe().expect("this binary");
        let mut child = Command::new(binary)
            .args(["process::runs_commands", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let orders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut actor = Self { child, orders, answers };
        actor.order(path.to_str().expect("a plain path"));
        assert_eq!(actor.answer(), "open");
        actor
    }

    /// Sends a command without waiting.
    pub(crate) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it listens");
    }

    /// Returns its next output.
    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        while self.answers.read_line(&mut line).expect("readable") > 0 {
            // The test harness prints other lines, and may start a line before our output.
            if let Some((_, answer)) = line.trim_end().split_once('>') {
                return answer.to_owned();
            }
            line.clear();
        }
        panic!("it went away");
    }

    /// Sends a command and returns its output.
    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.order(order);
        self.answer()
    }

    /// Kills the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn print_answer(answer: &str) {
    writeln!(std::io::stdout(), ">{answer}").expect("the parent reads");
}

/// Not a test: the process that [`Actor::start`] starts.
#[test]
#[ignore = "played by other tests"]
fn runs_commands() {
    let mut orders = std::io::stdin().lines();
    let Some(Ok(path)) = orders.next() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let store = runtime.block_on(open(Path::new(&path)));
    print_answer("open");
    let mut leases = Vec::new();
    for order in orders {
        let order = order.expect("readable");
        let words: Vec<_> = order.split(' ').collect();
        runtime.block_on(async {
            match words[..] {
                ["lease", session] => match store.lease(&session_id(session)).await.expect("answered") {
                    Claim::Held(lease) => {
                        leases.push(lease);
                        print_answer("held");
                    }
                    Claim::HeldBy(holder) => print_answer(&format!("held by {}", holder.pid)),
                },
                ["release", seen] => {
                    let mut lease = leases.pop().expect("one is held");
                    let done = lease.release(seen.parse().expect("a number")).await.expect("answered");
                    print_answer(&done.to_string());
                    leases.extend((!done).then_some(lease));
                }
                ["draft", session, message, id, text] => {
                    let Event::PartUpdated { part, .. } = part(session, message, id, text) else { return };
                    store.draft(part).await.expect("kept");
                    print_answer("kept");
                }
                ["message", session, id] => {
                    store.append(vec![message(session, id, 5)]).await.expect("stored");
                    print_answer("stored");
                }
                ["count", session, times] => {
                    for _ in 0..times.parse().expect("a number") {
                        count_up(&store, session).await;
                    }
                    print_answer("counted");
                }
                _ => panic!("`{order}` is not a part to play"),
            }
        });
    }
}

/// Adds one to a session's cost, with retries if it changes in the meantime.
pub(crate) async fn count_up(store: &Store, session: &str) {
    let id = session_id(session);
    for _ in 0..10_000 {
        let (seq, mut info) = store.session_at(&id).await.expect("readable").expect("there");
        info.cost += 1.0;
        let unchanged = Condition::RowUntouched { session: id.clone(), seq };
        match store.append_if(unchanged, vec![updated(info)]).await {
            Ok(_) => return,
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("always overtaken");
}
