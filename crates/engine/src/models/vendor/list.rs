//! The list of vendors, and the questions that it answers.

use codewright_config::Env;
use codewright_llm::catalog::ProviderRow;

use super::{
    Account, Input, Note, Subscription, Vendor, aws, azure, cloudflare, copilot, gitlab, ollama, openai,
    snowflake, vertex, zen,
};

/// Every vendor. If several serve one model, the first one does.
const VENDORS: [&Vendor; 10] = [
    &gitlab::VENDOR,
    &vertex::VENDOR,
    &aws::VENDOR,
    &cloudflare::VENDOR,
    &azure::VENDOR,
    &zen::VENDOR,
    &openai::VENDOR,
    &copilot::VENDOR,
    &snowflake::VENDOR,
    &ollama::VENDOR,
];

/// Opens the accounts that a provider may use.
pub(crate) fn accounts(input: &Input<'_>) -> Vec<Box<dyn Account>> {
    VENDORS.iter().filter_map(|vendor| (vendor.open)(input)).collect()
}

/// Whether the provider with this id is offered without a user's key.
pub(crate) fn is_offered(id: &str, env: &Env) -> bool {
    VENDORS.iter().any(|vendor| (vendor.is_offered)(id, env))
}

/// The parts of addresses that may be stored next to a key.
pub(crate) fn notes() -> impl Iterator<Item = &'static Note> {
    VENDORS.iter().flat_map(|vendor| vendor.notes)
}

/// The subscription that a sign-in to the provider uses.
pub(crate) fn subscription(provider: &str) -> Option<Subscription> {
    let mut subscriptions = VENDORS.iter().filter_map(|vendor| vendor.subscription);
    subscriptions.find(|subscription| subscription.provider == provider)
}

/// The address of a server on this machine.
pub(crate) fn local_url(row: &ProviderRow, env: &Env) -> String {
    let url = VENDORS.iter().find_map(|vendor| (vendor.local_url)(row, env));
    url.unwrap_or_else(|| row.base_url.to_owned())
}
