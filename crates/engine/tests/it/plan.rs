//! Switching between planning and building with the user's consent.

use codewright_proto::{Fact, Message, PromptInput, QuestionRequest, Signal, ToolState};
use codewright_scripted::{Script, Turn};
use serde_json::json;

use crate::desk::{Desk, calls, prompt, text, wait_for};

async fn question_request(feed: &mut codewright_engine::Subscription) -> QuestionRequest {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(Signal::QuestionAsked(request)) => Some(request),
        _ => None,
    })
    .await
}

async fn idle(feed: &mut codewright_engine::Subscription) {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(Signal::SessionIdle { .. }) => Some(()),
        _ => None,
    })
    .await;
}

fn offered(desk: &Desk, nth: usize) -> Vec<String> {
    let request = &desk.server.main_requests()[nth];
    let tools = request.body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn to(agent: &str) -> PromptInput {
    PromptInput { agent: Some(agent.to_owned()), ..prompt("go") }
}

#[tokio::test]
async fn a_plan_is_carried_out_when_the_user_agrees() {
    let script = Script::new().turn(Turn::steps().tool("plan_exit", json!({}))).text("built");
    let desk = Desk::with_env(script, [("OPENCODE_EXPERIMENTAL_PLAN_MODE", "1")]).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, to("plan")).await.unwrap();
    let request = question_request(&mut feed).await;
    let path = format!(".opencode/plans/{}-{}.md", session.time.created, session.slug);
    assert!(request.questions[0].question.contains(&path), "{request:?}");
    assert_eq!(request.questions[0].custom, Some(false));
    desk.engine.questions().answer(&request.id, vec![vec!["Yes".into()]]).unwrap();
    idle(&mut feed).await;
    let transcript = desk.transcript(&session).await;
    let agents = transcript.iter().map(|message| match &message.info {
        Message::User(info) => info.agent.as_str(),
        Message::Assistant(info) => info.agent.as_str(),
    });
    assert_eq!(agents.collect::<Vec<_>>(), ["plan", "plan", "build", "build"]);
    let ToolState::Completed { title, .. } = &calls(&transcript)[0].1 else { panic!() };
    assert_eq!(title, "Switching to build agent");
    assert!(text(&transcript[2]).contains(&path));
    assert_eq!(desk.engine.sessions().get(&session.id).await.unwrap().agent.as_deref(), Some("build"));
    assert!(offered(&desk, 0).contains(&"plan_exit".to_owned()));
    assert!(!offered(&desk, 1).iter().any(|name| name.starts_with("plan_")));
    desk.assert_clean();
}

#[tokio::test]
async fn a_rejected_plan_ends_the_turn() {
    let script = Script::new().turn(Turn::steps().tool("plan_exit", json!({}))).text("never");
    let desk = Desk::with_env(script, [("OPENCODE_EXPERIMENTAL", "1")]).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, to("plan")).await.unwrap();
    let request = question_request(&mut feed).await;
    desk.engine.questions().answer(&request.id, vec![vec!["No".into()]]).unwrap();
    idle(&mut feed).await;
    assert_eq!(desk.transcript(&session).await.len(), 2);
    assert_eq!(desk.server.main_requests().len(), 1);
    assert_eq!(desk.engine.sessions().get(&session.id).await.unwrap().agent.as_deref(), Some("plan"));
}

#[tokio::test]
async fn planning_can_be_proposed_if_enabled() {
    let script = Script::new().turn(Turn::steps().tool("plan_enter", json!({}))).text("a plan");
    let on = [("OPENCODE_EXPERIMENTAL_PLAN_MODE", "1"), ("OPENCODE_EXPERIMENTAL_PLAN_ENTER", "1")];
    let desk = Desk::with_env(script, on).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, to("build")).await.unwrap();
    let request = question_request(&mut feed).await;
    desk.engine.questions().answer(&request.id, vec![vec!["Yes".into()]]).unwrap();
    idle(&mut feed).await;
    assert_eq!(desk.engine.sessions().get(&session.id).await.unwrap().agent.as_deref(), Some("plan"));
}

#[tokio::test]
async fn without_the_experiment_there_is_no_plan_tool() {
    let desk = Desk::new(Script::new().text("a").text("b")).await;
    let session = desk.session().await;
    for agent in ["plan", "build"] {
        desk.engine.sessions().prompt(&session.id, to(agent)).await.unwrap();
    }
    for nth in [0, 1] {
        assert!(!offered(&desk, nth).iter().any(|name| name.starts_with("plan_")));
        assert!(offered(&desk, nth).contains(&"question".to_owned()));
    }
}

#[tokio::test]
async fn a_background_subagent_reports_later() {
    let mut work = json!({"description": "slow", "prompt": "SUBTASK slow", "subagent_type": "general"});
    work["background"] = json!(true);
    let script = Script::new()
        .session(
            "SUBTASK",
            [
                Turn::from(
                    Turn::steps().tool("bash", json!({"command": "until [ -e go ]; do sleep 0.02; done"})),
                ),
                Turn::text("The report.").into(),
            ],
        )
        .tool("task", work)
        .text("went on")
        .text("heard of it");
    let desk = Desk::with_env(script, [("OPENCODE_EXPERIMENTAL", "1")]).await;
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "go").await), "went on");
    let told = &calls(&desk.transcript(&session).await)[0];
    assert!(
        matches!(&told.1, ToolState::Completed { output, .. } if output.contains("state=\"running\"")),
        "{told:?}"
    );
    let mut feed = desk.engine.events().subscribe();
    std::fs::write(desk.project.join("go"), "").unwrap();
    let id = session.id.clone();
    wait_for(&mut feed, |published| match published.notice().fact {
        Fact::Signal(Signal::SessionIdle { session_id }) if session_id == id => Some(()),
        _ => None,
    })
    .await;
    let transcript = desk.transcript(&session).await;
    assert_eq!(text(transcript.last().unwrap()), "heard of it");
    let report = text(&transcript[transcript.len() - 2]);
    assert!(report.contains("state=\"completed\"") && report.contains("The report."), "{report}");
    desk.assert_clean();
}

#[tokio::test]
async fn background_subagents_end_with_their_session() {
    let mut work = json!({"description": "slow", "prompt": "SUBTASK slow", "subagent_type": "general"});
    work["background"] = json!(true);
    let script = Script::new()
        .session("SUBTASK", [Turn::from(Turn::steps().tool("bash", json!({"command": "sleep 600"})))])
        .tool("task", work)
        .text("went on")
        .text("heard of it");
    let desk = Desk::with_env(script, [("OPENCODE_EXPERIMENTAL", "1")]).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let child = desk.engine.sessions().children(&session.id).await.unwrap().remove(0);
    assert!(desk.engine.sessions().statuses().contains_key(&child.id));
    desk.engine.sessions().abort(&session.id).await.unwrap();
    assert!(!desk.engine.sessions().statuses().contains_key(&child.id));
    // The subagent that was stopped with the session does not report to it.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(desk.server.main_requests().len(), 3);
}
