//! Requests to a server from clients that have no right to: pages of other sites, other users, commands.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::Kind;
use super::case::{Case, hostile};
use super::repositories::{OTHER_USER, own};
use super::scene::{KEY, Scene};
use super::wire::{Answer, Wire};

mod floods;

/// Host names that lead to this machine but are not its own.
const HOSTS: &[&str] = &[
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1:80@evil.example",
    "evil.example#127.0.0.1",
    "localhost\\@evil.example",
    "0.0.0.0",
    "169.254.169.254",
    "192.168.0.1",
    "127.0.0.1,evil.example",
    "LOCALHOST.EVIL.EXAMPLE",
    "[::2]",
    "localhost%2eevil.example",
    "",
];

/// Origins of other machines.
const ORIGINS: &[&str] = &[
    "https://evil.example",
    "http://evil.example",
    "null",
    "file://",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "https://app.opencode.ai",
    "https://opencode.ai",
    "https://x.opencode.ai",
    "https://app.opencode.ai.evil.example",
    "http://evil.example:4096",
    "http://0.0.0.0",
    "HTTPS://EVIL.EXAMPLE",
    "moz-extension://x",
    "http://[::ffff:1.2.3.4]",
];

/// Requests of every kind.
const SORTS: &[(&str, &str)] = &[
    ("GET", "/path"),
    ("GET", "/config"),
    ("GET", "/vcs/diff?mode=git"),
    ("GET", "/event"),
    ("HEAD", "/session"),
    ("POST", "/session"),
    ("PATCH", "/config"),
    ("PUT", "/auth/groq"),
    ("DELETE", "/auth/groq"),
];

/// Commands that send a request to the server that runs them. `U` is its address.
const CALLERS: &[(&str, &str)] = &[
    (
        "curl",
        "curl -s -o /dev/null -w '%{http_code}' -X POST -H 'Content-Type: application/json' -d '{}' U/session > code.txt",
    ),
    ("curl-get", "curl -s -o /dev/null -w '%{http_code}' U/session > code.txt"),
    (
        "curl-localhost",
        "curl -s -o /dev/null -w '%{http_code}' -X POST -H 'Content-Type: application/json' -d '{}' $(echo U | sed s/127.0.0.1/localhost/)/session > code.txt",
    ),
    (
        "bash-dev-tcp",
        "bash -c 'A=U; A=${A#http://}; exec 3<>/dev/tcp/${A%:*}/${A#*:}; printf \"GET /session HTTP/1.0\\r\\nHost: $A\\r\\n\\r\\n\" >&3; head -1 <&3 | cut -d\" \" -f2' > code.txt",
    ),
    ("python", "python3 -c 'import urllib.request as u; print(u.urlopen(\"U/session\").status)' > code.txt"),
    ("background", "(curl -s -o /dev/null -w '%{http_code}' U/session > code.txt &) ; sleep 1"),
    ("own-session", "setsid -w curl -s -o /dev/null -w '%{http_code}' U/session > code.txt"),
    (
        "orphan",
        "setsid sh -c '(setsid curl -s -o /dev/null -w \"%{http_code}\" U/session > code.txt &)' ; sleep 1",
    ),
    (
        "forged-header",
        "curl -s -o /dev/null -w '%{http_code}' -H 'X-Forwarded-For: 10.0.0.1' -H 'X-Opencode-Directory: /' U/session > code.txt",
    ),
    ("program-attach", "B run --attach U hello > out.txt 2>&1; echo $? > attached.txt"),
];

/// Directories that a request must not open with an effect.
const DIRECTORIES: &[(&str, &str)] = &[
    ("project", "@P"),
    ("trailing-slash", "@P/"),
    ("climbing", "@O/../project"),
    ("link", "@O/link"),
    ("below", "@P/sub"),
    ("dot-git", "@P/.git"),
    ("encoded", "%2e%2e/project"),
    ("proc", "/proc/self/cwd/../project"),
];

pub(super) fn cases() -> Vec<Case> {
    [
        hosts(),
        origins(),
        browsers(),
        directories(),
        users(),
        callers(),
        passwords(),
        floods::floods(),
        secrets(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn requests(name: &str) -> Case {
    hostile(Kind::Requests, name).states(&[super::Trust::Untrusted])
}

/// Fails unless a request was refused.
fn ensure_refused(what: &str, answer: &Answer) -> Result<()> {
    ensure!(
        !answer.is_obeyed(),
        "{what} was answered {}: {:.160}",
        answer.status,
        answer.text.replace("\r\n", " ")
    );
    Ok(())
}

/// Starts a server, runs a function with it and ends it.
fn served(scene: &Scene, act: impl Fn(&Wire) -> Result<()>) -> Result<()> {
    let (server, wire) = scene.serve("@O")?;
    act(&wire)?;
    scene.end(server)
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn hosts() -> Vec<Case> {
    let mut cases = Vec::new();
    for host in HOSTS {
        let case = requests(&format!("host/{host}")).play(move |scene| {
            served(scene, |wire| {
                for (method, path, body) in [("GET", "/config", ""), ("POST", "/session", "{}")] {
                    let answer = wire.send_raw(method, path, &[("Host", host), JSON], body)?;
                    ensure_refused(&format!("{method} {path} for the host `{host}`"), &answer)?;
                }
                Ok(())
            })
        });
        cases.push(if *host == "evil.example" { case.short() } else { case });
    }
    let raw = |name: &str, text: &'static str| {
        requests(&format!("host/{name}")).play(move |scene| {
            served(scene, |wire| {
                let text = text.replace("ADDRESS", &wire.address);
                ensure_refused(name_of(&text), &wire.bytes(text.as_bytes(), Duration::from_secs(5))?)
            })
        })
    };
    cases.extend([
        raw("two", "GET /config HTTP/1.1\r\nHost: ADDRESS\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
        raw("two-reversed", "GET /config HTTP/1.1\r\nHost: evil.example\r\nHost: ADDRESS\r\nConnection: close\r\n\r\n"),
        raw("absolute-form", "GET http://evil.example/config HTTP/1.1\r\nHost: ADDRESS\r\nConnection: close\r\n\r\n"),
        raw("absolute-form-reversed", "GET http://ADDRESS/config HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
        raw("none", "GET /config HTTP/1.0\r\n\r\n"),
        raw("folded", "GET /config HTTP/1.1\r\nHost: ADDRESS\r\n evil.example\r\nConnection: close\r\n\r\n"),
        raw("connect", "CONNECT ADDRESS HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        raw("smuggled", "POST /log HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /config HTTP/1.1\r\nHost: ADDRESS\r\nConnection: close\r\n\r\n"),
    ]);
    cases
}

fn name_of(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn origins() -> Vec<Case> {
    let mut cases = Vec::new();
    for origin in ORIGINS {
        let case = requests(&format!("origin/{origin}")).config("{}").play(move |scene| {
            served(scene, |wire| {
                for (method, path) in SORTS {
                    let body = if matches!(*method, "GET" | "HEAD" | "DELETE") {
                        ""
                    } else {
                        "{\"type\": \"api\", \"key\": \"x\"}"
                    };
                    let headers: &[_] =
                        if body.is_empty() { &[("Origin", *origin)] } else { &[("Origin", *origin), JSON] };
                    let answer = match *path {
                        "/event" => wire.glance(method, path, headers)?,
                        _ => wire.send(method, path, headers, body)?,
                    };
                    ensure_refused(&format!("{method} {path} of `{origin}`"), &answer)?;
                }
                Ok(())
            })
        });
        cases.push(if *origin == "https://evil.example" { case.short() } else { case });
    }
    // A preflight request has no password, so the one of an allowed origin must succeed without.
    for origin in ["https://evil.example", "null"] {
        cases.push(requests(&format!("preflight/{origin}")).play(move |scene| {
            served(scene, |wire| {
                let headers = [
                    ("Origin", origin),
                    ("Access-Control-Request-Method", "POST"),
                    ("Access-Control-Request-Headers", "content-type"),
                ];
                let answer = wire.send("OPTIONS", "/session", &headers, "")?;
                let head = answer.text.to_lowercase();
                ensure!(
                    !head.contains("access-control-allow-origin"),
                    "a preflight of `{origin}` was granted: {head:.300}"
                );
                Ok(())
            })
        }));
    }
    cases
}

/// Requests that a browser sends for a page of another site.
fn browsers() -> Vec<Case> {
    const SITES: [(&str, &[(&str, &str)]); 5] = [
        (
            "image",
            &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")],
        ),
        (
            "script",
            &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "script")],
        ),
        (
            "frame",
            &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
        ),
        ("capitals", &[("SEC-FETCH-SITE", "Cross-Site")]),
        (
            "fetch",
            &[
                ("Sec-Fetch-Site", "cross-site"),
                ("Sec-Fetch-Mode", "cors"),
                ("Origin", "https://evil.example"),
            ],
        ),
    ];
    let mut cases = Vec::new();
    for (name, headers) in SITES {
        let case = requests(&format!("cross-site/{name}"))
            .git_config("[core]\n\tfsmonitor = touch @C\n[diff]\n\texternal = touch @C\n[filter \"x\"]\n\tclean = \"touch @C; cat\"")
            .file(".gitattributes", "* filter=x\n")
            .file("README.md", "changed\n")
            .play(move |scene| {
                let directory = scene.fill("@P");
                served(scene, |wire| {
                    for path in ["/path", "/config", "/vcs/diff?mode=git", "/vcs", "/file/status", "/command", "/session", "/find/file?query=x"] {
                        let mark = if path.contains('?') { '&' } else { '?' };
                        let answer = wire.send("GET", &format!("{path}{mark}directory={directory}"), headers, "")?;
                        ensure_refused(&format!("GET {path} of another site"), &answer)?;
                    }
                    ensure_refused("GET /event of another site", &wire.glance("GET", "/event", headers)?)
                })
            });
        cases.push(if name == "image" { case.short() } else { case });
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "application/jsonp",
        "",
    ] {
        cases.push(requests(&format!("body-type/{kind}")).play(move |scene| {
            served(scene, |wire| {
                let answer = wire.send("POST", "/session", &[("Content-Type", kind)], "{}")?;
                ensure_refused(&format!("a body of the type `{kind}`"), &answer)
            })
        }));
    }
    for origin in ["https://evil.example", "null", "https://app.opencode.ai", "http://localhost.evil.example"]
    {
        for prefix in ["", "/api"] {
            cases.push(
                requests(&format!("websocket{prefix}/{origin}"))
                    .play(move |scene| served(scene, |wire| websocket(wire, prefix, &[("Origin", origin)]))),
            );
        }
    }
    cases.push(requests("websocket/cross-site").play(|scene| {
        served(scene, |wire| {
            websocket(wire, "", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "websocket")])
        })
    }));
    cases.push(requests("websocket/forged-ticket").play(|scene| {
        served(scene, |wire| websocket(wire, "", &[("Origin", "https://evil.example"), ("X-Ticket", "x")]))
    }));
    cases
}

/// Tries to connect to a terminal from a page of another site.
fn websocket(wire: &Wire, prefix: &str, headers: &[(&str, &str)]) -> Result<()> {
    let (status, terminal) = wire.post("/pty", &json!({"command": "/bin/sh"}))?;
    let id = terminal["id"].as_str().with_context(|| format!("no terminal: {status} {terminal}"))?;
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut text =
        format!("GET {prefix}/pty/{id}/connect?ticket=forged HTTP/1.1\r\nHost: {}\r\n", wire.address);
    for (name, value) in upgrade.iter().chain(headers) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = wire.connect()?;
    stream.set_read_timeout(Some(Duration::from_secs(3)))?;
    stream.write_all(format!("{text}\r\n").as_bytes())?;
    let mut buffer = [0; 512];
    let count = stream.read(&mut buffer)?;
    let answer = String::from_utf8_lossy(&buffer[..count]).into_owned();
    ensure!(!answer.starts_with("HTTP/1.1 101"), "a terminal was opened for {headers:?}");
    Ok(())
}

/// Requests that name the directory of a hostile repository, which opens without an effect.
fn directories() -> Vec<Case> {
    let case = |(name, directory): &(&str, &str)| {
        let directory = (*directory).to_owned();
        let case = hostile(Kind::Requests, format!("directory/{name}"))
            .config(r#"{"command": {"x": {"template": "!`touch @C`"}}, "shell": "@P/evil.sh", "instructions": ["~/.netrc", "@L/x"], "prompt": {"instructions": {"http": true}}, "mcp": {"x": {"type": "local", "command": ["touch", "@C"]}}}"#)
            .script("evil.sh", "touch @C")
            .file("sub/x", "x")
            .file("README.md", "changed\n")
            .git_config("[core]\n\tfsmonitor = touch @C\n\tsshCommand = touch @C\n[diff]\n\texternal = touch @C")
            .link("@O/link", "@P")
            .play(move |scene| {
                let directory = scene.fill(&directory);
                served(scene, |wire| {
                    for path in ["/path", "/config", "/vcs", "/vcs/diff?mode=git", "/command", "/agent", "/skill", "/file?path=.", "/experimental/tool/ids", "/api/location"] {
                        let mark = if path.contains('?') { '&' } else { '?' };
                        let answer = wire.send("GET", &format!("{path}{mark}directory={directory}"), &[], "")?;
                        ensure!(answer.status > 0, "GET {path} was not answered");
                    }
                    let header = [("X-Opencode-Directory", directory.as_str()), JSON];
                    let answer = wire.send("POST", "/session", &header, "{}")?;
                    if let Some(id) = answer.json().ok().and_then(|session| session["id"].as_str().map(str::to_owned)) {
                        let body = json!({"parts": [{"type": "text", "text": "hello"}]}).to_string();
                        wire.send("POST", &format!("/session/{id}/message"), &header, &body)?;
                        let body = json!({"command": "true", "agent": "build"}).to_string();
                        wire.send("POST", &format!("/session/{id}/shell"), &header, &body)?;
                        let body = json!({"command": "x", "arguments": ""}).to_string();
                        wire.send("POST", &format!("/session/{id}/command"), &header, &body)?;
                    }
                    wire.send("POST", "/pty", &header, "{}").map(drop)
                })
            });
        if *name == "project" { case.short() } else { case }
    };
    DIRECTORIES.iter().map(case).collect()
}

/// Requests from another user of this machine.
fn users() -> Vec<Case> {
    let mut cases = Vec::new();
    for (method, path) in SORTS {
        let name = format!("other-user/{method} {path}");
        let case = requests(&name).root().play(move |scene| {
            served(scene, |wire| {
                let status = as_another_user(scene, wire, method, path)?;
                ensure!(
                    !(100..400).contains(&status),
                    "{method} {path} of another user was answered {status}"
                );
                Ok(())
            })
        });
        cases.push(if *path == "/session" { case.short() } else { case });
    }
    cases.push(requests("other-user/server-environment").root().play(environment_of_server));
    cases
}

/// Returns the status of a request from another user's process, or 0 if there is no answer.
fn as_another_user(scene: &Scene, wire: &Wire, method: &str, path: &str) -> Result<u16> {
    let (host, port) = wire.address.split_once(':').context("no port")?;
    let body = if matches!(method, "GET" | "HEAD" | "DELETE") { "" } else { "{}" };
    let request = format!(
        "{method} {path} HTTP/1.0\\r\\nHost: {host}:{port}\\r\\nContent-Type: application/json\\r\\nContent-Length: {}\\r\\n\\r\\n{body}",
        body.len()
    );
    let script = format!("exec 3<>/dev/tcp/{host}/{port}; printf '{request}' >&3; timeout 5 head -n 1 <&3");
    let run =
        crate::Run::new("/bin/bash", &scene.project).args(["-c", &script]).directory("/").user(OTHER_USER);
    let done = run.deadline(Duration::from_secs(15)).finish()?;
    Ok(done.stdout.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// A command that reads the variables of the server of an ordinary user.
fn environment_of_server(scene: &Scene) -> Result<()> {
    // The permission rules cannot see what a script file reads.
    let scan = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done 2>/dev/null | grep -a sk-user; echo scanned";
    scene.write("scan.sh", scan)?;
    own(scene.path("@P").parent().context("no parent")?, OTHER_USER)?;
    let command = "sh scan.sh";
    scene.script_calls(vec![vec![("bash".to_owned(), json!({ "command": command }))]]);
    scene.user_configuration(std::iter::once(r#"{"permission": "allow"}"#))?;
    own(&scene.path("@H"), OTHER_USER)?;
    let run =
        scene.program(["run", "--auto", &Scene::prompt_of(0)]).user(OTHER_USER).env("GROQ_API_KEY", KEY);
    let done = scene.finish(run.env("OPENCODE_SERVER_PASSWORD", KEY))?;
    let scanned = scene.requests().iter().any(|request| request.body.to_string().contains("scanned"));
    ensure!(scanned, "the command did not run: {}", done.stderr);
    Ok(())
}

/// Commands that send requests to the server that started them.
fn callers() -> Vec<Case> {
    let case = |(name, command): &(&str, &str)| {
        let command = (*command).to_owned();
        let case = requests(&format!("own-command/{name}"))
            .user(r#"{"permission": {"bash": "allow", "edit": "allow"}}"#)
            .play(move |scene| {
                let (server, wire) = scene.serve("@O")?;
                let directory = scene.fill("@P");
                let command = command
                    .replace('U', &format!("http://{}", wire.address))
                    .replace("B run", &format!("{} run", scene.binary().display()));
                scene.script_calls(vec![vec![("bash".to_owned(), json!({ "command": command }))]]);
                let id = wire.session(&directory)?;
                let body = json!({"parts": [{"type": "text", "text": Scene::prompt_of(0)}]});
                wire.post(&format!("/session/{id}/message?directory={directory}"), &body)?;
                let read = |name: &str| std::fs::read_to_string(scene.path(name)).unwrap_or_default();
                let code: u16 = read("code.txt").trim().parse().unwrap_or(0);
                ensure!(!(200..300).contains(&code), "the server answered its own command {code}");
                ensure!(
                    read("attached.txt").trim() != "0",
                    "a command attached to its own server: {}",
                    read("out.txt")
                );
                scene.end(server)
            });
        if *name == "curl" { case.short() } else { case }
    };
    CALLERS.iter().map(case).collect()
}

/// Requests without the right password.
fn passwords() -> Vec<Case> {
    let tries: [(&str, Option<&str>, &str); 9] = [
        ("none", None, ""),
        ("wrong", Some("Basic b3BlbmNvZGU6d3Jvbmc="), ""),
        ("empty", Some("Basic b3BlbmNvZGU6"), ""),
        ("no-user", Some("Basic OnBhc3N3b3Jk"), ""),
        ("bearer", Some("Bearer hush-password"), ""),
        ("not-base64", Some("Basic ::::"), ""),
        ("query-empty", None, "?auth_token="),
        ("query-wrong", None, "?auth_token=b3BlbmNvZGU6d3Jvbmc="),
        ("ticket-elsewhere", None, "?ticket=x"),
    ];
    let mut cases = Vec::new();
    for (name, header, query) in tries {
        cases.push(
            requests(&format!("password/{name}")).env("OPENCODE_SERVER_PASSWORD", "hush-password").play(
                move |scene| {
                    served(scene, |wire| {
                        for (method, path) in
                            [("GET", "/config"), ("POST", "/session"), ("GET", "/api/session"), ("GET", "/")]
                        {
                            let mut headers = vec![JSON];
                            headers.extend(header.map(|value| ("Authorization", value)));
                            let body = if method == "POST" { "{}" } else { "" };
                            let answer = wire.send(method, &format!("{path}{query}"), &headers, body)?;
                            // The page itself has no data and prompts for the password.
                            if path != "/" {
                                ensure_refused(
                                    &format!("{method} {path}{query} without the password"),
                                    &answer,
                                )?;
                            }
                        }
                        Ok(())
                    })
                },
            ),
        );
    }
    cases.push(requests("password/other-address").play(|scene| {
        let done = scene.finish(
            scene.program(["serve", "--port", "0", "--hostname", "0.0.0.0"]).deadline(Duration::from_secs(3)),
        );
        let listens = done.is_err() || done.is_ok_and(|done| done.stdout.contains("listening on"));
        ensure!(!listens, "it listens on every address without a password");
        Ok(())
    }));
    cases
}

/// Secrets that a server must not return even to the user's clients.
fn secrets() -> Vec<Case> {
    vec![
        requests("secret/log-of-requests")
            .user(r#"{"provider": {"mock": {"options": {"apiKey": "@K"}}}}"#)
            .play(|scene| {
                served(scene, |wire| {
                    wire.send(
                        "GET",
                        &format!("/config?auth_token={KEY}"),
                        &[("Authorization", &format!("Bearer {KEY}"))],
                        "",
                    )?;
                    for entry in walk(&scene.path("@H/.local"))? {
                        let text = std::fs::read(&entry).unwrap_or_default();
                        ensure!(
                            !String::from_utf8_lossy(&text).contains(KEY),
                            "`{}` contains the key",
                            entry.display()
                        );
                    }
                    Ok(())
                })
            }),
        requests("secret/debug-config")
            .user(r#"{"provider": {"mock": {"options": {"apiKey": "@K", "headers": {"X-Key": "@K"}}}}}"#)
            .run(&["debug", "config"])
            .run(&["debug", "config", "--origins"])
            .not_printed("@K"),
    ]
}

/// Returns every file under a directory.
pub(super) fn walk(directory: &std::path::Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() { waiting.push(path) } else { found.push(path) }
        }
    }
    Ok(found)
}
