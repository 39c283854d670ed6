//! Settings of the channel: given losses, or radios with positions.

use crate::error::MediumError;
use crate::loss_matrix::LossMatrix;
use crate::propagation::{Fading, PathLoss};
use crate::types::RadioId;

/// Radios that sense the energy of a sender. They defer to it, and its frames interfere with others
/// there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// Two radios sense each other if there is a link between them in either direction.
    #[default]
    Audible,
    /// Every radio senses every other: one collision domain.
    Everyone,
    /// `lists[sender]` contains the radios that sense the sender. A radio with a link from the
    /// sender senses it in any case.
    Listeners(Vec<Vec<RadioId>>),
}

/// Losses in bursts (Gilbert-Elliott).
///
/// Each link alternates between a good and a bad state of exponentially distributed duration. The
/// share of bad time gives the link the mean loss of the loss matrix. A link whose loss is not
/// between those of the two states has no bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Mean duration of the bad state, s.
    pub mean_s: f64,
    /// Loss in the good state.
    pub loss_good: f64,
    /// Loss in the bad state.
    pub loss_bad: f64,
}

/// Power of frames where only losses are given. It decides which of overlapping frames is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPower {
    /// All frames are equally strong, so overlapping frames are lost.
    #[default]
    Equal,
    /// The power that explains the loss of a link by Rayleigh fading: exponentially distributed
    /// with the mean `needed / -ln(1 - loss)`. A frame with less than `needed` is lost. The power
    /// is at most 40 dB above `needed`.
    Rayleigh,
}

/// Kind of a directed link with settings of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A link over the air with a bit rate of its own for unicast frames. Control frames use the
    /// rate that belongs to the medium's bit rate.
    Air {
        /// Bit rate, bit/s.
        bit_rate_bps: u64,
    },
    /// A cable. It loses no frames, and no other radio hears them. A radio still sends one frame at
    /// a time, over cable or air.
    Wire {
        /// Bit rate, bit/s.
        bit_rate_bps: u64,
    },
}

impl LinkKind {
    /// Returns the bit rate, bit/s.
    pub fn bit_rate_bps(self) -> u64 {
        match self {
            Self::Air { bit_rate_bps } | Self::Wire { bit_rate_bps } => bit_rate_bps,
        }
    }
}

/// A channel where the loss of each link is given.
#[derive(Clone, Debug, PartialEq)]
pub struct LinksConfig {
    /// Loss probability of every directed link.
    pub loss: LossMatrix,
    /// Radios that sense a sender.
    pub sense: Sense,
    /// Bursts of losses. If `None`, losses are independent from frame to frame.
    pub bursts: Option<Bursts>,
    /// Power of frames.
    pub power: LinkPower,
}

impl LinksConfig {
    /// Removes carrier sense by [`Sense::Audible`], for slotted access: a frame then reaches only
    /// radios with a link from the sender. Slots are assigned by links, so two senders of a slot
    /// must not disturb each other for any other reason.
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
    /// Position (x, y, z) of each radio, m.
    pub positions: Vec<[f64; 3]>,
    /// Transmit power of all radios, dBm.
    pub tx_power_dbm: f64,
    /// Path loss over distance.
    pub path_loss: PathLoss,
    /// Standard deviation of log-normal shadowing, dB. It is drawn once for each pair of radios and
    /// is alike in both directions.
    pub shadowing_db: f64,
    /// Fading from frame to frame.
    pub fading: Fading,
    /// A frame that begins less than this after the end of a frame of its destination, with no
    /// other frame in between, meets the fading of that frame again: CTS, ACK, and the data frame
    /// after a CTS. Up to 1 s, ns. With 0 every frame has a fading of its own.
    pub fading_coherence_ns: u64,
    /// The least power of a frame that is received, dBm.
    pub rx_threshold_dbm: f64,
    /// The least sum of power that makes the channel busy, dBm.
    pub cs_threshold_dbm: f64,
    /// Weaker signals are ignored: they are neither sensed nor interference, dBm. It must not
    /// exceed either threshold. A pair of radios whose signals exceed it in less than one frame of
    /// a million costs nothing. Negative infinity ignores no signal.
    pub interference_floor_dbm: f64,
}

impl RadioConfig {
    /// Creates radios at `positions` that, without fading, receive frames up to `range_m` and sense
    /// them up to `sensing_range_m`.
    ///
    /// The transmit power is 24.4995 dBm (0.2818 W), as that of the 250 m radio of ns-2. Signals
    /// below the carrier sense threshold are ignored. There is no shadowing.
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
            fading_coherence_ns: 0,
            rx_threshold_dbm: tx_power_dbm - path_loss.db(range_m),
            cs_threshold_dbm,
            interference_floor_dbm: cs_threshold_dbm,
        }
    }

    /// Changes the transmit power and shifts all thresholds by the same amount. The ranges stay the
    /// same; the margin over noise changes.
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

/// Model of propagation.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelConfig {
    /// The loss of each link is given.
    Links(LinksConfig),
    /// Radios have positions, and losses follow from received power.
    Radio(RadioConfig),
}

impl LinksConfig {
    /// Checks the settings.
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

    /// Checks the lists of [`Sense::Listeners`].
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
    /// Checks the settings.
    pub(crate) fn validate(&self) -> Result<(), MediumError> {
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
        } else if self.fading_coherence_ns > 1_000_000_000 {
            "the coherence time of fading must be at most 1 s"
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
