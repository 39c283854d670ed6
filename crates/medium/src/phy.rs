//! Physical layers: the airtime of frames, interframe spaces, slots and contention windows.
//!
//! From IEEE 802.11-2016, clauses 15 and 16 (DSSS and HR/DSSS) and 17 (OFDM).

const US: u64 = 1_000;
/// Length of an ACK, and of a CTS.
const ACK_BYTES: usize = 14;
/// Length of an RTS.
pub(crate) const RTS_BYTES: usize = 20;
const NS_PER_S: u128 = 1_000_000_000;

/// Family of modulations. It determines how many bits become how much airtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// DSSS and HR/DSSS: the payload takes a whole number of microseconds (the PLCP LENGTH field,
    /// IEEE 802.11-2016, 16.2.3.5).
    Dsss,
    /// OFDM: the payload takes whole symbols of 4 us, with 16 service and 6 tail bits (IEEE
    /// 802.11-2016, 17.3.2 and 17.4.3).
    Ofdm,
}

impl Modulation {
    /// Returns the bandwidth of a channel, Hz.
    pub(crate) fn bandwidth_hz(self) -> f64 {
        match self {
            Self::Dsss => 22e6,
            Self::Ofdm => 20e6,
        }
    }

    /// Returns the lowest rate, which headers use and from which EIFS follows, bit/s.
    pub(crate) fn base_rate_bps(self) -> u64 {
        match self {
            Self::Dsss => 1_000_000,
            Self::Ofdm => 6_000_000,
        }
    }
}

/// Timing of a physical layer. All durations are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// Family of modulations.
    pub modulation: Modulation,
    /// Preamble and PHY header, which precede every frame.
    pub preamble_ns: u64,
    /// One backoff slot.
    pub slot_ns: u64,
    /// Time from the end of a frame to the CTS or ACK that answers it.
    pub sifs_ns: u64,
    /// Idle time before backoff counts. It is longer than SIFS, so that no station transmits before
    /// the ACK.
    pub difs_ns: u64,
    /// First contention window: the backoff is drawn from `0..=cw_min` slots.
    pub cw_min: u32,
    /// Largest contention window. Doubling ends there.
    pub cw_max: u32,
}

impl Phy {
    /// 802.11b with the long preamble, 1 to 11 Mbit/s (IEEE 802.11-2016, 15.3.3 and 16.2.2.2).
    pub const DOT11B: Self = Self {
        modulation: Modulation::Dsss,
        preamble_ns: 192 * US,
        slot_ns: 20 * US,
        sifs_ns: 10 * US,
        difs_ns: 50 * US,
        cw_min: 31,
        cw_max: 1023,
    };

    /// 802.11a, or 802.11g without 802.11b stations, 6 to 54 Mbit/s (IEEE 802.11-2016, 17.4.4).
    pub const DOT11A: Self = Self {
        modulation: Modulation::Ofdm,
        preamble_ns: 20 * US,
        slot_ns: 9 * US,
        sifs_ns: 16 * US,
        difs_ns: 34 * US,
        cw_min: 15,
        cw_max: 1023,
    };

    /// Returns the airtime of an MPDU of `bytes` (MAC header and FCS included) at `bit_rate_bps`,
    /// which is above 0, ns.
    pub fn airtime_ns(&self, bytes: usize, bit_rate_bps: u64) -> u64 {
        let bits = bytes as u128 * 8;
        let rate = u128::from(bit_rate_bps.max(1));
        // DSSS rounds the payload up to whole microseconds, OFDM to symbols of 4 us.
        let payload_ns = match self.modulation {
            Modulation::Dsss => (bits * NS_PER_S).div_ceil(rate * 1_000) * 1_000,
            Modulation::Ofdm => ((bits + 22) * NS_PER_S).div_ceil(rate * 4_000) * 4_000,
        };
        self.preamble_ns + payload_ns as u64
    }

    /// Returns the airtime of a control frame of `bytes` that belongs to a data frame at
    /// `bit_rate_bps`, ns.
    pub(crate) fn control_airtime_ns(&self, bytes: usize, bit_rate_bps: u64) -> u64 {
        self.airtime_ns(bytes, self.control_rate_bps(bit_rate_bps))
    }

    /// Returns the airtime of an ACK or CTS that answers a frame at `bit_rate_bps`, ns.
    pub fn ack_airtime_ns(&self, bit_rate_bps: u64) -> u64 {
        self.control_airtime_ns(ACK_BYTES, bit_rate_bps)
    }

    /// Returns the rate of control frames that belong to a data frame at `bit_rate_bps`, bit/s.
    ///
    /// It is the highest basic rate that is not above the data rate (IEEE 802.11-2016, 10.7.6.5.2).
    /// Basic rates are 1 and 2 Mbit/s for 802.11b, and 6, 12 and 24 Mbit/s for 802.11a. A data rate
    /// below all of them is used itself.
    pub(crate) fn control_rate_bps(&self, bit_rate_bps: u64) -> u64 {
        let basic: &[u64] = match self.modulation {
            Modulation::Dsss => &[2_000_000, 1_000_000],
            Modulation::Ofdm => &[24_000_000, 12_000_000, 6_000_000],
        };
        let rate = basic.iter().find(|&&rate| rate <= bit_rate_bps);
        rate.copied().unwrap_or(bit_rate_bps)
    }

    /// Returns EIFS, the idle time before backoff counts after a frame that was not decoded: SIFS,
    /// an ACK at the lowest rate, and DIFS (IEEE 802.11-2016, 10.3.2.3.7), ns.
    pub(crate) fn eifs_ns(&self) -> u64 {
        let ack_ns = self.airtime_ns(ACK_BYTES, self.modulation.base_rate_bps());
        self.sifs_ns + ack_ns + self.difs_ns
    }

    /// Returns the ACK or CTS timeout, counted from the end of the frame: SIFS, a slot and the time
    /// to detect a preamble (IEEE 802.11-2016, 10.3.2.9), ns.
    pub(crate) fn response_timeout_ns(&self) -> u64 {
        self.sifs_ns + self.slot_ns + self.preamble_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn airtimes_are_those_of_the_standard() {
        assert_eq!(Phy::DOT11B.airtime_ns(1536, 2_000_000), 6_336 * US);
        // 1536 * 8 / 11 = 1117.09 us, rounded up by the LENGTH field.
        assert_eq!(Phy::DOT11B.airtime_ns(1536, 11_000_000), 1_310 * US);
        // 22 + 12288 bits in symbols of 24: 513 symbols.
        assert_eq!(Phy::DOT11A.airtime_ns(1536, 6_000_000), 2_072 * US);
        assert_eq!(Phy::DOT11B.ack_airtime_ns(11_000_000), 248 * US);
        assert_eq!(Phy::DOT11B.ack_airtime_ns(1_000_000), 304 * US);
        assert_eq!(Phy::DOT11A.ack_airtime_ns(6_000_000), 44 * US);
        assert_eq!(Phy::DOT11A.ack_airtime_ns(54_000_000), 28 * US);
        // 20 * 8 / 2 = 80 us; 160 + 22 bits are 8 symbols.
        assert_eq!(Phy::DOT11B.control_airtime_ns(RTS_BYTES, 11_000_000), 272 * US);
        assert_eq!(Phy::DOT11A.control_airtime_ns(RTS_BYTES, 6_000_000), 52 * US);
        assert_eq!(Phy::DOT11B.eifs_ns(), 364 * US);
        assert_eq!(Phy::DOT11A.eifs_ns(), 94 * US);
    }
}
