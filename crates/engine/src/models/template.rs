//! The template of a provider's models: protocol, address and authorization.

use std::time::Duration;

use codewright_config::{ModelConfig, Timeout};
use codewright_llm::{Model, Protocol, Quirk, Secret, catalog};
use serde_json::Value;

use super::options::pairs;
use super::provider::Setup;
use super::vendor::{Account, Wire};

/// The longest request for which the configuration sets no limit.
const TOTAL: Duration = Duration::from_secs(60 * 60);
/// The limit that stands for "no limit": nothing waits without a deadline.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// A library and an address that one model has instead of its provider's.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    pub(super) library: &'a str,
    pub(super) address: &'a str,
}

/// Marks a model of a LiteLLM proxy.
pub(super) fn with_noop_tool(model: &mut Model) {
    if !model.quirks.contains(&Quirk::NoopTool) {
        model.quirks.push(Quirk::NoopTool);
    }
}

impl Setup {
    /// The template for the provider's models, or for one with its own route and configuration.
    pub(super) fn model(
        &self,
        route: Option<Route<'_>>,
        of_model: Option<&ModelConfig>,
    ) -> Result<Model, String> {
        let wire = self.wire(route)?;
        let account = self.account(wire);
        let mut model = self.unauthorized(wire, route, account)?;
        if let Some(account) = account {
            account.authorize(wire, &mut model)?;
        }
        let uses_sign_in = account.is_some_and(Account::uses_sign_in);
        if let Some(sign_in) = self.sign_in.as_ref().filter(|_| !uses_sign_in) {
            let of_model = of_model.and_then(|written| written.rest.get("provider")?.get("api")?.as_str());
            let is_address_configured =
                self.address().is_some() || of_model.is_some_and(|url| !url.is_empty());
            sign_in.apply(&mut model, is_address_configured);
        }
        model.auth_advice = self.refusal_advice(&model);
        Ok(model)
    }

    /// The library and the protocol of the provider, or of a model with its own route.
    fn wire<'a>(&'a self, route: Option<Route<'a>>) -> Result<Wire<'a>, String> {
        let of_model = route.map(|route| route.library);
        let protocol = match (self.protocol(of_model)?, self.written.options.rest.get("useCompletionUrls")) {
            (Protocol::OpenAiResponses, Some(Value::Bool(true))) => Protocol::OpenAiChat,
            (protocol, _) => protocol,
        };
        let library = self.written.npm.as_deref().or(of_model).or(self.row.map(|row| row.npm));
        Ok(Wire { library, protocol })
    }

    /// The template with the provider's key only.
    fn unauthorized(
        &self,
        wire: Wire<'_>,
        route: Option<Route<'_>>,
        account: Option<&dyn Account>,
    ) -> Result<Model, String> {
        let Self { id, written, .. } = self;
        let base_url = self.base_url(wire, route, account)?;
        codewright_llm::check_url(&base_url).map_err(|error| {
            format!("provider `{id}`: `provider.{id}.options.baseURL` cannot be used: {error}")
        })?;
        let mut model = Model::new(id, "", wire.protocol, base_url.trim_end_matches('/'));
        model.api_key = self.key.clone().map(Secret::from);
        model.headers = pairs(&written.options.headers);
        model.quirks = catalog::quirks(id, written.npm.as_deref().or(route.map(|route| route.library)));
        match written.options.rest.get("litellmProxy").and_then(Value::as_bool) {
            None if catalog::names_litellm(&base_url) => with_noop_tool(&mut model),
            Some(true) => with_noop_tool(&mut model),
            Some(false) => model.quirks.retain(|quirk| *quirk != Quirk::NoopTool),
            None => {}
        }
        if let Some(set) = written.options.rest.get("setCacheKey") {
            model.options.insert("setCacheKey".to_owned(), set.clone());
        }
        let set = |limit: &mut Duration, written: Option<Timeout>| match written {
            Some(Timeout::After(time)) => *limit = time,
            Some(Timeout::Never) => *limit = NEVER,
            None => {}
        };
        set(&mut model.timeouts.first_byte, written.options.header_timeout);
        set(&mut model.timeouts.idle, written.options.chunk_timeout);
        let mut total = model.timeouts.total.unwrap_or(TOTAL);
        set(&mut total, written.options.timeout);
        model.timeouts.total = Some(total);
        Ok(model)
    }

    /// The configured address.
    fn address(&self) -> Option<&str> {
        let written = [&self.written.options.base_url, &self.written.api];
        written.into_iter().flatten().map(String::as_str).find(|url| !url.is_empty())
    }

    /// The address: of the configuration, the account, the model, our own list or the catalog, else the protocol's.
    fn base_url(
        &self,
        wire: Wire<'_>,
        route: Option<Route<'_>>,
        account: Option<&dyn Account>,
    ) -> Result<String, String> {
        if let Some(url) = self.address() {
            return Ok(url.to_owned());
        }
        if let Some(url) = account.map(|account| account.address(wire)).transpose()?.flatten() {
            return Ok(url);
        }
        let of_row = self.row.map(|row| row.base_url);
        let of_catalog = self.facts.as_ref().and_then(|facts| facts.api.as_deref());
        let mut known = [route.map(|route| route.address), of_row, of_catalog].into_iter().flatten();
        if let Some(url) = known.find(|url| !url.is_empty()) {
            return if of_row == Some(url) { Ok(url.to_owned()) } else { self.fill_in(url) };
        }
        match wire.protocol {
            Protocol::Anthropic => Ok("https://api.anthropic.com/v1".to_owned()),
            Protocol::Gemini => Ok("https://generativelanguage.googleapis.com/v1beta".to_owned()),
            Protocol::OpenAiResponses if self.written.npm.as_deref() == Some("@ai-sdk/openai") => {
                Ok("https://api.openai.com/v1".to_owned())
            }
            Protocol::Cohere => Ok("https://api.cohere.com/v2".to_owned()),
            Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::Bedrock => {
                let id = &self.id;
                let option = account.and_then(Account::address_option);
                let option = option.map(|option| format!(" or `provider.{id}.options.{option}`"));
                Err(format!(
                    "provider `{id}` has no address: set `provider.{id}.options.baseURL`{} in opencode.json",
                    option.unwrap_or_default()
                ))
            }
        }
    }

    fn protocol(&self, of_model: Option<&str>) -> Result<Protocol, String> {
        let Self { id, written, row, facts, .. } = self;
        let of_library = |npm: &str, from: &str| {
            catalog::protocol_of_npm(npm).ok_or_else(|| {
                format!(
                    "provider `{id}`: {from} names `{npm}`, whose protocol is not supported yet; \
                     `@ai-sdk/openai-compatible` and `@ai-sdk/anthropic` are, if its server speaks one of them: \
                     set `provider.{id}.npm` in opencode.json"
                )
            })
        };
        match (&written.npm, of_model, row, facts) {
            (Some(npm), ..) => of_library(npm, "`npm`"),
            (None, Some(npm), ..) if !npm.is_empty() => of_library(npm, "the catalog"),
            (None, _, Some(row), _) => Ok(row.protocol),
            (None, _, None, Some(facts)) => of_library(&facts.npm, "the catalog"),
            (None, _, None, None) => Ok(Protocol::OpenAiChat),
        }
    }

    /// The library of the provider, as clients show it.
    pub(super) fn library(&self) -> &str {
        let of_row = self.row.map(|row| row.npm);
        let of_catalog = self.facts.as_ref().map(|facts| facts.npm.as_str());
        self.written.npm.as_deref().or(of_catalog).or(of_row).unwrap_or("@ai-sdk/openai-compatible")
    }

    /// The address that the configuration or the catalog names, as clients show it.
    pub(super) fn named_address(&self) -> &str {
        let of_catalog = self.facts.as_ref().and_then(|facts| facts.api.as_deref());
        self.written.api.as_deref().or(of_catalog).unwrap_or_default()
    }

    /// An address of the catalog with the variables' values.
    fn fill_in(&self, url: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = url;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after_name)) = after.split_once('}') else { break };
            filled.push_str(before);
            let found = self.variables.iter().find(|(known, _)| known == name);
            let (_, value) = found.ok_or_else(|| {
                let id = &self.id;
                format!("provider `{id}`: set {name}, or `provider.{id}.options.baseURL` in opencode.json")
            })?;
            filled.push_str(value);
            rest = after_name;
        }
        filled.push_str(rest);
        // The address receives keys and the catalog is downloaded, so only this machine may be reached unencrypted.
        let is_local =
            ["http://127.0.0.1:", "http://localhost:"].iter().any(|prefix| filled.starts_with(prefix));
        if is_local || filled.starts_with("https://") {
            return Ok(filled);
        }
        Err(format!("provider `{}`: the catalog's address `{filled}` does not begin with https://", self.id))
    }
}
