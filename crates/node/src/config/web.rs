//! `[web]`: the console over HTTP.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Length of the shortest token, characters: 64 bits in hexadecimal.
const SHORTEST_TOKEN: usize = 16;

ncmesh_engine::choices! {
    /// Clients that may look at the console.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Readers {
        /// Clients with a token.
        Token = "token",
        /// All that reach the port.
        Anyone = "anyone",
    }
}

ncmesh_engine::settings! {
    /// Section `[web]`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WebConfig {
        /// Address and port where the console is served. There is no encryption: other than a
        /// loopback address, it should be one that only trusted hosts reach.
        pub listen: SocketAddr, allowed "an address and a port";
        /// Clients that may look. `token`: browsers that opened the address which the daemon's log
        /// tells, and programs that send its token, or that of `token_file`.
        pub read: Readers = Readers::Token;
        /// File whose first line, 16 characters or more, is the token that allows commands. Without
        /// it the console is for looking only.
        pub token_file: Option<PathBuf> = None, allowed "a file";
        /// Other names of this host that browsers may use.
        pub names: Vec<String> = Vec::new(), allowed "a list of names";
    }
}

/// Why a file has no token for the console's commands.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// Its first line is no token, or too short.
    #[error("{} needs a line of {SHORTEST_TOKEN} characters or more", .0.display())]
    Short(PathBuf),
}

/// Reads the token of the console's commands, the first line of a file.
///
/// # Errors
/// [`TokenError`] if it cannot be read, or has no token of some length.
pub fn read_token(file: &Path) -> Result<String, TokenError> {
    let text = ncmesh_engine::text::read(file)
        .map_err(|source| TokenError::Unreadable { file: file.to_owned(), source })?;

    // An editor may leave a line break, and more lines may be notes.
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < SHORTEST_TOKEN {
        return Err(TokenError::Short(file.to_owned()));
    }
    Ok(token.to_owned())
}

/// Returns a warning if others than the owner may read the file with the token.
#[must_use]
pub fn token_warning(file: &Path) -> Option<String> {
    super::shared(file, 0o077, "the console's token")
}
