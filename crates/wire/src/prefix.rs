//! Lists of IP prefixes, as profiles of nodes and certificates have them.

use crate::cursor::{Reader, Writer};
use crate::layout::{Count, Part};
use crate::record;
use crate::record::{Malformed, Record, field, group};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::IpAddr;

/// Most prefixes of each family in a list.
pub const MAX_PREFIXES: usize = 32;

record! {
    /// Numbers of prefixes.
    struct Counts {
        /// how many prefixes follow
        v4: u8 = field("profile.v4", "IPv4").within(0, MAX_PREFIXES as u64),
        /// the same
        v6: u8 = field("profile.v6", "IPv6").within(0, MAX_PREFIXES as u64),
    }
}

record! {
    /// Prefix of IPv4.
    struct V4 {
        /// bits of the address that count
        length: u8 = field("v4.length", "Length").within(0, 32),
        address: [u8; 4] = field("v4.address", "Address"),
    }
}

record! {
    /// Prefix of IPv6.
    struct V6 {
        /// bits of the address that count
        length: u8 = field("v6.length", "Length").within(0, 128),
        address: [u8; 16] = field("v6.address", "Address"),
    }
}

/// Prefixes of IPv4 and IPv6. Those of IPv4 are written first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes(pub Vec<IpNet>);

impl Prefixes {
    /// Returns the length of these prefixes in a frame, bytes.
    #[must_use]
    pub fn written_len(prefixes: &[IpNet]) -> usize {
        let len = |prefix: &IpNet| if prefix.addr().is_ipv4() { V4::LEN } else { V6::LEN };
        Counts::LEN + prefixes.iter().map(len).sum::<usize>()
    }

    /// Appends prefixes to a body.
    pub fn write(prefixes: &[IpNet], w: &mut Writer<'_>) {
        // The counts come first and IPv4 before IPv6, so no prefix needs a byte for its family.
        let (v4, v6): (Vec<&IpNet>, Vec<&IpNet>) =
            prefixes.iter().partition(|prefix| prefix.addr().is_ipv4());
        Counts { v4: v4.len() as u8, v6: v6.len() as u8 }.put(w);

        for prefix in v4.into_iter().chain(v6) {
            let length = prefix.prefix_len();
            match prefix.addr() {
                IpAddr::V4(address) => V4 { length, address: address.octets() }.put(w),
                IpAddr::V6(address) => V6 { length, address: address.octets() }.put(w),
            }
        }
    }
}

impl Record<'_> for Prefixes {
    const PARTS: &'static [Part] = &[
        Part::Include(Counts::PARTS),
        Part::Repeat(
            Count::Field("profile.v4"),
            &[group("v4", "Prefix", "Prefix of IPv4").part::<V4>("")],
        ),
        Part::Repeat(
            Count::Field("profile.v6"),
            &[group("v6", "Prefix", "Prefix of IPv6").part::<V6>("")],
        ),
    ];

    /// Reads prefixes. Bits beyond the length of a prefix say nothing.
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Counts { v4, v6 } = Counts::read(r)?;

        // Each count is a byte, which bounds the list. A length beyond the address refuses the
        // whole body.
        let mut prefixes = Vec::new();
        for _ in 0..v4 {
            let V4 { length, address } = V4::read(r)?;
            let prefix = Ipv4Net::new(address.into(), length).map_err(|_| Malformed)?;
            prefixes.push(IpNet::from(prefix.trunc()));
        }
        for _ in 0..v6 {
            let V6 { length, address } = V6::read(r)?;
            let prefix = Ipv6Net::new(address.into(), length).map_err(|_| Malformed)?;
            prefixes.push(IpNet::from(prefix.trunc()));
        }

        Ok(Self(prefixes))
    }

    fn put(&self, w: &mut Writer<'_>) {
        Self::write(&self.0, w);
    }
}
