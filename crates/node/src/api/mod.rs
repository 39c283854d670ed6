//! The HTTP/1.1 API with JSON over a Unix socket that only its owner can use.

pub mod client;
mod routes;
mod send;
pub mod types;

use crate::error::NodeError;
use crate::node::Handle;
pub use send::resume;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// The API's socket; its file goes with it.
#[derive(Debug)]
pub struct ApiSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl ApiSocket {
    /// Makes the socket `path`, mode 0600. One that a daemon left behind is replaced.
    ///
    /// # Errors
    /// [`NodeError::SocketInUse`] where a daemon still answers there, [`NodeError::Socket`].
    pub fn bind(path: &Path) -> Result<Self, NodeError> {
        if UnixStream::connect(path).is_ok() {
            return Err(NodeError::SocketInUse(path.to_owned()));
        }
        let listener = bind_anew(path).map_err(|e| NodeError::Socket(path.to_owned(), e))?;
        Ok(Self { path: path.to_owned(), listener })
    }

    /// Answers requests until the runtime ends.
    pub fn serve(self, handle: Handle) {
        let remove = RemoveOnDrop(self.path);
        tokio::spawn(async move {
            let _remove = remove;
            if let Err(e) = axum::serve(self.listener, routes::router(handle)).await {
                tracing::error!("the API has stopped: {e}");
            }
        });
    }
}

fn bind_anew(path: &Path) -> io::Result<UnixListener> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    crate::durable::remove(path)?;
    // The socket must not be open to others even for a moment.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    listener
}

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        // A socket left behind is replaced at the next start.
        let _ = std::fs::remove_file(&self.0);
    }
}
