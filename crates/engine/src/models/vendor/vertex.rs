//! Google's Vertex AI: a project, a location, and credentials that are not a key.
//!
//! They are looked up when the provider is set up, so that a missing one is reported before a
//! request is sent. Tokens are fetched by the first request.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use codewright_config::{Env, ProviderConfig, env};
use codewright_llm::{Auth, Endpoint, GoogleCredentials, Model, catalog};
use codewright_proto::Clock;
use serde_json::{Value, json};

use super::{Account, Key, PLAIN, Vendor, Wire, option};

/// The largest credentials file that is read, in bytes.
const FILE_LIMIT_BYTES: u64 = 256 * 1024;
/// The file of a sign-in with `gcloud`, relative to its configuration directory.
const SIGN_IN_FILE: &str = "application_default_credentials.json";

pub(super) const VENDOR: Vendor = Vendor {
    open: |input| {
        input.library.and_then(Maker::of_library)?;
        Some(Box::new(Vertex::find(input.id, input.written, input.access.env)))
    },
    ..PLAIN
};

/// The maker of models on Vertex AI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Google,
    Anthropic,
}

/// A project on Vertex AI and its credentials.
#[derive(Debug)]
struct Vertex {
    id: String,
    project: Option<String>,
    location: Option<String>,
    /// A key that needs no project. Only Google's models accept it.
    key: Option<String>,
    credentials: Result<GoogleCredentials, String>,
}

impl Maker {
    /// The maker whose models on Vertex AI a library is for.
    fn of_library(npm: &str) -> Option<Self> {
        match catalog::unpinned(npm) {
            "@ai-sdk/google-vertex" => Some(Self::Google),
            "@ai-sdk/google-vertex/anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

impl Vertex {
    /// Finds project, location and credentials for the provider named `id`.
    fn find(id: &str, written: &ProviderConfig, env: &Env) -> Self {
        let found = |name: &str, variables: &[&'static str]| {
            option(written, name)
                .or_else(|| variables.iter().find_map(|name| env.filled(name)))
                .map(str::to_owned)
        };
        let key = written.options.api_key.as_deref().filter(|key| !key.is_empty());
        Self {
            id: id.to_owned(),
            project: found("project", env::GOOGLE_PROJECTS),
            location: found("location", env::GOOGLE_LOCATIONS),
            key: key.or_else(|| env.filled(env::GOOGLE_VERTEX_API_KEY)).map(str::to_owned),
            credentials: credentials(id, written, env, &Clock::system()),
        }
    }

    /// The address of a maker's models.
    fn base_url(&self, maker: Maker) -> Result<String, String> {
        let id = &self.id;
        if self.key_for(maker).is_some() {
            return Ok("https://aiplatform.googleapis.com/v1/publishers/google".to_owned());
        }
        let location = self.location.as_deref().unwrap_or(match maker {
            Maker::Google => "us-central1",
            Maker::Anthropic => "global",
        });
        let project = self.project.as_deref().ok_or_else(|| {
            format!(
                "provider `{id}` has no project: set `provider.{id}.options.project` in opencode.json, or {}",
                env::GOOGLE_PROJECTS.join(" or ")
            )
        })?;
        for (noun, text) in [("project", project), ("location", location)] {
            if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)) {
                return Err(format!("provider `{id}`: `{text}` is not a valid {noun}"));
            }
        }
        Ok(address(maker, project, location))
    }

    /// Sets how requests for the maker's models are authorized.
    fn authorize_for(&self, maker: Maker, model: &mut Model) -> Result<(), String> {
        match self.key_for(maker) {
            Some(key) => {
                model.api_key = Some(key.into());
                model.auth = Auth::Header("x-goog-api-key");
            }
            None => {
                model.api_key = None;
                model.auth = Auth::Google(self.credentials.clone()?);
            }
        }
        match maker {
            Maker::Google => {}
            Maker::Anthropic => model.endpoint = Endpoint::Vertex,
        }
        Ok(())
    }

    /// The key, if the maker's models accept it.
    fn key_for(&self, maker: Maker) -> Option<&str> {
        self.key.as_deref().filter(|_| maker == Maker::Google)
    }
}

impl Account for Vertex {
    fn serves(&self, wire: Wire<'_>) -> bool {
        wire.library.and_then(Maker::of_library).is_some()
    }

    fn key(&self) -> Key {
        Key::Ambient
    }

    fn address(&self, wire: Wire<'_>) -> Result<Option<String>, String> {
        wire.library.and_then(Maker::of_library).map(|maker| self.base_url(maker)).transpose()
    }

    fn authorize(&self, wire: Wire<'_>, model: &mut Model) -> Result<(), String> {
        match wire.library.and_then(Maker::of_library) {
            Some(maker) => self.authorize_for(maker, model),
            None => Ok(()),
        }
    }

    fn advice(&self, model: &Model) -> Option<String> {
        const ADVICE: &str = "sign in again with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS";
        matches!(model.auth, Auth::Google(_)).then(|| ADVICE.to_owned())
    }
}

fn address(maker: Maker, project: &str, location: &str) -> String {
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        // Each of these is a group of regions.
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    let (version, publisher) = match maker {
        Maker::Google => ("v1beta1", "google"),
        Maker::Anthropic => ("v1", "anthropic/models"),
    };
    format!("https://{host}/{version}/projects/{project}/locations/{location}/publishers/{publisher}")
}

/// The credentials of the configuration, else of the variable, else of `gcloud`, else of the machine.
fn credentials(
    id: &str,
    written: &ProviderConfig,
    env: &Env,
    clock: &Clock,
) -> Result<GoogleCredentials, String> {
    let problem = |text: String| format!("provider `{id}`: {text}");
    let read = |text: &str, name: &str| {
        GoogleCredentials::from_file(text, name, clock.clone()).map_err(|error| problem(error.to_string()))
    };
    let given = written.options.rest.get("googleAuthOptions");
    if let Some(Value::Object(inline)) = given.and_then(|given| given.get("credentials")) {
        let mut inline = inline.clone();
        inline.entry("type").or_insert_with(|| json!("service_account"));
        let name = format!("provider.{id}.options.googleAuthOptions.credentials");
        return read(&Value::Object(inline).to_string(), &name);
    }
    let named = given.and_then(|given| given.get("keyFilename").or_else(|| given.get("keyFile")));
    let named = named.and_then(Value::as_str).map(|path| (path, "googleAuthOptions.keyFilename"));
    let variable = env.filled(env::GOOGLE_APPLICATION_CREDENTIALS);
    let variable = variable.map(|path| (path, env::GOOGLE_APPLICATION_CREDENTIALS));
    if let Some((path, from)) = named.or(variable) {
        let text = text_of(Path::new(path))
            .map_err(|why| problem(format!("{from} names `{path}`, which cannot be read: {why}")))?;
        return read(&text, path);
    }
    let kept = env.filled(env::CLOUDSDK_CONFIG).map(PathBuf::from);
    let kept = kept.or_else(|| Some(Path::new(env.filled(env::HOME)?).join(".config/gcloud")));
    if let Some(path) = kept.map(|folder| folder.join(SIGN_IN_FILE)).filter(|path| path.is_file()) {
        let name = path.display().to_string();
        let text = text_of(&path).map_err(|why| problem(format!("`{name}` cannot be read: {why}")))?;
        return read(&text, &name);
    }
    Ok(GoogleCredentials::of_machine(env.filled(env::GCE_METADATA_HOST), clock.clone()))
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_LIMIT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use codewright_config::ProviderOptions;

    use super::*;

    fn written(options: Value) -> ProviderConfig {
        let rest = options.as_object().unwrap().clone();
        ProviderConfig {
            options: ProviderOptions { rest, ..ProviderOptions::default() },
            ..ProviderConfig::default()
        }
    }

    fn find(options: Value, variables: &[(&str, &str)]) -> Vertex {
        Vertex::find("v", &written(options), &Env::from_pairs(variables.iter().copied()))
    }

    #[test]
    fn project_and_location_make_the_address() {
        let long = "https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west1/publishers/google";
        for (maker, options, variables, expected) in [
            (Maker::Google, json!({"project": "p", "location": "europe-west1"}), vec![], long),
            (
                Maker::Google,
                json!({}),
                vec![("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "europe-west1")],
                long,
            ),
            (Maker::Google, json!({}), vec![("GCP_PROJECT", "p"), ("VERTEX_LOCATION", "europe-west1")], long),
            (
                Maker::Google,
                json!({"project": "p"}),
                vec![("GCLOUD_PROJECT", "other")],
                "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-central1/publishers/google",
            ),
            (
                Maker::Anthropic,
                json!({"project": "p"}),
                vec![],
                "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models",
            ),
            (
                Maker::Anthropic,
                json!({"project": "p", "location": "eu"}),
                vec![],
                "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models",
            ),
        ] {
            assert_eq!(find(options, &variables).base_url(maker).unwrap(), expected);
        }
    }

    #[test]
    fn a_missing_or_invalid_setting_is_named() {
        let mut model = Model::new("v", "m", codewright_llm::Protocol::Gemini, "https://h");
        let error = find(json!({}), &[]).base_url(Maker::Google).unwrap_err();
        assert!(
            error.contains("`provider.v.options.project`") && error.contains("GOOGLE_CLOUD_PROJECT"),
            "{error}"
        );
        let error = find(json!({"project": "a/../b"}), &[]).base_url(Maker::Google).unwrap_err();
        assert_eq!(error, "provider `v`: `a/../b` is not a valid project");
        let missing = [("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")];
        let error = find(json!({}), &missing).authorize_for(Maker::Google, &mut model).unwrap_err();
        assert!(
            error.starts_with(
                "provider `v`: GOOGLE_APPLICATION_CREDENTIALS names `/nowhere/key.json`, which cannot be read:"
            ),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SIGN_IN_FILE);
        std::fs::write(&path, r#"{"type":"external_account"}"#).unwrap();
        let kept = [("CLOUDSDK_CONFIG", folder.path().to_str().unwrap())];
        let error = find(json!({}), &kept).authorize_for(Maker::Google, &mut model).unwrap_err();
        assert!(
            error.contains(&format!("`{}`", path.display())) && error.contains("external_account"),
            "{error}"
        );
    }

    #[test]
    fn requests_use_the_credentials_that_were_found() {
        let mut model = Model::new("v", "m", codewright_llm::Protocol::Gemini, "https://h");
        model.api_key = Some("a project, not a key".into());
        find(json!({"project": "p"}), &[]).authorize_for(Maker::Google, &mut model).unwrap();
        assert!(matches!(model.auth, Auth::Google(_)) && model.api_key.is_none());
        let keyed = find(json!({}), &[("GOOGLE_VERTEX_API_KEY", "k")]);
        let address = keyed.base_url(Maker::Google).unwrap();
        assert_eq!(address, "https://aiplatform.googleapis.com/v1/publishers/google");
        keyed.authorize_for(Maker::Google, &mut model).unwrap();
        assert_eq!(
            (&model.auth, model.api_key.as_ref().unwrap().expose()),
            (&Auth::Header("x-goog-api-key"), "k")
        );
        keyed.authorize_for(Maker::Anthropic, &mut model).unwrap();
        assert!(matches!(model.auth, Auth::Google(_)) && model.endpoint == Endpoint::Vertex);
    }
}
