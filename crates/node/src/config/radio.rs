//! `[radio]`: the kind of radio and its settings.

use super::value;
use crate::etherd::datagram::Token;
use ncmesh_stack::MTUS;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

/// `[radio]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum RadioConfig {
    /// UDP broadcast on a network interface.
    Udp(UdpConfig),
    /// A radio of the channel emulator.
    Air(AirConfig),
}

impl RadioConfig {
    /// Returns the length of the largest frame, bytes.
    #[must_use]
    pub fn mtu(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.mtu,
            Self::Air(air) => air.mtu,
        }
    }
}

/// `kind = "udp"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpConfig {
    /// Name of the network interface, for instance `wlan0`.
    pub interface: String,
    /// UDP port, the same on all nodes.
    #[serde(default = "default_port", deserialize_with = "port")]
    pub port: u16,
    /// Destination address of frames. The interface's IPv4 broadcast address if absent.
    #[serde(default, deserialize_with = "broadcast")]
    pub broadcast: Option<Ipv4Addr>,
    /// Limit of the transmission rate, headers included. If absent, the driver's back-pressure
    /// limits it, or 1 Mbit/s where there is none.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Length of the largest frame, bytes of UDP payload: 28 less than the interface's MTU.
    #[serde(default = "default_udp_mtu", deserialize_with = "mtu")]
    pub mtu: usize,
}

/// `kind = "air"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AirConfig {
    /// Address of the channel emulator.
    #[serde(deserialize_with = "ether")]
    pub ether: SocketAddr,
    /// Index of this node's radio in the emulator.
    pub index: u32,
    /// Secret of the emulator's run.
    #[serde(deserialize_with = "token")]
    pub token: Token,
    /// Length of the largest frame, bytes.
    #[serde(default = "default_air_mtu", deserialize_with = "mtu")]
    pub mtu: usize,
}

fn default_port() -> u16 {
    7117
}

fn default_udp_mtu() -> usize {
    1472
}

fn default_air_mtu() -> usize {
    1500
}

fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    value::ranged(deserializer, "port", 1..=65_535)
}

fn mtu<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    value::ranged(deserializer, "mtu", *MTUS.start() as i64..=*MTUS.end() as i64)
}

fn broadcast<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ipv4Addr>, D::Error> {
    let allowed = "an IPv4 address, for instance \"10.1.255.255\"";
    value::parsed(deserializer, "broadcast", allowed).map(Some)
}

fn ether<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    value::parsed(deserializer, "ether", "an address and a port, for instance \"127.0.0.1:7000\"")
}

fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Token, D::Error> {
    let token = String::deserialize(deserializer)?.parse();
    token.map_err(|e| serde::de::Error::custom(format!("token: {e}")))
}

/// Bit rate, written `"500k"`, `"20M"`, `"5.5M"` or `"1G"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_second: f64,
}

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = match text.trim().char_indices().next_back() {
            Some((at, 'k')) => (&text.trim()[..at], 1e3),
            Some((at, 'M')) => (&text.trim()[..at], 1e6),
            Some((at, 'G')) => (&text.trim()[..at], 1e9),
            _ => (text.trim(), 1.0),
        };
        let rate = number.parse::<f64>().ok().map(|n| n * unit);
        let rate = rate.filter(|r| (1e3..=1e11).contains(r));
        rate.map(|bits_per_second| Self { bits_per_second }).ok_or_else(|| {
            format!(
                "rate = {text:?}: allowed is \"1k\" to \"100G\" (bits per second), \
                 for instance \"20M\""
            )
        })
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(RateReader)
    }
}

struct RateReader;

impl Visitor<'_> for RateReader {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string such as \"8M\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Rate, E> {
        text.parse().map_err(E::custom)
    }
}
