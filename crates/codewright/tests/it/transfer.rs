//! Export and import of sessions, import of an OpenCode installation, and the commands
//! that list sessions and usage.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use codewright_testkit::{Finished, Project, Script};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_harmless, check_has, database, program};

/// An export of OpenCode, with every type of part and every field.
const EXPORTED: &str = include_str!("../fixtures/exported.json");
/// The rows of an OpenCode database.
const INSTALLATION: &str = include_str!("../fixtures/installation.sql");
const EXPORTED_ID: &str = "ses_san0001";
/// The session of the installation with calls and to-dos.
const WORK: &str = "ses_dfefc1385ffeiFBjb146MzIuLE";
const CHAT: &str = "ses_dfefb8acfffe5waNp9FDaQyhTc";

fn run<'a>(project: &Project, args: impl IntoIterator<Item = &'a str>) -> Result<Finished> {
    program(project, args).finish()
}

fn import(project: &Project, document: &Value) -> Result<Finished> {
    program(project, ["import", "-"]).stdin(document.to_string()).finish()
}

fn export(project: &Project, id: &str) -> Result<Value> {
    Ok(serde_json::from_str(&run(project, ["export", id])?.success()?.stdout)?)
}

/// The only cell of a query's result.
fn number(project: &Project, sql: &str) -> Result<i64> {
    let done = run(project, ["db", sql, "--format", "json"])?.success()?;
    let rows: Vec<Value> = serde_json::from_str(&done.stdout)?;
    let row = rows.first().and_then(Value::as_object).context("no row")?;
    row.values().next().and_then(Value::as_i64).context("no number")
}

/// The document after an import into another directory, with sorted parts.
fn normal(mut document: Value) -> Value {
    for key in ["projectID", "directory", "path"] {
        document["info"][key] = Value::Null;
    }
    for message in document["messages"].as_array_mut().into_iter().flatten() {
        if let Some(parts) = message["parts"].as_array_mut() {
            parts.sort_by_key(|part| part["id"].as_str().map(str::to_owned));
        }
    }
    document
}

fn exported() -> Value {
    serde_json::from_str(EXPORTED).expect("the fixture is JSON")
}

/// An OpenCode installation in the project's home, and a connection that keeps it open.
fn installation(project: &Project) -> Result<(PathBuf, Connection)> {
    let data = project.home().join(".local/share/opencode");
    fs::create_dir_all(&data)?;
    let connection = Connection::open(data.join("opencode.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute_batch(INSTALLATION)?;
    Ok((data, connection))
}

/// The content of every file in a directory.
fn bytes(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let files = crate::support::files(directory)?;
    files.into_iter().map(|file| Ok((file.clone(), fs::read(file)?))).collect()
}

#[test]
fn an_imported_export_of_opencode_is_exported_unchanged() -> Result<()> {
    let project = Project::git()?;
    let file = project.write("in.json", EXPORTED)?;
    let done = run(&project, ["import", file.to_str().context("a path")?])?.success()?;
    assert_eq!(done.stdout, format!("Imported session: {EXPORTED_ID}\n"));
    assert_eq!(normal(export(&project, EXPORTED_ID)?), normal(exported()));
    Ok(())
}

#[test]
fn an_import_assigns_the_session_to_this_directory() -> Result<()> {
    let project = Project::git()?;
    import(&project, &exported())?.success()?;
    let info = export(&project, EXPORTED_ID)?["info"].take();
    let here = project.directory().canonicalize()?;
    assert_eq!(info["directory"], here.to_str().context("a path")?);
    assert_eq!(info["path"], "");
    let first = project.run_git(&["rev-list", "--max-parents=0", "HEAD"])?;
    assert_eq!(info["projectID"], first.trim());
    Ok(())
}

#[test]
fn the_same_import_again_writes_nothing() -> Result<()> {
    let project = Project::git()?;
    import(&project, &exported())?.success()?;
    let before = number(&project, "SELECT count(*) FROM event")?;
    let again = import(&project, &exported())?.success()?;
    check_has(&again.stderr, &["exists already and has not changed"]);
    assert_eq!(number(&project, "SELECT count(*) FROM event")?, before);
    assert_eq!(before, 1 + 2 + 17, "the session, its messages and its parts, an event each");
    Ok(())
}

#[test]
fn unknown_fields_are_reported_and_exported_again() -> Result<()> {
    let project = Project::git()?;
    let mut document = exported();
    document["extra"] = json!({"by": "a newer version"});
    document["info"]["mood"] = json!("sunny");
    document["messages"][0]["info"]["summary"]["diffs"][0]["why"] = json!([1, null]);
    document["messages"][1]["parts"][1]["glow"] = json!(true);
    let session = document["info"]["id"].clone();
    let parts = document["messages"][0]["parts"].as_array_mut().context("parts")?;
    parts.push(
        json!({"id": "prt_z1", "sessionID": session, "messageID": "msg_s1", "type": "hologram", "d": 3}),
    );
    let robot = json!({"id": "msg_s9", "sessionID": session, "role": "robot", "time": {"created": 1795313499999_u64}});
    document["messages"].as_array_mut().context("messages")?.push(json!({"info": robot, "parts": []}));
    let done = import(&project, &document)?.success()?;
    check_has(
        &done.stderr,
        &["a part of the unknown type `hologram`", "a message of the unknown role `robot`"],
    );
    assert_eq!(normal(export(&project, EXPORTED_ID)?), normal(document));
    let redacted = run(&project, ["export", EXPORTED_ID, "--sanitize"])?.success()?.stdout;
    for secret in ["sunny", "newer version", "glow", "hologram\",\n          \"d\""] {
        assert!(!redacted.contains(secret), "`{secret}` is in {redacted}");
    }
    Ok(())
}

#[test]
fn a_sanitized_export_has_no_texts() -> Result<()> {
    let project = Project::git()?;
    import(&project, &exported())?.success()?;
    let text = run(&project, ["export", "--sanitize", EXPORTED_ID])?.success()?.stdout;
    let document: Value = serde_json::from_str(&text)?;
    assert_eq!(document["info"]["title"], format!("[redacted:session-title:{EXPORTED_ID}]"));
    assert_eq!(
        document["messages"][0]["info"]["summary"]["diffs"][0]["file"],
        "[redacted:message-diff-file:0]"
    );
    let parts = document["messages"][1]["parts"].as_array().context("parts")?;
    let state = |id: &str| parts.iter().find(|part| part["id"] == id).map(|part| part["state"].clone());
    let completed = state("prt_s94").context("a call")?;
    assert_eq!(completed["output"], "[redacted:tool-output:prt_s94]");
    assert_eq!(completed["input"], json!({}));
    assert_eq!(completed["attachments"][0]["url"], "[redacted:file-url:prt_s95]");
    assert_eq!(state("prt_s92").context("a call")?["input"], json!({"redacted": "tool-input:prt_s92"}));
    for secret in ["secret", "/project", "the diff", "@general"] {
        assert!(!text.contains(secret), "`{secret}` is in {text}");
    }
    Ok(())
}

#[test]
fn an_invalid_document_is_rejected_with_the_position() -> Result<()> {
    let project = Project::git()?;
    let changed = |change: fn(&mut Value)| {
        let mut document = exported();
        change(&mut document);
        serde_json::to_string_pretty(&document).unwrap_or_default()
    };
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (text, expected) in [
        ("{bad".to_owned(), vec!["line 1 column 2"]),
        (String::new(), vec!["EOF"]),
        ("[]".to_owned(), vec!["standard input"]),
        ("{\"info\":{}}".to_owned(), vec!["missing field `messages`"]),
        (deep, vec!["standard input"]),
        (
            changed(|d| d["info"]["id"] = json!("../../etc/passwd")),
            vec!["`info` (from line 2)", "not a valid id"],
        ),
        (
            changed(|d| d["messages"][1]["parts"][3]["type"] = json!(7)),
            vec!["`messages[1].parts[3]`", "`type`", "line "],
        ),
        (
            changed(|d| d["messages"][0]["parts"][0]["text"] = json!(7)),
            vec!["`messages[0].parts[0]`", "string"],
        ),
        (changed(|d| d["messages"][1]["info"]["time"] = json!(-1)), vec!["`messages[1].info`"]),
        (changed(|d| d["messages"][0]["parts"][0]["id"] = json!("prt_s2")), vec!["`prt_s2` is used twice"]),
        (changed(|d| d["info"]["time"]["created"] = json!(u64::MAX)), vec!["time.created"]),
        (
            changed(|d| d["messages"][1]["info"]["time"]["created"] = json!(253_402_300_799_000_u64)),
            vec!["`messages[1].info`", "`time.created` is more than a day ahead"],
        ),
    ] {
        let done = program(&project, ["import", "-"]).stdin(text.clone()).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &expected);
        check_harmless(&done.stderr);
    }
    assert_eq!(number(&project, "SELECT count(*) FROM event")?, 0);
    let missing = run(&project, ["import", "nowhere.json"])?;
    check_code(&missing, 1);
    check_has(&missing.stderr, &["file not found: `nowhere.json`"]);
    Ok(())
}

#[test]
fn ids_of_another_session_are_rejected_and_nothing_is_stored() -> Result<()> {
    let project = Project::git()?;
    import(&project, &exported())?.success()?;
    let before = number(&project, "SELECT count(*) FROM event")?;
    let mut other = exported();
    other["info"]["id"] = json!("ses_other1");
    let done = import(&project, &other)?;
    check_code(&done, 1);
    check_has(&done.stderr, &["`msg_s1` is used by another message"]);
    assert_eq!(number(&project, "SELECT count(*) FROM event")?, before);
    assert_eq!(number(&project, "SELECT count(*) FROM session")?, 1);
    Ok(())
}

#[test]
fn a_newer_export_adds_messages_and_a_different_one_is_rejected() -> Result<()> {
    let project = Project::git()?;
    let mut older = exported();
    older["messages"].as_array_mut().context("messages")?.truncate(1);
    import(&project, &older)?.success()?;
    let newer = import(&project, &exported())?.success()?;
    check_has(&newer.stderr, &["new messages were added"]);
    assert_eq!(normal(export(&project, EXPORTED_ID)?), normal(exported()));
    let mut other = exported();
    other["messages"][0]["parts"][0]["text"] = json!("something else");
    let refused = import(&project, &other)?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["was not imported", "codewright session delete"]);
    assert_eq!(normal(export(&project, EXPORTED_ID)?), normal(exported()));
    Ok(())
}

#[test]
fn an_installation_is_imported_and_not_changed() -> Result<()> {
    let project = Project::git()?;
    let (data, writer) = installation(&project)?;
    let before = bytes(&data)?;
    assert!(before.len() > 2, "the database has its log and shared memory beside it");
    let dry = run(&project, ["import", "--from", "opencode", "--dry-run"])?.success()?;
    check_has(&dry.stdout, &["nothing was changed", "imported   2"]);
    assert_eq!(number(&project, "SELECT count(*) FROM event")?, 0);
    let done = run(&project, ["import", "--from", "opencode"])?.success()?;
    check_has(&done.stdout, &["imported   2", "skipped    0"]);
    assert!(bytes(&data)? == before, "the installation was changed");

    let theirs = |sql: &str| writer.query_row(sql, [], |row| row.get::<_, i64>(0));
    for table in ["session", "message", "part", "todo"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(number(&project, &sql)?, theirs(&sql)?, "{table}");
    }
    let mut statement = writer.prepare("SELECT id, data FROM part WHERE session_id = ?1 ORDER BY id")?;
    let parts: Vec<(String, String)> = statement
        .query_map([WORK], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let document = export(&project, WORK)?;
    let ours: BTreeMap<_, _> = document["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|message| message["parts"].as_array().into_iter().flatten())
        .map(|part| (part["id"].as_str().unwrap_or_default(), part))
        .collect();
    assert_eq!(parts.len(), ours.len());
    for (id, data) in &parts {
        let mut part = (*ours.get(id.as_str()).context("the part is missing")?).clone();
        let fields = part.as_object_mut().context("an object")?;
        for key in ["id", "sessionID", "messageID"] {
            fields.remove(key);
        }
        assert_eq!(part, serde_json::from_str::<Value>(data)?, "{id}");
    }
    // The queries above changed the files.
    let before = bytes(&data)?;
    let again = run(&project, ["import", "--from", "opencode"])?.success()?;
    check_has(&again.stdout, &["imported   0", "updated    0", "unchanged  2"]);
    assert!(bytes(&data)? == before, "the installation was changed");
    Ok(())
}

/// Every row of the projected tables.
fn tables(project: &Project) -> Result<Vec<String>> {
    let connection = Connection::open(database(project))?;
    let mut found = Vec::new();
    for table in ["session", "message", "part", "permission_request", "todo"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<rusqlite::types::Value> =
                (0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?;
            found.push(format!("{table} {values:?}"));
        }
    }
    found.sort();
    Ok(found)
}

#[test]
fn imported_sessions_can_be_rebuilt_from_the_log() -> Result<()> {
    let project = Project::git()?;
    let (_data, _writer) = installation(&project)?;
    run(&project, ["import", "--from", "opencode"])?.success()?;
    // One is also imported as a changed document.
    let mut document = export(&project, WORK)?;
    document["info"]["title"] = json!("Another title");
    document["info"]["time"]["updated"] = json!(1_895_054_164_090_u64);
    project.write("document.json", document.to_string())?;
    run(&project, ["import", "document.json"])?.success()?;
    let before = tables(&project)?;
    assert!(before.len() > 20 && before.iter().any(|row| row.starts_with("todo ")), "{before:#?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let clock = codewright_proto::Clock::system();
        let ids = codewright_proto::Ids::new(clock.clone());
        let store = codewright_store::Store::open(&database(&project), ids, clock).await?;
        store.replay().await?;
        store.close().await
    })?;
    let after = tables(&project)?;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
    Ok(())
}

/// Adds a prompt to a session of an installation, like OpenCode.
fn prompt(writer: &Connection, session: &str, id: u64, text: &str) -> Result<()> {
    let time = 1_795_400_000_000 + id;
    let message = json!({"role": "user", "time": {"created": time}, "agent": "build",
        "model": {"providerID": "mock", "modelID": "plain"}});
    writer.execute(
        "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?3, ?4)",
        (format!("msg_new{id}"), session, time as i64, message.to_string()),
    )?;
    writer.execute(
        "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
        (format!("prt_new{id}"), format!("msg_new{id}"), session, time as i64,
            json!({"type": "text", "text": text}).to_string()),
    )?;
    writer.execute("UPDATE session SET time_updated = ?1 WHERE id = ?2", (time as i64, session))?;
    Ok(())
}

#[test]
fn a_session_that_was_continued_in_opencode_is_updated() -> Result<()> {
    let project = Project::git()?;
    let (_, writer) = installation(&project)?;
    run(&project, ["import", "--from", "opencode"])?.success()?;
    prompt(&writer, CHAT, 1, "and now?")?;
    writer.execute(
        "UPDATE part SET data = json_set(data, '$.text', 'rewritten')
        WHERE session_id = ?1 AND data LIKE '%default answer%'",
        [CHAT],
    )?;
    let gone = writer.execute(
        "DELETE FROM message WHERE id = (SELECT max(id) FROM message WHERE session_id = ?1)",
        [WORK],
    )?;
    ensure!(gone == 1, "a message was removed");
    writer.execute("UPDATE session SET time_updated = time_updated + 1 WHERE id = ?1", [WORK])?;
    let done = run(&project, ["import", "--from", "opencode"])?.success()?;
    check_has(&done.stdout, &["imported   0", "updated    2"]);
    let text = export(&project, CHAT)?.to_string();
    check_has(&text, &["and now?", "rewritten"]);
    assert!(!text.contains("default answer"));
    for table in ["message", "part"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE session_id = '{CHAT}'");
        assert_eq!(number(&project, &sql)?, writer.query_row(&sql, [], |row| row.get::<_, i64>(0))?);
    }
    let sql = format!("SELECT count(*) FROM message WHERE session_id = '{WORK}'");
    assert_eq!(number(&project, &sql)?, writer.query_row(&sql, [], |row| row.get::<_, i64>(0))?);
    Ok(())
}

#[test]
fn a_session_that_was_continued_here_is_not_overwritten() -> Result<()> {
    let stage = Stage::git(Script::new().text("Gladly."))?;
    let (_, writer) = installation(&stage.project)?;
    // The sessions' directory does not exist here, so they are continued in this one.
    let here = stage.project.directory().canonicalize()?;
    writer.execute("UPDATE session SET directory = ?1", [here.to_str().context("a path")?])?;
    run(&stage.project, ["import", "--from", "opencode"])?.success()?;
    stage.run(["-s", CHAT, "-m", "mock/plain-model", "go on here"])?.success()?;
    prompt(&writer, CHAT, 1, "go on there")?;
    prompt(&writer, WORK, 2, "and there")?;
    let done = run(&stage.project, ["import", "--from", "opencode"])?.success()?;
    check_has(
        &done.stdout,
        &["updated    1", "skipped    1", &format!("{CHAT}: it was continued here since")],
    );
    let text = export(&stage.project, CHAT)?.to_string();
    check_has(&text, &["go on here", "Gladly."]);
    assert!(!text.contains("go on there"));
    stage.no_problems()
}

#[test]
fn one_invalid_session_does_not_block_the_others() -> Result<()> {
    let project = Project::git()?;
    let (_, writer) = installation(&project)?;
    writer.execute_batch(
        "CREATE TABLE novelty (id text); INSERT INTO novelty VALUES ('x');
        ALTER TABLE session ADD COLUMN flavour text; ALTER TABLE session DROP COLUMN metadata;
        ALTER TABLE session DROP COLUMN tokens_reasoning; DROP TABLE todo;",
    )?;
    writer.execute(
        "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
        SELECT 'bad id', project_id, 's', '/', 't', 'v', 1, 1 FROM session LIMIT 1",
        [],
    )?;
    writer.execute(
        "UPDATE part SET data = '{broken' WHERE id = (SELECT min(id) FROM part WHERE session_id = ?1)",
        [CHAT],
    )?;
    let done = run(&project, ["import", "--from", "opencode"])?.success()?;
    check_has(
        &done.stdout,
        &[
            "imported   2",
            "skipped    1",
            "bad id",
            "`session.flavour` is unknown",
            "`session.metadata` is missing",
            "the table `todo` is missing",
            "the table `novelty` has 1 rows",
            "kept as it is: a part that is not a JSON object",
        ],
    );
    check_has(&export(&project, CHAT)?.to_string(), &["{broken", "default answer"]);
    Ok(())
}

#[test]
fn a_missing_installation_is_reported_with_its_path() -> Result<()> {
    let project = Project::git()?;
    let done = run(&project, ["import", "--from", "opencode"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["there is no database", "opencode/opencode.db", "--data DIR"]);
    let file = project
        .write("not.db", "this is not a database, but long enough to be looked at as one".repeat(20))?;
    let done = run(&project, ["import", "--from", "opencode", "--data", file.to_str().context("a path")?])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["not.db", "not a database"]);
    Ok(())
}

#[test]
fn an_installation_is_imported_into_postgresql() -> Result<()> {
    let Some(server) = codewright_testkit::Postgres::start() else { return Ok(()) };
    let project = Project::git()?;
    let (_data, _writer) = installation(&project)?;
    let url = server.url("postgres", "");
    let with_store = |args: &[&str]| program(&project, args.iter().copied()).env("CODEWRIGHT_STORE", &url);
    let done = with_store(&["import", "--from", "opencode"]).finish()?.success()?;
    check_has(&done.stdout, &["imported   2", "skipped    0"]);
    let document = with_store(&["export", WORK]).finish()?.success()?.stdout;
    ensure!(document.contains(WORK) && document.contains("\"parts\""), "{document}");
    Ok(())
}

#[test]
fn a_killed_import_is_completed() -> Result<()> {
    let project = Project::git()?;
    let (_, writer) = installation(&project)?;
    let transaction = writer.unchecked_transaction()?;
    for n in 0..400 {
        transaction.execute("INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
            SELECT 'ses_n' || ?1, project_id, slug, directory, 'n', version, time_created + 1, time_updated FROM session WHERE id = ?2",
            (n as i64, CHAT))?;
        for m in 0..5 {
            prompt(&transaction, &format!("ses_n{n}"), n * 10 + m + 1000, "more")?;
        }
    }
    transaction.commit()?;
    let running = program(&project, ["import", "--from", "opencode"]).start()?;
    let imported = project.home().join(".local/share/codewright/imported");
    crate::support::wait_until("some sessions", || {
        fs::read_dir(&imported).is_ok_and(|found| found.count() > 20)
    })?;
    // Dropping it kills it.
    drop(running);
    let done = run(&project, ["import", "--from", "opencode"])?.success()?;
    check_has(&done.stdout, &["skipped    0"]);
    for table in ["session", "message", "part"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(
            number(&project, &sql)?,
            writer.query_row(&sql, [], |row| row.get::<_, i64>(0))?,
            "{table}"
        );
    }
    let left = fs::read_dir(project.home().join(".local/share/codewright"))?.flatten();
    assert!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with("import-")).count() <= 1);
    Ok(())
}

#[test]
fn sessions_are_listed_and_deleted() -> Result<()> {
    let project = Project::git()?;
    check_code(&run(&project, ["session", "list"])?, 0);
    let mut document = exported();
    document["info"]["parentID"] = Value::Null;
    document["info"]["title"] = json!("a\u{1b}[31m title\nof two lines");
    import(&project, &document)?.success()?;
    let table = run(&project, ["session", "list"])?.success()?.stdout;
    check_has(&table, &["Session ID", "Updated", EXPORTED_ID, "a title of two lines"]);
    assert_eq!(table.lines().count(), 3);
    check_harmless(&table);
    let listed: Value = serde_json::from_str(
        &run(&project, ["session", "list", "--format", "json", "-n", "5"])?.success()?.stdout,
    )?;
    assert_eq!(listed[0]["id"], EXPORTED_ID);
    assert_eq!(crate::support::keys(&listed[0]), "created directory id projectId title updated");
    assert_eq!(run(&project, ["session", "list", "-n", "0"])?.success()?.stdout, "");
    let unknown = run(&project, ["session", "delete", "ses_nope"])?;
    check_code(&unknown, 1);
    check_has(&unknown.stderr, &["Session not found: ses_nope"]);
    let done = run(&project, ["session", "delete", EXPORTED_ID])?.success()?;
    check_has(&done.stderr, &[&format!("Session {EXPORTED_ID} deleted")]);
    check_code(&run(&project, ["export", EXPORTED_ID])?, 1);
    assert_eq!(fs::read_dir(project.home().join(".local/share/codewright/imported"))?.count(), 0);
    // A deleted session can be imported again.
    import(&project, &document)?.success()?;
    assert_eq!(number(&project, "SELECT count(*) FROM part")?, 17);
    Ok(())
}

#[test]
fn an_export_needs_a_session() -> Result<()> {
    let project = Project::git()?;
    for (args, expected) in [
        (&["export"][..], "this project has no sessions yet"),
        (&["export", "foo"], "must start with `ses_`"),
        (&["export", "ses_nope"], "Session not found: ses_nope"),
    ] {
        let done = run(&project, args.iter().copied())?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
    }
    let mut document = exported();
    document["info"]["parentID"] = Value::Null;
    import(&project, &document)?.success()?;
    let done = run(&project, ["export"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["missing session id", EXPORTED_ID, "session list"]);
    assert_eq!(done.stdout, "");
    Ok(())
}

#[test]
fn the_database_answers_queries() -> Result<()> {
    let project = Project::git()?;
    let path = run(&project, ["db", "path"])?.success()?.stdout;
    assert_eq!(path.trim(), database(&project).to_str().context("a path")?);
    let sql = "select null as a, 'x\ty' as b, 1.5 as c, x'0001' as d, 7 as e";
    assert_eq!(run(&project, ["db", sql])?.success()?.stdout, "a\tb\tc\td\te\n\tx\ty\t1.5\t0,1\t7\n");
    let rows: Value =
        serde_json::from_str(&run(&project, ["db", sql, "--format", "json"])?.success()?.stdout)?;
    assert_eq!(rows, json!([{"a": null, "b": "x\ty", "c": 1.5, "d": {"0": 0, "1": 1}, "e": 7}]));
    assert_eq!(run(&project, ["db", "select 1 where 0"])?.success()?.stdout, "");
    assert_eq!(run(&project, ["db", "select 1 where 0", "--format", "json"])?.success()?.stdout, "[]\n");
    let wrong = run(&project, ["db", "select * from nope"])?;
    check_code(&wrong, 1);
    check_has(&wrong.stderr, &["no such table: nope"]);
    let piped = program(&project, ["db"]).stdin("select 1 as x;\nselect\n 2 as y;\n").finish()?.success()?;
    assert_eq!(piped.stdout, "x\n1\ny\n2\n");
    let quiet = run(&project, ["db", "select count(*) from session"])?.success()?;
    assert_eq!(quiet.stderr, "");
    let writes = run(&project, ["db", "delete from todo where 0"])?.success()?;
    check_has(&writes.stderr, &["the event log, from which rows are rebuilt, stays unchanged"]);
    Ok(())
}

#[test]
fn usage_is_summed_up() -> Result<()> {
    let project = Project::git()?;
    let empty = run(&project, ["stats"])?.success()?.stdout;
    check_has(
        &empty,
        &[
            "│Sessions                                              0 │",
            "│Days                                                  0 │",
        ],
    );
    installation(&project)?;
    run(&project, ["import", "--from", "opencode"])?.success()?;
    let text = run(&project, ["stats", "--models", "1", "--tools", "2"])?.success()?.stdout;
    check_has(
        &text,
        &[
            "│                       OVERVIEW                         │",
            "│Sessions                                              2 │",
            "│Messages                                              6 │",
            "│Days                                                  4 │",
            "│Median Tokens/Session                               246 │",
            "│ mock/plain                                             │",
            "│  Input Tokens                                     1.2M │",
            "│  Output Tokens                                   16.2K │",
            "│  Cost                                         $12.3459 │",
            "│ a_tool_with_a_ve.. ████████████████████   7 (53.8%)    │",
            "│ bash               ███████████            4 (30.8%)    │",
        ],
    );
    assert!(!text.contains("todowrite"), "{text}");
    check_has(
        &run(&project, ["stats", "--project", "nonexistent"])?.success()?.stdout,
        &["Sessions                                              0"],
    );
    check_has(
        &run(&project, ["stats", "--project"])?.success()?.stdout,
        &["Sessions                                              0"],
    );
    Ok(())
}

#[test]
fn a_closed_pipe_ends_an_export_quietly() -> Result<()> {
    let project = Project::git()?;
    let mut document = exported();
    let text = "long ".repeat(1 << 20);
    document["messages"][0]["parts"][0]["text"] = json!(text);
    import(&project, &document)?.success()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_codewright"));
    command.env_clear().envs(project.environment()).current_dir(project.directory());
    command.args(["export", EXPORTED_ID]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stdout.take().context("a pipe")?;
    pipe.read_exact(&mut [0; 16])?;
    drop(pipe);
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert_eq!(stderr, format!("Exporting session: {EXPORTED_ID}\n"));
    Ok(())
}

#[test]
fn a_share_is_fetched_from_its_server() -> Result<()> {
    let project = Project::git()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    project.write_config(&json!({"enterprise": {"url": url}}))?;
    let document = exported();
    let mut items =
        vec![json!({"type": "session", "data": document["info"]}), json!({"type": "model", "data": []})];
    for message in document["messages"].as_array().context("messages")? {
        items.push(json!({"type": "message", "data": message["info"]}));
        let parts = message["parts"].as_array().context("parts")?;
        items.extend(parts.iter().map(|part| json!({"type": "part", "data": part})));
    }
    let body = Value::from(items).to_string();
    let server = std::thread::spawn(move || -> Result<String> {
        let (mut stream, _) = listener.accept()?;
        let mut request = [0; 2048];
        let read = stream.read(&mut request)?;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        Ok(String::from_utf8_lossy(&request[..read]).lines().next().unwrap_or_default().to_owned())
    });
    run(&project, ["import", &format!("{url}/share/aBc1")])?.success()?;
    assert_eq!(server.join().expect("the thread ends")?, "GET /api/share/aBc1/data HTTP/1.1");
    assert_eq!(normal(export(&project, EXPORTED_ID)?), normal(document));
    let refused = run(&project, ["import", "https://example.com/share/aBc1"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["is not the address of a share", "/share/NAME"]);
    Ok(())
}

#[test]
fn a_long_session_is_imported_and_exported() -> Result<()> {
    let project = Project::git()?;
    let (_, writer) = installation(&project)?;
    let transaction = writer.unchecked_transaction()?;
    for n in 0..10_000 {
        prompt(&transaction, CHAT, n, "a line of a long conversation")?;
    }
    transaction.commit()?;
    run(&project, ["import", "--from", "opencode"])?.success()?;
    let document = export(&project, CHAT)?;
    assert_eq!(document["messages"].as_array().map(Vec::len), Some(10_002));
    assert!(document.to_string().contains("prt_new9999"));
    Ok(())
}
