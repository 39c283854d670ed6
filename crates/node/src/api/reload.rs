//! `POST /v1/reload`, and SIGHUP: reads the configuration file again.

use super::answers::Reloaded;
use super::blocking::{blocking, check_usable};
use super::types::ApiError;
use crate::config::NodeConfig;
use crate::node::{Handle, refused};

/// Reads the node's configuration file again and takes what can change.
///
/// # Errors
/// `bad_request` if the file has a mistake, `inbox` if its inbox cannot be used. Then nothing has
/// changed.
pub async fn reload(handle: &Handle) -> Result<Reloaded, ApiError> {
    let file = handle.call(|node| node.configuration().file().to_owned()).await?;
    let config = blocking(move || NodeConfig::read(&file)).await?.map_err(|e| refused(&e))?;
    if let Some(dir) = config.inbox.clone() {
        check_usable(dir).await?;
    }
    handle.call(move |node| node.reload(&config)).await?
}
