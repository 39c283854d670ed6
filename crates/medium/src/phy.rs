//! How long frames last on the air, and the interframe spaces that go with it.

const US: u64 = 1_000;
/// An acknowledgment, and a clear to send.
const ACK_BYTES: usize = 14;
/// A request to send.
pub(crate) const RTS_BYTES: usize = 20;
const NS_PER_S: u128 = 1_000_000_000;

/// How payload bits become airtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// DSSS and HR/DSSS: the payload lasts a whole number of microseconds (the PLCP LENGTH field,
    /// IEEE 802.11-2016, 16.2.3.5).
    Dsss,
    /// OFDM: whole symbols of 4 us, with 16 service and 6 tail bits (IEEE 802.11-2016, 17.3.2 and 17.4.3).
    Ofdm,
}

impl Modulation {
    /// The width of a channel, Hz.
    pub fn bandwidth_hz(self) -> f64 {
        match self {
            Self::Dsss => 22e6,
            Self::Ofdm => 20e6,
        }
    }

    /// The lowest rate, which headers have and EIFS counts with, bit/s.
    pub fn base_rate_bps(self) -> u64 {
        match self {
            Self::Dsss => 1_000_000,
            Self::Ofdm => 6_000_000,
        }
    }
}

/// The timing of one physical layer. All durations in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// How payload bits become airtime.
    pub modulation: Modulation,
    /// Preamble and PHY header, sent before every frame.
    pub preamble_ns: u64,
    /// One backoff slot.
    pub slot_ns: u64,
    /// From a frame's end to its acknowledgment.
    pub sifs_ns: u64,
    /// The idle time before backoff counts. More than SIFS, or acknowledgments would be overrun.
    pub difs_ns: u64,
    /// The first contention window: backoff is drawn from `0..=cw_min` slots.
    pub cw_min: u32,
    /// Where doubling the window ends.
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

    /// 802.11a, and 802.11g where no 802.11b station is near, 6 to 54 Mbit/s (IEEE 802.11-2016, 17.4.4).
    pub const DOT11A: Self = Self {
        modulation: Modulation::Ofdm,
        preamble_ns: 20 * US,
        slot_ns: 9 * US,
        sifs_ns: 16 * US,
        difs_ns: 34 * US,
        cw_min: 15,
        cw_max: 1023,
    };

    /// Airtime in ns of an MPDU of `bytes` (MAC header and FCS included) at `bit_rate_bps`, which is above 0.
    pub fn airtime_ns(&self, bytes: usize, bit_rate_bps: u64) -> u64 {
        let bits = bytes as u128 * 8;
        let rate = u128::from(bit_rate_bps.max(1));
        let payload_ns = match self.modulation {
            Modulation::Dsss => (bits * NS_PER_S).div_ceil(rate * 1_000) * 1_000,
            Modulation::Ofdm => ((bits + 22) * NS_PER_S).div_ceil(rate * 4_000) * 4_000,
        };
        self.preamble_ns + payload_ns as u64
    }

    /// Airtime in ns of a control frame of `bytes` that goes with a frame sent at `bit_rate_bps`: at the
    /// highest rate of the basic set that is not above it (IEEE 802.11-2016, 10.7.6.5.2), the set being 1 and
    /// 2 Mbit/s for 802.11b and 6, 12 and 24 Mbit/s for 802.11a, or at the frame's own rate below all of these.
    pub(crate) fn control_airtime_ns(&self, bytes: usize, bit_rate_bps: u64) -> u64 {
        self.airtime_ns(bytes, self.control_rate_bps(bit_rate_bps))
    }

    /// Airtime in ns of an acknowledgment or CTS that answers a frame sent at `bit_rate_bps`.
    pub fn ack_airtime_ns(&self, bit_rate_bps: u64) -> u64 {
        self.control_airtime_ns(ACK_BYTES, bit_rate_bps)
    }

    pub(crate) fn control_rate_bps(&self, bit_rate_bps: u64) -> u64 {
        let basic: &[u64] = match self.modulation {
            Modulation::Dsss => &[2_000_000, 1_000_000],
            Modulation::Ofdm => &[24_000_000, 12_000_000, 6_000_000],
        };
        let rate = basic.iter().find(|&&rate| rate <= bit_rate_bps);
        rate.copied().unwrap_or(bit_rate_bps)
    }

    /// The idle time before backoff counts after a frame that could not be read: SIFS, an ACK at the lowest
    /// rate, and DIFS (IEEE 802.11-2016, 10.3.2.3.7).
    pub fn eifs_ns(&self) -> u64 {
        let ack_ns = self.airtime_ns(ACK_BYTES, self.modulation.base_rate_bps());
        self.sifs_ns + ack_ns + self.difs_ns
    }

    /// How long after its frame's end a sender waits for an answer to begin: SIFS, a slot and the time to
    /// recognise a preamble (IEEE 802.11-2016, 10.3.2.9).
    pub(crate) fn answer_timeout_ns(&self) -> u64 {
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
