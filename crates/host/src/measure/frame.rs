//! Packets of measurements.
//!
//! They travel as packets of the tunnel. The first byte is their kind; its high half is 0, where
//! IP has its version.

use ncmesh_wire::{Reader, Truncated, Writer};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

const ECHO_REQUEST: u8 = 1;
const ECHO_REPLY: u8 = 2;
const DATA: u8 = 3;
const END: u8 = 4;
const REPORT: u8 = 5;

/// Length of a data packet's fields, bytes.
pub(super) const DATA_HEADER: usize = 9;
/// Length of a report behind its kind and token, bytes. An end is as long, so that nobody is sent
/// more than it sends.
const REPORT_FIELDS: usize = 20;

/// The packet is none of a measurement, or its fields end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self
    }
}

/// Arrivals of a run of data packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Data packets, each counted once.
    pub(super) packets: u32,
    /// Their bytes, headers of measurements included.
    pub(super) bytes: u64,
    /// Time between the first and the last, µs.
    pub(super) elapsed_us: u64,
}

/// A packet of a measurement. Its token is a number that whoever measures chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    /// Asks for a reply with the same payload.
    EchoRequest { token: u32, payload: &'a [u8] },
    /// Answers a request.
    EchoReply { token: u32, payload: &'a [u8] },
    /// One of a run of packets, numbered from 0. The rest is [filler](fill).
    Data { token: u32, number: u32, filler: usize },
    /// Asks for a report after the last data packet.
    End { token: u32 },
    /// Answers an end.
    Report { token: u32, report: Report },
}

/// Returns whether a packet from the tunnel belongs to a measurement.
#[must_use]
pub fn is_measurement(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 0)
}

/// Fills a packet with bytes as incompressible as those of encrypted connections, other ones in
/// each packet. Schemes that code leave out zeros at the end, and equal packets cancel out in their
/// combinations: with either, frames would be shorter than those of IP packets.
pub(super) fn fill(filler: &mut [u8], token: u32, number: u32) {
    let seed = u64::from(token) << 32 | u64::from(number);
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(filler);
}

impl<'a> Packet<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(super) fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(packet);
        let kind = r.u8()?;
        let token = r.u32()?;

        let parsed = match kind {
            ECHO_REQUEST => return Ok(Self::EchoRequest { token, payload: r.rest() }),
            ECHO_REPLY => return Ok(Self::EchoReply { token, payload: r.rest() }),
            DATA => return Ok(Self::Data { token, number: r.u32()?, filler: r.remaining() }),
            END => {
                // The question is as long as its answer, so that a node cannot be made to send more
                // than it hears.
                r.bytes(REPORT_FIELDS)?;
                Self::End { token }
            }
            REPORT => {
                let packets = r.u32()?;
                let bytes = r.u64()?;
                let elapsed_us = r.u64()?;
                Self::Report { token, report: Report { packets, bytes, elapsed_us } }
            }
            _ => return Err(Malformed),
        };

        if r.remaining() > 0 { Err(Malformed) } else { Ok(parsed) }
    }

    /// Returns the packet's bytes.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        match self {
            Self::EchoRequest { token, payload } => {
                w.u8(ECHO_REQUEST).u32(token).bytes(payload);
            }
            Self::EchoReply { token, payload } => {
                w.u8(ECHO_REPLY).u32(token).bytes(payload);
            }
            Self::Data { token, number, filler } => {
                fill(w.u8(DATA).u32(token).u32(number).reserve(filler), token, number);
            }
            Self::End { token } => {
                w.u8(END).u32(token).reserve(REPORT_FIELDS);
            }
            Self::Report { token, report } => {
                let Report { packets, bytes, elapsed_us } = report;
                w.u8(REPORT).u32(token).u32(packets).u64(bytes).u64(elapsed_us);
            }
        }

        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn golden_measurements() {
        let token = 0x0102_0304;
        let report = Report { packets: 258, bytes: 309_600, elapsed_us: 4_999_000 };
        for (packet, expected) in [
            (Packet::EchoRequest { token, payload: b"mesh" }, "01010203046d657368"),
            (Packet::EchoReply { token, payload: b"mesh" }, "02010203046d657368"),
            (Packet::Data { token, number: 258, filler: 3 }, "03010203040000010298475d"),
            (Packet::End { token }, "04010203040000000000000000000000000000000000000000"),
            (
                Packet::Report { token, report },
                "050102030400000102000000000004b96000000000004c4758",
            ),
        ] {
            let bytes = packet.to_bytes();
            assert_eq!(hex(&bytes), expected);
            assert!(is_measurement(&bytes));
            assert_eq!(Packet::parse(&bytes), Ok(packet));
        }
    }

    #[test]
    fn neither_packets_nor_their_sums_are_shorter_than_they_look() {
        let data = |number| Packet::Data { token: 7, number, filler: 1000 }.to_bytes();
        let zeros = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        let one = &data(0)[DATA_HEADER..];
        let other = &data(1)[DATA_HEADER..];
        let sum: Vec<u8> = one.iter().zip(other).map(|(a, b)| a ^ b).collect();
        assert!([one, other, &sum].iter().all(|bytes| zeros(bytes) < 20));
    }

    #[test]
    fn ip_and_what_ends_early_is_no_measurement() {
        assert!(!is_measurement(&[0x45]) && !is_measurement(&[0x60]) && !is_measurement(&[]));
        let end = Packet::End { token: 7 }.to_bytes();
        for length in 0..end.len() {
            assert_eq!(Packet::parse(&end[..length]), Err(Malformed), "{length}");
        }
        assert_eq!(Packet::parse(&[&end[..], &[0]].concat()), Err(Malformed));
        assert_eq!(Packet::parse(&[0; 30]), Err(Malformed));
        assert_eq!(Packet::parse(&[6; 30]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(packet) = Packet::parse(&bytes) {
                prop_assert!(is_measurement(&bytes));
                // Filler is not kept.
                let written = packet.to_bytes();
                prop_assert_eq!(Packet::parse(&written), Ok(packet));
                prop_assert_eq!(written.len(), bytes.len());
            }
        }
    }
}
