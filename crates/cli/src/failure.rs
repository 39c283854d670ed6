//! Failure of a command: one line on standard error, and an exit code for each kind.

use ncmesh_node::NodeError;
use ncmesh_node::api::client::ClientError;
use ncmesh_node::api::types::{ApiError, ErrorCode};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// The exit codes, as `ncmesh --help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  something else went wrong
  2  wrong usage of the command
  3  the configuration or scenario is wrong
  4  no daemon answers
  5  a file, directory or the daemon's socket cannot be read or written, or cannot be sent
  6  a receiver is unknown or cannot be reached
  7  a named receiver, or with --to all every one, has not got the file, or the transfer was ended
  8  a state directory, port or socket is in use by another program, or a measurement goes on
  9  no such transfer or group
  10 a release is damaged, signed by too few, or not for the node";

/// Kind of a failure. Its value is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Other = 1,
    Usage = 2,
    Config = 3,
    NoDaemon = 4,
    File = 5,
    Receiver = 6,
    Incomplete = 7,
    InUse = 8,
    NoTransfer = 9,
    Refused = 10,
}

/// Reason why a command fails.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
}

impl Failure {
    /// Returns a failure with a message of one line.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Prints the message on standard error.
    pub(crate) fn report(&self) {
        // Colour only on a terminal, and not against the user's wish (no-color.org).
        let red = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let head = if red { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };

        // If standard error cannot be written, there is nowhere else to report.
        let _ = writeln!(io::stderr(), "{head} {}", self.message);
    }

    /// Returns its kind.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

impl From<ApiError> for Failure {
    fn from(e: ApiError) -> Self {
        let kind = match e.code {
            ErrorCode::BadRequest => Kind::Usage,
            ErrorCode::NotFound => Kind::NoTransfer,
            ErrorCode::File | ErrorCode::Inbox => Kind::File,
            ErrorCode::UnknownReceiver | ErrorCode::UnreachableReceiver => Kind::Receiver,
            ErrorCode::Refused => Kind::Refused,
            ErrorCode::Port | ErrorCode::Busy => Kind::InUse,
            ErrorCode::Ended => Kind::Incomplete,
            ErrorCode::Stopping => Kind::NoDaemon,
        };

        Self::new(kind, e.error)
    }
}

impl From<NodeError> for Failure {
    fn from(e: NodeError) -> Self {
        let kind = match &e {
            e if e.is_in_use() => Kind::InUse,
            NodeError::Config(_) => Kind::Config,
            NodeError::State(_)
            | NodeError::Inbox(..)
            | NodeError::NoSocket(..)
            | NodeError::Socket(..) => Kind::File,
            _ => Kind::Other,
        };

        Self::new(kind, e.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(e: ClientError) -> Self {
        let kind = match e {
            // The daemon's answer has a code of its own, which says more than that it refused.
            ClientError::Refused(e) => return e.into(),
            ClientError::Impossible(_) => Kind::Usage,
            ClientError::Forbidden(_) => Kind::File,
            // An answer that is not understood comes from something else than a daemon of this
            // version.
            ClientError::Unreachable(..) | ClientError::Strange(_) => Kind::NoDaemon,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::new(Kind::Other, e.to_string())
    }
}
