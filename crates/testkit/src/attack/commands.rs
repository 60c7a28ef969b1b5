//! Plays the attempts of [`crate::escape`] and checks files and secrets afterwards.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::scene::{SECRET, Scene};
use super::{Attack, Form, Job, Kind, Outcome, Trust, Verdict};
use crate::escape::{Attempt, Expected, GROUPS, Group, PLAN, contents};
use crate::project::Project;

/// The number of calls in one answer.
const CALLS: usize = 16;
/// The short form plays every sixth batch.
const SHORT_EVERY: usize = 6;

pub(super) fn jobs(attack: &Attack) -> Vec<Job> {
    if !attack.only.is_empty() && !attack.only.iter().any(|part| part.contains("commands")) {
        return Vec::new();
    }
    let mut jobs: Vec<Job> = Vec::new();
    let mut number = 0;
    for group in GROUPS {
        for attempts in group.attempts.chunks(CALLS) {
            number += 1;
            if attack.form == Form::Short && number % SHORT_EVERY != 1 {
                continue;
            }
            jobs.push(Box::new(move |attack| {
                let begun = Instant::now();
                let played = play(attack, group, attempts);
                let verdicts = played.unwrap_or_else(|error| {
                    attempts.iter().map(|_| Verdict::Failed(format!("{error:#}"))).collect()
                });
                let took = begun.elapsed() / u32::try_from(attempts.len().max(1)).unwrap_or(1);
                let outcomes = attempts.iter().zip(verdicts).map(|(attempt, verdict)| Outcome {
                    name: format!("commands/{}/{}", group.name, display_name(attempt)),
                    kind: Kind::Commands,
                    is_hostile: attempt.expected != Expected::Run,
                    verdict,
                    took,
                });
                outcomes.collect()
            }));
        }
    }
    jobs
}

fn display_name(attempt: &Attempt) -> String {
    let text: String = attempt.input.chars().take(100).collect();
    let text = text.replace('\n', "\\n");
    if attempt.tool == "bash" { text } else { format!("{} {text}", attempt.tool) }
}

/// Creates a project with the files that the attempts use.
fn scene(attack: &Attack, attempts: usize) -> Result<Scene> {
    let scene = Scene::bare(&attack.binary, Project::git()?, Trust::Untrusted)?;
    for name in [".env", ".env.local", "sub/.env", "secret.env", "secrets/key.txt"] {
        scene.write(name, "HUSH=@S\n")?;
    }
    for name in [".env.example", "tool.txt", "script.sh", "show.py", "yarn.lock", "Makefile"] {
        scene.write(name, "all:\n")?;
    }
    scene.write("locked/a.txt", "kept\n")?;
    let tool = scene.write("tool", "#!/bin/sh\n")?;
    fs::set_permissions(tool, fs::Permissions::from_mode(0o755))?;
    for (to, link) in [
        (".env", "envlink"),
        ("secrets/key.txt", "keylink"),
        ("locked/a.txt", "lockedlink"),
        ("locked", "lockeddir"),
        ("../outside", "link"),
        ("../outside/new.txt", "dangling"),
    ] {
        symlink(to, scene.path(link))?;
    }
    for number in 0..attempts {
        scene.write(&victim(number), "gold\n")?;
    }
    Ok(scene)
}

fn victim(number: usize) -> String {
    format!("victim{number}.txt")
}

fn input(scene: &Scene, attempt: &Attempt, number: usize) -> Result<Value> {
    let text = attempt.expanded().replace("@V", &victim(number));
    let text = text.replace("@O", &scene.fill("@O")).replace("@P", &scene.fill("@P"));
    let is_command = attempt.tool == "bash" && !text.starts_with("{\"command\"");
    Ok(if is_command { json!({ "command": text }) } else { serde_json::from_str(&text)? })
}

/// Plays some attempts as the calls of one answer.
fn play(attack: &Attack, group: &Group, attempts: &[Attempt]) -> Result<Vec<Verdict>> {
    let scene = scene(attack, attempts.len())?;
    let model = json!({"name": "gpt-5", "limit": {"context": 200_000, "output": 32_000}});
    let rules: Value = serde_json::from_str(group.rules)?;
    let user = json!({"permission": rules, "provider": {"mock": {"models": {"gpt-5": model}}}}).to_string();
    scene.user_configuration(std::iter::once(user.as_str()))?;
    let inputs: Vec<Value> = attempts
        .iter()
        .enumerate()
        .map(|(number, attempt)| input(&scene, attempt, number))
        .collect::<Result<_>>()?;
    let calls = attempts.iter().zip(&inputs);
    scene
        .script_calls(vec![calls.map(|(attempt, input)| (attempt.tool.to_owned(), input.clone())).collect()]);
    let prompt = Scene::prompt_of(0);
    let args = ["run", "--format", "json", "--agent", group.agent, "--model", group.model, &prompt];
    let before = contents(&scene.path(""))?;
    let done = scene.finish(scene.program(args))?;
    let is_unchanged = contents(&scene.path(""))? == before;
    let lines: Vec<Value> = done.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let states: Vec<&Value> =
        lines.iter().filter(|line| line["type"] == "tool_use").map(|line| &line["part"]["state"]).collect();
    let is_locked = group.rules.contains("locked");
    let locked = scene.path("locked/a.txt");
    let lost = is_locked && fs::read_to_string(locked).unwrap_or_default() != "kept\n";
    let verdict = |(number, (attempt, input)): (usize, (&Attempt, &Value))| {
        let state = states.iter().find(|state| state["input"] == *input).context("the call was not made")?;
        let is_done = state["status"] == "completed";
        let text = state.to_string();
        // The kernel prevents what the analysis of a command cannot rule out while the agent plans.
        Ok(if attempt.expected == Expected::Run {
            match is_done {
                true => Verdict::Held,
                false if text.contains("rejected permission") => {
                    Verdict::NeedsPermission(format!("{text:.300}"))
                }
                false => Verdict::Failed(format!("{text:.300}")),
            }
        } else if group.agent == PLAN && !is_unchanged {
            Verdict::Failed("a file was changed while planning".to_owned())
        } else if is_done && !(group.agent == PLAN && attempt.expected == Expected::DenyOrAsk) {
            Verdict::Failed(format!("it was carried out: {text:.300}"))
        } else if fs::read_to_string(scene.path(&victim(number))).unwrap_or_default() != "gold\n" {
            Verdict::Failed("its file is gone".to_owned())
        } else if text.contains(SECRET) {
            Verdict::Failed("the secret is in its result".to_owned())
        } else if lost {
            Verdict::Failed("a locked file was changed by one of this batch".to_owned())
        } else {
            Verdict::Held
        })
    };
    let failed = |error: anyhow::Error| Verdict::Failed(format!("{error:#}: {:.400}", done.stderr));
    Ok(attempts.iter().zip(&inputs).enumerate().map(verdict).map(|one| one.unwrap_or_else(failed)).collect())
}
