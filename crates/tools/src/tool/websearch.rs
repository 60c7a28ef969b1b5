//! Searches the web with a search engine.
//!
//! One JSON-RPC request is posted to one server. The pages that it finds are not fetched.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Ask, Effect, Facts, Listing, ModelName, Output, Setup, Tool, ToolCx, ToolError, WebError, WebRequest,
    render,
};

const WEB_DESCRIPTION: &str = include_str!("websearch.txt");
const CODE_DESCRIPTION: &str = include_str!("codesearch.txt");
/// The address of the engine, unless the environment sets another one.
const ENGINE: &str = "https://mcp.exa.ai/mcp";
const DEADLINE: Duration = Duration::from_secs(30);
/// The limit for the size of a response.
const MAX_BYTES: usize = 2 * 1024 * 1024;
const RESULTS: u64 = 8;
const MAX_RESULTS: u64 = 50;
const CONTEXT_CHARACTERS: u64 = 10_000;
const MAX_CONTEXT_CHARACTERS: u64 = 100_000;
const TOKENS: (u64, u64, u64) = (1000, 5000, 50_000);

/// The search engine that is used.
#[derive(Debug, Clone, Default)]
pub struct SearchEngine {
    /// Its address, instead of the default.
    pub url: Option<String>,
    /// The key of the user's account.
    pub key: Option<String>,
}

/// The `websearch` tool.
pub struct WebSearch {
    /// The year, for the description.
    pub year: u64,
}

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebInput {
    query: String,
    num_results: Option<f64>,
    livecrawl: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    context_max_characters: Option<f64>,
}

impl Tool for WebSearch {
    const NAME: &'static str = "websearch";
    const FACTS: &'static Facts =
        &Facts { effect: Effect::None, position: Some(11), suits: can_search, ..Facts::PLAIN };
    type Input = WebInput;

    fn description(&self) -> String {
        let values = [("year", self.year.to_string()), ("results", RESULTS.to_string())];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        render(WEB_DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "The search text"},
                "numResults": {"type": "number", "description": format!("The number of pages, {RESULTS} if not given")},
                "livecrawl": {
                    "type": "string",
                    "enum": ["fallback", "preferred"],
                    "description": "Whether fresh pages are fetched only if none are stored, or preferably",
                },
                "type": {
                    "type": "string",
                    "enum": ["auto", "fast", "deep"],
                    "description": "The search depth; auto if not given",
                },
                "contextMaxCharacters": {"type": "number", "description": "The limit of text"},
            },
            "required": ["query"],
        })
    }

    async fn asks(&self, input: &WebInput, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new("websearch", vec![input.query.clone()]).with("query", input.query.as_str())])
    }

    async fn run(&self, input: WebInput, cx: &ToolCx) -> Result<Output, ToolError> {
        let arguments = json!({
            "query": input.query,
            "type": input.kind.as_deref().unwrap_or("auto"),
            "numResults": whole(input.num_results, RESULTS, 1..=MAX_RESULTS),
            "livecrawl": input.livecrawl.as_deref().unwrap_or("fallback"),
            "contextMaxCharacters":
                whole(input.context_max_characters, CONTEXT_CHARACTERS, 500..=MAX_CONTEXT_CHARACTERS),
        });
        let found = search("web_search_exa", arguments, cx).await?;
        Ok(Output { title: format!("Web search: {}", input.query), output: found, ..Output::default() })
    }
}

/// Whether a model may search: the models of OpenCode's own provider always may.
fn can_search(model: ModelName<'_>, setup: &Setup) -> bool {
    setup.has_web_search || model.provider_id == "opencode"
}

/// The `codesearch` tool.
pub struct CodeSearch;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeInput {
    query: String,
    tokens_num: Option<f64>,
}

impl Tool for CodeSearch {
    const NAME: &'static str = "codesearch";
    const FACTS: &'static Facts =
        &Facts { effect: Effect::None, listing: Listing::Accepted, suits: can_search, ..Facts::PLAIN };
    type Input = CodeInput;

    fn description(&self) -> String {
        let (least, usual, most) = TOKENS;
        let values = [("least", least.to_string()), ("usual", usual.to_string()), ("most", most.to_string())];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        render(CODE_DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        let (least, _, most) = TOKENS;
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "The question, with the names it is about"},
                "tokensNum": {
                    "type": "number", "minimum": least, "maximum": most,
                    "description": "The amount of text, in tokens",
                },
            },
            "required": ["query"],
        })
    }

    async fn asks(&self, input: &CodeInput, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new("codesearch", vec![input.query.clone()]).with("query", input.query.as_str())])
    }

    async fn run(&self, input: CodeInput, cx: &ToolCx) -> Result<Output, ToolError> {
        let (least, usual, most) = TOKENS;
        let arguments =
            json!({"query": input.query, "tokensNum": whole(input.tokens_num, usual, least..=most)});
        let found = search("get_code_context_exa", arguments, cx).await?;
        Ok(Output { title: format!("Code search: {}", input.query), output: found, ..Output::default() })
    }
}

fn whole(number: Option<f64>, usual: u64, range: RangeInclusive<u64>) -> u64 {
    // Fractions are cut off, and a value that is not a number becomes the minimum.
    number.map_or(usual, |number| (number as u64).clamp(*range.start(), *range.end()))
}

async fn search(tool: &str, arguments: Value, cx: &ToolCx) -> Result<String, ToolError> {
    let request = request(tool, &arguments, cx).await?;
    let sent = tokio::time::timeout(DEADLINE, cx.web.send(&request));
    let Some(answer) = cx.cancel.run_until_cancelled(sent).await else {
        return Err(ToolError::Cancelled(None));
    };
    let answer = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(WebError::TooLarge)) => {
            return Err(ToolError::model("The search engine's answer is too large"));
        }
        Ok(Err(WebError::Unreachable(why))) => {
            return Err(ToolError::Model(format!("The search engine cannot be reached: {why}")));
        }
        Err(_) => {
            let seconds = DEADLINE.as_secs();
            return Err(ToolError::Model(format!("The search engine did not answer within {seconds} s")));
        }
    };
    if !(200..300).contains(&answer.status) {
        return Err(ToolError::Model(format!("The search engine answered with status {}", answer.status)));
    }
    let text = String::from_utf8_lossy(&answer.body);
    let found = found(&text).map_err(|why| ToolError::Model(format!("The search engine refused: {why}")))?;
    Ok(super::webfetch::strip_controls(
        &found.unwrap_or_else(|| "Nothing was found. Try other words.".to_owned()),
    ))
}

async fn request(tool: &str, arguments: &Value, cx: &ToolCx) -> Result<WebRequest, ToolError> {
    let address = cx.engine.url.as_deref().unwrap_or(ENGINE);
    let bad = |why: &dyn std::fmt::Display| {
        ToolError::Model(format!("The search engine's address is not usable: {why}"))
    };
    let mut url = url::Url::parse(address).map_err(|why| bad(&why))?;
    if let Some(key) = &cx.engine.key {
        url.query_pairs_mut().append_pair("exaApiKey", key);
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(443);
    // The address is configured by us or by the user, so it is not checked.
    let addresses = match tokio::time::timeout(DEADLINE, cx.web.look_up(host, port)).await {
        Ok(Ok(addresses)) => addresses,
        _ if cx.web.has_proxy(&url) => Vec::new(),
        _ => return Err(ToolError::model("The search engine cannot be reached: its name is not known")),
    };
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    });
    let accept = "application/json, text/event-stream";
    Ok(WebRequest { url, addresses, accept, body: Some(call.to_string()), limit_bytes: MAX_BYTES })
}

/// The text of a response: of plain JSON, or of the first event that has any.
fn found(answer: &str) -> Result<Option<String>, String> {
    let events = answer.lines().filter_map(|line| line.strip_prefix("data:"));
    for event in [answer].into_iter().chain(events) {
        let Ok(reply) = serde_json::from_str::<Value>(event.trim()) else { continue };
        if let Some(error) = reply.pointer("/error/message").and_then(Value::as_str) {
            return Err(error.chars().take(500).collect());
        }
        let content = reply.pointer("/result/content").and_then(Value::as_array).into_iter().flatten();
        let texts: Vec<&str> = content.filter_map(|part| part["text"].as_str()).collect();
        if !texts.is_empty() {
            return Ok(Some(texts.join("\n\n")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_response_or_of_its_events_is_found() {
        let reply = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}}"#;
        assert_eq!(found(reply), Ok(Some("A\n\nB".to_owned())));
        let events = format!("event: message\ndata: {{}}\n\nevent: message\ndata: {reply}\n\n");
        assert_eq!(found(&events), Ok(Some("A\n\nB".to_owned())));
        assert_eq!(found(r#"{"error":{"message":"no"}}"#), Err("no".to_owned()));
        for nothing in ["", "data: {", r#"{"result":{"content":[]}}"#] {
            assert_eq!(found(nothing), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn numbers_are_kept_within_bounds() {
        for (number, expected) in [
            (None, 8),
            (Some(3.7), 3),
            (Some(0.0), 1),
            (Some(-5.0), 1),
            (Some(1e300), 50),
            (Some(f64::NAN), 1),
        ] {
            assert_eq!(whole(number, RESULTS, 1..=MAX_RESULTS), expected, "{number:?}");
        }
    }
}
