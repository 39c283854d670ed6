//! Work that waits for a disk, kept off the node's loop.

use super::types::{ApiError, ErrorCode};

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
