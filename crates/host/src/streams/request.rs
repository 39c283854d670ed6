//! Requests to send or receive a stream, as the API, `node.toml` and the command line write them.

use super::rtp::{self, RtpPort, Track};
use crate::gateway::multicast::is_group_name;
use ncmesh_engine::registry::AUTO;
use ncmesh_engine::stream::{Deadline, UtilityConfig};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

ncmesh_engine::settings! {
    /// `[stream]` of `node.toml`: streams that the daemon sends and receives from its start on.
    #[derive(Clone, Debug, PartialEq)]
    pub struct StreamSection {
        /// Name of the scheme that carries them, the same on all nodes.
        pub scheme: String = AUTO.into(), allowed "a stream scheme, or `\"auto\"`";
        /// Streams to send: `layers`, or `rtp`, whose packets tell their layers.
        pub send: Vec<SendStream> = Vec::new(),
            allowed "a list of `{ group, layers }` or `{ group, rtp }`";
        /// Groups to receive.
        pub receive: Vec<ReceiveStream> = Vec::new(),
            allowed "a list of `{ group, layers }` or `{ group, rtp }`, and a utility";
    }
}

/// `PUT /v1/streams/sent`: takes layers from local UDP ports and sends them to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendStream {
    /// The group.
    pub group: String,
    /// The layers, the base first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Instead of layers: RTP, whose packets tell their layers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rtp: Vec<RtpPort>,
    /// Instead of both: the session description of RTP that comes to local ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdp: Option<String>,
    /// Age at which a packet is of no use any more, ms, 20 to 5,000; that of the scheme's settings
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u16>,
}

/// Input of a stream at its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Layers with a port each.
    Layers(Vec<Layer>),
    /// Tracks of RTP.
    Rtp(Vec<Track>),
}

impl SendStream {
    /// Returns the deadline, if there is one.
    ///
    /// # Errors
    /// Returns one line that says what is allowed.
    pub fn deadline(&self) -> Result<Option<Deadline>, String> {
        let allowed = Deadline::RANGE;
        let wrong = || format!("deadline_ms: allowed are {} to {}", allowed.start(), allowed.end());
        self.deadline_ms.map(|ms| Deadline::of_ms(ms).ok_or_else(wrong)).transpose()
    }

    /// Returns where the stream's packets come from.
    ///
    /// # Errors
    /// Returns one line that says what contradicts itself.
    pub fn input(&self) -> Result<Input, String> {
        let Self { group, layers, rtp, sdp, .. } = self;
        check_group(group)?;
        let tracks = match (layers.is_empty(), rtp.is_empty(), sdp) {
            (false, true, None) => {
                check_layers(layers)?;
                return Ok(Input::Layers(layers.clone()));
            }
            (true, false, None) => rtp.iter().map(RtpPort::track).collect(),
            (true, true, Some(text)) => rtp::read(text).map_err(|e| format!("sdp: {e}"))?,
            _ => return Err("give one of layers, rtp and sdp".into()),
        };

        rtp::check(&tracks).map_err(|e| format!("rtp: {e}"))?;
        Ok(Input::Rtp(tracks))
    }
}

/// `PUT /v1/streams/received`: joins a group and plays its layers out to local UDP ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveStream {
    /// The group.
    pub group: String,
    /// Port of each layer. One that is not listed goes nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Instead of layers, for a stream of RTP: port of its first track, as a player takes it. RTCP
    /// and further tracks have the ports behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtp: Option<u16>,
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
    /// Returns the request that plays a group as RTP from `port` on.
    #[must_use]
    pub fn rtp(group: &str, port: u16) -> Self {
        Self {
            group: group.to_owned(),
            layers: Vec::new(),
            rtp: Some(port),
            utility: linear(),
            weight: None,
            xi: None,
            alpha: None,
            min_rate_bps: None,
            penalty: None,
        }
    }

    /// Returns the ports that layers of the group leave by.
    ///
    /// # Errors
    /// Returns one line that says what contradicts itself.
    pub fn output(&self) -> Result<Vec<Layer>, String> {
        check_group(&self.group)?;
        match (self.layers.is_empty(), self.rtp) {
            (false, None) => {
                check_layers(&self.layers)?;
                Ok(self.layers.clone())
            }
            // The last port leaves room for the ports of all tracks behind it.
            (true, Some(port)) if (1..=LAST_RTP_PORT).contains(&port) => {
                Ok(vec![Layer { name: rtp::LAYERS[0].into(), port }])
            }
            (true, Some(port)) => Err(format!("rtp {port}: allowed is 1 to {LAST_RTP_PORT}")),
            _ => Err("give one of layers and rtp".into()),
        }
    }

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

/// Last port that leaves room for those of further tracks.
const LAST_RTP_PORT: u16 = u16::MAX - rtp::MAX_TRACKS as u16 * rtp::PORTS_PER_TRACK;

/// Checks that a group is none of those that carry IP multicast.
fn check_group(group: &str) -> Result<(), String> {
    if is_group_name(group) {
        return Err(format!("group {group:?}: such names are those of IP multicast"));
    }
    Ok(())
}

/// Checks that no two layers have the same name or the same port, and that none has a name of a
/// layer of RTP.
///
/// # Errors
/// Returns one line that names both.
pub fn check_layers(layers: &[Layer]) -> Result<(), String> {
    for (at, Layer { name, port }) in layers.iter().enumerate() {
        if layers[..at].iter().any(|other| other.name == *name) {
            return Err(format!("layer {name:?} is given twice"));
        }
        if name.starts_with(rtp::LAYER_PREFIX) {
            return Err(format!("layer {name:?}: such names are those of streams of RTP; use rtp"));
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

    fn parsed<T: FromStr<Err = String>>(texts: &[&str]) -> Vec<T> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_stream_comes_from_layers_or_from_rtp() {
        let input = |layers: &[&str], rtp: &[&str], sdp: Option<&str>| {
            let sdp = sdp.map(str::to_owned);
            let deadline_ms = None;
            let layers = parsed(layers);
            let rtp = parsed(rtp);
            SendStream { group: "tv".into(), layers, rtp, sdp, deadline_ms }.input()
        };
        assert!(matches!(input(&["base=udp:5004"], &[], None), Ok(Input::Layers(_))));
        let Ok(Input::Rtp(tracks)) = input(&[], &["h264=udp:5004", "opus=udp:5006"], None) else {
            panic!("no tracks");
        };
        assert_eq!(tracks[1].port, 5006);
        let sdp = Some("v=0\nm=audio 9 RTP/AVP 0");
        assert!(matches!(input(&[], &[], sdp), Ok(Input::Rtp(_))));
        for (refused, why) in [
            (input(&[], &[], None), "one of layers, rtp and sdp"),
            (input(&["base=udp:1"], &["h264=udp:5004"], None), "one of"),
            (input(&["rtp-base=udp:5004"], &[], None), "use rtp"),
            (input(&[], &["h264=udp:5004", "opus=udp:5005"], None), "port 5005"),
            (input(&[], &[], Some("hello")), "no session description"),
        ] {
            let said = refused.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_deadline_is_within_its_range() {
        let deadline = |deadline_ms| {
            let layers = parsed(&["base=udp:5004"]);
            let group = "tv".into();
            SendStream { group, layers, rtp: Vec::new(), sdp: None, deadline_ms }.deadline()
        };
        assert_eq!(deadline(None), Ok(None));
        assert_eq!(deadline(Some(20)), Ok(Deadline::of_ms(20)));
        assert_eq!(deadline(Some(5001)).unwrap_err(), "deadline_ms: allowed are 20 to 5000");
    }

    #[test]
    fn a_group_is_played_by_layers_or_as_rtp() {
        let output = |layers: &[&str], rtp| {
            let request =
                ReceiveStream { layers: parsed(layers), rtp, ..ReceiveStream::rtp("tv", 6004) };
            request.output()
        };
        assert_eq!(output(&[], Some(6004)).unwrap()[0].to_string(), "rtp-base=udp:6004");
        assert_eq!(output(&["base=udp:6004"], None).unwrap().len(), 1);
        assert!(output(&[], None).is_err() && output(&["base=udp:6004"], Some(6006)).is_err());
        assert!(output(&[], Some(0)).is_err() && output(&[], Some(65_535)).is_err());
    }

    #[test]
    fn groups_of_ip_multicast_are_left_to_the_tunnel() {
        let output = |group: &str| ReceiveStream::rtp(group, 6004).output();
        let input = |group: &str| {
            let group = group.to_owned();
            let layers = parsed(&["a=udp:1"]);
            SendStream { group, layers, rtp: vec![], sdp: None, deadline_ms: None }.input()
        };
        assert!(output("ip-239.1.2.3").unwrap_err().contains("multicast"));
        assert!(input("ip-239.1.2.3").unwrap_err().contains("multicast"));
        assert!(output("ip-camera").is_ok() && input("ip-camera").is_ok());
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
