//! `[web]`: the console over HTTP.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Length of the shortest token, characters: 64 bits in hexadecimal.
pub(super) const SHORTEST_TOKEN: usize = 16;

/// Section `[web]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    /// Address and port. There is no encryption: other than a loopback address, it should be one
    /// that only trusted hosts reach.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// File whose first line is the token for commands. Without it the console is for looking only.
    pub token_file: Option<PathBuf>,
    /// Other names of this host that browsers may use.
    #[serde(default)]
    pub names: Vec<String>,
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    let allowed = "listen: allowed are an address and a port, such as \"127.0.0.1:7180\"";
    text.parse().map_err(|_| D::Error::custom(allowed))
}
