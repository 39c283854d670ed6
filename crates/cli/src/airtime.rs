//! Shares of the airtime on the command line.

use ncmesh_engine::Background;

/// Parses a share of the airtime, as `10%`.
pub(crate) fn airtime(text: &str) -> Result<Background, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse().ok();
    percent.and_then(Background::of).ok_or_else(|| "allowed are 1% to 100%".into())
}
