//! The model catalog.

use std::time::Duration;

use codewright_llm::Probe;

use super::Providers;
use crate::{Error, Instance};

impl Providers<'_> {
    /// Fetches the newest model catalog, which applies to directories that are opened later.
    pub async fn refresh_models(self) -> Result<(), Error> {
        self.0.catalog.refresh(&self.0.env, &self.0.llm).await
    }

    /// Asks a provider whether it accepts the key, within `timeout`. Without an id, asks the one of the chosen model.
    ///
    /// # Errors
    ///
    /// Fails if the provider is not set up, or has no model.
    pub async fn probe(
        self,
        instance: &Instance,
        provider: Option<&str>,
        timeout: Duration,
    ) -> Result<Probe, Error> {
        let model = instance.models.representative(provider)?;
        Ok(self.0.llm.probe(&model, timeout).await)
    }

    /// Fetches the model catalog once a day until it is cancelled. A failure changes nothing.
    pub async fn keep_models_fresh(self) -> std::convert::Infallible {
        self.0.catalog.keep_fresh(&self.0.env, &self.0.llm, &self.0.clock).await
    }
}
