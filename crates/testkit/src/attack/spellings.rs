//! Spellings of addresses and places that a filter and the engine could read differently. Each row has a secret of its own,
//! so that a spelling that works is known.

use anyhow::Result;
use serde_json::{Value, json};

use super::Kind;
use super::case::{Case, attack};
use super::people::{Team, with_team};
use super::scene::Scene;

/// Spellings of the address of a file. `{P}` is the project, `{F}` the file outside, and `{N}` its name in the directory
/// beside the project.
const ADDRESSES: &[(&str, &str)] = &[
    ("plain", "file://{F}"),
    ("one-slash", "file:{F}"),
    ("four-slashes", "file:///{F}"),
    ("upper-case", "FILE://{F}"),
    ("mixed-case", "File://{F}"),
    ("this-host", "file://localhost{F}"),
    ("other-host", "file://example.org{F}"),
    ("user-of-a-host", "file://user@localhost{F}"),
    ("fragment", "file://{P}/a#/../../outside/{N}"),
    ("fragment-of-a-directory", "file://{P}/dir#/../../outside/{N}"),
    ("fragment-after", "file://{F}#{P}"),
    ("query", "file://{P}/a?/../../outside/{N}"),
    ("query-after", "file://{F}?start=1"),
    ("fragment-and-query", "file://{P}/dir#?/../../outside/{N}"),
    ("encoded-fragment", "file://{P}/dir%23/../../outside/{N}"),
    ("encoded-query", "file://{P}/dir%3f/../../outside/{N}"),
    ("climbing", "file://{P}/../outside/{N}"),
    ("climbing-encoded", "file://{P}/%2e%2e/outside/{N}"),
    ("climbing-encoded-slash", "file://{P}/..%2foutside%2f{N}"),
    ("climbing-doubled", "file://{P}/%252e%252e/outside/{N}"),
    ("climbing-from-a-link", "file://{P}/link/../outside/{N}"),
    ("dots", "file://{P}/./.././outside/{N}"),
    ("doubled-slash", "file://{P}//..//outside//{N}"),
    ("link", "file://{P}/link/{N}"),
    ("link-encoded", "file://{P}/l%69nk/{N}"),
    ("backslash", "file://{P}\\..\\outside\\{N}"),
    ("tab", "fi\tle://{F}"),
    ("newline", "file:\n//{F}"),
    ("space-before", " file://{F}"),
    ("space-after", "file://{F} "),
    ("nul", "file://{P}/dir%00/../../outside/{N}"),
    ("no-scheme", "{F}"),
    ("no-scheme-relative", "../outside/{N}"),
    ("parameters", "file://{F};type=a"),
    ("view-source", "view-source:file://{F}"),
    ("nested", "file://file://{F}"),
    ("wide-letters", "\u{ff46}ile://{F}"),
    ("proc", "file:///proc/self/root{F}"),
    ("proc-cwd", "file:///proc/self/cwd/../outside/{N}"),
];

/// The name, the path and the body of a request.
type AttachRoute = (&'static str, &'static str, &'static str);

/// Ways to attach a file by its address `URL`: the path with the session `S`, and the body.
const ROUTES: &[(&str, &str, &str)] = &[
    (
        "parts",
        "/session/S/message",
        r#"{"noReply": true, "parts": [{"type": "text", "text": "t"}, {"type": "file", "mime": "text/plain", "url": "URL"}]}"#,
    ),
    (
        "binary",
        "/session/S/message",
        r#"{"noReply": true, "parts": [{"type": "text", "text": "t"}, {"type": "file", "mime": "application/octet-stream", "url": "URL"}]}"#,
    ),
    (
        "content",
        "/session/S/message",
        r#"{"noReply": true, "content": [{"type": "text", "text": "t"}, {"type": "file", "mime": "text/plain", "url": "URL"}]}"#,
    ),
    (
        "async",
        "/session/S/prompt_async",
        r#"{"noReply": true, "parts": [{"type": "text", "text": "t"}, {"type": "file", "mime": "text/plain", "url": "URL"}]}"#,
    ),
    (
        "command",
        "/session/S/command",
        r#"{"command": "plain", "arguments": "", "parts": [{"type": "file", "mime": "text/plain", "url": "URL"}]}"#,
    ),
    (
        "v2",
        "/api/session/S/prompt",
        r#"{"prompt": {"text": "t", "files": [{"uri": "URL"}]}, "resume": false}"#,
    ),
    (
        "source",
        "/session/S/message",
        r#"{"noReply": true, "parts": [{"type": "text", "text": "t"}, {"type": "file", "mime": "text/plain", "url": "URL", "source": {"type": "file", "path": "URL", "text": {"value": "x", "start": 0, "end": 1}}}]}"#,
    ),
];

/// Requests that name a place: the path, and a header with its value.
const PLACES: &[(&str, &str, Option<&str>)] = &[
    ("directory", "/file/content?path={N}&directory={O}", None),
    ("directory-second", "/file/content?path={N}&directory={P}&directory={O}", None),
    ("directory-first", "/file/content?path={N}&directory={O}&directory={P}", None),
    ("directory-encoded-name", "/file/content?path={N}&%64irectory={O}", None),
    ("directory-capitals", "/file/content?path={N}&Directory={O}", None),
    ("directory-semicolon", "/file/content?path={N};directory={O}", None),
    ("directory-climbing", "/file/content?path={N}&directory={P}/../outside", None),
    ("directory-climbing-encoded", "/file/content?path={N}&directory={P}%2f%2e%2e%2foutside", None),
    ("directory-link", "/file/content?path={N}&directory={P}/link", None),
    ("directory-doubled", "/file/content?path={N}&directory=/{O}", None),
    ("directory-trailing", "/file/content?path={N}&directory={O}/", None),
    ("location", "/file/content?path={N}&location[directory]={O}", None),
    ("location-encoded", "/file/content?path={N}&location%5Bdirectory%5D={O}", None),
    ("location-beside-directory", "/file/content?path={N}&directory={P}&location[directory]={O}", None),
    ("location-before-directory", "/file/content?path={N}&location[directory]={O}&directory={P}", None),
    ("location-v2", "/api/fs/read/{N}?location[directory]={O}", None),
    ("location-v2-second", "/api/fs/read/{N}?location[directory]={P}&location[directory]={O}", None),
    ("location-v2-beside-directory", "/api/fs/read/{N}?location[directory]={O}&directory={P}", None),
    ("location-v2-plain", "/api/fs/read/{N}?location={O}", None),
    ("location-v2-json", "/api/fs/read/{N}?location=%7B%22directory%22%3A%22{O}%22%7D", None),
    ("header", "/file/content?path={N}", Some("{O}")),
    ("header-beside-query", "/file/content?path={N}&directory={P}", Some("{O}")),
    ("header-under-query", "/file/content?path={N}&directory={O}", Some("{P}")),
    ("header-climbing", "/file/content?path={N}", Some("{P}/../outside")),
    ("header-encoded", "/file/content?path={N}", Some("{P}%2F..%2Foutside")),
    ("header-doubled", "/file/content?path={N}", Some("{P}%252F..%252Foutside")),
    ("path-climbing", "/file/content?path=../outside/{N}", None),
    ("path-climbing-encoded", "/file/content?path=%2e%2e%2foutside%2f{N}", None),
    ("path-climbing-doubled", "/file/content?path=%252e%252e/outside/{N}", None),
    ("path-absolute", "/file/content?path={O}/{N}", None),
    ("path-link", "/file/content?path=link/{N}", None),
    ("path-second", "/file/content?path=README.md&path=../outside/{N}", None),
    ("path-backslash", "/file/content?path=..%5Coutside%5C{N}", None),
    ("v2-climbing", "/api/fs/read/../outside/{N}", None),
    ("v2-climbing-encoded", "/api/fs/read/%2e%2e/outside/{N}", None),
    ("v2-climbing-slash", "/api/fs/read/..%2foutside%2f{N}", None),
    ("v2-absolute", "/api/fs/read/{O}/{N}", None),
    ("v2-absolute-encoded", "/api/fs/read/%2f{O}%2f{N}", None),
    ("v2-link", "/api/fs/read/link/{N}", None),
    ("find", "/find?pattern=SPELLED&directory={P}&path=../outside", None),
    ("find-location", "/find?pattern=SPELLED&location[directory]={O}", None),
    ("find-v2", "/api/fs/find?query=s&location[directory]={O}", None),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        ROUTES.iter().enumerate().map(|(number, route)| attached(number, route)).collect();
    cases.push(placed());
    cases
}

/// The name of the file of a row.
fn name(number: usize) -> String {
    format!("s{number}.txt")
}

/// The text of the file of a row, which is no part of another one.
fn word(number: usize) -> String {
    format!("SPELLED-{number}-")
}

fn prepared(name: &str, count: usize) -> Case {
    let case = attack(Kind::Spellings, name)
        .uncontrolled("not every spelling is one for the engine, and a filter must refuse it all the same")
        .user(r#"{"command": {"plain": {"template": "hello"}}}"#)
        .link("link", "@O")
        .file("dir#/x", "x")
        .file("dir?/x", "x")
        .file("a", "x");
    (0..count).fold(case, |case, number| {
        case.file(format!("@O/{}", self::name(number)), format!("{}\n", word(number)))
    })
}

fn spelled(scene: &Scene, text: &str, number: usize) -> String {
    let outside = scene.fill("@O");
    text.replace("{F}", &format!("{outside}/{}", name(number)))
        .replace("{N}", &name(number))
        .replace("{P}", &scene.fill("@P"))
        .replace("{O}", &outside)
}

/// A member attaches files of others by every spelling, by one route.
fn attached(first: usize, route: &'static AttachRoute) -> Case {
    let (route_name, path, body) = route;
    let case = prepared(&format!("address/{route_name}"), ADDRESSES.len());
    let case = if first == 0 { case.short() } else { case };
    let case = case.play(move |scene| {
        with_team(scene, |team| {
            for (number, (_, address)) in ADDRESSES.iter().enumerate() {
                // A session for each, so that one refused message does not end the others.
                let session = team.session("bob")?;
                let address = json!(spelled(scene, address, number)).to_string();
                let body = body.replace("\"URL\"", &address);
                team.send("bob", "POST", &path.replace("/S/", &format!("/{session}/")), &body)?;
                shown(team, &session, number)?;
            }
            Ok(())
        })
    });
    ADDRESSES
        .iter()
        .enumerate()
        .fold(case, |case, (number, (name, _))| case.row(*name, move |scene| found(scene, number)))
}

/// Keeps what a session shows to its owner, for the row with this number.
fn shown(team: &Team<'_>, session: &str, number: usize) -> Result<()> {
    let mut all = Value::Null;
    // A prompt without a waiting client is stored a moment later.
    for _ in 0..3 {
        all = team.json("bob", "GET", &format!("/session/{session}/message"), &Value::Null)?.1;
        if all.as_array().is_some_and(|all| !all.is_empty()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    team.scene.write(&format!("@O/results/{number}"), &base64_text(&all)).map(drop)
}

/// Returns a value as text, in which attached bytes are readable.
fn base64_text(value: &Value) -> String {
    let text = value.to_string();
    let mut readable = text.clone();
    for part in text.split(";base64,").skip(1) {
        let end = part.find('"').unwrap_or(part.len());
        readable.push_str(&decoded(&part[..end]));
    }
    readable
}

/// Decodes base64 and drops everything that is no text.
fn decoded(text: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for value in text.bytes().filter_map(|byte| ALPHABET.iter().position(|other| *other == byte)) {
        bits = (bits << 6) | u32::try_from(value).unwrap_or(0);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 0xff).unwrap_or(0));
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn found(scene: &Scene, number: usize) -> Option<String> {
    let text = std::fs::read_to_string(scene.path(&format!("@O/results/{number}"))).unwrap_or_default();
    let in_model = || scene.requests().iter().any(|request| request.body.to_string().contains(&word(number)));
    (text.contains(&word(number)) || in_model()).then(|| format!("the file with `{}` was read", word(number)))
}

/// A member reads files of others by every spelling of a place.
fn placed() -> Case {
    let case = prepared("place", PLACES.len()).play(|scene| {
        with_team(scene, |team| {
            for (number, (_, path, header)) in PLACES.iter().enumerate() {
                let path = spelled(scene, path, number);
                let header = header.map(|header| spelled(scene, header, number));
                let text = team.placed("bob", &path, header.as_deref())?;
                scene.write(&format!("@O/results/{number}"), &text)?;
            }
            Ok(())
        })
    });
    PLACES
        .iter()
        .enumerate()
        .fold(case, |case, (number, (name, _, _))| case.row(*name, move |scene| found(scene, number)))
}
