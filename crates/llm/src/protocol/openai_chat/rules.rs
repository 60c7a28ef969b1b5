//! The rules of OpenAI Chat Completions, and those of the makers that imitate it.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat/create> (names of at most 64, 128 tools),
//! <https://platform.openai.com/docs/guides/images-vision> (500 pictures, 50 MB; png, jpeg, webp and still gif), and the
//! messages of refused requests: `schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the
//! top level`, `array schema missing items`, `string too long. Expected a string with maximum length 40` (ids of calls),
//! `Duplicate value for 'tool_call_id'`. The makers' sources stand in their rows.

use crate::protocol::rules::{CallId, Dialect, End, NameForm, PictureRules, Rules, ToolName, USUAL_PICTURES};
use crate::{Model, Quirk};

const MIB: usize = 1024 * 1024;

const RULES: Rules = Rules {
    tool_name: ToolName { most_bytes: 64, form: NameForm::Plain },
    call_id: CallId::Any(40),
    most_tools: 128,
    schema: &[Dialect::FlatTop, Dialect::ListItems],
    pictures: USUAL_PICTURES,
    end: End::Any,
};

/// A maker whose servers have other rules, recognized by the provider's id or the model's name.
struct Maker {
    providers: &'static [&'static str],
    models: &'static [&'static str],
    pictures: Option<PictureRules>,
    schema: Option<&'static [Dialect]>,
    call_id: Option<CallId>,
}

const PLAIN: Maker = Maker { providers: &[], models: &[], pictures: None, schema: None, call_id: None };

/// The names of Moonshot.
const MOONSHOT: &[&str] = &["moonshot", "kimi"];
/// The families whose servers refuse an answer with calls and without reasoning, if the model reasons:
/// `thinking is enabled but reasoning_content is missing in assistant tool call message`.
const REASONING_WITH_CALLS: &[&str] = &["kimi", "moonshot", "deepseek"];

const MAKERS: &[Maker] = &[
    // `$ref` has no other keyword, `items` is one schema, each property has a type:
    // <https://github.com/MoonshotAI/walle> and `not a valid moonshot flavored json schema`.
    Maker {
        providers: MOONSHOT,
        models: MOONSHOT,
        schema: Some(&[Dialect::FlatTop, Dialect::Moonshot, Dialect::ListItems]),
        ..PLAIN
    },
    // <https://docs.mistral.ai/capabilities/vision/>: 8 pictures of at most 10 MB. Ids of exactly nine characters.
    Maker {
        providers: &["mistral"],
        models: &[],
        pictures: Some(PictureRules {
            most: 8,
            most_base64_bytes: 10 * MIB,
            most_bytes_in_all: 40 * MIB,
            ..USUAL_PICTURES
        }),
        call_id: Some(CallId::Nine),
        ..PLAIN
    },
    // <https://console.groq.com/docs/vision>: 5 pictures, 4 MB in base64.
    Maker {
        providers: &["groq"],
        pictures: Some(PictureRules {
            most: 5,
            most_base64_bytes: 4_000_000,
            most_bytes_in_all: 4_000_000,
            ..USUAL_PICTURES
        }),
        ..PLAIN
    },
    // <https://docs.x.ai/docs/guides/image-understanding>: png and jpeg of at most 20 MiB.
    Maker {
        providers: &["xai"],
        models: &["grok"],
        pictures: Some(PictureRules { types: &["image/png", "image/jpeg"], ..USUAL_PICTURES }),
        ..PLAIN
    },
    // <https://learn.microsoft.com/azure/ai-services/openai/quotas-limits>: 50 pictures.
    Maker { providers: &["azure"], pictures: Some(PictureRules { most: 50, ..USUAL_PICTURES }), ..PLAIN },
];

/// Returns the rules for a model.
pub(crate) fn of(model: &Model) -> Rules {
    let rules = by_maker(RULES, model);
    if model.quirks.contains(&Quirk::MistralIds) { Rules { call_id: CallId::Nine, ..rules } } else { rules }
}

/// Returns whether a model is one of Moonshot's.
pub(crate) fn is_moonshot(model: &Model) -> bool {
    let (provider, api_id) = (model.provider_id.to_ascii_lowercase(), model.api_id.to_ascii_lowercase());
    MOONSHOT.iter().any(|name| provider.starts_with(name) || api_id.contains(name))
}

/// Returns whether each answer with calls must have reasoning, also one of another model.
pub(crate) fn wants_reasoning(model: &Model) -> bool {
    let api_id = model.api_id.to_ascii_lowercase();
    model.capabilities.reasoning && REASONING_WITH_CALLS.iter().any(|name| api_id.contains(name))
}

/// Replaces the rules in which a model's maker differs. Of several makers each may replace its own.
pub(crate) fn by_maker(mut rules: Rules, model: &Model) -> Rules {
    let (provider, api_id) = (model.provider_id.to_ascii_lowercase(), model.api_id.to_ascii_lowercase());
    for maker in MAKERS {
        let is_provider = maker.providers.iter().any(|name| provider.starts_with(name));
        if is_provider || maker.models.iter().any(|name| api_id.contains(name)) {
            rules.pictures = maker.pictures.unwrap_or(rules.pictures);
            rules.schema = maker.schema.unwrap_or(rules.schema);
            rules.call_id = maker.call_id.unwrap_or(rules.call_id);
        }
    }
    rules
}
