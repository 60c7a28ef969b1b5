//! The model catalog.

use super::Providers;
use crate::Error;

impl Providers<'_> {
    /// Fetches the newest model catalog, which applies to directories that are opened later.
    pub async fn refresh_models(self) -> Result<(), Error> {
        self.0.catalog.refresh(&self.0.env, &self.0.llm).await
    }

    /// Fetches the model catalog once a day until it is cancelled. A failure changes nothing.
    pub async fn keep_models_fresh(self) -> std::convert::Infallible {
        self.0.catalog.keep_fresh(&self.0.env, &self.0.llm, &self.0.clock).await
    }
}
