//! Questions to the user: answered, rejected, withdrawn, and never lost with a client.

use codewright_engine::Subscription;
use codewright_proto::{Action, Fact, QuestionRequest, Rule, SessionInput, Signal, ToolState};
use codewright_scripted::{Script, Turn};
use serde_json::{Value, json};

use crate::desk::{Desk, calls, prompt, text, wait_for};

fn colour() -> Value {
    json!({"questions": [{"question": "Which colour?", "header": "Colour", "options": [
        {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"},
    ]}]})
}

fn asks() -> Turn {
    Turn::steps().tool("question", colour()).into()
}

async fn question_request(feed: &mut Subscription) -> QuestionRequest {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(Signal::QuestionAsked(request)) => Some(request),
        _ => None,
    })
    .await
}

async fn idle(feed: &mut Subscription) {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(Signal::SessionIdle { .. }) => Some(()),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn an_answer_reaches_the_model_as_recorded() {
    let desk = Desk::new(Script::new().turn(asks()).text("Blue it is.")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = question_request(&mut feed).await;
    // A client that connects later finds the question too.
    assert_eq!(desk.engine.questions().pending(), std::slice::from_ref(&request));
    let shown = serde_json::to_value(&request).unwrap();
    assert_eq!(shown["questions"], colour()["questions"]);
    assert!(shown["tool"]["callID"].is_string() && shown["tool"]["messageID"].is_string(), "{shown}");
    desk.engine.questions().answer(&request.id, vec![vec!["Blue".into()]]).unwrap();
    let replied = wait_for(&mut feed, |published| match published.notice().fact {
        Fact::Signal(Signal::QuestionReplied { request_id, answers, .. }) => Some((request_id, answers)),
        _ => None,
    });
    assert_eq!(replied.await, (request.id.clone(), vec![vec!["Blue".to_owned()]]));
    idle(&mut feed).await;
    let transcript = desk.transcript(&session).await;
    let ToolState::Completed { output, title, metadata, .. } = &calls(&transcript)[0].1 else { panic!() };
    assert_eq!(
        output,
        "User has answered your questions: \"Which colour?\"=\"Blue\". You can now continue with the user's answers in mind."
    );
    assert_eq!(title, "Asked 1 question");
    assert_eq!(json!(metadata), json!({"answers": [["Blue"]], "truncated": false}));
    assert_eq!(text(transcript.last().unwrap()), "Blue it is.");
    assert!(desk.engine.questions().pending().is_empty());
    let again = desk.engine.questions().answer(&request.id, vec![]).unwrap_err().to_string();
    assert_eq!(again, format!("Question request not found: {}", request.id));
    desk.assert_clean();
}

#[tokio::test]
async fn answers_must_match_the_questions_and_missing_ones_are_reported() {
    let two = json!({"questions": [
        {"question": "A?", "header": "a", "options": [], "multiple": true},
        {"question": "B?", "header": "b", "options": []},
    ]});
    let desk = Desk::new(Script::new().tool("question", two).text("ok")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = question_request(&mut feed).await;
    let three = vec![vec![]; 3];
    assert!(
        desk.engine
            .questions()
            .answer(&request.id, three)
            .unwrap_err()
            .to_string()
            .contains("3 answers to 2")
    );
    let long = vec![vec!["x".repeat(300 * 1024)]];
    assert!(desk.engine.questions().answer(&request.id, long).unwrap_err().to_string().contains("256 KiB"));
    desk.engine.questions().answer(&request.id, vec![vec!["x".into(), "y".into()]]).unwrap();
    idle(&mut feed).await;
    let ToolState::Completed { output, title, .. } = &calls(&desk.transcript(&session).await)[0].1 else {
        panic!()
    };
    assert!(output.contains("\"A?\"=\"x, y\", \"B?\"=\"Unanswered\""), "{output}");
    assert_eq!(title, "Asked 2 questions");
}

#[tokio::test]
async fn a_rejection_ends_the_turn() {
    let desk = Desk::new(Script::new().turn(asks()).text("never said")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = question_request(&mut feed).await;
    desk.engine.questions().reject(&request.id).unwrap();
    idle(&mut feed).await;
    let calls = calls(&desk.transcript(&session).await);
    let ToolState::Error { error, .. } = &calls[0].1 else { panic!("{:?}", calls[0]) };
    assert_eq!(error, "The user dismissed this question");
    assert_eq!(desk.server.main_requests().len(), 1);
}

#[tokio::test]
async fn an_abort_withdraws_a_question_with_an_event() {
    let desk = Desk::new(Script::new().turn(asks()).text("after")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = question_request(&mut feed).await;
    desk.engine.sessions().abort(&session.id).await.unwrap();
    wait_for(&mut feed, |published| match published.notice().fact {
        Fact::Signal(Signal::QuestionRejected { request_id, .. }) if request_id == request.id => Some(()),
        _ => None,
    })
    .await;
    assert!(desk.engine.questions().pending().is_empty());
    assert_eq!(text(&desk.prompt(&session, "again").await), "after");
    desk.assert_clean();
}

#[tokio::test]
async fn a_session_that_forbids_questions_is_not_offered_the_tool() {
    let desk = Desk::new(Script::new().turn(asks()).text("ok")).await;
    let rules = vec![Rule::new("question", "*", Action::Deny)];
    let input = SessionInput { title: Some("t".into()), permission: Some(rules), ..SessionInput::default() };
    let session = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    desk.prompt(&session, "go").await;
    let calls = calls(&desk.transcript(&session).await);
    assert_eq!(calls[0].0, "invalid");
    let request = &desk.server.main_requests()[0];
    let tools = request.body["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["function"]["name"] != "question"));
}

#[tokio::test]
async fn too_many_questions_are_an_error_for_the_model() {
    let many: Vec<_> =
        (0..21).map(|n| json!({"question": n.to_string(), "header": "h", "options": []})).collect();
    let none: [Value; 0] = [];
    let script = Script::new()
        .tool("question", json!({ "questions": many }))
        .tool("question", json!({ "questions": none }))
        .tool(
            "question",
            json!({ "questions": [{"question": "q".repeat(70_000), "header": "h", "options": []}] }),
        )
        .text("ok");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let errors = calls(&desk.transcript(&session).await).into_iter().map(|(_, state)| match state {
        ToolState::Error { error, .. } => error,
        other => panic!("{other:?}"),
    });
    let errors: Vec<_> = errors.collect();
    for (error, piece) in errors.iter().zip(["20 at most", "`questions` is empty", "64 KiB"]) {
        assert!(error.contains(piece), "{error}");
    }
    assert_eq!(errors.len(), 3);
}
