//! The arguments of the terminal client, `run` and `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, ListenArgs};

/// Which session the terminal client opens.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OpenArgs {
    /// Continue the last session of this directory
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,
    /// Continue a session
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Fork the session before continuing it
    #[arg(long)]
    pub(crate) fork: bool,
    /// Draw only a few lines at the bottom; messages stay in the terminal's scrollback
    #[arg(long)]
    pub(crate) mini: bool,
    /// With --mini: do not print the earlier messages of the opened session
    #[arg(long)]
    pub(crate) no_replay: bool,
    /// With --mini: print at most N earlier messages
    #[arg(long, value_name = "N")]
    pub(crate) replay_limit: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TuiArgs {
    /// The directory to work in, or a prompt to send
    #[arg(value_name = "DIRECTORY|PROMPT")]
    pub(crate) project: Option<PathBuf>,
    /// The prompt that was written in the place of the directory.
    #[arg(skip)]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The model, as provider/model or a part of its name that only one model has
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The text that the prompt starts with
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Grant every permission request; rules that deny still apply
    #[arg(long)]
    pub(crate) auto: bool,
    /// Also listen on this port, so that other clients can attach. 0: `server.port`, or 4096 if it is free, or any free port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Also listen on this address [default with --port: `server.hostname`, or 127.0.0.1]. Other machines need a password
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) hostname: Option<String>,
    /// With --port, --hostname or --mdns: an origin whose web pages may use the server; can be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// Also listen on all addresses, or on --hostname, and announce the server in the local network
    #[arg(long)]
    pub(crate) mdns: bool,
    /// With --mdns: the announced host name [default: `server.mdnsDomain`, or opencode.local]
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) mdns_domain: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl TuiArgs {
    /// The address that the terminal client listens on for other clients.
    pub(crate) fn listen(&self) -> ListenArgs {
        ListenArgs {
            metrics: false,
            port: self.port,
            hostname: self.hostname.clone(),
            cors: self.cors.clone(),
            mdns: self.mdns,
            mdns_domain: self.mdns_domain.clone(),
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AttachArgs {
    /// The address of the server, such as http://localhost:4096
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The directory to work in, on the server's machine
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The server's password [env: OPENCODE_SERVER_PASSWORD]
    #[arg(short, long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// The server's user name [env: OPENCODE_SERVER_USERNAME] [default: opencode]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) username: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunArgs {
    /// The prompt; piped standard input is appended to it
    pub(crate) message: Vec<String>,
    /// Run a configured command with the message as its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Continue the last session of this directory
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,
    /// Continue a session
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Fork the session before continuing it
    #[arg(long)]
    pub(crate) fork: bool,
    /// Not supported by this version: prints a warning
    #[arg(long, hide = true)]
    pub(crate) share: bool,
    /// The model, as provider/model or a part of its name that only one model has
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Print text, or one JSON object per line
    #[arg(long, value_enum, default_value_t = Format::Default)]
    pub(crate) format: Format,
    /// Attach a file or directory; can be repeated
    #[arg(short, long, value_name = "PATH")]
    pub(crate) file: Vec<PathBuf>,
    /// The session's title; without a value the start of the prompt
    #[arg(long, value_name = "TITLE", num_args = 0..=1, default_missing_value = "")]
    pub(crate) title: Option<String>,
    /// Use a running server, such as http://localhost:4096
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    /// The server's password [env: OPENCODE_SERVER_PASSWORD]
    #[arg(short, long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// The server's user name [env: OPENCODE_SERVER_USERNAME] [default: opencode]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) username: Option<String>,
    /// The directory to work in; with --attach on the server's machine
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    /// Accepted for compatibility, without effect
    #[arg(long, value_name = "PORT", hide = true)]
    pub(crate) port: Option<u16>,
    /// The model variant, a named set of options such as `high`
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Print the model's reasoning
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Accepted for compatibility, without effect; use `codewright --mini` for a conversation
    #[arg(short, long, hide = true)]
    pub(crate) interactive: bool,
    /// Grant every permission request; rules that deny still apply
    #[arg(long)]
    pub(crate) auto: bool,
    /// Exit with 2 if a permission request was rejected
    #[arg(long)]
    pub(crate) strict: bool,
    /// Trust the directory for this run, so that its configuration takes effect
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DemoArgs {
    /// Keep the demo project and print its path
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print text, or one JSON object per line
    #[arg(long, value_enum, default_value_t = Format::Default)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Default,
    Json,
}
