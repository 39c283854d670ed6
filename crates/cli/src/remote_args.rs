//! Options that several commands share: which daemon they talk to, and how they show its answer.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Options of commands that talk to a daemon, before or after the command's name.
#[derive(Debug, Default, Args)]
pub(crate) struct Remote {
    /// The daemon's API socket [env: NCMESH_API] [default: api.sock in the daemon's default state
    /// directory, else /run/ncmesh/api.sock]
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    pub(crate) api: Option<PathBuf>,
    /// The daemon's configuration file, which names its socket. --api takes precedence
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Whether the answer is printed as JSON; an option of every command.
    #[arg(skip)]
    pub(crate) json: bool,
}

impl Remote {
    /// Returns the options after the command's name, completed by those before it.
    pub(crate) fn or(self, before: Self) -> Self {
        Self {
            api: self.api.or(before.api),
            config: self.config.or(before.config),
            json: self.json || before.json,
        }
    }

    /// Returns the option that names a daemon, if one does.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let api = self.api.as_ref().map(|_| "--api");
        api.or(self.config.as_ref().map(|_| "--config"))
    }
}

/// Options of a command that talks to a daemon.
#[derive(Debug, Args)]
pub(crate) struct Remotely<A: Args> {
    #[command(flatten)]
    pub(crate) args: A,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Options of commands that show a state.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Show the answer again each second until interrupted; with --json, one line each time
    #[arg(long)]
    pub(crate) watch: bool,
}

/// No options.
#[derive(Debug, Args)]
pub(crate) struct NoArgs {}
