//! Switches between planning and building, if the user agrees.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::question::{DEADLINE, DISMISSED};
use crate::host::{Choice, Question};
use crate::{Ask, Effect, Facts, Output, Tool, ToolCx, ToolError};

const ENTER: &str = include_str!("plan_enter.txt");
const EXIT: &str = include_str!("plan_exit.txt");
const YES: &str = "Yes";

/// The `plan_enter` tool: switches to the agent that plans.
pub struct PlanEnter;

/// The `plan_exit` tool: switches to the agent that builds.
pub struct PlanExit;

/// The arguments: none.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {}

impl Tool for PlanEnter {
    const NAME: &'static str = "plan_enter";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::Reported,
        is_available: |setup| setup.can_ask && setup.has_plans && setup.can_propose_plans,
        ..Facts::PLAIN
    };
    const DEADLINE: Duration = DEADLINE;
    type Input = Input;

    fn description(&self) -> String {
        ENTER.to_owned()
    }

    fn parameters(&self) -> Value {
        nothing()
    }

    async fn asks(&self, _input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new(Self::NAME, vec!["*".to_owned()])])
    }

    async fn run(&self, _input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let file = cx.host.plan_file().await?;
        let question = format!("Make a plan first? It would be written to {file}.");
        let yes = "Plan first; nothing is changed";
        agreed(cx, Proposal { header: "Plan", question, yes, no: "Continue without a plan" }).await?;
        let word = format!("The user wants a plan first. Write it to `{file}` and change nothing else.");
        cx.host.switch_agent("plan", word).await?;
        Ok(Output::new("Switching to plan agent", "The user agreed: the plan agent continues."))
    }
}

impl Tool for PlanExit {
    const NAME: &'static str = "plan_exit";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::Reported,
        is_available: |setup| setup.can_ask && setup.has_plans,
        ..Facts::PLAIN
    };
    const DEADLINE: Duration = DEADLINE;
    type Input = Input;

    fn description(&self) -> String {
        EXIT.to_owned()
    }

    fn parameters(&self) -> Value {
        nothing()
    }

    async fn asks(&self, _input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new(Self::NAME, vec!["*".to_owned()])])
    }

    async fn run(&self, _input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let file = cx.host.plan_file().await?;
        let question = format!("The plan in {file} is ready. Carry it out now?");
        let yes = "The build agent carries it out";
        agreed(cx, Proposal { header: "Build", question, yes, no: "Keep planning" }).await?;
        let word = format!("The plan in `{file}` is approved. Files may be changed again: carry it out.");
        cx.host.switch_agent("build", word).await?;
        Ok(Output::new("Switching to build agent", "The user agreed: the build agent continues."))
    }
}

/// A question to the user with the answers "yes" and "no".
struct Proposal<'a> {
    header: &'a str,
    question: String,
    /// What "yes" means.
    yes: &'a str,
    /// What "no" means.
    no: &'a str,
}

fn nothing() -> Value {
    json!({
        "type": "object",
        "properties": {},
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    })
}

/// Sends the question to the user, and fails as a refused question does unless the answer is yes.
async fn agreed(cx: &ToolCx, proposal: Proposal<'_>) -> Result<(), ToolError> {
    let choice = |label: &str, description: &str| Choice {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let question = Question {
        question: proposal.question,
        header: proposal.header.to_owned(),
        options: vec![choice(YES, proposal.yes), choice("No", proposal.no)],
        multiple: None,
        custom: Some(false),
    };
    let answers = cx.host.ask_user(vec![question]).await?;
    let said = answers.as_ref().and_then(|answers| answers.first()?.first());
    if said.is_some_and(|said| said == YES) { Ok(()) } else { Err(ToolError::model(DISMISSED)) }
}
