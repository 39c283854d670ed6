//! Blocking client of the daemon's API, as the commands use it.

use crate::failure::{Failure, Kind};
use crate::remote_args::Remote;
use ncmesh_engine::path::expand;
use ncmesh_node::api::client::{ApiClient, ClientError};
use ncmesh_node::api::types::{Spooled, Transfer};
use ncmesh_node::config::{SOCKET, default_state_dir};
use ncmesh_node::{NodeConfig, NodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};

/// Returns the path as the API can carry it: absolute and in UTF-8.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    // JSON has no other strings than UTF-8.
    let fail = |problem: String| Failure::new(Kind::File, problem);
    let path = std::path::absolute(path).map_err(|e| fail(format!("{}: {e}", path.display())))?;
    match path.to_str() {
        Some(_) => Ok(path),
        None => {
            Err(fail(format!("{path:?} is not UTF-8, which the daemon cannot be told: rename it")))
        }
    }
}

/// Socket of the daemon that the system runs, if it is there and the user runs none.
const SYSTEM_SOCKET: &str = "/run/ncmesh/api.sock";

/// Names the socket where the command line does not.
const SOCKET_VARIABLE: &str = "NCMESH_API";

/// Returns the socket of the daemon that the command line names: by itself, by the daemon's
/// configuration, or by the environment; else the default one.
pub(crate) fn socket(remote: &Remote) -> Result<PathBuf, Failure> {
    if let Some(socket) = &remote.api {
        return Ok(socket.clone());
    }
    // A configuration that is named says where its daemon listens, so it goes before the
    // environment.
    let named = match &remote.config {
        Some(file) => NodeConfig::socket(file).map_err(NodeError::from)?,
        None => match env::var(SOCKET_VARIABLE) {
            // A shell expands `~` and variables, but a unit file that sets the variable does not.
            Ok(path) if !path.is_empty() => Some(expand(&path).map_err(|problem| {
                Failure::new(Kind::Usage, format!("{SOCKET_VARIABLE}: {problem}"))
            })?),
            _ => env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()).map(Into::into),
        },
    };

    Ok(named.unwrap_or_else(default_socket))
}

/// Returns the socket of the daemon that a command talks to unless it is told another one.
fn default_socket() -> PathBuf {
    let own = default_state_dir().join(SOCKET);
    let system = PathBuf::from(SYSTEM_SOCKET);
    if !own.exists() && system.exists() { system } else { own }
}

/// Connection to a daemon, with the runtime that waits for its answers.
pub(crate) struct Client {
    daemon: ApiClient,
    runtime: Runtime,
}

impl Client {
    /// Returns a client of the daemon that the command line names. It connects with each request.
    pub(crate) fn new(remote: &Remote) -> Result<Self, Failure> {
        let socket = socket(remote)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { daemon: ApiClient::new(socket), runtime })
    }

    /// Gets a resource.
    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.wait(self.daemon.read(path))
    }

    /// Deletes a resource.
    pub(crate) fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.wait(self.daemon.delete(path))
    }

    /// Makes a new resource.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.wait(self.daemon.post(path, body))
    }

    /// Hands over everything that can be read, and returns the path under which it can be sent.
    pub(crate) fn spool(&self, contents: impl Read + Send + 'static) -> Result<PathBuf, Failure> {
        let spooled: Spooled = self.wait(self.daemon.upload("/v1/spool", contents))?;
        Ok(spooled.path)
    }

    /// Makes or replaces a resource.
    pub(crate) fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.wait(self.daemon.put(path, body))
    }

    /// Gets a transfer.
    pub(crate) fn transfer(&self, id: &str) -> Result<Transfer, Failure> {
        self.read(&format!("/v1/transfers/{id}"))
    }

    /// Waits for something other than an answer.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Waits for an answer.
    fn wait<T>(&self, answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        Ok(self.runtime.block_on(answer)?)
    }
}
