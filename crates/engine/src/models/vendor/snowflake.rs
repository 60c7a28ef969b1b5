//! Snowflake: the account is a part of the address.

use super::{Note, PLAIN, Vendor, note};

pub(super) const VENDOR: Vendor = Vendor {
    notes: &[Note {
        sign_in_field: "accountId",
        domain: Some(".snowflakecomputing.com"),
        ..note("SNOWFLAKE_ACCOUNT", "account")
    }],
    ..PLAIN
};
