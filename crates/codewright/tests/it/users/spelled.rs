//! Random spellings of paths, methods and parameters. The filter for members and the router must understand each in the same way.

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::Script;
use serde_json::{Value, json};

use super::{SECRET, Team, token};
use crate::support::Call;

/// Random numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end.max(1)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Another spelling of a path.
fn spelled(path: &str, numbers: &mut Numbers) -> String {
    let mut spelled = String::new();
    for character in path.chars() {
        match (character, numbers.below(12)) {
            ('/', 0) => {
                spelled.push_str(numbers.one(&["//", "/./", "/x/../", "%2f", "%2F", "/%2e/", "\\", "/;/"]));
            }
            (other, 1) if other.is_ascii() => spelled.push_str(&format!("%{:02x}", u32::from(other))),
            (other, 2) if other.is_ascii_alphabetic() && numbers.below(3) == 0 => {
                spelled.push(if other.is_lowercase() { other.to_ascii_uppercase() } else { other });
            }
            (other, _) => spelled.push(other),
        }
    }
    spelled.push_str(numbers.one(&["", "", "", "/", "//", "%00", "%20", ";x=y", ".", "/..;/", "?", "%3f"]));
    spelled
}

const METHODS: &[&str] =
    &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "Post"];

#[test]
fn no_spelling_of_a_request_does_what_the_request_may_not() -> Result<()> {
    let team = Team::new(Script::new().title("zebra title").text("zebra answer"))?;
    let session = team.session("alice", "zebra session")?;
    assert_eq!(team.prompt("alice", &session, "zebra prompt")?, 200);
    let path = format!("/session/{session}");
    let state = || -> Result<Value> {
        let messages = team.json("alice", "GET", &format!("{path}/message"), &Value::Null)?;
        Ok(json!([team.json("alice", "GET", &path, &Value::Null)?, messages]))
    };
    let before = state()?;
    let document = team.json("bob", "GET", "/doc", &Value::Null)?;
    let paths = document["paths"].as_object().context("no paths")?;
    let is_stream = |methods: &Value| methods.to_string().contains("text/event-stream");
    let templates: Vec<&String> =
        paths.iter().filter(|(_, methods)| !is_stream(methods)).map(|(path, _)| path).collect();
    let of_session: Vec<&&String> = templates.iter().filter(|path| path.contains("{sessionID}")).collect();
    let (mut numbers, mut ran) = (Numbers(34), 0);
    for number in 0..1500 {
        let template = of_session[numbers.below(of_session.len())];
        let filled = template.replace("{sessionID}", &session);
        let filled: Vec<&str> =
            filled.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
        let target = spelled(&filled.join("/"), &mut numbers);
        let method = numbers.one(METHODS);
        let body = if numbers.below(2) == 0 { "" } else { "{\"title\":\"mine\",\"directory\":\"/\"}" };
        let authorization = format!("Bearer {}", token("bob"));
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X-HTTP-Method-Override", numbers.one(METHODS)),
            ("X-Original-URL", path.as_str()),
            ("X-Rewrite-URL", path.as_str()),
        ];
        let (status, text) =
            Call { url: &team.url, method, path: &target, headers: &headers, body }.send()?;
        ensure!(!text.to_lowercase().contains(SECRET), "{number}: {method} {target}: {text}");
        // Without the id it is another request, and a preflight says nothing about a session.
        let is_refused = (400..600).contains(&status);
        ensure!(is_refused || method == "OPTIONS", "{number}: {method} {target}: {status} {text}");
        ran += usize::from(matches!(status, 403 | 404));
    }
    ensure!(ran > 500, "{ran}");
    assert_eq!(state()?, before, "a foreign user changed the session");
    Ok(())
}

#[test]
fn no_spelling_of_a_directory_leads_out_of_those_of_users() -> Result<()> {
    let team = Team::new(Script::new())?;
    let outside = team.stage.project.home().join("zebra");
    std::fs::create_dir_all(&outside)?;
    std::fs::write(outside.join("zebra.txt"), "zebra\n")?;
    let (inside, outside) =
        (team.stage.project.directory().display().to_string(), outside.display().to_string());
    let encoded = |text: &str, numbers: &mut Numbers| -> String {
        let byte = |byte: u8| match (byte, numbers.below(3)) {
            (b'a'..=b'z' | b'/' | b'.', 1..) => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let mut numbers = Numbers(7);
    for number in 0..300 {
        let place = [
            outside.clone(),
            format!("{inside}/../zebra"),
            format!("{inside}/./../zebra/."),
            format!("{inside}//..//zebra/"),
            "../zebra".to_owned(),
        ][numbers.below(5)]
        .clone();
        let (place, good) = (encoded(&place, &mut numbers), encoded(&inside, &mut numbers));
        let name =
            numbers.one(&["directory", "location[directory]", "location%5Bdirectory%5D", "d%69rectory"]);
        let query = match numbers.below(4) {
            0 => format!("{name}={place}"),
            1 => format!("{name}={place}&directory={good}"),
            2 => format!("directory={good}&{name}={place}"),
            _ => String::new(),
        };
        let header = if query.is_empty() { place } else { good };
        let route = numbers.one(&[
            "/file?path=.&",
            "/find/file?query=zebra&",
            "/find?pattern=zebra&",
            "/api/fs/list?path=.&",
        ]);
        let authorization = format!("Bearer {}", token("bob"));
        let headers = [("Authorization", authorization.as_str()), ("x-opencode-directory", header.as_str())];
        let path = format!("{route}{query}");
        let (status, text) =
            Call { url: &team.url, method: "GET", path: &path, headers: &headers, body: "" }.send()?;
        let shows = text.contains("zebra.txt");
        ensure!(!shows, "{number}: {path} with {header}: {status} {text}");
    }
    Ok(())
}
