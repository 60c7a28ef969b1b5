//! OpenCode Zen: its models without a price are available to every user, with a public key.

use super::{Account, Key, PLAIN, Vendor, Wire};

const PROVIDER: &str = "opencode";

pub(super) const VENDOR: Vendor = Vendor {
    is_offered: |id, _| id == PROVIDER,
    open: |input| {
        let has_credentials = input.key.is_some() || input.sign_in.is_some();
        let is_free = input.catalog_id == PROVIDER && !has_credentials;
        let is_free = is_free && input.written.options.base_url.is_none();
        is_free.then(|| -> Box<dyn Account> { Box::new(Free) })
    },
    ..PLAIN
};

struct Free;

impl Account for Free {
    fn serves(&self, _wire: Wire<'_>) -> bool {
        false
    }

    fn key(&self) -> Key {
        Key::Public("public")
    }
}
