//! The addresses of the sign-in servers.

/// OpenCode's client id at GitLab, with its registered redirect.
const GITLAB_CLIENT_ID: &str = "1d89f9fdb23ee96d4e603201f6861dab6e143c5c3c00469a018a2d94bdc03d4e";

/// The sign-in servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// The page of DigitalOcean's sign-in.
    pub digitalocean_page: String,
    /// The default GitLab instance.
    pub gitlab: String,
    /// Our client id at GitLab.
    pub gitlab_client: String,
    /// OpenAI's server, without a trailing slash.
    pub openai: String,
    /// The page of Poe's sign-in.
    pub poe_page: String,
    /// Poe's token server.
    pub poe_token: String,
    /// Snowflake's server, with `{account}` in place of the account's name.
    pub snowflake: String,
    /// xAI's server, without a trailing slash.
    pub xai: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            digitalocean_page: "https://cloud.digitalocean.com/v1/oauth/authorize".to_owned(),
            gitlab: "https://gitlab.com".to_owned(),
            gitlab_client: GITLAB_CLIENT_ID.to_owned(),
            openai: "https://auth.openai.com".to_owned(),
            poe_page: "https://poe.com/oauth/authorize".to_owned(),
            poe_token: "https://api.poe.com/token".to_owned(),
            snowflake: "https://{account}.snowflakecomputing.com".to_owned(),
            xai: "https://auth.x.ai".to_owned(),
        }
    }
}
