//! What the store's users wait for, by each program over the same HTTP requests.
//!
//! Each program fills its own data directory by its own requests, so that nothing is
//! measured on a file that another one made. Every answer is counted, and an undo has to
//! give the file back.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Program;
use super::abort::ask;
use super::served::Served;
use super::spread::Spread;
use crate::model::{EDIT, Model, REPLACED};

/// Sessions that are listed.
const SESSIONS: usize = 1000;
/// Messages of the transcript that is read.
const MESSAGES: usize = 200;
/// What is timed, in this order.
const ROWS: [&str; 3] = ["list of 1000 sessions", "transcript of 200 messages", "an edit undone"];

/// Measures each program in turn; the lines to be shown.
pub(super) fn measure(ours: &Path, against: &[PathBuf], runs: usize) -> Result<String> {
    let model = Model::start()?;
    let mut columns = Vec::new();
    for (at, path) in [ours].into_iter().chain(against.iter().map(PathBuf::as_path)).enumerate() {
        let name = if at == 0 { "ours".to_owned() } else { format!("against {at}") };
        let program = Program::new(&name, path, &model.url)?;
        columns.push((name, timed(&program, runs, if at == 0 { Undo::Must } else { Undo::May })?));
    }
    let mut text = String::from("  beside others, over HTTP, in ms:\n");
    for (row, what) in ROWS.iter().enumerate() {
        write!(text, "  {what:<34}")?;
        for (name, times) in &columns {
            match Spread::of(times[row].iter().copied()) {
                Some(it) => write!(text, " {name} {:.1} ({:.1} .. {:.1})", it.median, it.least, it.most)?,
                None => write!(text, " {name} did not answer")?,
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// Whether a program has to answer when an edit is taken back.
#[derive(Clone, Copy)]
enum Undo {
    Must,
    May,
}

/// The times of each row, in milliseconds; the first run of each warms the machine.
fn timed(program: &Program, runs: usize, expected: Undo) -> Result<[Vec<f64>; ROWS.len()]> {
    let server = Served::start(program)?;
    let url = server.address.as_str();
    let created = |_| ask(url, "POST", "/session", Some(&json!({})));
    let sessions = (0..SESSIONS).map(created).collect::<Result<Vec<_>>>()?;
    let id = |at: usize| sessions[at]["id"].as_str().context("no session");
    let long = format!("/session/{}/message", id(0)?);
    for at in 0..MESSAGES {
        let text =
            format!("Prompt {at} that nobody answers, as long as prompts are that say what is to be done.");
        ask(url, "POST", &long, Some(&said(&text, true)))?;
    }
    let edited = format!("/session/{}", id(1)?);
    let mut times: [Vec<f64>; ROWS.len()] = Default::default();
    for run in 0..=runs {
        let listed = clock(|| ask(url, "GET", &format!("/session?limit={SESSIONS}"), None))?;
        let read = clock(|| ask(url, "GET", &long, None))?;
        for ((_, answer), count) in [&listed, &read].into_iter().zip([SESSIONS, MESSAGES]) {
            let found = answer.as_array().map_or(0, Vec::len);
            ensure!(found == count, "{found} and not {count} were answered");
        }
        // Another program may never answer; that is asked once.
        let undone = match expected {
            Undo::Must => Some(undo(program, url, &edited)?),
            Undo::May if run > 1 && times[2].is_empty() => None,
            Undo::May => undo(program, url, &edited).ok(),
        };
        if run > 0 {
            times[0].push(listed.0);
            times[1].push(read.0);
            times[2].extend(undone);
        }
    }
    Ok(times)
}

/// A turn that edits a file, taken back; only that is timed.
fn undo(program: &Program, url: &str, session: &str) -> Result<f64> {
    program.sandbox.reset()?;
    let file = program.sandbox.edited();
    let prompt = said(&format!("{EDIT} {} please", file.display()), false);
    let answer = ask(url, "POST", &format!("{session}/message"), Some(&prompt))?;
    ensure!(fs::read_to_string(&file)?.contains(REPLACED.1), "the file was not edited");
    let message = json!({"messageID": answer["info"]["parentID"]});
    let (time, _) = clock(|| ask(url, "POST", &format!("{session}/revert"), Some(&message)))?;
    ensure!(fs::read_to_string(&file)?.contains(REPLACED.0), "the edit was not undone");
    Ok(time)
}

fn said(text: &str, is_alone: bool) -> Value {
    let model = json!({"providerID": "mock", "modelID": "plain-model"});
    json!({"noReply": is_alone, "model": model, "parts": [{"type": "text", "text": text}]})
}

fn clock(work: impl FnOnce() -> Result<Value>) -> Result<(f64, Value)> {
    let begun = Instant::now();
    let answer = work()?;
    Ok((begun.elapsed().as_secs_f64() * 1000.0, answer))
}
