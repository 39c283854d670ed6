//! Work that waits for a disk, kept off the node's loop.

use super::types::{ApiError, ErrorCode};
use crate::store::reception::check_inbox;
use std::path::PathBuf;

/// Runs `work` on a thread that may block.
///
/// # Errors
/// [`ErrorCode::Stopping`] if the runtime shuts down first.
pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, ApiError> {
    let stopping = |_| ApiError::new(ErrorCode::Stopping, "the daemon is stopping");
    tokio::task::spawn_blocking(work).await.map_err(stopping)
}

/// Checks that files can be received into a directory.
///
/// # Errors
/// [`ErrorCode::Inbox`] if they cannot, [`ErrorCode::Stopping`].
pub(super) async fn check_usable(inbox: PathBuf) -> Result<(), ApiError> {
    let problem = move || {
        let failed = |e| format!("{} cannot be the inbox: {e}", inbox.display());
        check_inbox(&inbox).map_err(failed)
    };
    blocking(problem).await?.map_err(|problem| ApiError::new(ErrorCode::Inbox, problem))
}
