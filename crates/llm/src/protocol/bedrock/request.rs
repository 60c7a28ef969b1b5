//! The body of a ConverseStream request.
//!
//! The server is strict: roles must alternate and begin with the user, text must not be blank, ids
//! must be short, and tools must be declared if the conversation contains calls. This module
//! converts a conversation accordingly.

use serde_json::{Map, Value, json};

use crate::aws::sign::sha256_hex;
use crate::options::{join, merge};
use crate::protocol::openai_chat::request::{left_out, number, plain_text};
use crate::request::NO_OUTPUT;
use crate::{AssistantContent, File, FileData, Message, Model, Request, ToolChoice, ToolResult, UserContent};

/// The number of messages with a cache mark, counted from the end.
const MARKED_MESSAGES: usize = 2;
/// The text of a user message that is added where the server requires one.
const CONTINUE: &str = "Continue.";
/// The text of a message that would otherwise contain only documents, which the server rejects.
const DOCUMENT_LEAD_IN: &str = "See the attached document.";
/// A tool that is declared if the conversation contains calls but no tools are offered.
const STAND_IN_TOOL: &str = "_noop";
/// The length limit of a call's id, and the exact length for Mistral models.
const ID_LENGTH: usize = 64;
const MISTRAL_ID_LENGTH: usize = 9;
/// The length limit of a document's name.
const NAME_LENGTH: usize = 100;

/// The field for settings that belong to a model's family.
const FIELDS: &str = "additionalModelRequestFields";

/// Families of models whose requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Claude,
    Nova,
    Mistral,
    OpenAi,
    Other,
}

impl Family {
    fn of(model: &Model) -> Self {
        // An ARN may not contain the model's name, but the configured id often does.
        let name = format!("{} {}", model.api_id, model.id).to_lowercase();
        [
            ("claude", Self::Claude),
            ("nova", Self::Nova),
            ("mistral", Self::Mistral),
            ("pixtral", Self::Mistral),
            ("openai.", Self::OpenAi),
        ]
        .into_iter()
        .find_map(|(part, family)| name.contains(part).then_some(family))
        .unwrap_or(Self::Other)
    }
}

/// Returns whether a model is of Mistral, whose ids have another form.
pub(super) fn is_mistral(model: &Model) -> bool {
    Family::of(model) == Family::Mistral
}

/// Returns the body. The order of fields is fixed, so equal requests are equal bytes.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    let family = Family::of(model);
    let marks = supports_marks(model, family);
    let options = wire_options(join(&model.options, &request.options, wire_name), family);
    let thinking = &options[FIELDS]["thinking"];
    let mut body = Map::new();
    let inference = inference(request, model, thinking);
    body.insert("inferenceConfig".into(), Value::Object(inference));
    let mut system: Vec<_> = request.system_pieces().map(|piece| json!({"text": piece})).collect();
    if !system.is_empty() {
        system.extend(marks.then(mark));
        body.insert("system".into(), Value::Array(system));
    }
    let messages = Conversation { model, family, marks, documents: 0 }.messages(request);
    if let Some(tools) = tools(request, family, &messages) {
        body.insert("toolConfig".into(), tools);
    }
    body.insert("messages".into(), Value::Array(messages));
    body.insert(FIELDS.into(), json!({}));
    if let Value::Object(options) = options {
        merge(&mut body, options);
    }
    body.retain(|_, value| value.as_object().is_none_or(|object| !object.is_empty()));
    Value::Object(body)
}

fn inference(request: &Request, model: &Model, thinking: &Value) -> Map<String, Value> {
    let mut config = Map::new();
    let is_budgeted = thinking["type"] == "enabled";
    if request.max_output_tokens > 0 {
        let budget = thinking["budget_tokens"].as_u64().filter(|_| is_budgeted).unwrap_or(0);
        let sum = request.max_output_tokens.saturating_add(budget);
        let limit = match model.limits.output {
            output if output > budget => sum.min(output.max(request.max_output_tokens)),
            _ => sum,
        };
        config.insert("maxTokens".into(), json!(limit));
    }
    // The server rejects sampling settings together with reasoning.
    if thinking.is_null() {
        if let Some(temperature) = request.temperature {
            config.insert("temperature".into(), number(temperature.clamp(0.0, 1.0)));
        }
        if let Some(top_p) = request.top_p {
            config.insert("topP".into(), number(top_p));
        }
    }
    config
}

/// Returns whether a model supports cache marks. Claude models before 3.5 and most other families
/// do not.
fn supports_marks(model: &Model, family: Family) -> bool {
    const OLD: &[&str] = &[
        "claude-v2",
        "claude-instant",
        "claude-3-haiku",
        "claude-3-opus",
        "claude-3-sonnet",
        "claude-3-5-sonnet-20240620",
    ];
    match family {
        Family::Claude => !OLD.iter().any(|old| model.api_id.contains(old)),
        Family::Nova => true,
        Family::Mistral | Family::OpenAi | Family::Other => false,
    }
}

fn mark() -> Value {
    json!({"cachePoint": {"type": "default"}})
}

fn wire_name(name: &str) -> Option<&str> {
    Some(match name {
        "topK" => "top_k",
        // Settings of the connection, which users write next to real options.
        "region" | "profile" | "endpoint" | "accessKeyId" | "secretAccessKey" | "sessionToken" => {
            return None;
        }
        name => name,
    })
}

/// Moves each option to its field. Options that Converse does not have belong to the model.
fn wire_options(options: Map<String, Value>, family: Family) -> Value {
    const OF_CONVERSE: &[&str] = &[
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "inferenceConfig",
        "performanceConfig",
        "promptVariables",
        "requestMetadata",
        "serviceTier",
        "toolConfig",
    ];
    let (mut body, mut fields) = (Map::new(), Map::new());
    for (name, value) in options {
        match name.as_str() {
            FIELDS => merge_options(&mut fields, value.as_object().cloned().unwrap_or_default()),
            "stopSequences" => {
                merge_options(&mut body, one("inferenceConfig", json!({"stopSequences": value})));
            }
            // `null` disables reasoning, in all spellings.
            "reasoningConfig" | "thinking" if value.is_null() => {
                for field in ["thinking", "output_config", "reasoningConfig"] {
                    fields.shift_remove(field);
                }
            }
            "reasoningConfig" | "thinking" => merge_options(&mut fields, reasoning(value, family)),
            "anthropicBeta" => merge_options(&mut fields, one("anthropic_beta", value)),
            name if OF_CONVERSE.contains(&name) => merge_options(&mut body, one(name, value)),
            name => merge_options(&mut fields, one(name, value)),
        }
    }
    if !fields.is_empty() {
        body.insert(FIELDS.into(), Value::Object(fields));
    }
    Value::Object(body)
}

/// Merges options. Keeps `null`, because it removes a field of the body later.
fn merge_options(into: &mut Map<String, Value>, options: Map<String, Value>) {
    for (name, value) in options {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_options(old, new),
            (_, value) => drop(into.insert(name, value)),
        }
    }
}

fn one(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

/// Returns a reasoning setting in the format of the model's family.
fn reasoning(mut config: Value, family: Family) -> Map<String, Value> {
    let Some(given) = config.as_object_mut() else { return Map::new() };
    let effort = given.shift_remove("maxReasoningEffort");
    if let Some(budget) = given.shift_remove("budgetTokens") {
        given.insert("budget_tokens".into(), budget);
    }
    let mut fields = Map::new();
    match family {
        Family::Claude => {
            fields.insert("thinking".into(), config);
            if let Some(effort) = effort {
                fields.insert("output_config".into(), json!({"effort": effort}));
            }
        }
        Family::OpenAi => {
            fields.extend(effort.map(|effort| ("reasoning_effort".to_owned(), effort)));
        }
        Family::Nova | Family::Mistral | Family::Other => {
            given.shift_remove("budget_tokens");
            // Only Claude supports `adaptive`; these families turn reasoning on or off.
            if given.get("type").is_some_and(|kind| kind == "adaptive") {
                given.insert("type".into(), json!("enabled"));
            }
            given.extend(effort.map(|effort| ("maxReasoningEffort".to_owned(), effort)));
            fields.insert("reasoningConfig".into(), config);
        }
    }
    fields
}

/// Returns the tools, or a placeholder if only the conversation needs one.
fn tools(request: &Request, family: Family, messages: &[Value]) -> Option<Value> {
    let is_call = |block: &Value| block.get("toolUse").is_some() || block.get("toolResult").is_some();
    let has_calls =
        messages.iter().filter_map(|message| message["content"].as_array()).flatten().any(is_call);
    let spec = |name: &str, description: &str, schema: &Value| {
        let schema = if family == Family::Nova { plain_schema(schema) } else { schema.clone() };
        let input = json!({"json": schema});
        json!({"toolSpec": {"name": name, "description": description, "inputSchema": input}})
    };
    if request.tools.is_empty() {
        let schema = json!({"type": "object", "properties": {}});
        return has_calls.then(|| json!({"tools": [spec(STAND_IN_TOOL, "Does nothing.", &schema)]}));
    }
    let description =
        |text: &str, name: &str| if text.is_empty() { name.to_owned() } else { text.to_owned() };
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| spec(&tool.name, &description(&tool.description, &tool.name), &tool.parameters))
        .collect();
    match request.tool_choice {
        ToolChoice::Auto => Some(json!({"tools": tools, "toolChoice": {"auto": {}}})),
        ToolChoice::Required => Some(json!({"tools": tools, "toolChoice": {"any": {}}})),
        // The protocol cannot forbid calls. Omitting the tools does, if that is allowed.
        ToolChoice::None => has_calls.then(|| json!({"tools": tools})),
    }
}

/// Nova rejects other keywords at the top of a schema.
fn plain_schema(schema: &Value) -> Value {
    let all = schema.as_object().into_iter().flatten();
    let kept = all.filter(|(name, _)| matches!(name.as_str(), "type" | "properties" | "required"));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The state while a conversation is converted.
struct Conversation<'a> {
    model: &'a Model,
    family: Family,
    marks: bool,
    /// The number of documents so far, because their names must be unique.
    documents: usize,
}

impl Conversation<'_> {
    fn messages(mut self, request: &Request) -> Vec<Value> {
        let mut turns: Vec<(&str, Vec<Value>)> =
            request.messages.iter().map(|message| self.turn(message)).collect();
        turns.retain(|(_, blocks)| !blocks.iter().all(is_reasoning));
        trim_last(&mut turns);
        if turns.first().is_some_and(|(role, _)| *role == "assistant") {
            turns.insert(0, ("user", vec![json!({"text": CONTINUE})]));
        }
        // Only Claude can continue an unfinished answer.
        if self.family != Family::Claude && turns.last().is_some_and(|(role, _)| *role == "assistant") {
            turns.push(("user", vec![json!({"text": CONTINUE})]));
        }
        if self.marks {
            for (_, blocks) in turns.iter_mut().rev().take(MARKED_MESSAGES) {
                if blocks.last().is_some_and(|block| !is_reasoning(block)) {
                    blocks.push(mark());
                }
            }
        }
        let mut joined: Vec<(&str, Vec<Value>)> = Vec::with_capacity(turns.len());
        for (role, blocks) in turns {
            match joined.last_mut() {
                Some((last, into)) if *last == role => into.extend(blocks),
                _ => joined.push((role, blocks)),
            }
        }
        joined.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
    }

    fn turn(&mut self, message: &Message) -> (&'static str, Vec<Value>) {
        match message {
            Message::User(content) => ("user", self.user(content)),
            Message::Assistant(content) => {
                ("assistant", content.iter().filter_map(|part| self.assistant_block(part)).collect())
            }
            Message::Tool(results) => {
                ("user", results.iter().map(|result| self.result_block(result)).collect())
            }
        }
    }

    fn user(&mut self, content: &[UserContent]) -> Vec<Value> {
        let mut blocks: Vec<Value> = content
            .iter()
            .filter_map(|part| match part {
                UserContent::Text(text) => text_block(text),
                UserContent::File(file) => Some(self.file_block(file)),
            })
            .collect();
        let has = |kind: &str| blocks.iter().any(|block| block.get(kind).is_some());
        if has("document") && !has("text") {
            blocks.insert(0, json!({"text": DOCUMENT_LEAD_IN}));
        }
        blocks
    }

    fn assistant_block(&self, part: &AssistantContent) -> Option<Value> {
        match part {
            AssistantContent::Text(text) => text_block(text),
            AssistantContent::Reasoning { text, metadata } => {
                let mine = metadata.as_ref()?.get("bedrock")?;
                if let Some(data) = mine.get("redactedData") {
                    return Some(json!({"reasoningContent": {"redactedContent": data}}));
                }
                // The server rejects reasoning without a signature.
                let signature = mine.get("signature")?;
                Some(json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}))
            }
            // Metadata of other providers.
            AssistantContent::Metadata(_) => None,
            AssistantContent::ToolCall { id, name, input } => {
                let input = if input.is_object() { input.clone() } else { json!({}) };
                Some(json!({"toolUse": {"toolUseId": self.sanitize_id(id), "name": name, "input": input}}))
            }
        }
    }

    fn result_block(&mut self, result: &ToolResult) -> Value {
        let mut content: Vec<Value> = text_block(&result.output).into_iter().collect();
        content.extend(result.attachments.iter().map(|file| self.file_block(file)));
        if content.is_empty() {
            content.push(json!({"text": NO_OUTPUT}));
        }
        let status = if result.is_error { "error" } else { "success" };
        json!({"toolResult": {"toolUseId": self.sanitize_id(&result.call_id), "content": content, "status": status}})
    }

    fn file_block(&mut self, file: &File) -> Value {
        let input = self.model.capabilities.input;
        let source = match &file.data {
            FileData::Base64(data) => json!({"bytes": data}),
            // The server downloads only this type of URL.
            FileData::Url(url) if url.starts_with("s3://") => json!({"s3Location": {"uri": url}}),
            FileData::Url(_) => return omitted(file),
        };
        if let Some(format) = image_format(&file.mime).filter(|_| input.image) {
            return json!({"image": {"format": format, "source": source}});
        }
        if let Some(format) = document_format(&file.mime)
            && (input.pdf || format == "txt" || format == "md")
            && self.family != Family::OpenAi
        {
            self.documents += 1;
            let name = document_name(file.filename.as_deref(), self.documents);
            return json!({"document": {"format": format, "name": name, "source": source}});
        }
        let text = match &file.data {
            FileData::Base64(data) if file.mime.starts_with("text/") => plain_text(data),
            FileData::Base64(_) | FileData::Url(_) => None,
        };
        text.and_then(|text| text_block(&text)).unwrap_or_else(|| omitted(file))
    }

    fn sanitize_id(&self, id: &str) -> String {
        if self.family == Family::Mistral {
            let is_mistral =
                id.len() == MISTRAL_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            return if is_mistral {
                id.to_owned()
            } else {
                sha256_hex(id.as_bytes())[..MISTRAL_ID_LENGTH].to_owned()
            };
        }
        let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let clean: String = id.chars().map(|c| if is_fine(c) { c } else { '_' }).collect();
        match clean.len() {
            0 => "_".to_owned(),
            1..=ID_LENGTH => clean,
            // Two long ids may have the same start.
            _ => format!("{}_{}", &clean[..ID_LENGTH - 17], &sha256_hex(id.as_bytes())[..16]),
        }
    }
}

/// The server rejects an unfinished answer that ends in white space.
fn trim_last(turns: &mut Vec<(&str, Vec<Value>)>) {
    let Some(("assistant", blocks)) = turns.last_mut() else { return };
    let Some(block) = blocks.last_mut() else { return };
    let Some(text) = block.get("text").and_then(Value::as_str) else { return };
    *block = json!({"text": text.trim_end()});
}

/// Returns whether a block is reasoning, which cannot be marked and cannot be the only content of a
/// message.
fn is_reasoning(block: &Value) -> bool {
    block.get("reasoningContent").is_some()
}

/// Returns a text that names a file the model cannot read.
fn omitted(file: &File) -> Value {
    json!({"text": left_out(file)["text"]})
}

/// The server rejects text that consists of white space.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"text": text}))
}

fn image_format(mime: &str) -> Option<&'static str> {
    Some(match mime {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return None,
    })
}

fn document_format(mime: &str) -> Option<&'static str> {
    Some(match mime {
        "application/pdf" => "pdf",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        "text/plain" => "txt",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        _ => return None,
    })
}

/// Returns a valid name of a document: letters, digits, single spaces and a few symbols. The number
/// makes it unique.
fn document_name(filename: Option<&str>, number: usize) -> String {
    let stem = filename.map_or("document", |name| name.rsplit_once('.').map_or(name, |(stem, _)| stem));
    let kept: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '(' | ')' | '[' | ']') { c } else { ' ' })
        .take(NAME_LENGTH)
        .collect();
    let words: Vec<&str> = kept.split_ascii_whitespace().collect();
    let name = if words.is_empty() { "document".to_owned() } else { words.join(" ") };
    format!("{name} {number}")
}

#[cfg(test)]
mod tests;
