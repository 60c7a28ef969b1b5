//! Which tools a request has: those that a model is shown, and those it may call unasked.
//!
//! Models know tools of older versions, and call them by older names. What is harmless to
//! accept is accepted, under the same rules as everything, and never advertised.

use std::collections::BTreeMap;
use std::sync::Arc;

use codewright_config::{Env, env};
use codewright_tools::AnyTool;

/// Tools switched on or off by name.
pub(crate) type Switches = BTreeMap<String, bool>;

/// Older names, and what they are called now.
const ALIASES: [(&str, &str); 5] = [
    ("ls", "list"),
    ("lsp-diagnostics", "lsp"),
    ("lsp-hover", "lsp"),
    ("patch", "apply_patch"),
    ("todo", "todowrite"),
];
/// The provider whose models may search the web without being told to.
const SEARCHING_PROVIDER: &str = "opencode";

/// The experiments that the environment switches on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Experiments {
    search: bool,
    lsp: bool,
}

impl Experiments {
    pub(crate) fn of(env: &Env) -> Self {
        let is_on = |name| env.is_on(name) || env.is_on(env::EXPERIMENTAL);
        Self { search: is_on(env::ENABLE_EXA), lsp: is_on(env::EXPERIMENTAL_LSP_TOOL) }
    }
}

/// The model that is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) provider_id: &'a str,
    /// Its name on the wire.
    pub(crate) api_id: &'a str,
}

/// The tools of a request.
#[derive(Clone, Default)]
pub(crate) struct Offered {
    /// Those that the model is shown.
    pub(crate) shown: Vec<Arc<dyn AnyTool>>,
    /// Those that it may call all the same.
    pub(crate) known: Vec<Arc<dyn AnyTool>>,
}

impl Offered {
    /// The tool of that name, however the model spells its case, or of that older name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        let lower = name.to_ascii_lowercase();
        let is_alias = |(alias, _): &&(&str, &str)| *alias == lower;
        let now = ALIASES.iter().find(is_alias).map_or(lower.as_str(), |(_, now)| now);
        let all = || self.shown.iter().chain(&self.known);
        let exact = all().find(|tool| tool.name() == name);
        exact.or_else(|| all().find(|tool| tool.name().eq_ignore_ascii_case(now))).cloned()
    }
}

/// Whether a tool is part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Shown,
    Known,
    Absent,
}

/// Whether a tool is part of a request that no rule forbids it.
pub(super) fn presence(
    tool: &str,
    model: &Asked<'_>,
    experiments: &Experiments,
    switches: &Switches,
) -> Presence {
    let searches = experiments.search || model.provider_id == SEARCHING_PROVIDER;
    let is_on = switches.get(tool) == Some(&true);
    match tool {
        "websearch" if searches => Presence::Shown,
        "codesearch" if searches && is_on => Presence::Shown,
        "codesearch" if searches => Presence::Known,
        "websearch" | "codesearch" => Presence::Absent,
        "lsp" if experiments.lsp => Presence::Shown,
        "lsp" => Presence::Absent,
        "batch" if !is_on => Presence::Absent,
        "list" | "multiedit" | "todoread" if !is_on => Presence::Known,
        _ => Presence::Shown,
    }
}
