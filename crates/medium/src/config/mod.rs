//! Settings of the medium and their validation.
//!
//! [`MediumConfig`] collects the settings of all parts: [`ChannelConfig`] of propagation,
//! [`ReceptionConfig`] of receivers, [`MacConfig`] of medium access, and [`Phy`] of timing. Once
//! validated, the other modules use them without further checks.

mod channel;
mod mac;
mod reception;

/// Bytes that the MAC adds to each frame by default: 802.11 header 24, LLC/SNAP 8, FCS 4.
pub const MAC_OVERHEAD_BYTES: usize = 36;
/// Most transmissions of a unicast frame by default (dot11ShortRetryLimit).
pub const RETRY_LIMIT: u32 = 7;

pub use channel::{Bursts, ChannelConfig, LinkKind, LinkPower, LinksConfig, RadioConfig, Sense};
pub use mac::{Conflict, MacConfig, SlotOrder};
pub use reception::{ReceptionConfig, ReceptionModel};

use std::collections::BTreeMap;

use crate::error::MediumError;
use crate::loss_matrix::LossMatrix;
use crate::phy::Phy;
use crate::types::{MAX_FRAME_BYTES, MAX_RADIOS, RadioId};

/// Permitted bit rates, bit/s. At the lowest rate the longest frame takes less than 20 s.
pub const BIT_RATES: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;

/// Settings of a medium, validated by [`Medium::new`](crate::Medium::new).
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// Propagation among the radios, of which there are 1 to [`MAX_RADIOS`].
    pub channel: ChannelConfig,
    /// Reception of overlapping frames.
    pub reception: ReceptionConfig,
    /// Medium access.
    pub mac: MacConfig,
    /// Bit rate of all data frames, bit/s.
    pub bit_rate_bps: u64,
    /// Directed links (from, to) with a bit rate of their own, and cables. Only with DCF and given
    /// losses.
    pub links: BTreeMap<(RadioId, RadioId), LinkKind>,
    /// Interframe spaces, slots, contention windows and airtimes.
    pub phy: Phy,
    /// Bytes that the MAC adds to each data frame: 802.11 header 24, LLC/SNAP 8, FCS 4.
    pub mac_overhead_bytes: usize,
    /// Greatest number of transmissions of a unicast frame, the first one included
    /// (dot11ShortRetryLimit).
    pub retry_limit: u32,
    /// Whether radios other than the destination also receive unicast frames, as in monitor mode.
    /// Off by default, because Linux does not deliver such frames to a station's socket.
    pub overhear_unicast: bool,
    /// Seed of all random streams.
    pub seed: u64,
}

impl MediumConfig {
    /// Creates a medium of 802.11b with long preamble and the default settings, seed 1.
    pub fn dot11b(loss: LossMatrix, bit_rate_bps: u64) -> Self {
        Self::with_links(Phy::DOT11B, loss, bit_rate_bps)
    }

    /// Creates a medium with given losses over `phy` and the default settings, seed 1.
    pub fn with_links(phy: Phy, loss: LossMatrix, bit_rate_bps: u64) -> Self {
        let links =
            LinksConfig { loss, sense: Sense::Audible, bursts: None, power: LinkPower::Equal };
        Self::new(phy, ChannelConfig::Links(links), bit_rate_bps)
    }

    /// Creates a medium of radios with positions over `phy` and the default settings, seed 1. The
    /// noise figure is 7 dB.
    pub fn with_radios(phy: Phy, radios: RadioConfig, bit_rate_bps: u64) -> Self {
        let mut config = Self::new(phy, ChannelConfig::Radio(radios), bit_rate_bps);
        config.reception.noise_figure_db = Some(7.0);
        config
    }

    fn new(phy: Phy, channel: ChannelConfig, bit_rate_bps: u64) -> Self {
        Self {
            channel,
            reception: ReceptionConfig::default(),
            mac: MacConfig::Dcf { rts_threshold_bytes: None, long_retry_limit: None },
            bit_rate_bps,
            links: BTreeMap::new(),
            phy,
            mac_overhead_bytes: MAC_OVERHEAD_BYTES,
            retry_limit: RETRY_LIMIT,
            overhear_unicast: false,
            seed: 1,
        }
    }

    /// Returns the number of radios.
    pub fn radios(&self) -> usize {
        match &self.channel {
            ChannelConfig::Links(links) => links.loss.radios(),
            ChannelConfig::Radio(radio) => radio.positions.len(),
        }
    }

    /// Checks all settings, as [`Medium::new`](crate::Medium::new) does.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn validate(&self) -> Result<(), MediumError> {
        let radios = self.radios();
        // Counts and rates first, since the other checks use them.
        if radios == 0 || radios > MAX_RADIOS {
            return Err(MediumError::BadRadioCount { radios });
        }
        if !BIT_RATES.contains(&self.bit_rate_bps) {
            return Err(MediumError::BadBitRate { bit_rate_bps: self.bit_rate_bps });
        }

        self.validate_timing()?;
        self.validate_links()?;
        self.reception.validate()?;

        match &self.channel {
            ChannelConfig::Links(links) => links.validate(),
            ChannelConfig::Radio(radio) => radio.validate(),
        }
    }

    /// Checks the links with settings of their own.
    fn validate_links(&self) -> Result<(), MediumError> {
        let radios = self.radios();
        for ((from, to), kind) in &self.links {
            if let Some(&radio) = [from, to].into_iter().find(|radio| radio.0 >= radios) {
                return Err(MediumError::UnknownRadio { radio, radios });
            }
            if from == to {
                return Err(MediumError::SelfLink { radio: *from });
            }
            if !BIT_RATES.contains(&kind.bit_rate_bps()) {
                return Err(MediumError::BadBitRate { bit_rate_bps: kind.bit_rate_bps() });
            }
        }

        // Slots have one length for all frames, and power and bit errors depend on the one rate of
        // the medium.
        let is_supported = matches!(self.channel, ChannelConfig::Links(_))
            && matches!(self.mac, MacConfig::Dcf { .. });
        if self.links.is_empty() || is_supported {
            return Ok(());
        }

        let fault = "links with a rate of their own, and cables, need DCF and given losses";
        Err(MediumError::BadTiming { fault })
    }

    /// Checks the settings of timing and MAC.
    fn validate_timing(&self) -> Result<(), MediumError> {
        let phy = &self.phy;
        let second = 1_000_000_000;
        let (slot_ns, long_retry_limit) = match self.mac {
            MacConfig::Dcf { long_retry_limit, .. } => (None, long_retry_limit),
            MacConfig::Slotted { slot_ns, .. } => (Some(slot_ns), None),
        };
        let retry_limits = [Some(self.retry_limit), long_retry_limit];

        let fault = if phy.sifs_ns >= phy.difs_ns {
            "SIFS must be shorter than DIFS"
        } else if phy.slot_ns == 0 || phy.sifs_ns == 0 {
            "slot and SIFS must be longer than 0"
        } else if [phy.difs_ns, phy.slot_ns, phy.preamble_ns].iter().any(|&ns| ns > second) {
            "no slot, space or preamble may last more than 1 s"
        } else if phy.cw_min > phy.cw_max || phy.cw_max > 65_535 {
            "the contention window must satisfy cw_min <= cw_max <= 65535"
        } else if retry_limits.into_iter().flatten().any(|limit| limit == 0 || limit > 255) {
            "retry limits must be 1 to 255"
        } else if self.mac_overhead_bytes > MAX_FRAME_BYTES {
            "the MAC overhead must be no more than the longest frame"
        } else if slot_ns.is_some_and(|slot_ns| slot_ns == 0 || slot_ns > 100 * second) {
            "a slot of slotted access must last more than 0 and at most 100 s"
        } else {
            return Ok(());
        };

        Err(MediumError::BadTiming { fault })
    }
}
