//! Contents that come with the request instead of a path: standard input and the like.

use super::blocking::blocking;
use super::types::{ApiError, ErrorCode, Spooled};
use crate::node::Handle;
use crate::state::{Contents, Spool};
use axum::body::Body;
use http_body_util::BodyExt;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Keeps the body of a request as a file that can be sent.
///
/// # Errors
/// [`ErrorCode::File`] if it cannot be written, [`ErrorCode::BadRequest`] if it breaks off.
pub(super) async fn keep(handle: &Handle, body: Body) -> Result<Spooled, ApiError> {
    let spool = handle.call(|node| node.spool()).await?;
    // Contents of earlier requests that no transfer needs any more are collected here.
    let sent = handle.call(|node| node.sent_paths()).await?;
    let own = spool.clone();
    let made = blocking(move || {
        own.collect(&sent, SystemTime::now())?;
        own.create()
    });
    let contents = made.await?.map_err(|e| unwritten(&e))?;

    // A request that breaks off leaves nothing behind.
    let path = contents.path.clone();
    if let Err(e) = copy(body, contents).await {
        let left = path.clone();
        // If they cannot be removed now, they are collected later.
        let _ = blocking(move || spool.remove(&left)).await?;
        return Err(e);
    }
    Ok(Spooled { path })
}

/// Writes a body into a file.
async fn copy(mut body: Body, mut contents: Contents) -> Result<(), ApiError> {
    while let Some(frame) = body.frame().await {
        // Each piece is written before the next one is read, so memory stays small.
        let broken =
            |e| ApiError::new(ErrorCode::BadRequest, format!("the contents broke off: {e}"));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let written = move || contents.append(&data).map(|()| contents);
        contents = blocking(written).await?.map_err(|e| unwritten(&e))?;
    }
    Ok(())
}

/// Removes contents that are not sent after all.
pub(super) async fn forget(spool: Spool, path: &Path) -> Result<(), ApiError> {
    let path = path.to_owned();
    let _ = blocking(move || spool.remove(&path)).await?;
    Ok(())
}

fn unwritten(e: &io::Error) -> ApiError {
    ApiError::new(
        ErrorCode::File,
        format!("the contents cannot be kept in the state directory: {e}"),
    )
}
