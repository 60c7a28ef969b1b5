//! Tests of Gemini and Vertex AI with a server that also issues tokens.

use std::time::Duration;

use codewright_llm::{
    Auth, Client, Endpoint, Error, FinishReason, GoogleCredentials, Message, Model, ModelEvent, Protocol,
    Request, UserContent,
};
use codewright_proto::Clock;
use serde_json::json;

use crate::server::{Answer, Server, response, says, stalls_after, stream_head};

/// A key generated for tests. It gives access to nothing.
const PEM: &str = include_str!("../../src/google/key.pem");

const ANSWER: &str = concat!(
    r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}"#,
    "\r\n\r\n",
    r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"lo"}]},"finishReason":"STOP"}],"#,
    r#""usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}"#,
    "\r\n\r\n",
);

fn answer() -> Answer {
    says(format!("{}{ANSWER}", stream_head()))
}

fn token(text: &str, seconds: u64) -> Answer {
    let body = json!({"access_token": text, "expires_in": seconds, "token_type": "Bearer"}).to_string();
    says(response("200 OK", "connection: close\r\ncontent-type: application/json\r\n", &body))
}

fn refusal(status: &str, body: &str) -> Answer {
    says(response(status, "connection: close\r\ncontent-type: application/json\r\n", body))
}

fn model(server: &Server) -> Model {
    let base_url = server.base_url().replace("/v1", "/v1beta1/projects/p/locations/l/publishers/google");
    let mut model = Model::new("google-vertex", "gemini-2.5-pro", Protocol::Gemini, &base_url);
    model.timeouts.first_byte = Duration::from_secs(20);
    model.timeouts.idle = Duration::from_secs(20);
    model
}

fn request() -> Request {
    Request { messages: vec![Message::User(vec![UserContent::Text("hi".into())])], ..Request::default() }
}

fn account(server: &Server) -> GoogleCredentials {
    let file = json!({
        "type": "service_account",
        "client_email": "bot@p.example",
        "private_key": PEM,
        "token_uri": server.base_url().replace("/v1", "/token"),
    });
    GoogleCredentials::from_file(&file.to_string(), "/k.json", Clock::system()).unwrap()
}

fn user(server: &Server) -> GoogleCredentials {
    let file = json!({
        "type": "authorized_user",
        "client_id": "c",
        "client_secret": "s&=",
        "refresh_token": "r",
        "token_uri": server.base_url().replace("/v1", "/token"),
    });
    GoogleCredentials::from_file(&file.to_string(), "/adc.json", Clock::system()).unwrap()
}

fn client() -> Client {
    Client::new("codewright/test").unwrap()
}

async fn ask(client: &Client, model: &Model) -> Result<String, Error> {
    let mut stream = client.stream(model, &request()).await?;
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::TextDelta(more) => text.push_str(&more),
            ModelEvent::Finish { reason, .. } => assert_eq!(reason, FinishReason::Stop),
            _ => {}
        }
    }
    Ok(text)
}

fn has_line(request: &str, line: &str) -> bool {
    request.lines().any(|found| found.eq_ignore_ascii_case(line))
}

#[tokio::test]
async fn ai_studio_gets_a_key() {
    let server = Server::new(vec![answer()]);
    let mut model = model(&server);
    model.api_key = Some("key".into());
    assert_eq!(ask(&client(), &model).await.unwrap(), "Hello");
    let asked = server.requests().await.remove(0);
    let path = "POST /v1beta1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse ";
    assert!(asked.starts_with(path), "{asked}");
    assert!(has_line(&asked, "x-goog-api-key: key"), "{asked}");
    let (_, body) = asked.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        r#"{"generationConfig":{"topK":64},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#
    );
}

#[tokio::test]
async fn a_token_is_fetched_once() {
    let server = Server::new(vec![token("tok", 3600), answer(), answer()]);
    let mut model = model(&server);
    model.auth = Auth::Google(account(&server));
    let client = client();
    assert_eq!(ask(&client, &model).await.unwrap(), "Hello");
    assert_eq!(ask(&client, &model.clone()).await.unwrap(), "Hello");
    let requests = server.requests().await;
    assert!(requests[0].starts_with("POST /token "), "{}", requests[0]);
    assert!(has_line(&requests[0], "content-type: application/x-www-form-urlencoded"), "{}", requests[0]);
    let (_, form) = requests[0].split_once("\r\n\r\n").unwrap();
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=eyJ";
    assert!(form.starts_with(grant), "{form}");
    for asked in &requests[1..] {
        assert!(has_line(asked, "authorization: Bearer tok"), "{asked}");
        assert!(!asked.to_lowercase().contains("x-goog-api-key"), "{asked}");
    }
}

#[tokio::test]
async fn a_token_that_expires_soon_is_replaced() {
    let server = Server::new(vec![token("one", 59), answer(), token("two", 3600), answer()]);
    let mut model = model(&server);
    model.auth = Auth::Google(user(&server));
    let client = client();
    ask(&client, &model).await.unwrap();
    ask(&client, &model).await.unwrap();
    let requests = server.requests().await;
    let (_, form) = requests[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(form, "grant_type=refresh_token&client_id=c&client_secret=s%26%3D&refresh_token=r");
    assert!(has_line(&requests[3], "authorization: Bearer two"), "{}", requests[3]);
}

#[tokio::test]
async fn concurrent_requests_fetch_one_token() {
    let server = Server::new(vec![token("tok", 3600), answer(), answer(), answer()]);
    let mut model = model(&server);
    model.auth = Auth::Google(user(&server));
    let client = client();
    let (a, b, c) = tokio::join!(ask(&client, &model), ask(&client, &model), ask(&client, &model));
    assert_eq!([a.unwrap(), b.unwrap(), c.unwrap()], ["Hello"; 3]);
    let requests = server.requests().await;
    assert_eq!(requests.iter().filter(|request| request.starts_with("POST /token ")).count(), 1);
}

#[tokio::test]
async fn a_rejected_token_is_not_sent_again() {
    let denied =
        r#"{"error":{"code":401,"message":"Request had invalid credentials.","status":"UNAUTHENTICATED"}}"#;
    let server = Server::new(vec![
        token("one", 3600),
        refusal("401 Unauthorized", denied),
        token("two", 3600),
        answer(),
    ]);
    let mut model = model(&server);
    model.auth = Auth::Google(user(&server));
    let client = client();
    let error = ask(&client, &model).await.unwrap_err();
    assert!(matches!(error, Error::Auth { .. }), "{error:?}");
    assert_eq!(ask(&client, &model).await.unwrap(), "Hello");
    assert!(has_line(&server.requests().await[3], "authorization: Bearer two"));
}

#[tokio::test]
async fn expired_credentials_are_reported_with_advice() {
    let body = r#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#;
    let server = Server::new(vec![refusal("400 Bad Request", body)]);
    let mut model = model(&server);
    model.auth = Auth::Google(user(&server));
    let error = ask(&client(), &model).await.unwrap_err();
    assert!(matches!(error, Error::Auth { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "Google refused the credentials in `/adc.json`: Token has been expired or revoked; \
         run `gcloud auth application-default login` or renew the key file"
    );
    assert_eq!(error.failure().provider, "google-vertex");
}

#[tokio::test]
async fn a_busy_token_server_is_busy() {
    let server = Server::new(vec![refusal("503 Service Unavailable", "{}")]);
    let mut model = model(&server);
    model.auth = Auth::Google(user(&server));
    let error = ask(&client(), &model).await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
}

#[tokio::test]
async fn a_machine_in_googles_cloud_has_credentials() {
    let flavored = response("200 OK", "connection: close\r\nmetadata-flavor: Google\r\n", "ok");
    let server = Server::new(vec![says(flavored), token("machine", 3600), answer()]);
    let host = server.base_url().replace("http://", "").replace("/v1", "");
    let mut model = model(&server);
    model.auth = Auth::Google(GoogleCredentials::of_machine(Some(&host), Clock::system()));
    assert_eq!(ask(&client(), &model).await.unwrap(), "Hello");
    let requests = server.requests().await;
    assert!(requests[1].starts_with("GET /computeMetadata/v1/instance/service-accounts/default/token "));
    assert!(has_line(&requests[1], "metadata-flavor: Google"), "{}", requests[1]);
    assert!(has_line(&requests[2], "authorization: Bearer machine"), "{}", requests[2]);
}

#[tokio::test]
async fn missing_credentials_are_reported_with_advice() {
    // A server that sends nothing, and one that is not a metadata server.
    for other in [stalls_after(""), says(response("200 OK", "connection: close\r\n", "hello"))] {
        let server = Server::new(vec![other]);
        let host = server.base_url().replace("http://", "").replace("/v1", "");
        let mut model = model(&server);
        model.auth = Auth::Google(GoogleCredentials::of_machine(Some(&host), Clock::system()));
        let error = ask(&client(), &model).await.unwrap_err();
        assert!(matches!(error, Error::Auth { .. }), "{error:?}");
        let text = error.to_string();
        for part in ["GOOGLE_APPLICATION_CREDENTIALS", "gcloud auth application-default login", &host] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[tokio::test]
async fn claude_works_on_vertex() {
    let events = concat!(
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
        "\"content_block\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    let server = Server::new(vec![token("tok", 3600), says(format!("{}{events}", stream_head()))]);
    let base_url = server.base_url().replace("/v1", "/v1/projects/p/locations/l/publishers/anthropic/models");
    let mut model =
        Model::new("google-vertex-anthropic", "claude-opus-4-1@20250805", Protocol::Anthropic, &base_url);
    model.endpoint = Endpoint::Vertex;
    model.auth = Auth::Google(account(&server));
    assert_eq!(ask(&client(), &model).await.unwrap(), "Hello");
    let requests = server.requests().await;
    let path = "POST /v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-1@20250805:streamRawPredict ";
    assert!(requests[1].starts_with(path), "{}", requests[1]);
    assert!(has_line(&requests[1], "authorization: Bearer tok"), "{}", requests[1]);
    assert!(!requests[1].to_lowercase().contains("anthropic-version:"), "{}", requests[1]);
    let (_, body) = requests[1].split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with(r#"{"anthropic_version":"vertex-2023-10-16","max_tokens":4096,"#), "{body}");
}
