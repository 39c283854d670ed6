//! Identifiers that frames carry.

use core::fmt;
use core::str::FromStr;

/// Identifier of a node: 1 to 65,534, set in its configuration and unique in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// Identifier of a service of a node (link measurement, routing, an engine): the first byte of
/// every sealed body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u8);

/// Identifier of a flow: its source node and a serial number that the source draws at random.
///
/// The text form is `source-serial` with the serial in eight hexadecimal digits: `3-09ab12ff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// The source of the flow.
    pub source: NodeId,
    /// Distinguishes the flows of this source.
    pub serial: u32,
}

/// Address of a radio among those that can hear it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RadioAddress {
    /// One of four bytes.
    Short(ShortAddress),
    /// One of eight bytes.
    Long(LongAddress),
}

/// IPv4 address that a radio sends from, or its number at the channel emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortAddress(pub [u8; 4]);

/// MAC address of a radio with two zero bytes behind it, or the interface identifier of the IPv6
/// link-local address that it sends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LongAddress(pub [u8; 8]);

/// Random number of 128 bits that a node draws at each start. No two starts have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Salt(pub [u8; 16]);

/// First half of a [`Salt`], which tells starts apart. It has no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(pub u64);

impl RadioAddress {
    /// Returns it if it has four bytes.
    #[must_use]
    pub fn short(self) -> Option<ShortAddress> {
        match self {
            Self::Short(address) => Some(address),
            Self::Long(_) => None,
        }
    }

    /// Returns it if it has eight bytes.
    #[must_use]
    pub fn long(self) -> Option<LongAddress> {
        match self {
            Self::Short(_) => None,
            Self::Long(address) => Some(address),
        }
    }
}

impl Salt {
    /// Returns the half of the salt that names the start.
    #[must_use]
    pub fn start(self) -> StartId {
        StartId((u128::from_be_bytes(self.0) >> 64) as u64)
    }
}

impl fmt::Display for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.source, self.serial)
    }
}

impl FromStr for FlowId {
    type Err = &'static str;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        const SHAPE: &str = "a transfer id looks like 3-09ab12ff";
        let (source, serial) = s.split_once('-').ok_or(SHAPE)?;

        // One text for each id: `from_str_radix` alone would take shorter serials, too.
        if serial.len() != 8 {
            return Err(SHAPE);
        }

        Ok(Self {
            source: NodeId(source.parse().map_err(|_| SHAPE)?),
            serial: u32::from_str_radix(serial, 16).map_err(|_| SHAPE)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_id_survives_text() {
        let id = FlowId { source: NodeId(3), serial: 0x09ab_12ff };
        assert_eq!(id.to_string(), "3-09ab12ff");
        assert_eq!("3-09ab12ff".parse(), Ok(id));
        for bad in ["", "3", "3-", "3-9ab12ff", "x-09ab12ff", "70000-09ab12ff", "3-09ab12fg"] {
            assert!(bad.parse::<FlowId>().is_err(), "{bad}");
        }
    }
}
