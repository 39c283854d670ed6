//! The medium's settings and what can be wrong with them.

mod channel;
mod error;

pub use channel::{Bursts, ChannelConfig, LinkKind, LinkPower, LinksConfig, RadioConfig, Sense};
pub use error::MediumError;

use crate::{LossMatrix, MAX_FRAME_BYTES, Phy, RadioId};
use std::collections::BTreeMap;

/// The most radios a medium takes.
pub const MAX_RADIOS: usize = 65_536;

/// The bit rates taken, in bit/s. The lowest still lets the longest frame end within 20 s.
const BIT_RATES: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;

/// When a frame can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceptionModel {
    /// While signal over noise and interference is at least this throughout.
    Threshold {
        /// The least ratio, dB.
        sinr_db: f64,
    },
    /// If no bit is wrong, by [`bit_error_probability`](crate::bit_error_probability).
    BitErrors,
}

/// How frames that overlap are received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceptionConfig {
    /// When a frame can be read.
    pub model: ReceptionModel,
    /// The least ratio of signal over noise and interference at which a frame's beginning is recognised, dB.
    pub preamble_sinr_db: f64,
    /// A receiver leaves one frame for a later one that exceeds it, all interference and noise by this, dB;
    /// never if none. Of frames that begin within 4 us of each other the strongest is taken anyway.
    pub capture_db: Option<f64>,
    /// The receivers' noise figure over thermal noise, dB; no noise at all if none.
    pub noise_figure_db: Option<f64>,
}

impl Default for ReceptionConfig {
    fn default() -> Self {
        Self {
            model: ReceptionModel::Threshold { sinr_db: 10.0 },
            preamble_sinr_db: 4.0,
            capture_db: None,
            noise_figure_db: None,
        }
    }
}

/// Who may not send in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Two radios of which either can hear the other.
    Audible,
    /// Those, and two radios that a third can both hear.
    SharedHearer,
}

/// Whom the maximal set of a slot is begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Anybody: the order is drawn anew for each slot.
    Random,
    /// Who has most to gain by sending, as its host weighs it ([`Medium::weigh`](crate::Medium::weigh)); among equals
    /// anybody.
    Weight,
}

/// Who sends when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacConfig {
    /// CSMA/CA (IEEE 802.11).
    Dcf {
        /// Unicast frames of at least this many bytes, MAC overhead included, are announced by RTS and CTS;
        /// none are if absent.
        rts_threshold_bytes: Option<usize>,
    },
    /// Slots in which a maximal set of radios without conflict sends.
    Slotted {
        /// The length of a slot, ns. A longer frame takes the next one or more too.
        slot_ns: u64,
        /// Who may not send together.
        conflict: Conflict,
        /// Who is asked first.
        order: Order,
    },
}

/// Everything a medium needs to know. Validated by [`Medium::new`](crate::Medium::new).
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// How frames travel, among how many radios: 1 to [`MAX_RADIOS`].
    pub channel: ChannelConfig,
    /// How they are received.
    pub reception: ReceptionConfig,
    /// Who sends when.
    pub mac: MacConfig,
    /// Bit rate of all data frames, bit/s.
    pub bit_rate_bps: u64,
    /// Links, (from, to), that are not as the others. DCF and given losses only.
    pub links: BTreeMap<(RadioId, RadioId), LinkKind>,
    /// Interframe spaces, slots, windows and frame timing.
    pub phy: Phy,
    /// Bytes that the MAC adds to each of our frames: 802.11 header 24, LLC/SNAP 8, FCS 4.
    pub mac_overhead_bytes: usize,
    /// How many times a unicast frame is sent at most, the first time included (dot11ShortRetryLimit).
    pub retry_limit: u32,
    /// Whether unicast frames are delivered to others than their destination too, as a monitor-mode radio
    /// would hear them. Off by default: Linux does not hand them to a station's socket.
    pub overhear_unicast: bool,
    /// Names all random draws.
    pub seed: u64,
}

impl MediumConfig {
    /// 802.11b with long preamble and usual settings, seed 1.
    pub fn dot11b(loss: LossMatrix, bit_rate_bps: u64) -> Self {
        Self::with_links(Phy::DOT11B, loss, bit_rate_bps)
    }

    /// 802.11a (and pure 802.11g) with usual settings, seed 1.
    pub fn dot11a(loss: LossMatrix, bit_rate_bps: u64) -> Self {
        Self::with_links(Phy::DOT11A, loss, bit_rate_bps)
    }

    /// Usual settings over `phy` and given losses, seed 1.
    pub fn with_links(phy: Phy, loss: LossMatrix, bit_rate_bps: u64) -> Self {
        let links =
            LinksConfig { loss, sense: Sense::Audible, bursts: None, power: LinkPower::Equal };
        Self::new(phy, ChannelConfig::Links(links), bit_rate_bps)
    }

    /// Usual settings over `phy` and radios with positions, seed 1.
    pub fn with_radios(phy: Phy, radios: RadioConfig, bit_rate_bps: u64) -> Self {
        let mut config = Self::new(phy, ChannelConfig::Radio(radios), bit_rate_bps);
        config.reception.noise_figure_db = Some(7.0);
        config
    }

    fn new(phy: Phy, channel: ChannelConfig, bit_rate_bps: u64) -> Self {
        Self {
            channel,
            reception: ReceptionConfig::default(),
            mac: MacConfig::Dcf { rts_threshold_bytes: None },
            bit_rate_bps,
            links: BTreeMap::new(),
            phy,
            mac_overhead_bytes: 36,
            retry_limit: 7,
            overhear_unicast: false,
            seed: 1,
        }
    }

    /// The number of radios.
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
        let is_usual = matches!(self.channel, ChannelConfig::Links(_))
            && matches!(self.mac, MacConfig::Dcf { .. });
        if self.links.is_empty() || is_usual {
            return Ok(());
        }
        let fault = "links with a rate of their own, and cables, need DCF and given losses";
        Err(MediumError::BadTiming { fault })
    }

    fn validate_timing(&self) -> Result<(), MediumError> {
        let phy = &self.phy;
        let second = 1_000_000_000;
        let fault = if phy.sifs_ns >= phy.difs_ns {
            "SIFS must be shorter than DIFS"
        } else if phy.slot_ns == 0 || phy.sifs_ns == 0 {
            "slot and SIFS must be longer than 0"
        } else if [phy.difs_ns, phy.slot_ns, phy.preamble_ns].iter().any(|&ns| ns > second) {
            "no slot, space or preamble may last more than 1 s"
        } else if phy.cw_min > phy.cw_max || phy.cw_max > 65_535 {
            "the contention window must satisfy cw_min <= cw_max <= 65535"
        } else if self.retry_limit == 0 || self.retry_limit > 255 {
            "the retry limit must be 1 to 255"
        } else if self.mac_overhead_bytes > MAX_FRAME_BYTES {
            "the MAC overhead must be no more than the longest frame"
        } else if matches!(self.mac, MacConfig::Slotted { slot_ns, .. } if slot_ns == 0 || slot_ns > 100 * second)
        {
            "a slot of slotted access must last more than 0 and at most 100 s"
        } else {
            return Ok(());
        };
        Err(MediumError::BadTiming { fault })
    }
}
