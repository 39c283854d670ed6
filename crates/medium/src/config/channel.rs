//! Settings of the channel: given losses, or radios with positions.

use super::MediumError;
use crate::channel::{Fading, PathLoss};
use crate::{LossMatrix, RadioId};

/// Who senses a sender's energy, and so defers to it and loses overlapping frames to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// Two radios sense each other if frames can pass between them in either direction.
    #[default]
    Audible,
    /// Every radio senses every other: one collision domain.
    Everyone,
    /// `lists[sender]` names who senses that sender. Who can hear a sender senses it too, listed or not.
    Listeners(Vec<Vec<RadioId>>),
}

/// Losses that come in bursts (Gilbert-Elliott): each link is good or bad for exponentially distributed times,
/// bad for the share of time that makes its mean loss what the matrix says. A link whose loss is not between
/// the two has no bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Mean duration of a bad time, s.
    pub mean_s: f64,
    /// Loss in good times.
    pub loss_good: f64,
    /// Loss in bad times.
    pub loss_bad: f64,
}

/// How strong frames are where only losses are known: what decides which of overlapping ones can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPower {
    /// All alike: overlapping frames are lost.
    #[default]
    Equal,
    /// What makes the loss of a link under Rayleigh fading: power is exponentially distributed about a mean of
    /// `needed / -ln(1 - loss)`, and a frame is lost when it has less than needed. At most 40 dB above what is needed.
    Rayleigh,
}

/// What is particular about a directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Over the air, unicast frames at a bit rate of their own; what answers them goes at the medium's.
    Air {
        /// Bit/s.
        bit_rate_bps: u64,
    },
    /// A cable: nothing is lost, nobody else hears it. A radio still sends one frame at a time, over cable or air.
    Wire {
        /// Bit/s.
        bit_rate_bps: u64,
    },
}

impl LinkKind {
    /// Bit/s.
    pub fn bit_rate_bps(self) -> u64 {
        match self {
            Self::Air { bit_rate_bps } | Self::Wire { bit_rate_bps } => bit_rate_bps,
        }
    }
}

/// A channel of which the loss of each link is known.
#[derive(Clone, Debug, PartialEq)]
pub struct LinksConfig {
    /// Loss probability of every directed link.
    pub loss: LossMatrix,
    /// Who senses whom.
    pub sense: Sense,
    /// Whether losses come in bursts; independent from frame to frame if not.
    pub bursts: Option<Bursts>,
    /// What overlapping frames do to each other.
    pub power: LinkPower,
}

impl LinksConfig {
    /// The same where nobody senses carriers: a frame is nothing to those who cannot read it, though it would read theirs. By
    /// that rule slots are given out, and who sends at once may not spoil each other's frames for another reason.
    pub(crate) fn without_sensing(mut self) -> Self {
        if self.sense == Sense::Audible {
            self.sense = Sense::Listeners(vec![Vec::new(); self.loss.radios()]);
        }
        self
    }
}

/// Radios with positions.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Of each radio x, y, z, m.
    pub positions: Vec<[f64; 3]>,
    /// Transmit power of all, dBm.
    pub tx_power_dbm: f64,
    /// How power falls with distance.
    pub path_loss: PathLoss,
    /// Standard deviation of a link's log-normal shadowing, dB; drawn once, alike in both directions.
    pub shadowing_db: f64,
    /// How power varies from frame to frame.
    pub fading: Fading,
    /// The least power of a frame that is received, dBm.
    pub rx_threshold_dbm: f64,
    /// The channel is busy where the sum of all power is this or more, dBm.
    pub cs_threshold_dbm: f64,
    /// Signals weaker than this are left out altogether, dBm: neither sensed nor interference. No more than
    /// either threshold. A radio whose power exceeds it in less than one frame of a million ([`LEFT_OUT`](crate::LEFT_OUT))
    /// is not even looked at. Negative infinity leaves nothing out.
    pub interference_floor_dbm: f64,
}

impl RadioConfig {
    /// Radios at `positions` with thresholds such that, without fading, frames are received up to `range_m`
    /// and sensed up to `sensing_range_m`. Power is 24.4995 dBm (0.2818 W, what ns-2's 250 m radio has);
    /// signals below the sensing threshold are left out; no shadowing.
    pub fn with_ranges(
        positions: Vec<[f64; 3]>,
        path_loss: PathLoss,
        fading: Fading,
        range_m: f64,
        sensing_range_m: f64,
    ) -> Self {
        let tx_power_dbm = 24.4995;
        let cs_threshold_dbm = tx_power_dbm - path_loss.db(sensing_range_m);
        Self {
            positions,
            tx_power_dbm,
            path_loss,
            shadowing_db: 0.0,
            fading,
            rx_threshold_dbm: tx_power_dbm - path_loss.db(range_m),
            cs_threshold_dbm,
            interference_floor_dbm: cs_threshold_dbm,
        }
    }

    /// The same radios at another transmit power, their thresholds shifted along: the ranges stay, the margin
    /// over noise changes.
    #[must_use]
    pub fn at_power(mut self, tx_power_dbm: f64) -> Self {
        let shift_db = tx_power_dbm - self.tx_power_dbm;
        self.tx_power_dbm = tx_power_dbm;
        self.rx_threshold_dbm += shift_db;
        self.cs_threshold_dbm += shift_db;
        self.interference_floor_dbm += shift_db;
        self
    }
}

/// How frames travel.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelConfig {
    /// By given loss probabilities.
    Links(LinksConfig),
    /// By power over distance.
    Radio(RadioConfig),
}

impl LinksConfig {
    pub(super) fn validate(&self) -> Result<(), MediumError> {
        if let Sense::Listeners(lists) = &self.sense {
            self.validate_listeners(lists)?;
        }
        let Some(Bursts { mean_s, loss_good, loss_bad }) = self.bursts else { return Ok(()) };
        let fault = if !(1e-6..=1e6).contains(&mean_s) {
            "a burst must last 1e-6 to 1e6 s on average"
        } else if !(0.0 <= loss_good && loss_good < loss_bad && loss_bad <= 1.0) {
            "losses of bursts must satisfy 0 <= good < bad <= 1"
        } else {
            return Ok(());
        };
        Err(MediumError::BadPropagation { fault })
    }

    fn validate_listeners(&self, lists: &[Vec<RadioId>]) -> Result<(), MediumError> {
        let radios = self.loss.radios();
        if lists.len() != radios {
            return Err(MediumError::BadListeners { radios, lists: lists.len() });
        }
        for (sender, list) in lists.iter().enumerate() {
            if let Some(&radio) = list.iter().find(|radio| radio.0 >= radios) {
                return Err(MediumError::UnknownRadio { radio, radios });
            }
            if list.contains(&RadioId(sender)) {
                return Err(MediumError::SelfLink { radio: RadioId(sender) });
            }
        }
        Ok(())
    }
}

impl RadioConfig {
    pub(super) fn validate(&self) -> Result<(), MediumError> {
        self.path_loss.validate()?;
        self.fading.validate()?;
        let dbm = |dbm: f64| (-120.0..=40.0).contains(&dbm);
        let floor = self.interference_floor_dbm;
        let fault = if self.positions.iter().flatten().any(|x| !x.is_finite() || x.abs() > 1e7) {
            "positions must be within 10^7 m of the origin"
        } else if ![self.tx_power_dbm, self.rx_threshold_dbm, self.cs_threshold_dbm]
            .into_iter()
            .all(dbm)
        {
            "transmit power and thresholds must be -120 to 40 dBm"
        } else if !(0.0..=30.0).contains(&self.shadowing_db) {
            "shadowing must be 0 to 30 dB"
        } else if !(floor == f64::NEG_INFINITY || dbm(floor)) {
            "the interference floor must be -120 to 40 dBm, or minus infinity"
        } else if floor > self.rx_threshold_dbm.min(self.cs_threshold_dbm) {
            "the interference floor must not exceed the thresholds of reception and carrier sense"
        } else {
            return Ok(());
        };
        Err(MediumError::BadPropagation { fault })
    }
}
