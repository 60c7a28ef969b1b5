//! The trust question in the terminal client, over HTTP, and with input from a pipe.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use codewright_testkit::{Project, Run, Script, Terminal, TerminalOptions};
use serde_json::{Value, json};

use crate::support::{
    Stage, ask, check_code, check_has, get, new_session, post, program, prompt, serve, wait_until,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_codewright");
const SIZE: (u16, u16) = (110, 40);
const ENTER: &str = "\r";
const RIGHT: &str = "\u{1b}[C";
const ESCAPE: &str = "\u{1b}";
const CLEAR: &str = "\u{3}";
const TRUST: (&str, &str) = ("CODEWRIGHT_TRUST", "ask");
const COMMAND: &str = ".opencode/command/greet.md";
const ASKS: &str = "Do you trust this repository?";
/// Longer than the time for which the dialog ignores keys.
const STARTLED: Duration = Duration::from_millis(600);

/// A repository with a command, and a user with scripted models.
fn stage(script: Script) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let folder = stage.project.home().join(".config/opencode");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("opencode.json"), Project::config(&stage.server.url()).to_string())?;
    command(&stage, "Say hello.")?;
    Ok(stage)
}

fn command(stage: &Stage, template: &str) -> Result<()> {
    let text = format!("---\ndescription: greets the user\n---\n{template}\n");
    stage.project.write(COMMAND, text)?;
    Ok(())
}

fn start(stage: &Stage, args: &[&str]) -> Result<Terminal> {
    let (program, project) = (PROGRAM.as_ref(), &stage.project);
    Terminal::start(&TerminalOptions { program, args, project, variables: &[TRUST], size: SIZE })
}

fn press(terminal: &mut Terminal, keys: &[&str]) -> Result<()> {
    keys.iter().try_for_each(|keys| terminal.send(keys))
}

/// Waits until the client has fetched the commands after a decision.
fn comes_to_offer_command(terminal: &mut Terminal) -> Result<bool> {
    for _ in 0..20 {
        if offers_command(terminal)? {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(false)
}

/// Whether the completions of the prompt offer the repository's command.
fn offers_command(terminal: &mut Terminal) -> Result<bool> {
    terminal.send("/greet")?;
    terminal.shows("/greet")?;
    let screen = terminal.settled(str::to_owned)?.contents();
    terminal.send(CLEAR)?;
    terminal.hides("/greet")?;
    Ok(screen.contains("greets the user"))
}

fn leave(mut terminal: Terminal) -> Result<()> {
    press(&mut terminal, &["/exit", ENTER])?;
    assert_eq!(terminal.ended()?.0, 0);
    Ok(())
}

#[test]
fn the_dialog_asks_for_trust_and_asks_again_after_a_change() -> Result<()> {
    let stage = stage(Script::new().text("Hello there."))?;
    let mut terminal = start(&stage, &[])?;
    let asked = terminal.shows(ASKS)?;
    check_has(&asked, &["1 request:", "greet", COMMAND, "[Not now]", "Trust this repository"]);
    thread::sleep(STARTLED);
    terminal.send(ESCAPE)?;
    terminal.hides(ASKS)?;
    terminal.shows("untrusted")?;
    assert!(!offers_command(&mut terminal)?, "the command waits for trust");
    // The server does not repeat the question at the first prompt.
    press(&mut terminal, &["hi", ENTER])?;
    let answered = terminal.shows("Hello there.")?;
    assert!(!answered.contains("Do you trust"), "{answered}");
    press(&mut terminal, &["/trust", ENTER])?;
    terminal.shows(ASKS)?;
    press(&mut terminal, &[RIGHT, RIGHT])?;
    terminal.shows("[Trust this repository]")?;
    terminal.send(ENTER)?;
    terminal.shows("the repository is trusted")?;
    terminal.hides("untrusted")?;
    assert!(comes_to_offer_command(&mut terminal)?, "the command is there");
    leave(terminal)?;

    let mut terminal = start(&stage, &[])?;
    terminal.shows("plain-model")?;
    assert!(comes_to_offer_command(&mut terminal)?, "the decision is remembered");
    assert!(!terminal.screen().contents().contains("trust"), "there is no question");
    leave(terminal)?;

    command(&stage, "Say something else.")?;
    let mut terminal = start(&stage, &[])?;
    let asked = terminal.shows("Changed since you decided:")?;
    check_has(&asked, &[ASKS, &format!("{COMMAND} (changed)"), "[Not now]"]);
    thread::sleep(STARTLED);
    press(&mut terminal, &[RIGHT, ENTER])?;
    terminal.shows("the repository is not trusted")?;
    terminal.shows("untrusted")?;
    assert!(!offers_command(&mut terminal)?, "the command is gone");
    leave(terminal)?;

    let terminal = start(&stage, &[])?;
    terminal.shows("untrusted")?;
    assert!(!terminal.screen().contents().contains(ASKS), "there is no question");
    leave(terminal)?;
    stage.no_problems()
}

#[test]
fn an_attached_client_has_the_dialog_and_ignores_early_keys() -> Result<()> {
    let stage = stage(Script::new())?;
    let (_server, url) = serve(program(&stage.project, ["serve"]).env(TRUST.0, TRUST.1))?;
    let mut terminal = start(&stage, &["attach", &url])?;
    // Sent before anything is drawn.
    for key in ["h", "i", "\t", "\t", RIGHT, RIGHT, ENTER] {
        terminal.send(key)?;
    }
    terminal.shows(ASKS)?;
    thread::sleep(STARTLED);
    assert_eq!(get(&url, "/trust")?["status"], "undecided");
    press(&mut terminal, &[RIGHT, RIGHT])?;
    terminal.shows("[Trust this repository]")?;
    // The files change while the dialog is open.
    command(&stage, "Say something else.")?;
    terminal.send(ENTER)?;
    let again = terminal.shows("Not stored:")?;
    check_has(&again, &[ASKS, "[Not now]"]);
    assert_eq!(get(&url, "/trust")?["status"], "undecided");
    thread::sleep(STARTLED);
    press(&mut terminal, &[RIGHT, RIGHT, ENTER])?;
    terminal.shows("the repository is trusted")?;
    assert_eq!(get(&url, "/trust")?["status"], "trusted");
    Ok(())
}

/// The pending question.
fn waiting(url: &str) -> Result<Value> {
    wait_until("a question", || get(url, "/question").is_ok_and(|list| !list[0].is_null()))?;
    Ok(get(url, "/question")?[0].clone())
}

#[test]
fn a_dismissal_or_a_decision_withdraws_the_question() -> Result<()> {
    let stage = stage(Script::new().text("One.").text("Two.").text("Three."))?;
    let (_server, url) = serve(program(&stage.project, ["serve"]).env(TRUST.0, TRUST.1))?;
    // Without a subscriber there is no question.
    let _events = ask(&url, "/event")?;
    let says = |text: &str| -> Result<()> {
        let id = new_session(&url)?;
        assert_eq!(post(&url, &format!("/session/{id}/prompt_async"), &prompt(text))?.0, 204);
        Ok(())
    };
    let answered = |count: usize| {
        wait_until("an answer", || stage.server.main_requests().len() == count)?;
        wait_until("the end", || get(&url, "/session/status").is_ok_and(|all| all == json!({})))
    };
    says("one")?;
    assert_eq!(waiting(&url)?["questions"][0]["header"], "Trust");
    assert_eq!(post(&url, "/trust/dismiss", &json!({"fingerprint": "another"}))?.0, 400);
    assert_eq!(post(&url, "/trust/dismiss", &json!({}))?.0, 400);
    assert_eq!(get(&url, "/question")?.as_array().map(Vec::len), Some(1));
    let fingerprint = get(&url, "/trust")?["fingerprint"].clone();
    assert_eq!(post(&url, "/trust/dismiss", &json!({"fingerprint": fingerprint}))?, (200, json!(true)));
    answered(1)?;
    assert_eq!(get(&url, "/question")?, json!([]));
    says("two")?;
    answered(2)?;

    command(&stage, "Say something else.")?;
    post(&url, "/instance/dispose", &json!({}))?;
    says("three")?;
    waiting(&url)?;
    let fingerprint = get(&url, "/trust")?["fingerprint"].clone();
    let decision = json!({"decision": "restrict", "fingerprint": fingerprint});
    let (status, reply) = post(&url, "/trust", &decision)?;
    assert_eq!((status, &reply["status"]), (200, &json!("restricted")));
    answered(3)?;
    assert_eq!(get(&url, "/question")?, json!([]));
    stage.no_problems()
}

#[test]
fn piped_lines_are_prompts_and_not_answers_to_the_question() -> Result<()> {
    let stage = stage(Script::new().text("One.").text("Two."))?;
    let run: Run = program(&stage.project, ["--mini"]).env(TRUST.0, TRUST.1);
    let done = run.stdin("first\n1\n").finish()?;
    check_code(&done, 0);
    check_has(
        &done.stderr,
        &["is not trusted, so these parts of its configuration have no effect:", "codewright trust add"],
    );
    assert_eq!(done.stderr.matches("is not trusted").count(), 1, "{}", done.stderr);
    check_has(&done.stdout, &["One.", "Two."]);
    let last = stage.server.main_requests().pop().context("no request")?;
    check_has(&crate::support::user_text(&last), &["first", "1"]);
    assert_eq!(stage.server.main_requests().len(), 2);
    stage.no_problems()
}
