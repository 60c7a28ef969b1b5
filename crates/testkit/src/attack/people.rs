//! A server with several users, for attacks by a member of a team.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::scene::Scene;
use super::wire::Wire;

/// The deadline of what a server does in the background.
const PATIENCE: Duration = Duration::from_secs(8);
/// The interval at which to look.
const POLL: Duration = Duration::from_millis(40);
/// The users with their roles, their teams and the hashes of their tokens, which [`token`] returns.
const USERS: [(&str, &str, &str, &str); 4] = [
    ("root", "admin", "core", "78714bd8ad958140a11e84fbc0be5f375c38e64a9237c2b9ff2cd2583a9c6713"),
    ("alice", "member", "core", "f0de584a9fd63b8fa3fc1454a6791c4357c844750a0a9cc95820083eed510218"),
    ("bob", "member", "guests", "21a896d28f4b0ea574162a84c53455d23b326e70d19cdcdeb3c4beeefd033c1d"),
    ("rita", "reader", "core", "ab0e6288d6b8f7e1f7251f55b20ac2382673ac7b7fb1b97bf1e77629bc7fd1aa"),
];

/// A running server with the users.
pub(super) struct Team<'a> {
    pub(super) scene: &'a Scene,
    pub(super) wire: Wire,
}

fn token(user: &str) -> String {
    format!("cw_{user}_{}", "0123456789".repeat(4))
}

/// Starts a server with users in the project, runs a function and ends the server.
pub(super) fn with_team(scene: &Scene, act: impl FnOnce(&Team<'_>) -> Result<()>) -> Result<()> {
    with_team_of(scene, &json!({}), act)
}

/// Starts a server with users and more keys of `auth`, runs a function and ends the server.
pub(super) fn with_team_of(
    scene: &Scene,
    more: &Value,
    act: impl FnOnce(&Team<'_>) -> Result<()>,
) -> Result<()> {
    let path = scene.path("@H/.config/opencode/opencode.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let user = |(name, role, team, hash): &(&str, &str, &str, &str)| {
        ((*name).to_owned(), json!({"token": format!("sha256:{hash}"), "role": role, "teams": [team]}))
    };
    let users: serde_json::Map<_, _> = USERS.iter().map(user).collect();
    config["auth"] = json!({"users": users, "directories": [scene.fill("@P")]});
    for (key, value) in more.as_object().into_iter().flatten() {
        config["auth"][key] = value.clone();
    }
    std::fs::write(path, config.to_string())?;
    let (server, wire) = scene.serve("@P")?;
    let done = act(&Team { scene, wire });
    scene.end(server)?;
    done
}

impl Team<'_> {
    /// Sends a request of a user. Returns the status and the whole answer. Without the protection every user is an
    /// administrator.
    pub(super) fn send(&self, user: &str, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let user = if self.scene.is_unprotected { "root" } else { user };
        let bearer = format!("Bearer {}", token(user));
        let mut headers = vec![("Authorization", bearer.as_str())];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        let answer = self.wire.send(method, path, &headers, body)?;
        Ok((answer.status, answer.text))
    }

    /// Requests a path with a header that names the directory. Returns the whole answer.
    pub(super) fn placed(&self, user: &str, path: &str, directory: Option<&str>) -> Result<String> {
        let bearer = format!("Bearer {}", token(user));
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(directory.map(|directory| ("X-Opencode-Directory", directory)));
        Ok(self.wire.send("GET", path, &headers, "")?.text)
    }

    /// Sends a JSON body and returns the status and the JSON of the answer, or null.
    pub(super) fn json(&self, user: &str, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.send(user, method, path, &body)?;
        let json = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
        Ok((status, json.unwrap_or(Value::Null)))
    }

    /// Creates a session of a user in the project.
    pub(super) fn session(&self, user: &str) -> Result<String> {
        self.session_in(user, &self.scene.fill("@P"))
    }

    /// Creates a session of a user in a directory.
    pub(super) fn session_in(&self, user: &str, directory: &str) -> Result<String> {
        let path = format!("/session?directory={directory}");
        let (status, session) = self.json(user, "POST", &path, &json!({}))?;
        let id = session["id"].as_str().with_context(|| format!("no session: {status} {session}"))?;
        Ok(id.to_owned())
    }

    /// Sends the prompt with this number and does not wait for the answer.
    pub(super) fn prompt_async(&self, user: &str, session: &str, number: usize) -> Result<u16> {
        let body = json!({"parts": [{"type": "text", "text": Scene::prompt_of(number)}]});
        Ok(self.json(user, "POST", &format!("/session/{session}/prompt_async"), &body)?.0)
    }

    /// Sends the prompt with this number and waits for the answer.
    pub(super) fn prompt(&self, user: &str, session: &str, number: usize) -> Result<(u16, Value)> {
        let body = json!({"parts": [{"type": "text", "text": Scene::prompt_of(number)}]});
        self.json(user, "POST", &format!("/session/{session}/message"), &body)
    }

    /// Returns the first permission request, or null if there is none in time.
    pub(super) fn request(&self, path: &str) -> Result<Value> {
        let mut found = Value::Null;
        self.wait(|| {
            let (_, all) = self.json("root", "GET", path, &Value::Null)?;
            found = all.as_array().and_then(|all| all.first().cloned()).unwrap_or_default();
            Ok(!found.is_null())
        })?;
        Ok(found)
    }

    /// Waits until a session is idle, or for the deadline.
    pub(super) fn idle(&self, session: &str) -> Result<()> {
        self.wait(|| {
            let (_, all) = self.json("root", "GET", "/session/status", &Value::Null)?;
            Ok(all[session].is_null() || all[session]["type"] == "idle")
        })
    }

    /// Waits until a condition holds, or for the deadline.
    pub(super) fn wait(&self, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if holds()? {
                return Ok(());
            }
            sleep(POLL);
        }
        Ok(())
    }
}
