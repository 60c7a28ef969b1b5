//! The catalog's storage: fast to open, and decompressed one provider at a time.
//!
//! Nearly every run needs the models of one provider out of two hundred. The providers of the
//! built-in snapshot are therefore lines of text, and the models of each provider are a separate
//! compressed block. A downloaded catalog works in the same way: [`Catalog::compact`] writes one
//! provider per line, which is still valid JSON.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Range;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use serde_json::{Map, Value};

use super::facts::{ModelFacts, ProviderFacts, is_key};
use crate::Error;

/// The providers of the snapshot, one per line. `cargo xtask models` writes the file.
const PROVIDERS: &str = include_str!("../../data/providers.tsv");
/// Their models: one block of compressed JSON per provider, without separators.
const MODELS: &[u8] = include_bytes!("../../data/models.bin");

/// Limit of a downloaded catalog.
pub const LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// Limit of a provider's models after decompression.
const MODELS_LIMIT_BYTES: u64 = 8 * 1024 * 1024;
/// Limits of the providers in a catalog, and of a provider's models.
const PROVIDERS_LIMIT: usize = 2_000;
const PROVIDER_MODELS_LIMIT: usize = 5_000;
/// Limit of a name.
const NAME_LIMIT_BYTES: usize = 200;
/// The end of a provider's own fields in a compact line.
const MODELS_KEY: &str = ",\"models\":";

/// The providers and models of models.dev.
#[derive(Debug)]
pub struct Catalog {
    /// Sorted by id.
    rows: Vec<Row>,
    /// The text that the rows' ranges refer to; `None` for the snapshot.
    text: Option<String>,
}

#[derive(Debug)]
struct Row {
    /// The fields of the snapshot's line: id, name, library, URL and variables. Empty if the facts are set.
    fields: [&'static str; 5],
    /// Set when they are first needed.
    facts: OnceLock<ProviderFacts>,
    models: Range<usize>,
}

impl Row {
    fn new(facts: ProviderFacts, models: Range<usize>) -> Self {
        Self { fields: [""; 5], facts: facts.into(), models }
    }

    fn id(&self) -> &str {
        self.facts.get().map_or(self.fields[0], |facts| &facts.id)
    }

    fn has_key(&self, is_set: impl Fn(&str) -> bool) -> bool {
        let is_set = |name: &str| is_key(name) && is_set(name);
        match self.facts.get() {
            Some(facts) => facts.env.iter().any(|name| is_set(name)),
            None => variables(self.fields[4]).any(is_set),
        }
    }

    fn variables(&self) -> Vec<&str> {
        match self.facts.get() {
            Some(facts) => facts.env.iter().map(String::as_str).collect(),
            None => variables(self.fields[4]).collect(),
        }
    }

    fn facts(&self) -> &ProviderFacts {
        self.facts.get_or_init(|| {
            let [id, name, npm, api, env] = self.fields;
            ProviderFacts {
                id: id.to_owned(),
                name: name.to_owned(),
                env: variables(env).map(str::to_owned).collect(),
                npm: npm.to_owned(),
                api: Some(api.to_owned()).filter(|api| !api.is_empty()),
            }
        })
    }
}

fn variables(field: &str) -> impl Iterator<Item = &str> {
    field.split(' ').filter(|name| !name.is_empty())
}

impl Catalog {
    /// Returns the snapshot that is built into the program.
    #[must_use]
    pub fn embedded() -> Self {
        let mut start = 0;
        let rows = PROVIDERS.lines().filter_map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next();
            let fields = [next()?, next()?, next()?, next()?, next()?];
            let end = start + next()?.parse::<usize>().ok()?;
            let models = std::mem::replace(&mut start, end)..end;
            Some(Row { fields, facts: OnceLock::new(), models })
        });
        Self { rows: rows.collect(), text: None }
    }

    /// Parses the output of [`Catalog::compact`], or `api.json` from models.dev.
    ///
    /// # Errors
    ///
    /// Fails if the text is neither.
    pub fn read(text: String) -> Result<Self, Error> {
        if text.len() > LIMIT_BYTES {
            return Err(invalid(&format!("it is larger than {LIMIT_BYTES} bytes")));
        }
        if let Some(rows) = rows(&text) {
            return Ok(Self { rows, text: Some(text) });
        }
        let text = Self::compact(&text)?;
        let rows = rows(&text).ok_or_else(|| invalid("its lines are broken"))?;
        Ok(Self { rows, text: Some(text) })
    }

    /// Converts the data to one provider per line, without unused fields and unusable entries.
    ///
    /// # Errors
    ///
    /// Fails if the text is not an object of providers with models.
    pub fn compact(text: &str) -> Result<String, Error> {
        let all: Map<String, Value> = serde_json::from_str(text).map_err(|why| invalid(&why.to_string()))?;
        let mut lines = BTreeMap::new();
        for (id, mut written) in all.into_iter().take(PROVIDERS_LIMIT) {
            let models = written.get_mut("models").map(Value::take);
            let Some(Value::Object(models)) = models else { continue };
            let Ok(mut facts) = serde_json::from_value::<ProviderFacts>(written) else { continue };
            facts.name = plain(&facts.name);
            if facts.id != id || !is_name(&id) || !facts.env.iter().all(|name| is_name(name)) {
                continue;
            }
            let models: BTreeMap<String, ModelFacts> = models
                .into_iter()
                .take(PROVIDER_MODELS_LIMIT)
                .filter_map(|(id, model)| usable(id, model))
                .collect();
            // Maps of plain data always serialize.
            let head = serde_json::to_string(&facts).unwrap_or_default();
            let head = head.trim_end_matches('}');
            let models = serde_json::to_string(&models).unwrap_or_default();
            lines.insert(id.clone(), format!("{}:{head}{MODELS_KEY}{models}}}", Value::from(id)));
        }
        if lines.is_empty() {
            return Err(invalid("it lists no provider"));
        }
        Ok(format!("{{\n{}\n}}\n", lines.into_values().collect::<Vec<_>>().join(",\n")))
    }

    /// Returns all providers, sorted by id.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderFacts> {
        self.rows.iter().map(Row::facts)
    }

    /// Returns the ids of all providers, sorted, and whether one of the variables with a provider's key is set.
    pub fn keyed(&self, is_set: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, bool)> {
        self.rows.iter().map(move |row| (row.id(), row.has_key(&is_set)))
    }

    /// Returns the variables that providers read: keys, regions and accounts.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().flat_map(Row::variables)
    }

    /// Returns the provider named `id`.
    #[must_use]
    pub fn provider(&self, id: &str) -> Option<&ProviderFacts> {
        self.row(id).map(Row::facts)
    }

    fn row(&self, id: &str) -> Option<&Row> {
        let at = self.rows.binary_search_by(|row| row.id().cmp(id)).ok()?;
        self.rows.get(at)
    }

    /// Returns the models of a provider, sorted by id. Empty if the provider is not listed.
    ///
    /// # Errors
    ///
    /// Fails if the downloaded data is damaged.
    pub fn models(&self, id: &str) -> Result<Vec<ModelFacts>, Error> {
        let Some(row) = self.row(id) else { return Ok(Vec::new()) };
        let mut unpacked = Vec::new();
        let json = match &self.text {
            Some(text) => text.get(row.models.clone()).unwrap_or_default().as_bytes(),
            None => {
                let packed = MODELS.get(row.models.clone()).unwrap_or_default();
                let read = DeflateDecoder::new(packed).take(MODELS_LIMIT_BYTES).read_to_end(&mut unpacked);
                read.map_err(|why| invalid(&why.to_string()))?;
                &unpacked
            }
        };
        let models: BTreeMap<String, ModelFacts> =
            serde_json::from_slice(json).map_err(|why| invalid(&format!("`{id}`: {why}")))?;
        Ok(models.into_iter().map(|(id, model)| ModelFacts { id, ..model }).collect())
    }

    /// Returns the contents of the snapshot's two files.
    ///
    /// # Errors
    ///
    /// Fails if the catalog is damaged.
    pub fn pack(&self) -> Result<(String, Vec<u8>), Error> {
        let mut lines = String::new();
        let mut packed = Vec::new();
        for facts in self.providers() {
            let models = self.models(&facts.id)?.into_iter().map(|model| (model.id.clone(), model));
            let json = serde_json::to_vec(&models.collect::<BTreeMap<_, _>>()).unwrap_or_default();
            let start = packed.len();
            let read = DeflateEncoder::new(json.as_slice(), Compression::best()).read_to_end(&mut packed);
            read.map_err(|why| invalid(&why.to_string()))?;
            let ProviderFacts { id, name, env, npm, api } = facts;
            let fields = [id, name, npm, api.as_deref().unwrap_or_default(), &env.join(" ")];
            let fields = fields.map(|field| field.replace(['\t', '\n', '\r'], " ")).join("\t");
            lines.push_str(&format!("{fields}\t{}\n", packed.len() - start));
        }
        Ok((lines, packed))
    }
}

/// Parses a text of compact lines. Returns `None` for any other text.
fn rows(text: &str) -> Option<Vec<Row>> {
    let body = text.strip_prefix("{\n")?.strip_suffix("\n}\n")?;
    let mut rows: Vec<Row> = Vec::new();
    let mut start = text.len() - body.len() - "\n}\n".len();
    for line in body.split_inclusive('\n') {
        let row = row(line.trim_end_matches('\n').trim_end_matches(','), start)?;
        // Lookups use binary search.
        if rows.last().is_some_and(|last| last.id() >= row.id()) {
            return None;
        }
        rows.push(row);
        start += line.len();
    }
    (!rows.is_empty()).then_some(rows)
}

/// Parses a compact line that begins at `start` and finds its models.
fn row(line: &str, start: usize) -> Option<Row> {
    // In a string, the quotes of this key would be escaped.
    let models = line.find(MODELS_KEY)?;
    let head = line.find(":{").filter(|head| *head < models)? + 1;
    let facts: ProviderFacts = serde_json::from_str(&format!("{}}}", &line[head..models])).ok()?;
    let end = line.strip_suffix('}').filter(|rest| rest.ends_with('}'))?.len();
    let models = models + MODELS_KEY.len();
    (models < end).then(|| Row::new(facts, start + models..start + end))
}

fn usable(id: String, written: Value) -> Option<(String, ModelFacts)> {
    let mut model: ModelFacts = serde_json::from_value(written).ok()?;
    model.name = plain(&model.name);
    is_name(&id).then_some((id, model))
}

/// Users read and type ids, so they must not contain invisible characters.
fn is_name(name: &str) -> bool {
    let visible = |c: char| !c.is_control() && !c.is_whitespace();
    !name.is_empty() && name.len() <= NAME_LIMIT_BYTES && name.chars().all(visible)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_LIMIT_BYTES).collect()
}

fn invalid(why: &str) -> Error {
    Error::rejected(format!("the model catalog cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Limit of the data's share of the program.
    const LIMIT: usize = 600_000;

    #[test]
    fn every_provider_of_the_snapshot_can_be_read() {
        assert!(PROVIDERS.len() + MODELS.len() <= LIMIT);
        let catalog = Catalog::embedded();
        assert_eq!(catalog.rows.len(), PROVIDERS.lines().count());
        assert_eq!(catalog.rows.last().unwrap().models.end, MODELS.len());
        assert!(catalog.rows.is_sorted_by(|a, b| a.id() < b.id()));
        let mut count = 0;
        for facts in catalog.providers() {
            let models = catalog.models(&facts.id).unwrap();
            assert!(!facts.name.is_empty() && !facts.npm.is_empty(), "{}", facts.id);
            for model in &models {
                assert!(is_name(&model.id) && !model.name.is_empty(), "{}/{}", facts.id, model.id);
                let cost = model.cost();
                assert!(cost.input >= 0.0 && cost.output >= 0.0, "{}/{}", facts.id, model.id);
            }
            count += models.len();
        }
        assert!(count > 5_000, "{count}");
    }

    #[test]
    fn the_snapshot_contains_the_usual_providers() {
        let catalog = Catalog::embedded();
        for id in [
            "amazon-bedrock",
            "anthropic",
            "azure",
            "cerebras",
            "cohere",
            "deepinfra",
            "github-copilot",
            "gitlab",
            "google",
            "google-vertex",
            "google-vertex-anthropic",
            "groq",
            "mistral",
            "openai",
            "openrouter",
            "perplexity",
            "togetherai",
            "vercel",
            "xai",
        ] {
            assert!(catalog.provider(id).is_some() && !catalog.models(id).unwrap().is_empty(), "{id}");
        }
        let models = catalog.models("anthropic").unwrap();
        let opus = models.iter().find(|model| model.id == "claude-opus-4-6").unwrap();
        assert_eq!((opus.limit.context, opus.limit.output), (1_000_000, 128_000));
        assert_eq!((opus.cost().input, opus.cost().cache_write), (5.0, 6.25));
        assert!(opus.capabilities().input.pdf && opus.reasoning && opus.tool_call);
        assert!(catalog.provider("nobody").is_none() && catalog.models("nobody").unwrap().is_empty());
    }

    #[test]
    fn the_variable_of_a_key_shows_that_a_provider_is_usable() {
        let keyed = |catalog: &Catalog, set: &str| -> Vec<String> {
            let found = catalog.keyed(|name| name == set).filter(|(_, has_key)| *has_key);
            found.map(|(id, _)| id.to_owned()).collect()
        };
        let (embedded, read) = (Catalog::embedded(), Catalog::read(api()).unwrap());
        assert_eq!(keyed(&read, "B_KEY"), ["b"]);
        assert_eq!(read.keyed(|_| false).map(|(id, _)| id).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(keyed(&embedded, "302AI_API_KEY"), ["302ai"]);
        let facts = embedded.providers();
        let expected: Vec<_> =
            facts.map(|facts| (facts.id.as_str(), facts.key_variables().count() > 0)).collect();
        assert!(Catalog::embedded().keyed(|_| true).eq(expected.iter().copied()));
        assert!(embedded.keyed(|_| true).eq(expected.iter().copied()), "the facts have been read");
    }

    fn api() -> String {
        let model = json!({
            "id": "m", "name": "M\u{1b}[31m", "tool_call": true, "description": "dropped",
            "limit": { "context": 1000, "output": 100 },
            "reasoning_options": [{ "type": "effort", "values": ["low"] }, { "type": "dice" }],
            "cost": {
                "input": 1, "output": 2,
                "tiers": [{ "input": 3, "output": 4, "tier": { "type": "context", "size": 272_000 } }],
            },
        });
        json!({
            "b": { "id": "b", "name": "B", "env": ["B_KEY"], "npm": "x", "api": "https://b", "models": { "m": model } },
            "a": { "id": "a", "name": "A \",\"models\":{", "env": [], "npm": "x", "models": {} },
            "other": { "id": "not-other", "models": {} },
            "no models": { "id": "no models", "env": [] },
            "bad\u{7}": { "id": "bad\u{7}", "env": [], "models": {} },
            "c": { "id": "c", "env": [], "npm": "x", "models": { "bad id": {}, "worse": 3, "fine": {}, "n": { "limit": "x" } } },
        })
        .to_string()
    }

    #[test]
    fn a_downloaded_catalog_is_compacted_and_parsed_again() {
        let compact = Catalog::compact(&api()).unwrap();
        assert_eq!(Catalog::compact(&compact).unwrap(), compact);
        assert!(!compact.contains("dropped"));
        for text in [api(), compact.clone()] {
            let catalog = Catalog::read(text).unwrap();
            let ids: Vec<_> = catalog.providers().map(|facts| facts.id.as_str()).collect();
            assert_eq!(ids, ["a", "b", "c"]);
            let models = catalog.models("b").unwrap();
            assert_eq!((models.len(), models[0].name.as_str()), (1, "M[31m"));
            assert_eq!(models[0].reasoning_options.len(), 1);
            assert_eq!(models[0].long_cost().unwrap().0, 272_000);
            let ids: Vec<_> = catalog.models("c").unwrap().into_iter().map(|model| model.id).collect();
            assert_eq!(ids, ["fine"]);
        }
        let (lines, packed) = Catalog::read(compact).unwrap().pack().unwrap();
        assert_eq!(lines.lines().count(), 3);
        assert!(!packed.is_empty());
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "{}", "[]", "<html>", "{\n\n}\n", r#"{"a":{"id":"a"}}"#, "{\n\"a\":{},\n}\n"] {
            let error = Catalog::read(text.to_owned()).unwrap_err().to_string();
            assert!(error.contains("model catalog"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_copy_does_not_panic(cut in 0..2_000_usize, byte in any::<u8>()) {
            let compact = Catalog::compact(&api()).unwrap();
            let at = cut % compact.len();
            let short = compact.as_bytes()[..at].to_vec();
            let mut changed = compact.into_bytes();
            changed[at] = byte;
            for bytes in [short, changed] {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Ok(catalog) = Catalog::read(text) {
                    for facts in catalog.providers() {
                        // Both results are fine; only a panic is not.
                        drop(catalog.models(&facts.id));
                    }
                }
            }
        }
    }
}
