//! Headers in front of an ncmesh frame in a capture.
//!
//! A monitor-mode interface of a station in an IBSS captures the same headers: radiotap
//! (radiotap.org), the 802.11 header of a data frame (IEEE 802.11-2016, 9.3.2.1) and LLC/SNAP.
//! Fields that the medium does not model have fixed values.

use ncmesh_medium::{MacConfig, MediumConfig, Modulation, Power};
use ncmesh_wire::{NodeId, Versions, frame};

/// IEEE 802 Local Experimental Ethertype 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xB5];
/// LLC header of an unnumbered frame with SNAP, and the OUI for EtherTypes.
const LLC_SNAP: [u8; 6] = [0xAA, 0xAA, 0x03, 0, 0, 0];
const BROADCAST: [u8; 6] = [0xFF; 6];
/// Frame control of a data frame between stations of an IBSS.
const DATA_FRAME: [u8; 2] = [0x08, 0];

/// Radiotap's unit of bit rate, bit/s.
const RATE_UNIT_BPS: u64 = 500_000;

/// Fields of radiotap, by their bits in the `present` word.
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const SIGNAL_DBM: u32 = 1 << 5;

/// The radiotap header.
pub(super) struct Radiotap {
    present: u32,
    /// Flags, rate and channel, which are the same for every frame of a capture.
    fields: [u8; 6],
}

impl Radiotap {
    pub(super) fn new(medium: &MediumConfig) -> Self {
        // The medium is one channel without a number, so the capture names channel 1 or 36. The
        // flags of a channel are its band and its modulation.
        let (mhz, kind): (u16, u16) = match medium.phy.modulation {
            Modulation::Dsss => (2412, 0x0080 | 0x0020),
            Modulation::Ofdm => (5180, 0x0100 | 0x0040),
        };
        let rate = rate(medium.bit_rate_bps);
        let present = FLAGS | CHANNEL | if rate.is_some() { RATE } else { 0 };

        // The flags are 0: long preamble, no FCS at the end. If the rate is absent, its byte is
        // padding, because the channel field is aligned to two bytes.
        let ([m0, m1], [k0, k1]) = (mhz.to_le_bytes(), kind.to_le_bytes());
        Self { present, fields: [0, rate.unwrap_or(0), m0, m1, k0, k1] }
    }

    /// Appends the header of a frame. `power` is the received power, if it is known.
    pub(super) fn write(&self, out: &mut Vec<u8>, power: Option<Power>) {
        // Version 0, a byte of padding, the length of the whole header, and the fields in the order
        // of their bits.
        let signal = power.map(|power| (power.dbm().round() as i8).to_le_bytes());
        let present = self.present | if signal.is_some() { SIGNAL_DBM } else { 0 };
        let length = 8 + self.fields.len() + signal.map_or(0, |byte| byte.len());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(length as u16).to_le_bytes());
        out.extend_from_slice(&present.to_le_bytes());
        out.extend_from_slice(&self.fields);
        out.extend(signal.into_iter().flatten());
    }
}

/// Returns a bit rate in radiotap's units; `None` if it is not a multiple of them, or too high.
fn rate(bps: u64) -> Option<u8> {
    bps.is_multiple_of(RATE_UNIT_BPS).then(|| u8::try_from(bps / RATE_UNIT_BPS).ok()).flatten()
}

/// The 802.11 and LLC/SNAP headers.
pub(super) struct Dot11 {
    /// Duration field of unicast frames, microseconds: SIFS and acknowledgment, or 0 on a slotted
    /// medium, which has neither.
    duration_us: u16,
}

impl Dot11 {
    pub(super) fn new(medium: &MediumConfig) -> Self {
        let ns = match medium.mac {
            MacConfig::Dcf { .. } => {
                medium.phy.sifs_ns + medium.phy.ack_airtime_ns(medium.bit_rate_bps)
            }
            MacConfig::Slotted { .. } => 0,
        };
        Self { duration_us: u16::try_from(ns.div_ceil(1000)).unwrap_or(u16::MAX) }
    }

    /// Appends the headers of `frame`, sent by `from` to one node or, with `None`, to all.
    pub(super) fn write(&self, out: &mut Vec<u8>, from: NodeId, to: Option<NodeId>, frame: &[u8]) {
        // The order of a data frame's header: frame control, duration, receiver, transmitter,
        // BSSID, sequence control. Broadcast frames are not acknowledged and reserve no time.
        let duration = if to.is_some() { self.duration_us } else { 0 };
        out.extend_from_slice(&DATA_FRAME);
        out.extend_from_slice(&duration.to_le_bytes());
        out.extend_from_slice(&to.map_or(BROADCAST, |to| address(Some(to))));
        out.extend_from_slice(&address(Some(from)));
        out.extend_from_slice(&address(None));
        out.extend_from_slice(&sequence_control(frame).to_le_bytes());
        out.extend_from_slice(&LLC_SNAP);
        out.extend_from_slice(&ETHERTYPE);
    }
}

/// Returns the locally administered address of a node, or with `None` the BSSID of the mesh.
pub(super) fn address(node: Option<NodeId>) -> [u8; 6] {
    let [high, low] = node.map_or(0, |node| node.0).to_be_bytes();
    [0x02, b'n', b'c', b'm', high, low]
}

/// Returns the sequence control field: the fragment number 0 and the sequence number, which is the
/// counter of the ncmesh frame modulo 2^12.
fn sequence_control(frame: &[u8]) -> u16 {
    frame::parse(frame, Versions::OWN).map_or(0, |unsealed| (unsealed.header.counter as u16) << 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_medium::{Conflict, LossMatrix, SlotOrder};

    #[test]
    fn only_where_acknowledgments_take_time_do_unicast_frames_reserve_it() {
        let mut medium = MediumConfig::dot11b(LossMatrix::new(2), 11_000_000);
        assert_eq!(Dot11::new(&medium).duration_us, 10 + 248);
        medium.mac = MacConfig::Slotted {
            slot_ns: 1_000_000,
            conflict: Conflict::Audible,
            order: SlotOrder::Random,
        };
        assert_eq!(Dot11::new(&medium).duration_us, 0);
    }

    #[test]
    fn rates_that_radiotap_cannot_say_are_left_out() {
        assert_eq!(rate(5_500_000), Some(11));
        assert_eq!(rate(54_000_000), Some(108));
        for bps in [1_000, 750_000, 128_000_000] {
            assert_eq!(rate(bps), None);
        }
        let radiotap = Radiotap::new(&MediumConfig::dot11b(LossMatrix::new(2), 750_000));
        let mut out = Vec::new();
        radiotap.write(&mut out, None);
        assert_eq!(out, [0, 0, 14, 0, 0b00_1010, 0, 0, 0, 0, 0, 0x6C, 0x09, 0xA0, 0x00]);
        out.clear();
        radiotap.write(&mut out, Some(Power::from_dbm(-71.4)));
        assert_eq!(out[2..5], [15, 0, 0b10_1010]);
        assert_eq!(out[14..], [185]);
    }
}
