//! The known keys and their types.
//!
//! An unknown key accepts any value, because later versions and other programs add their own.

use super::{Kind, Node};
use crate::{plugin_host, sandbox};

/// The type of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Any value.
    Any,
    /// `true` or `false`.
    Switch,
    /// A string.
    Text,
    /// A string of the form `provider/model`, or an empty string for no model.
    Model,
    /// An absolute path, or one below `~/`, other than these.
    Path(&'static [&'static str]),
    /// A number.
    Number,
    /// A number that is not negative.
    Count,
    /// A whole number of at least one.
    Positive,
    /// Milliseconds, or `false` for no limit.
    Timeout,
    /// A whole number that is not negative, or `false` for no limit.
    Budget,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A list of values of a type.
    List(&'static Self),
    /// A value of a type, or a list of such values.
    OneOrMore(&'static Self),
    /// An object with values of a type and any keys.
    Map(&'static Self),
    /// An object with these known keys.
    Record(&'static [(&'static str, Self)]),
    /// An object with values of a type and patterns of `host:port` as keys.
    Hosts(&'static Self),
    /// The MCP servers by name, or below the key `servers`.
    Servers,
    /// The first type, or an object of the second type.
    Either(&'static Self, &'static Self),
    /// A value that matches both types.
    Both(&'static Self, &'static Self),
}

/// A value of the wrong type.
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) key: String,
    pub(crate) expected: String,
    pub(crate) found: &'static str,
}

/// The whole document.
pub(crate) static CONFIG: Shape = Shape::Both(&Shape::Record(CONFIG_KEYS), &Shape::Record(OTHER_KEYS));

/// A `permission` value.
pub(crate) const PERMISSION: Shape =
    Shape::Either(&ACTION, &Shape::Both(&Shape::Map(&Shape::Either(&ACTION, &PATTERNS)), &NETWORK));
/// The permission with a pattern that can be checked.
const NETWORK: Shape = Shape::Record(&[(
    "network",
    Shape::Either(&ACTION, &Shape::Hosts(&Shape::OneOf(&["ask", "allow", "deny"]))),
)]);

/// The document's keys that are fields of [`Config`](crate::Config), in the order of API responses.
pub(crate) const CONFIG_KEYS: &[(&str, Shape)] = &[
    ("$schema", Shape::Text),
    ("command", Shape::Map(&Shape::Record(COMMAND_KEYS))),
    ("snapshot", Shape::Switch),
    ("plugin", Shape::List(&Shape::Any)),
    ("share", Shape::OneOf(&["manual", "auto", "disabled"])),
    ("autoshare", Shape::Switch),
    ("autoupdate", Shape::Any),
    ("disabled_providers", TEXTS),
    ("enabled_providers", TEXTS),
    ("model", Shape::Model),
    ("small_model", Shape::Model),
    ("default_agent", Shape::Text),
    ("username", Shape::Text),
    ("mode", Shape::Map(&AGENT)),
    ("agent", Shape::Map(&AGENT)),
    ("provider", Shape::Map(&Shape::Record(PROVIDER_KEYS))),
    ("instructions", TEXTS),
    ("permission", PERMISSION),
    ("tools", Shape::Map(&Shape::Switch)),
];

/// The document's other known keys: used elsewhere, used by later versions, or Codewright's own.
pub(crate) const OTHER_KEYS: &[(&str, Shape)] = &[
    ("agents", Shape::Map(&AGENT)),
    ("permissions", Shape::Map(&Shape::Record(LISTED_RULES))),
    ("shell", Shape::Text),
    ("store", Shape::Text),
    ("node", Shape::Record(NODE_KEYS)),
    ("logLevel", Shape::OneOf(&["DEBUG", "INFO", "WARN", "ERROR"])),
    ("server", Shape::Record(SERVER_KEYS)),
    ("auth", Shape::Record(AUTH_KEYS)),
    ("skills", Shape::Record(&[("paths", TEXTS), ("urls", TEXTS)])),
    ("references", Shape::Map(&Shape::Any)),
    ("reference", Shape::Map(&Shape::Any)),
    ("watcher", Shape::Record(&[("ignore", TEXTS)])),
    ("subagent_depth", Shape::Count),
    ("mcp", Shape::Servers),
    ("hooks", Shape::Map(&Shape::List(&Shape::Any))),
    ("claude_hooks", Shape::Switch),
    ("plugin_host", Shape::Record(plugin_host::KEYS)),
    ("mcp_tool_budget", Shape::Budget),
    ("formatter", Shape::Either(&Shape::Switch, &Shape::Map(&Shape::Record(FORMATTER_KEYS)))),
    ("lsp", Shape::Either(&Shape::Switch, &Shape::Map(&Shape::Record(LSP_KEYS)))),
    ("lsp_install", Shape::Switch),
    ("layout", Shape::OneOf(&["auto", "stretch"])),
    ("attachment", Shape::Record(&[("image", Shape::Record(IMAGE_KEYS))])),
    ("enterprise", Shape::Record(&[("url", Shape::Text)])),
    ("tool_output", Shape::Record(&[("max_lines", Shape::Positive), ("max_bytes", Shape::Positive)])),
    ("compaction", Shape::Record(COMPACTION_KEYS)),
    ("experimental", Shape::Record(EXPERIMENTAL_KEYS)),
    ("keybinds", Shape::Any),
    ("theme", Shape::Any),
    ("tui", Shape::Any),
    ("prompt", Shape::Record(PROMPT_KEYS)),
    ("sandbox", Shape::Record(sandbox::KEYS)),
];

/// The keys of `tui.json`. Those of OpenCode's other clients are unknown here.
pub(crate) const TERMINAL_KEYS: &[(&str, Shape)] = &[
    ("$schema", Shape::Text),
    ("theme", Shape::Text),
    ("mouse", Shape::Switch),
    ("hyperlinks", Shape::Switch),
    (
        "notifications",
        Shape::Either(
            &Shape::Switch,
            &Shape::Record(&[("bell", Shape::Switch), ("desktop", Shape::Switch), ("title", Shape::Switch)]),
        ),
    ),
    // The client knows the actions, and reports those that it cannot read.
    ("keybinds", Shape::Both(&Shape::Any, &Shape::Record(KEYBIND_KEYS))),
];
/// The entries of `keybinds` that are not actions.
const KEYBIND_KEYS: &[(&str, Shape)] =
    &[("preset", Shape::OneOf(&["opencode", "claude", "codex", "vim"])), ("leader", Shape::Any)];
/// The whole document of the terminal client.
pub(crate) static TERMINAL: Shape = Shape::Record(TERMINAL_KEYS);

const IMAGE_KEYS: &[(&str, Shape)] = &[
    ("auto_resize", Shape::Switch),
    ("max_width", Shape::Positive),
    ("max_height", Shape::Positive),
    ("max_base64_bytes", Shape::Positive),
];

const NODE_KEYS: &[(&str, Shape)] = &[
    ("name", Shape::Text),
    ("address", Shape::Text),
    ("secret", Shape::Text),
    ("roots", TEXTS),
    ("sessions", Shape::Positive),
    ("waiting", Shape::Count),
    ("drain_seconds", Shape::Count),
];

const AUTH_KEYS: &[(&str, Shape)] = &[
    ("users", Shape::Map(&Shape::Record(USER_KEYS))),
    ("oidc", Shape::Record(OIDC_KEYS)),
    ("directories", TEXTS),
    ("quotas", Shape::Record(QUOTA_KEYS)),
];
const USER_KEYS: &[(&str, Shape)] =
    &[("token", Shape::OneOrMore(&Shape::Text)), ("role", ROLE), ("teams", TEXTS)];
const ROLE: Shape = Shape::OneOf(&["admin", "member", "reader"]);
const OIDC_KEYS: &[(&str, Shape)] = &[
    ("issuer", Shape::Text),
    ("audience", Shape::Text),
    ("user_claim", Shape::Text),
    ("team_claim", Shape::Text),
    ("roles", Shape::Map(&ROLE)),
    ("role", ROLE),
];
const QUOTA: Shape =
    Shape::Record(&[("sessions", Shape::Count), ("tokens", Shape::Count), ("cost", Shape::Number)]);
const QUOTA_KEYS: &[(&str, Shape)] =
    &[("user", QUOTA), ("users", Shape::Map(&QUOTA)), ("team", QUOTA), ("teams", Shape::Map(&QUOTA))];

const SERVER_KEYS: &[(&str, Shape)] = &[
    ("port", Shape::Positive),
    ("hostname", Shape::Text),
    ("mdns", Shape::Switch),
    ("mdnsDomain", Shape::Text),
    ("cors", TEXTS),
    ("metrics", Shape::OneOf(&["off", "guarded", "open"])),
    ("probes", Shape::OneOf(&["guarded", "open"])),
];

const FORMATTER_KEYS: &[(&str, Shape)] = &[
    ("disabled", Shape::Switch),
    ("command", TEXTS),
    ("environment", Shape::Map(&Shape::Text)),
    ("extensions", TEXTS),
];

const LSP_KEYS: &[(&str, Shape)] = &[
    ("disabled", Shape::Switch),
    ("command", TEXTS),
    ("extensions", TEXTS),
    ("env", Shape::Map(&Shape::Text)),
    ("initialization", ANYTHING),
    ("memory_limit_mb", Shape::Positive),
    ("idle_timeout_s", Shape::Positive),
];

/// The keys of one MCP server. OpenCode reads those of one with a timeout for each operation, so it stays valid.
const SERVER_ENTRY_KEYS: &[(&str, Shape)] = &[
    // A server of another type fails alone, with a warning.
    ("type", Shape::Text),
    ("command", Shape::OneOrMore(&Shape::Text)),
    ("args", TEXTS),
    ("environment", Shape::Map(&Shape::Text)),
    ("env", Shape::Map(&Shape::Text)),
    ("cwd", Shape::Text),
    ("confine", Shape::Switch),
    ("network", Shape::Switch),
    ("url", Shape::Text),
    ("headers", Shape::Map(&Shape::Text)),
    ("oauth", Shape::Either(&Shape::Switch, &Shape::Record(SIGN_IN_KEYS))),
    ("enabled", Shape::Switch),
    ("sampling", Shape::Switch),
    ("timeout", Shape::Either(&Shape::Positive, &ANYTHING)),
];

/// The keys of a server's `oauth`.
const SIGN_IN_KEYS: &[(&str, Shape)] = &[
    ("clientId", Shape::Text),
    ("clientSecret", Shape::Text),
    ("scope", Shape::Text),
    ("redirectUri", Shape::Text),
    ("callbackPort", Shape::Positive),
    ("authorizationServer", Shape::Text),
];

const COMPACTION_KEYS: &[(&str, Shape)] = &[
    ("auto", Shape::Switch),
    ("prune", Shape::Switch),
    ("tail_turns", Shape::Count),
    ("preserve_recent_tokens", Shape::Count),
    ("reserved", Shape::Count),
];

const EXPERIMENTAL_KEYS: &[(&str, Shape)] = &[
    ("disable_paste_summary", Shape::Switch),
    ("batch_tool", Shape::Switch),
    ("openTelemetry", Shape::Switch),
    ("primary_tools", TEXTS),
    ("continue_loop_on_deny", Shape::Switch),
    ("mcp_timeout", Shape::Positive),
    ("policies", Shape::List(&Shape::Any)),
];

const LISTED_RULES: &[(&str, Shape)] = &[("allow", TEXTS), ("ask", TEXTS), ("deny", TEXTS)];

/// The keys of `prompt`, Codewright's own section about the system prompt.
const PROMPT_KEYS: &[(&str, Shape)] = &[
    ("profile", Shape::OneOf(&["current", "legacy"])),
    ("strict", Shape::Switch),
    ("tree", Shape::Switch),
    ("diagnostics", Shape::Switch),
    ("header", Shape::Text),
    ("system", Shape::Text),
    ("claude", Shape::Switch),
    ("instructions", Shape::Record(INSTRUCTION_KEYS)),
];

const INSTRUCTION_KEYS: &[(&str, Shape)] = &[
    ("max_bytes", Shape::Positive),
    ("follow_symlinks", Shape::Switch),
    ("http", Shape::Switch),
    ("hosts", TEXTS),
];

/// The keys of one command.
pub(crate) const COMMAND_KEYS: &[(&str, Shape)] = &[
    ("template", Shape::Text),
    ("description", Shape::Text),
    ("agent", Shape::Text),
    ("model", Shape::Model),
    ("variant", Shape::Text),
    ("subtask", Shape::Switch),
];

/// The keys of one agent.
pub(crate) const AGENT_KEYS: &[(&str, Shape)] = &[
    ("model", Shape::Model),
    ("variant", Shape::Text),
    ("temperature", Shape::Number),
    ("top_p", Shape::Number),
    ("prompt", Shape::Text),
    ("tools", Shape::Map(&Shape::Switch)),
    ("disable", Shape::Switch),
    ("description", Shape::Text),
    ("mode", Shape::OneOf(&["subagent", "primary", "all"])),
    ("hidden", Shape::Switch),
    ("options", ANYTHING),
    ("color", Shape::Text),
    ("steps", Shape::Positive),
    ("maxSteps", Shape::Positive),
    ("permission", PERMISSION),
    ("name", Shape::Text),
    ("sandbox", sandbox::MODE),
    ("type", Shape::OneOf(&["acp"])),
    ("command", Shape::OneOrMore(&Shape::Text)),
    ("args", TEXTS),
    ("environment", Shape::Map(&Shape::Text)),
    ("cwd", Shape::Text),
];

/// The keys of one provider.
pub(crate) const PROVIDER_KEYS: &[(&str, Shape)] = &[
    ("api", Shape::Text),
    ("name", Shape::Text),
    ("env", TEXTS),
    ("id", Shape::Text),
    ("npm", Shape::Text),
    ("whitelist", TEXTS),
    ("blacklist", TEXTS),
    ("options", Shape::Record(OPTION_KEYS)),
    ("models", Shape::Map(&Shape::Record(MODEL_KEYS))),
];

/// The keys of a provider's `options`.
pub(crate) const OPTION_KEYS: &[(&str, Shape)] = &[
    ("apiKey", Shape::Text),
    ("baseURL", Shape::Text),
    ("headers", Shape::Map(&Shape::Text)),
    ("timeout", Shape::Timeout),
    ("headerTimeout", Shape::Timeout),
    ("chunkTimeout", Shape::Timeout),
];

/// The keys of one model.
pub(crate) const MODEL_KEYS: &[(&str, Shape)] = &[
    ("id", Shape::Text),
    ("name", Shape::Text),
    ("attachment", Shape::Switch),
    ("reasoning", Shape::Switch),
    ("temperature", Shape::Switch),
    ("tool_call", Shape::Switch),
    ("interleaved", Shape::Either(&Shape::Any, &Shape::Record(&[("field", Shape::Text)]))),
    ("cost", Shape::Record(COST_KEYS)),
    ("limit", Shape::Record(&[("context", Shape::Count), ("input", Shape::Count), ("output", Shape::Count)])),
    ("modalities", Shape::Record(&[("input", TEXTS), ("output", TEXTS)])),
    ("options", ANYTHING),
    ("headers", Shape::Map(&Shape::Text)),
    ("variants", Shape::Map(&ANYTHING)),
];

const COST_KEYS: &[(&str, Shape)] = &[
    ("input", Shape::Number),
    ("output", Shape::Number),
    ("cache_read", Shape::Number),
    ("cache_write", Shape::Number),
    ("context_over_200k", Shape::Record(TIER_KEYS)),
];

const TIER_KEYS: &[(&str, Shape)] = &[
    ("input", Shape::Number),
    ("output", Shape::Number),
    ("cache_read", Shape::Number),
    ("cache_write", Shape::Number),
];

const TEXTS: Shape = Shape::List(&Shape::Text);
const ANYTHING: Shape = Shape::Map(&Shape::Any);
static AGENT: Shape = Shape::Record(AGENT_KEYS);
static SERVER: Shape = Shape::Record(SERVER_ENTRY_KEYS);
/// The servers below the key `servers`.
static NESTED_SERVERS: Shape = Shape::Map(&SERVER);
/// What is next to the key `servers`.
static ANYTHING_ELSE: Shape = Shape::Any;
static ACTION: Shape = Shape::OneOf(&["ask", "allow", "deny"]);
static PATTERNS: Shape = Shape::Map(&Shape::OneOf(&["ask", "allow", "deny"]));

/// An unknown key of a record.
pub(crate) struct Unknown {
    pub(crate) offset: usize,
    /// The key with those above it.
    pub(crate) path: String,
    pub(crate) name: String,
    /// The keys of the record.
    pub(crate) known: Vec<&'static str>,
    /// Whether the key is an option for the model's provider, as every unknown key of an agent.
    pub(crate) is_option: bool,
    /// Whether the key has no meaning in later versions and other programs either.
    pub(crate) is_useless: bool,
}

/// Returns the unknown keys of the records in a document.
pub(crate) fn unknown_keys(node: &Node, shape: &'static Shape) -> Vec<Unknown> {
    let mut found = Vec::new();
    collect_unknown(node, &[shape], &mut Vec::new(), &mut found);
    found
}

/// The value matches all shapes.
fn collect_unknown<'a>(
    node: &'a Node,
    shapes: &[&'static Shape],
    path: &mut Vec<Step<'a>>,
    found: &mut Vec<Unknown>,
) {
    let flat: Vec<&'static Shape> = shapes.iter().flat_map(|shape| flattened(shape)).collect();
    match &node.kind {
        Kind::List(nodes) => {
            let entries: Vec<_> = flat.iter().filter_map(|shape| entry_of(shape)).collect();
            for (index, node) in nodes.iter().enumerate() {
                path.push(Step::Index(index));
                collect_unknown(node, &entries, path, found);
                path.pop();
            }
        }
        Kind::Object(nodes) => {
            for (name, node) in nodes {
                let below: Vec<&'static Shape> =
                    flat.iter().filter_map(|shape| value_of(shape, nodes, name)).collect();
                path.push(Step::Key(name));
                if below.is_empty()
                    && !flat.is_empty()
                    && flat.iter().all(|shape| matches!(shape, Shape::Record(_)))
                {
                    let known = flat.iter().flat_map(|shape| keys_of(shape));
                    found.push(Unknown {
                        offset: node.offset,
                        path: path_text(path),
                        name: name.clone(),
                        known: known.collect(),
                        is_option: flat.iter().any(|shape| std::ptr::eq(*shape, &AGENT)),
                        is_useless: flat.iter().any(|shape| std::ptr::eq(*shape, &SERVER)),
                    });
                }
                collect_unknown(node, &below, path, found);
                path.pop();
            }
        }
        Kind::Null | Kind::Switch(_) | Kind::Number(_) | Kind::Text(_) => {}
    }
}

/// The shapes that an object or a list can have.
fn flattened(shape: &'static Shape) -> Vec<&'static Shape> {
    match shape {
        Shape::Both(one, other) => [flattened(one), flattened(other)].concat(),
        Shape::Either(_, object) => flattened(object),
        other => vec![other],
    }
}

fn entry_of(shape: &'static Shape) -> Option<&'static Shape> {
    if let Shape::List(entry) | Shape::OneOrMore(entry) = shape { Some(entry) } else { None }
}

fn value_of(shape: &'static Shape, entries: &[(String, Node)], name: &str) -> Option<&'static Shape> {
    match shape {
        Shape::Servers => Some(server_shape(entries, name)),
        Shape::Map(entry) | Shape::Hosts(entry) => Some(entry),
        Shape::Record(known) => known.iter().find(|(key, _)| *key == name).map(|(_, shape)| shape),
        Shape::OneOrMore(entry) => value_of(entry, entries, name),
        _ => None,
    }
}

/// The type of an entry of `mcp`.
fn server_shape(entries: &[(String, Node)], name: &str) -> &'static Shape {
    let is_server = |name: &String| ["command", "url", "type"].contains(&name.as_str());
    let nested = entries.iter().find(|(name, _)| name == "servers").is_some_and(|(_, node)| {
        let Kind::Object(servers) = &node.kind else { return false };
        !servers.is_empty() && !servers.iter().any(|(name, _)| is_server(name))
    });
    let is_object = entries.iter().any(|(key, node)| key == name && matches!(node.kind, Kind::Object(_)));
    match (nested, name) {
        (true, "servers") => &NESTED_SERVERS,
        (true, _) if !is_object => &ANYTHING_ELSE,
        _ => &SERVER,
    }
}

/// Fails if the command of a server is one text with arguments.
fn check_command(entry: &Node, path: &mut Vec<Step<'_>>) -> Result<(), Fault> {
    let Kind::Object(keys) = &entry.kind else { return Ok(()) };
    let command = keys.iter().find(|(key, _)| key == "command").map(|(_, node)| node);
    let Some(Node { offset, kind: Kind::Text(text) }) = command else { return Ok(()) };
    if !text.trim().contains(char::is_whitespace) || keys.iter().any(|(key, _)| key == "args") {
        return Ok(());
    }
    let (offset, key) = (*offset, format!("{}.command", path_text(path)));
    let expected = "a list of the program and its arguments, as in `[\"npx\", \"-y\", \"x\"]`".to_owned();
    Err(Fault { offset, key, expected, found: "a string with spaces" })
}

fn keys_of(shape: &'static Shape) -> Vec<&'static str> {
    if let Shape::Record(known) = shape { known.iter().map(|(key, _)| *key).collect() } else { Vec::new() }
}

/// Returns the first value of the wrong type as an error.
pub(crate) fn check(node: &Node, shape: &Shape) -> Result<(), Fault> {
    walk(node, shape, &mut Vec::new())
}

fn walk<'a>(node: &'a Node, shape: &Shape, path: &mut Vec<Step<'a>>) -> Result<(), Fault> {
    match (shape, &node.kind) {
        (Shape::Both(one, other), _) => {
            walk(node, one, path)?;
            walk(node, other, path)
        }
        (Shape::List(entry) | Shape::OneOrMore(entry), Kind::List(nodes)) => nodes
            .iter()
            .enumerate()
            .try_for_each(|(index, node)| descend(node, entry, Step::Index(index), path)),
        (Shape::Map(entry), Kind::Object(nodes)) => {
            nodes.iter().try_for_each(|(name, node)| descend(node, entry, Step::Key(name), path))
        }
        (Shape::Servers, Kind::Object(nodes)) => nodes
            .iter()
            .try_for_each(|(name, node)| descend(node, server_shape(nodes, name), Step::Key(name), path)),
        (Shape::Hosts(entry), Kind::Object(nodes)) => nodes.iter().try_for_each(|(name, node)| {
            if !is_host_pattern(name) {
                path.push(Step::Key(name));
                return Err(Fault {
                    offset: node.offset,
                    key: path_text(path),
                    expected: "named `host:port` in lower case with a port of 1 to 65535, or with wildcards"
                        .to_owned(),
                    found: "another name",
                });
            }
            descend(node, entry, Step::Key(name), path)
        }),
        (Shape::Record(known), Kind::Object(nodes)) => {
            if std::ptr::eq(shape, &SERVER) {
                check_command(node, path)?;
            }
            nodes.iter().try_for_each(|(name, node)| match known.iter().find(|(key, _)| key == name) {
                Some((_, shape)) => descend(node, shape, Step::Key(name), path),
                None => Ok(()),
            })
        }
        (Shape::Either(_, object), Kind::Object(_)) => walk(node, object, path),
        (shape, _) if matches_scalar(node, shape) => Ok(()),
        (shape, _) => Err(Fault {
            offset: node.offset,
            key: path_text(path),
            expected: describe_shape(shape),
            found: describe_value(node, shape),
        }),
    }
}

/// Whether a pattern can match a `host:port`. A pattern that cannot would be a rule without an effect.
fn is_host_pattern(pattern: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let Some((host, port)) = pattern.rsplit_once(':') else { return false };
    let is_wild = |text: &str| text.contains(['*', '?']);
    let is_port = if is_wild(port) {
        port.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'*' | b'?'))
    } else {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && !port.starts_with('0')
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) if is_wild(address) => {
            address.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'*' | b'?'))
        }
        Some(address) => address
            .parse::<std::net::Ipv6Addr>()
            .is_ok_and(|parsed| parsed.to_string() == address && parsed.to_ipv4_mapped().is_none()),
        None => {
            let is_char = |byte: u8| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || matches!(byte, b'-' | b'_' | b'.' | b'*' | b'?')
            };
            !host.is_empty() && !host.ends_with('.') && host.bytes().all(is_char)
        }
    };
    is_host && is_port
}

fn descend<'a>(node: &'a Node, shape: &Shape, step: Step<'a>, path: &mut Vec<Step<'a>>) -> Result<(), Fault> {
    path.push(step);
    walk(node, shape, path)?;
    path.pop();
    Ok(())
}

/// Whether a value without nested values matches a shape.
fn matches_scalar(node: &Node, shape: &Shape) -> bool {
    match (shape, &node.kind) {
        (Shape::Any, _)
        | (Shape::Switch, Kind::Switch(_))
        | (Shape::Text, Kind::Text(_))
        | (Shape::Number, Kind::Number(_))
        | (Shape::Timeout | Shape::Budget, Kind::Switch(false)) => true,
        (Shape::Budget, Kind::Number(number)) => number.as_u64().is_some(),
        (Shape::Count, Kind::Number(number)) => number.as_f64().is_some_and(|number| number >= 0.0),
        (Shape::Positive | Shape::Timeout, Kind::Number(number)) => {
            number.as_f64().is_some_and(|number| number >= 1.0 && number.fract() == 0.0)
        }
        (Shape::OneOf(choices), Kind::Text(text)) => choices.contains(&text.as_str()),
        (Shape::Model, Kind::Text(text)) => text.is_empty() || crate::parse_model(text).is_some(),
        (Shape::Path(excluded), Kind::Text(text)) => {
            (text.starts_with('/') || text.starts_with("~/") || text == "~")
                && !text.contains(['\0', '*', '?'])
                && !text.split('/').any(|component| component == "..")
                && !excluded.contains(&text.trim_end_matches('/'))
        }
        (Shape::Either(plain, _) | Shape::OneOrMore(plain), _) => matches_scalar(node, plain),
        (Shape::Both(one, other), _) => matches_scalar(node, one) && matches_scalar(node, other),
        _ => false,
    }
}

fn describe_shape(shape: &Shape) -> String {
    match shape {
        Shape::Any => "anything".to_owned(),
        Shape::Switch => "`true` or `false`".to_owned(),
        Shape::Text => "a string".to_owned(),
        Shape::Model => "a string of the form `provider/model`".to_owned(),
        Shape::Path([]) => "an absolute path or one below `~/`, without `..` and wildcards".to_owned(),
        Shape::Path(_) => {
            "an absolute path or one below `~/`, without `..` and wildcards, other than `/` and `~`"
                .to_owned()
        }
        Shape::Number => "a number".to_owned(),
        Shape::Count => "a number of at least 0".to_owned(),
        Shape::Positive => "a whole number of at least 1".to_owned(),
        Shape::Timeout => "a whole number of milliseconds or `false`".to_owned(),
        Shape::Budget => "a whole number of at least 0 or `false`".to_owned(),
        Shape::OneOf(choices) => format!("one of `{}`", choices.join("`, `")),
        Shape::List(_) => "a list".to_owned(),
        Shape::OneOrMore(entry) => format!("{} or a list", describe_shape(entry)),
        Shape::Map(_) | Shape::Record(_) | Shape::Hosts(_) | Shape::Servers => "an object".to_owned(),
        Shape::Both(one, _) => describe_shape(one),
        Shape::Either(plain, object) => format!("{} or {}", describe_shape(plain), describe_shape(object)),
    }
}

/// The type of a value, or `another …` if the shape accepts other values of the type.
fn describe_value(node: &Node, shape: &Shape) -> &'static str {
    match (&node.kind, shape) {
        (Kind::Null, _) => "`null`",
        (Kind::Switch(true), _) => "`true`",
        (Kind::Switch(false), _) => "`false`",
        (Kind::Number(_), Shape::Count | Shape::Positive | Shape::Timeout | Shape::Budget) => {
            "another number"
        }
        (Kind::Number(_), _) => "a number",
        (Kind::Text(_), Shape::OneOf(_) | Shape::Model | Shape::Path(_) | Shape::Either(..)) => {
            "another string"
        }
        (Kind::Text(_), _) => "a string",
        (Kind::List(_), _) => "a list",
        (Kind::Object(_), _) => "an object",
    }
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn path_text(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    // The document itself has no key.
    if text.is_empty() { "configuration".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_hosts_is_checked() {
        for (pattern, expected) in [
            ("*", true),
            ("example.com:443", true),
            ("*.npmjs.org:443", true),
            ("example.com:*", true),
            ("*:443", true),
            ("*:*", true),
            ("10.0.0.1:8?", true),
            ("[::1]:80", true),
            ("[fd00:*]:80", true),
            ("localhost:65535", true),
            ("example.com", false),
            ("example.com*", false),
            ("example.com:0", false),
            ("example.com:080", false),
            ("example.com:65536", false),
            ("example.com:-1", false),
            ("example.com:http", false),
            ("example.com:", false),
            (":443", false),
            ("https://example.com:443", false),
            ("Example.com:443", false),
            ("example.com.:443", false),
            ("b\u{fc}cher.de:443", false),
            ("::1:80", false),
            ("[0:0::1]:80", false),
            ("[::ffff:1.2.3.4]:80", false),
            ("user@example.com:443", false),
        ] {
            assert_eq!(is_host_pattern(pattern), expected, "{pattern}");
        }
    }

    /// Adds a row for a key and for nested keys.
    fn add_rows(key: &str, shape: &Shape, rows: &mut Vec<String>) {
        match shape {
            Shape::Record(keys) => keys.iter().for_each(|(name, shape)| {
                add_rows(&format!("{key}.{name}"), shape, rows);
            }),
            Shape::Map(shape) => add_rows(&format!("{key}.*"), shape, rows),
            Shape::List(entry) if !matches!(entry, Shape::Any) => {
                rows.push(format!("| `{key}` | a list, each entry {} |\n", describe_shape(entry)));
            }
            Shape::Hosts(shape) => add_rows(&format!("{key}.HOST:PORT"), shape, rows),
            Shape::Servers => add_rows(&format!("{key}.*"), &SERVER, rows),
            Shape::Both(one, other) => {
                add_rows(key, one, rows);
                add_rows(key, other, rows);
            }
            Shape::Either(plain, object) if !matches!(plain, Shape::Any) => {
                rows.push(format!("| `{key}` | {} |\n", describe_shape(plain)));
                add_rows(key, object, rows);
            }
            shape => rows.push(format!("| `{key}` | {} |\n", describe_shape(shape))),
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch of the test, not configuration of the program")]
    fn the_documentation_lists_all_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration-keys.md");
        let mut rows = Vec::new();
        let mut keys: Vec<_> = CONFIG_KEYS.iter().chain(OTHER_KEYS).collect();
        keys.sort_by_key(|(key, _)| *key);
        for (key, shape) in keys {
            add_rows(key, shape, &mut rows);
        }
        let mut terminal = Vec::new();
        TERMINAL_KEYS.iter().for_each(|(key, shape)| add_rows(key, shape, &mut terminal));
        let page = format!(
            "# Configuration keys\n\n\
             This page is generated from `crates/config/src/document/schema.rs`. It lists every known key with the type\n\
             of its value; `*` stands for any name. See [configuration](configuration.md) for their meaning.\n\n\
             | key | value |\n|---|---|\n{}\n\
             ## `tui.json`\n\n\
             The keys of the [terminal client](tui.md#configuration); `keybinds` also has the [actions](keys.md).\n\n\
             | key | value |\n|---|---|\n{}",
            rows.concat(),
            terminal.concat()
        );
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), page, "run this test with UPDATE_DOCS=1");
    }
}
