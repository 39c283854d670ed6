//! `[radio]`: the kind of radio and its settings.

use crate::etherd::datagram::Token;
use ncmesh_engine::settings::{Declared, Kind, Mismatch, Section, Setting, Toml, Value};
use ncmesh_stack::MTUS;
use serde::Deserialize;
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

ncmesh_engine::settings! {
    /// `kind = "udp"`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct UdpConfig {
        /// Name of the network interface. A daemon waits until it has an IPv4 address and a
        /// carrier.
        pub interface: String, allowed "an interface, such as `\"wlan0\"`";
        /// UDP port, the same on all nodes.
        pub port: u16 = 7117, within 1..=u16::MAX;
        /// Destination address of frames.
        pub broadcast: Option<Ipv4Addr> = None, absent "the interface's broadcast address",
            allowed "an IPv4 address";
        /// Most that is sent, all headers included. Not needed where the driver holds frames back
        /// while the channel is busy, as most Wi-Fi drivers do. Where it does not, 1 Mbit/s is
        /// sent, and `ncmesh status` asks for a rate: set it to what the channel carries.
        pub rate: Option<Rate> = None, absent "as the driver takes frames", allowed RATES;
        /// Length of the largest frame, bytes of UDP payload: 28 less than the interface's MTU.
        pub mtu: usize = 1472, within MTUS, unit "bytes";
    }
}

ncmesh_engine::settings! {
    /// `kind = "air"`, which the lab writes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AirConfig {
        /// Address of the channel emulator.
        pub ether: SocketAddr;
        /// Index of this node's radio in the emulator.
        pub index: u32;
        /// Secret of the emulator's run.
        pub token: Token;
        /// Length of the largest frame.
        pub mtu: usize = 1500, within MTUS, unit "bytes";
    }
}

impl RadioConfig {
    /// Returns what is declared of the settings of a radio that an operator may choose.
    #[must_use]
    pub fn settings() -> Vec<Declared> {
        let kind =
            Setting::<UserKind>::new("kind", "Kind of radio: UDP broadcast on an interface.");
        let mut all = vec![kind.declared()];
        all.extend(UdpConfig::settings());
        all
    }
}

ncmesh_engine::choices! {
    /// Kinds of radios that an operator may choose. The channel emulator's is written by the lab.
    #[derive(Clone, Copy)]
    enum UserKind {
        Udp = "udp",
    }
}

impl Value for Token {
    const KINDS: &'static [Kind] = String::KINDS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let token = String::from_toml(value)?.parse();
        token.map_err(|error: <Token as std::str::FromStr>::Err| {
            Mismatch::Problem(error.to_string())
        })
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}

/// Bit rates that are allowed.
const RATES: &str = "\"1k\" to \"100G\" (bits per second, in quotes), for instance \"20M\"";

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
        rate.map(|bits_per_second| Self { bits_per_second })
            .ok_or_else(|| format!("rate = {text:?}: allowed is {RATES}"))
    }
}

impl Value for Rate {
    const KINDS: &'static [Kind] = String::KINDS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let rate = value.as_str().and_then(|text| text.parse().ok());
        rate.ok_or_else(|| Mismatch::Value(RATES.into()))
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}
