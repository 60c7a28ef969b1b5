//! Amazon Bedrock's ConverseStream.

pub(crate) mod error;
pub(crate) mod profile;
pub(crate) mod request;
pub(crate) mod rules;
pub(crate) mod stream;

use percent_encoding::utf8_percent_encode;

use crate::Model;
use crate::aws::sign::ESCAPED;

/// Returns the path of a model. Ids may be ARNs, whose slashes and colons must be escaped.
pub(crate) fn path(model: &Model) -> String {
    format!("model/{}/converse-stream", utf8_percent_encode(&model.api_id, ESCAPED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    #[test]
    fn an_id_is_one_segment_of_the_path() {
        for (id, expected) in [
            ("amazon.nova-pro-v1:0", "model/amazon.nova-pro-v1%3A0/converse-stream"),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.x",
                "model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse-stream",
            ),
        ] {
            let mut model = Model::new("amazon-bedrock", "m", Protocol::Bedrock, "https://h");
            model.api_id = id.into();
            assert_eq!(path(&model), expected);
        }
    }
}
