//! Requests to send or receive a stream, as the API, `node.toml` and the command line write them.

use ncmesh_engine::registry::AUTO;
use ncmesh_engine::stream::UtilityConfig;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

ncmesh_engine::settings! {
    /// `[stream]` of `node.toml`: streams that the daemon sends and receives from its start on.
    #[derive(Clone, Debug, PartialEq)]
    pub struct StreamSection {
        /// Name of the scheme that carries them, the same on all nodes.
        pub scheme: String = AUTO.into(), allowed "a stream scheme, or `\"auto\"`";
        /// Streams to send.
        pub send: Vec<SendStream> = Vec::new(), allowed "a list of `{ group, layers }`";
        /// Groups to receive.
        pub receive: Vec<ReceiveStream> = Vec::new(),
            allowed "a list of `{ group, layers }` and a utility";
    }
}

/// `PUT /v1/streams/sent`: takes layers from local UDP ports and sends them to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendStream {
    /// The group.
    pub group: String,
    /// The layers, the base first.
    pub layers: Vec<Layer>,
}

/// `PUT /v1/streams/received`: joins a group and plays its layers out to local UDP ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveStream {
    /// The group.
    pub group: String,
    /// Port of each layer. One that is not listed goes nowhere.
    pub layers: Vec<Layer>,
    /// `linear`, `log`, `alpha_fair` or `max_min`, of the rate in Mbit/s.
    #[serde(default = "linear")]
    pub utility: String,
    /// Factor of the utility. If absent 1 for `linear`, and for curves the one that makes them as
    /// steep at rate 0 as theta allows.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Added to the rate, Mbit/s; 1 if absent.
    #[serde(default)]
    pub xi: Option<f64>,
    /// The exponent of `alpha_fair` and `max_min`.
    #[serde(default)]
    pub alpha: Option<f64>,
    /// The rate below which there is a penalty, bit/s.
    #[serde(default)]
    pub min_rate_bps: Option<u64>,
    /// Penalty per Mbit/s below that rate; if absent what theta leaves room for.
    #[serde(default)]
    pub penalty: Option<f64>,
}

fn linear() -> String {
    "linear".into()
}

impl ReceiveStream {
    /// Returns the utility as the engine takes it.
    #[must_use]
    pub fn utility(&self) -> UtilityConfig {
        UtilityConfig {
            name: self.utility.clone(),
            weight: self.weight,
            xi: self.xi,
            alpha: self.alpha,
            minimum: self.min_rate_bps.map(|bps| bps as f64 / 1e6),
            penalty: self.penalty,
            ..UtilityConfig::default()
        }
    }
}

/// A layer and its UDP port on this host, written `base=udp:5004`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Layer {
    /// Name of the layer.
    pub name: String,
    /// The port on the loopback interface.
    pub port: u16,
}

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let layer = || {
            let (name, port) = text.split_once("=udp:")?;
            let port = port.parse().ok().filter(|port| *port > 0)?;
            Some(Self { name: name.to_owned(), port })
        };
        layer().filter(|layer| !layer.name.is_empty()).ok_or_else(|| {
            format!("layer {text:?}: allowed is NAME=udp:PORT, for instance base=udp:5004")
        })
    }
}

impl TryFrom<String> for Layer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Layer> for String {
    fn from(layer: Layer) -> Self {
        layer.to_string()
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=udp:{}", self.name, self.port)
    }
}

/// Checks that no two layers have the same name or the same port.
///
/// # Errors
/// Returns one line that names both.
pub fn check_layers(layers: &[Layer]) -> Result<(), String> {
    for (at, Layer { name, port }) in layers.iter().enumerate() {
        if layers[..at].iter().any(|other| other.name == *name) {
            return Err(format!("layer {name:?} is given twice"));
        }
        if let Some(other) = layers[..at].iter().find(|other| other.port == *port) {
            return Err(format!("layers {} and {name} have the same port, {port}", other.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_survives_text() {
        let layer = Layer { name: "base".into(), port: 5004 };
        assert_eq!("base=udp:5004".parse(), Ok(layer.clone()));
        assert_eq!(layer.to_string(), "base=udp:5004");
        for bad in
            ["", "base", "base=5004", "=udp:5004", "base=udp:", "base=udp:0", "base=udp:70000"]
        {
            assert!(bad.parse::<Layer>().unwrap_err().contains("NAME=udp:PORT"), "{bad}");
        }
    }

    #[test]
    fn layers_are_told_apart_by_name_and_port() {
        let layers = |texts: &[&str]| {
            let layers: Vec<Layer> = texts.iter().map(|text| text.parse().unwrap()).collect();
            check_layers(&layers)
        };
        assert_eq!(layers(&["a=udp:1", "b=udp:2"]), Ok(()));
        assert!(layers(&["a=udp:1", "a=udp:2"]).unwrap_err().contains("\"a\" is given twice"));
        assert!(
            layers(&["a=udp:1", "b=udp:1"]).unwrap_err().contains("a and b have the same port")
        );
    }
}
