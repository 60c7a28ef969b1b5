//! Cloudflare's gateway to models of other providers: every user has an account and a gateway.

use codewright_llm::catalog::CLOUDFLARE_GATEWAY;
use codewright_llm::{Auth, Model, Secret};

use super::{Account, Input, PLAIN, Vendor, Wire, is_library, note};

const ACCOUNT: &str = "CLOUDFLARE_ACCOUNT_ID";
const GATEWAY: &str = "CLOUDFLARE_GATEWAY_ID";

pub(super) const VENDOR: Vendor = Vendor {
    notes: &[note(ACCOUNT, "accountId"), note(GATEWAY, "gatewayId")],
    open: |input| {
        let is_gateway = is_library(input.library, CLOUDFLARE_GATEWAY);
        is_gateway.then(|| -> Box<dyn Account> { Box::new(Gateway::new(input)) })
    },
    ..PLAIN
};

struct Gateway {
    address: Result<String, String>,
    key: Option<String>,
}

impl Gateway {
    fn new(input: &Input<'_>) -> Self {
        Self { address: address(input), key: input.key.map(str::to_owned) }
    }
}

fn address(input: &Input<'_>) -> Result<String, String> {
    let id = input.id;
    let part = |option: &str, variable: &str| {
        input.part(option, variable).ok_or_else(|| {
            format!("provider `{id}`: set {variable}, or `provider.{id}.options.{option}` in opencode.json")
        })
    };
    let account = part("accountId", ACCOUNT)?;
    let gateway = part("gatewayId", GATEWAY)?;
    Ok(format!("https://gateway.ai.cloudflare.com/v1/{account}/{gateway}/compat"))
}

impl Account for Gateway {
    fn serves(&self, _wire: Wire<'_>) -> bool {
        true
    }

    fn address(&self, _wire: Wire<'_>) -> Result<Option<String>, String> {
        self.address.clone().map(Some)
    }

    fn authorize(&self, _wire: Wire<'_>, model: &mut Model) -> Result<(), String> {
        // The gateway forwards `authorization` to the provider it stands for, so it has its own header.
        model.auth = Auth::Header("cf-aig-authorization");
        model.api_key = self.key.as_ref().map(|key| Secret::from(format!("Bearer {key}")));
        Ok(())
    }
}
