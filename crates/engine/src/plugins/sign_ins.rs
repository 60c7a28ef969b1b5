//! The sign-ins of plugins that wait for the user.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codewright_plugins::Plugins;

/// The sign-ins that wait for their end. All of them end for another.
const MAX_SIGN_INS: usize = 16;

/// The sign-ins that wait for their end, by provider.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<String, Waiting>>);

/// A sign-in that the user has begun.
pub(crate) struct Waiting {
    pub(crate) plugins: Plugins,
    /// The position of the plugin.
    pub(crate) index: usize,
    /// The position of the method.
    pub(crate) method: usize,
    /// The plugin's name for the sign-in.
    pub(crate) handle: String,
}

impl SignIns {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, provider: &str, sign_in: Waiting) {
        let mut waiting = self.lock();
        if waiting.len() >= MAX_SIGN_INS {
            waiting.clear();
        }
        waiting.insert(provider.to_owned(), sign_in);
    }

    /// Returns the sign-in to a provider with a method, which ends with it.
    pub(crate) fn take(&self, provider: &str, method: usize) -> Option<Waiting> {
        let mut waiting = self.lock();
        if waiting.get(provider).is_none_or(|waiting| waiting.method != method) {
            return None;
        }
        waiting.remove(provider)
    }
}
