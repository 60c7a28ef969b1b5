//! The tools that list and read the resources of MCP servers, and resources as parts of a prompt.

use std::collections::BTreeSet;
use std::sync::Arc;

use codewright_mcp::{Part, Servers, resource_parts};
use codewright_tools::tags::neutralize;
use codewright_tools::{AnyTool, Ask, Attachment, Boxed, Effect, Facts, Output, ToolCx, ToolError};
use serde_json::{Map, Value, json};

const FACTS: &Facts = &Facts { effect: Effect::None, ..Facts::PLAIN };

/// The kind of a tool about resources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Templates,
    Read,
}

struct ResourceTool {
    kind: Kind,
    servers: Servers,
}

/// Returns the tools about resources.
pub(super) fn tools(servers: &Servers) -> Vec<Arc<dyn AnyTool>> {
    let tool = |kind| -> Arc<dyn AnyTool> { Arc::new(ResourceTool { kind, servers: servers.clone() }) };
    [Kind::List, Kind::Templates, Kind::Read].map(tool).into()
}

impl AnyTool for ResourceTool {
    fn name(&self) -> &str {
        match self.kind {
            Kind::List => "list_mcp_resources",
            Kind::Templates => "list_mcp_resource_templates",
            Kind::Read => "read_mcp_resource",
        }
    }

    fn facts(&self) -> &'static Facts {
        FACTS
    }

    fn description(&self) -> String {
        let text = match self.kind {
            Kind::List => {
                "List the resources of the connected MCP servers: documents, schemas and other context."
            }
            Kind::Templates => {
                "List the resource templates of the connected MCP servers. A template is an address with variables \
                 that you fill in."
            }
            Kind::Read => "Read a resource of an MCP server by its address.",
        };
        text.to_owned()
    }

    fn parameters(&self) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        let (properties, required) = match self.kind {
            Kind::List | Kind::Templates => {
                (json!({"server": text("The name of a server; all servers if left out")}), json!([]))
            }
            Kind::Read => (
                json!({
                    "server": text("The name of the server, as list_mcp_resources returns it"),
                    "uri": text("The address, as list_mcp_resources returns it or from a filled template"),
                }),
                json!(["server", "uri"]),
            ),
        };
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    fn asks<'a>(&'a self, input: &'a Value, _cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>> {
        Box::pin(async move {
            let text = |key: &str| input.get(key).and_then(Value::as_str);
            let pattern = match (text("server"), text("uri")) {
                (Some(server), Some(uri)) => format!("{server}:{uri}"),
                (Some(server), None) => server.to_owned(),
                _ => "*".to_owned(),
            };
            Ok(vec![Ask::new(self.name(), vec![pattern])])
        })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> Boxed<'a, Output> {
        Box::pin(async move {
            let text = |key: &str| input.get(key).and_then(Value::as_str);
            let work = async {
                match (self.kind, text("server"), text("uri")) {
                    (Kind::Read, Some(server), Some(uri)) => read(&self.servers, server, uri).await,
                    (Kind::Read, ..) => Err(ToolError::model("`server` and `uri` are missing")),
                    (Kind::List, server, _) => Ok(list(&self.servers, server).await),
                    (Kind::Templates, server, _) => Ok(templates(&self.servers, server).await),
                }
            };
            cx.cancel.run_until_cancelled(work).await.unwrap_or(Err(ToolError::Cancelled(None)))
        })
    }
}

async fn list(servers: &Servers, server: Option<&str>) -> Output {
    let found = servers.resources(server).await;
    let entries = found.into_iter().map(|(name, resource)| {
        let entry = entry([
            ("name", Some(resource.name)),
            ("uri", Some(resource.uri)),
            ("description", resource.description),
            ("mimeType", resource.mime),
        ]);
        (name, entry)
    });
    listed("resources", "MCP resources", server, entries.collect())
}

async fn templates(servers: &Servers, server: Option<&str>) -> Output {
    let found = servers.templates(server).await;
    let entries = found.into_iter().map(|(name, template)| {
        let entry = entry([
            ("name", Some(template.name)),
            ("uriTemplate", Some(template.uri)),
            ("description", template.description),
            ("mimeType", template.mime),
        ]);
        (name, entry)
    });
    listed("resourceTemplates", "MCP resource templates", server, entries.collect())
}

fn entry(fields: [(&str, Option<String>); 4]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect()
}

fn listed(
    key: &str,
    title: &str,
    server: Option<&str>,
    entries: Vec<(Arc<str>, Map<String, Value>)>,
) -> Output {
    let names: BTreeSet<&str> = entries.iter().map(|(name, _)| &**name).collect();
    let (count, servers) = (entries.len(), json!(names));
    let entries: Vec<Value> = entries
        .into_iter()
        .map(|(name, mut entry)| {
            entry.insert("server".to_owned(), (*name).into());
            Value::Object(entry)
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ key: entries })).unwrap_or_default();
    let title = server.map_or_else(|| title.to_owned(), |server| format!("{title}: {server}"));
    let output = Output { title, output: text, ..Output::default() };
    let output = output.with("count", count).with("servers", servers);
    match server {
        Some(server) => output.with("server", server),
        None => output,
    }
}

async fn read(servers: &Servers, server: &str, uri: &str) -> Result<Output, ToolError> {
    let answer = servers.read_resource(server, uri).await;
    let answer = answer.map_err(|failure| {
        ToolError::Model(format!("Failed to read MCP resource: {server}/{uri}: {failure}"))
    })?;
    let parts = resource_parts(&answer);
    let count = parts.len();
    let (mut texts, mut attachments) = (Vec::new(), Vec::new());
    for (object, part) in parts {
        match part {
            Part::Text(text) if object.contains_key("text") => {
                let own = |key: &str| object.get(key).and_then(Value::as_str);
                let mime = own("mimeType").map(|mime| format!("\nMIME: {mime}")).unwrap_or_default();
                texts.push(format!("Resource: {}{mime}\n{text}", own("uri").unwrap_or(uri)));
            }
            Part::Text(text) => texts.push(text),
            Part::File(file) => attachments.push(attachment(file)),
        }
    }
    let files = attachments.len();
    let output = Output {
        title: format!("MCP resource: {uri}"),
        output: texts.join("\n\n"),
        attachments,
        ..Output::default()
    };
    let output = output.with("server", server).with("uri", uri);
    Ok(output.with("contents", count).with("attachments", files))
}

/// What a resource adds to a prompt.
pub(crate) struct AttachedResource {
    /// Texts for the model.
    pub(crate) texts: Vec<String>,
    /// Files: the type and a `data:` address.
    pub(crate) files: Vec<(String, String)>,
}

/// Reads a resource that the user attached to a prompt.
pub(crate) async fn attach(
    servers: Option<&Servers>,
    server: &str,
    uri: &str,
    name: &str,
) -> AttachedResource {
    let mut texts = vec![format!("Reading MCP resource: {name} ({uri})")];
    let mut files = Vec::new();
    let answer = match servers {
        Some(servers) => servers.read_resource(server, uri).await.map_err(|failure| failure.to_string()),
        None => Err(format!("The MCP server `{server}` is not connected.")),
    };
    match answer {
        Ok(answer) => {
            for (_, part) in resource_parts(&answer) {
                match part {
                    Part::Text(text) => texts.push(neutralize(&text).into_owned()),
                    Part::File(file) => {
                        let file = attachment(file);
                        files.push((file.mime, file.url));
                    }
                }
            }
        }
        Err(reason) => texts.push(format!("The resource could not be read: {}", neutralize(&reason))),
    }
    AttachedResource { texts, files }
}

/// A file of a server as an attachment.
pub(super) fn attachment(file: codewright_mcp::Attached) -> Attachment {
    let url = format!("data:{};base64,{}", file.mime, file.data);
    Attachment { mime: file.mime, url, filename: None }
}
