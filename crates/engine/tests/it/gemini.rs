//! Whole turns over Gemini.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use codewright_proto::{PartBody, SessionInput};
use codewright_scripted::{Kind, Script, Turn};
use serde_json::{Value, json};

use crate::desk::{DEADLINE, Desk, calls, text};

fn over_gemini() -> Value {
    json!({ "model": "mockgoogle/gemini-3-mock" })
}

#[tokio::test]
async fn a_turn_with_calls_is_accepted() {
    let script = Script::new()
        .turn(
            Turn::steps()
                .reasoning("Thinking first.")
                .text("Looking.")
                .tool("read", json!({ "filePath": "a.txt" }))
                .tool("read", json!({ "filePath": "missing.txt" })),
        )
        .turn(Turn::steps().reasoning("More thought.").text("Done now."))
        .text("Again.");
    let desk = Desk::with(script, over_gemini()).await;
    std::fs::write(desk.project.join("a.txt"), "one\n").unwrap();
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "Please look").await), "Done now.");
    desk.prompt(&session, "Second question").await;

    let transcript = desk.transcript(&session).await;
    assert_eq!(calls(&transcript).len(), 2);
    let ids: Vec<_> = transcript
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match &part.body {
            PartBody::Tool(call) => {
                assert_eq!(call.metadata, Some(json!({ "google": { "thoughtSignature": "c2lnbmF0dXJl" } })));
                Some(call.call_id.clone())
            }
            _ => None,
        })
        .collect();
    assert_ne!(ids[0], ids[1]);

    let requests = desk.server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].path, "/v1beta/models/gemini-3-mock:streamGenerateContent");
    assert_eq!(requests[0].headers.get("x-goog-api-key"), Some("sk-mock"));
    let first = &requests[0].body;
    assert_eq!(first["generationConfig"]["thinkingConfig"], json!({ "includeThoughts": true }));
    assert_eq!(first["generationConfig"]["maxOutputTokens"], 32_000);
    assert!(
        first["systemInstruction"]["parts"][0]["text"].as_str().is_some_and(|text| text.contains("<env>"))
    );
    let contents = requests[2].body["contents"].as_array().unwrap();
    let expected = json!([
        { "text": "Thinking first.", "thought": true },
        { "text": "Looking." },
        { "functionCall": { "name": "read", "args": { "filePath": "a.txt" } }, "thoughtSignature": "c2lnbmF0dXJl" },
        { "functionCall": { "name": "read", "args": { "filePath": "missing.txt" } }, "thoughtSignature": "c2lnbmF0dXJl" },
    ]);
    assert_eq!(contents[1]["parts"], expected);
    let answer = contents[2]["parts"][0]["functionResponse"]["response"]["content"].as_str().unwrap();
    assert!(answer.contains("1: one"), "{answer}");
    // Earlier content is sent again byte for byte.
    let before = requests[1].body["contents"].to_string();
    let after = requests[2].body["contents"].to_string();
    assert!(after.starts_with(before.trim_end_matches(']')), "{before}\n{after}");
    desk.assert_clean();
}

#[tokio::test]
async fn a_picture_from_a_tool_is_seen() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
        \x00\x00\x00\x0dIDATx\xdacd\xf8\xcfP\x0f\x00\x03\x86\x01\x80Z4}k\x00\x00\x00\x00IEND\xaeB`\x82";
    let script = Script::new().tool("read", json!({ "filePath": "i.png" })).text("I see.");
    let desk = Desk::with(script, over_gemini()).await;
    std::fs::write(desk.project.join("i.png"), PNG).unwrap();
    let session = desk.session().await;
    let answer = desk.prompt(&session, "look").await;
    assert_eq!(text(&answer), "I see.", "{:?} {:?}", answer.info, desk.server.problems());
    let body = &desk.server.requests()[1].body;
    let inline = &body["contents"][2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"];
    assert_eq!(inline["mimeType"], "image/png");
    desk.assert_clean();
}

#[tokio::test]
async fn a_title_request_sets_low_reasoning() {
    let desk = Desk::with(Script::new().title("A name").text("Hello."), over_gemini()).await;
    let session = desk.engine.sessions().create(&desk.instance, SessionInput::default()).await.unwrap();
    desk.prompt(&session, "hi").await;
    let named = async {
        while desk.engine.sessions().get(&session.id).await.unwrap().title != "A name" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, named).await.expect("it is named");
    let requests = desk.server.requests();
    let title = requests.iter().find(|request| request.kind == Kind::Title).unwrap();
    let expected = json!({
        "maxOutputTokens": 32000,
        "temperature": 0.5,
        "thinkingConfig": { "includeThoughts": true, "thinkingLevel": "low" },
    });
    assert_eq!(title.body["generationConfig"], expected);
    assert!(title.body.get("tools").is_none() && title.body.get("toolConfig").is_none());
    desk.assert_clean();
}

/// Serves tokens until the test ends.
fn tokens() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"refresh_token=r") {
                let mut piece = [0; 1024];
                match socket.read(&mut piece).unwrap() {
                    0 => break,
                    read => request.extend_from_slice(&piece[..read]),
                }
            }
            let body = r#"{"access_token":"tok","expires_in":3600}"#;
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    format!("http://{address}/token")
}

#[tokio::test]
async fn vertex_requests_carry_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("adc.json");
    let file = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": tokens(),
    });
    std::fs::write(&key, file.to_string()).unwrap();
    let script = Script::new().tool("glob", json!({ "pattern": "*.none" })).text("Hello.");
    // The options are merged over those of the desk's provider, whose address stays.
    let more = json!({ "model": "mockgoogle/gemini-3-mock", "provider": { "mockgoogle": {
        "npm": "@ai-sdk/google-vertex",
        "options": { "apiKey": "", "project": "p", "googleAuthOptions": { "keyFilename": key } },
    } } });
    let desk = Desk::with(script, more).await;
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "hi").await), "Hello.");
    for request in desk.server.requests() {
        assert_eq!(request.headers.get("authorization"), Some("Bearer tok"));
        assert_eq!(request.headers.get("x-goog-api-key"), None);
    }
    desk.assert_clean();
}
