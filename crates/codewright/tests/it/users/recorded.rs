//! The audit log contains every change.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use codewright_testkit::Script;
use serde_json::{Value, json};

use super::Team;

/// The routes with a method for changes that write no entry under their own name: they change nothing, or their entry is
/// more precise. Their number is part of the test, so that a new route is recorded.
const OTHERS: [&str; 22] = [
    "app.log",
    "experimental.console.switchOrg",
    "experimental.projectCopy.generateName",
    "experimental.workspace.create",
    "experimental.workspace.remove",
    "experimental.workspace.syncList",
    "experimental.workspace.warp",
    "permission.reply",
    "permission.respond",
    "question.reject",
    "question.reply",
    "question.reply.alias",
    "sync.history.list",
    "sync.start",
    "sync.steal",
    "v2.projectCopy.create",
    "v2.projectCopy.refresh",
    "v2.projectCopy.remove",
    "v2.session.permission.reply",
    "v2.session.question.reject",
    "v2.session.question.reply",
    "v2.session.wait",
];

#[test]
fn every_route_that_changes_something_leaves_an_entry() -> Result<()> {
    let team = Team::new(Script::new())?;
    let document = team.json("root", "GET", "/doc", &Value::Null)?;
    let mut expected = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().context("no paths")? {
        for (method, operation) in methods.as_object().context("no methods")? {
            let operation = operation["operationId"].as_str().context("no id")?;
            // These end the server's work or fetch a new version.
            if method == "get" || ["global.upgrade", "global.drain"].contains(&operation) {
                continue;
            }
            let filled: Vec<&str> = path
                .split('/')
                .map(|part| match part {
                    "{sessionID}" => "ses_unknown",
                    "{messageID}" => "msg_unknown",
                    "{partID}" => "prt_unknown",
                    "{ptyID}" => "pty_unknown",
                    "{requestID}" | "{permissionID}" => "per_unknown",
                    part if part.starts_with('{') => "x",
                    part => part,
                })
                .collect();
            team.call("root", &method.to_ascii_uppercase(), &filled.join("/"), &json!({}))?;
            expected.insert(operation.to_owned());
        }
    }
    let entries = team.json("root", "GET", "/users/audit?limit=1000", &Value::Null)?;
    let entries = entries.as_array().context("no list")?;
    assert!(entries.iter().all(|entry| entry["user"] == "root"));
    let recorded: BTreeSet<String> =
        entries.iter().filter_map(|entry| entry["action"].as_str().map(str::to_owned)).collect();
    let missing: Vec<&str> = expected.difference(&recorded).map(String::as_str).collect();
    assert_eq!(missing, OTHERS);
    Ok(())
}
