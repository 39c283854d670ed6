//! HTTP/1.1 API with JSON, on a Unix socket for its owner, and for its group if so configured.

pub mod answers;
mod blocking;
pub mod client;
pub mod fleet;
mod measure;
pub mod reference;
mod reload;
mod roll_out;
pub(crate) mod routes;
mod send;
mod server;
mod spool;
pub mod types;

use crate::error::NodeError;
use crate::node::Handle;
use answers::{EchoRequest, Hop, Reloaded};
use axum::Router;
use ncmesh_console::schema::declaration;
pub use reload::reload;
pub(crate) use send::send_to;
pub use send::{resume, send_waiting};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use types::{All, ApiError, ErrorCode, Recipients, SendRequest, Started};

/// Returns the types of the commands that the console gives in TypeScript, as its source has them.
#[must_use]
pub fn typescript() -> String {
    const BY: &str = "cargo run -p ncmesh-node --example api_types";
    [
        format!("// Generated; do not edit: {BY}\n"),
        declaration::<SendRequest>(),
        declaration::<Recipients>(),
        declaration::<All>(),
        declaration::<Started>(),
        declaration::<EchoRequest>(),
        declaration::<answers::Path>(),
        declaration::<Hop>(),
        declaration::<Reloaded>(),
        declaration::<ApiError>(),
        declaration::<ErrorCode>(),
    ]
    .concat()
}

/// Listening socket of the API. Its file is removed when serving ends.
#[derive(Debug)]
pub struct ApiSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl ApiSocket {
    /// Makes the socket `path` with mode 0600, or 0660 if the daemon's `group` may use it too.
    /// Replaces a socket that no daemon answers on.
    ///
    /// # Errors
    /// [`NodeError::SocketInUse`] if a daemon answers there, [`NodeError::NoSocket`] if `path` is
    /// something other than a socket, [`NodeError::Socket`] if it cannot be made.
    pub fn bind(path: &Path, group: bool) -> Result<Self, NodeError> {
        // A file that is no socket is the user's, so it is not replaced.
        if let Some(what) = other_than_socket(path) {
            return Err(NodeError::NoSocket(path.to_owned(), what));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(NodeError::SocketInUse(path.to_owned()));
        }

        // A socket that no daemon answers on is left from a crash.
        let listener = bind_anew(path, group).map_err(|e| NodeError::Socket(path.to_owned(), e))?;
        Ok(Self { path: path.to_owned(), listener })
    }

    /// Answers requests until the runtime ends, also those for the paths of `more`.
    pub fn serve(self, handle: Handle, more: Router) {
        let remove = RemoveOnDrop(self.path);
        let router = routes::router(handle).merge(more);
        tokio::spawn(async move {
            let _remove = remove;
            server::serve(self.listener, router).await;
        });
    }
}

/// Answers the requests of one connection of any kind, with the limits of those of the socket.
pub async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    handle: Handle,
) {
    server::serve_connection(stream, routes::router(handle)).await;
}

/// Returns the kind of file at `path` if it exists and is not a socket.
fn other_than_socket(path: &Path) -> Option<&'static str> {
    let kind = std::fs::symlink_metadata(path).ok()?.file_type();
    if kind.is_socket() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else if kind.is_file() {
        Some("a file")
    } else {
        Some("a device or pipe")
    }
}

fn bind_anew(path: &Path, group: bool) -> io::Result<UnixListener> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    // Set the mask before binding, because the socket must never be open to others.
    let mask = rustix::fs::Mode::from_raw_mode(if group { 0o117 } else { 0o177 });
    let before = rustix::process::umask(mask);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener as Listener;

    #[test]
    fn the_types_in_typescript_are_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/src/schema/api.ts");
        let written = std::fs::read_to_string(path).unwrap();
        let how = "the API has changed: cargo run -p ncmesh-node --example api_types";
        assert!(written == typescript(), "{how}");
    }

    #[test]
    fn only_a_socket_left_behind_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        std::fs::write(path("notes"), "mine").unwrap();
        std::fs::create_dir(path("dir")).unwrap();
        std::os::unix::fs::symlink(path("notes"), path("link")).unwrap();
        for (name, what) in
            [("notes", "a file"), ("dir", "a directory"), ("link", "a symbolic link")]
        {
            let refused = ApiSocket::bind(&path(name), false).unwrap_err();
            assert!(matches!(refused, NodeError::NoSocket(..)), "{refused}");
            let message = refused.to_string();
            assert!(message.contains(what) && message.contains("[api] socket"), "{message}");
        }
        assert_eq!(std::fs::read(path("notes")).unwrap(), b"mine");
        // Not bound here: while it is, other tests of this process could not make directories.
        drop(Listener::bind(path("left")).unwrap());
        assert_eq!(other_than_socket(&path("left")), None);
        assert_eq!(other_than_socket(&path("nowhere")), None);
        let _answers = Listener::bind(path("used")).unwrap();
        assert!(matches!(ApiSocket::bind(&path("used"), true), Err(NodeError::SocketInUse(_))));
    }
}
