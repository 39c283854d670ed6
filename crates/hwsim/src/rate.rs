//! Rates of 802.11, from the numbers that the kernel has for them.

use crate::message::Rate;

/// Bits of a rate's flags: it is an MCS of HT; of VHT; its guard intervals are short.
const MCS: u16 = 1 << 3;
const SHORT_GUARD: u16 = 1 << 7;
const VHT: u16 = 1 << 8;
/// Lowest frequency of the 5 GHz band, MHz, which has no rates of 802.11b.
const LOWEST_5_GHZ: u32 = 4_900;
/// Rates of 802.11b and 802.11g in the order of the module's table, bit/s.
const LEGACY: [u64; 12] = [
    1_000_000, 2_000_000, 5_500_000, 11_000_000, 6_000_000, 9_000_000, 12_000_000, 18_000_000,
    24_000_000, 36_000_000, 48_000_000, 54_000_000,
];
/// Number of those that 802.11b has.
const DSSS: usize = 4;
/// Rates of one stream in 20 MHz with long guard intervals (IEEE 802.11-2016, table 19-27), bit/s.
const HT20: [u64; 8] =
    [6_500_000, 13_000_000, 19_500_000, 26_000_000, 39_000_000, 52_000_000, 58_500_000, 65_000_000];

/// Returns a rate, bit/s. `None` if there is none, or it is of a kind that the medium lacks (VHT).
pub fn bits_per_second(rate: Rate, frequency_mhz: Option<u32>) -> Option<u64> {
    let index = usize::try_from(rate.index).ok()?;

    if rate.flags & VHT != 0 {
        return None;
    }

    // Each stream more repeats the eight rates.
    if rate.flags & MCS != 0 {
        let streams = 1 + index as u64 / HT20.len() as u64;
        let long = HT20[index % HT20.len()] * streams;
        // Symbols of 3.6 us in place of 4.
        return Some(if rate.flags & SHORT_GUARD != 0 { long * 10 / 9 } else { long });
    }

    let is_high = frequency_mhz.is_some_and(|mhz| mhz >= LOWEST_5_GHZ);
    LEGACY.get(index + if is_high { DSSS } else { 0 }).copied()
}

/// Returns the number of a rate for a receiver, which knows the table of the band alone.
pub fn number_for_receiver(rate: Rate) -> u32 {
    if rate.flags & (MCS | VHT) != 0 { 0 } else { u32::try_from(rate.index).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_standard() {
        let rate = |index, flags| Rate { index, count: 1, flags };
        let bps = |index, flags, mhz| bits_per_second(rate(index, flags), Some(mhz));
        assert_eq!(bps(1, 0, 2412), Some(2_000_000));
        assert_eq!(bps(11, 0, 2412), Some(54_000_000));
        assert_eq!(bps(0, 0, 5180), Some(6_000_000));
        assert_eq!(bps(12, 0, 2412), None);
        assert_eq!(bps(-1, 0, 2412), None);
        assert_eq!(bps(7, MCS, 2412), Some(65_000_000));
        assert_eq!(bps(15, MCS | SHORT_GUARD, 2412), Some(144_444_444));
        assert_eq!(bps(3, VHT, 5180), None);
    }
}
