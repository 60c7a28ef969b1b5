//! Azure: every user has a resource with a separate address.

use codewright_llm::{Auth, Endpoint, Model};

use super::{Account, Input, Note, PLAIN, Vendor, Wire, is_library, note};

const LIBRARY: &str = "@ai-sdk/azure";
const RESOURCE: &str = "AZURE_RESOURCE_NAME";
const RESOURCE_OPTION: &str = "resourceName";

pub(super) const VENDOR: Vendor = Vendor {
    notes: &[
        // A key is stored with the only resource that accepts it.
        Note { is_preferred: true, ..note(RESOURCE, RESOURCE_OPTION) },
        note("AZURE_COGNITIVE_SERVICES_RESOURCE_NAME", RESOURCE_OPTION),
    ],
    open: |input| Some(Box::new(Azure::new(input))),
    ..PLAIN
};

struct Azure {
    resource: Option<String>,
    api_version: String,
}

impl Azure {
    fn new(input: &Input<'_>) -> Self {
        Self {
            resource: input.part(RESOURCE_OPTION, RESOURCE).map(str::to_owned),
            api_version: input.option("apiVersion").unwrap_or("v1").to_owned(),
        }
    }
}

impl Account for Azure {
    fn serves(&self, wire: Wire<'_>) -> bool {
        is_library(wire.library, LIBRARY)
    }

    fn address(&self, _wire: Wire<'_>) -> Result<Option<String>, String> {
        Ok(self.resource.as_ref().map(|resource| format!("https://{resource}.openai.azure.com/openai")))
    }

    fn address_option(&self) -> Option<&'static str> {
        Some(RESOURCE_OPTION)
    }

    fn authorize(&self, _wire: Wire<'_>, model: &mut Model) -> Result<(), String> {
        model.auth = Auth::Header("api-key");
        model.endpoint = Endpoint::Azure { api_version: self.api_version.clone() };
        Ok(())
    }
}
