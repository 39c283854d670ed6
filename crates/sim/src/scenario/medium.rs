//! The tables `[medium]`, `[medium.propagation]` and `[medium.reception]`.
//!
//! The types mirror the keys of the file. [`Medium::config`] turns them into a [`MediumConfig`]:
//! over links of given losses, or over radios at the nodes' positions where `[medium.propagation]`
//! is present. Keys that are absent keep the medium's defaults. Ranges are checked by
//! [`MediumConfig::validate`], so that they exist once.

use ncmesh_medium::{
    Bursts, ChannelConfig, Conflict, Fading, LinkPower, LinksConfig, LossMatrix, MacConfig,
    MediumConfig, PathLoss, Phy, RadioConfig, ReceptionConfig, ReceptionModel, Sense, SlotOrder,
};
use serde::Deserialize;
use toml::Spanned;

use super::quantity::{self, Quantity};
use super::{Node, Position};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Medium {
    phy: PhyName,
    #[serde(deserialize_with = "quantity::bit_rate")]
    bit_rate: Quantity,
    #[serde(default)]
    mac: MacName,
    rts_threshold_bytes: Option<usize>,
    long_retry_limit: Option<u32>,
    #[serde(default)]
    conflict: ConflictName,
    #[serde(default)]
    order: OrderName,
    #[serde(default)]
    sense: SenseName,
    bursts: Option<BurstsTable>,
    #[serde(default)]
    link_power: LinkPowerName,
    retry_limit: Option<u32>,
    mac_overhead_bytes: Option<usize>,
    pub(super) mtu: Option<Spanned<usize>>,
    cw_min: Option<u32>,
    cw_max: Option<u32>,
    #[serde(default)]
    overhear_unicast: bool,
    pub(super) propagation: Option<Spanned<Propagation>>,
    reception: Option<Reception>,
}

#[derive(Clone, Copy, Deserialize)]
enum PhyName {
    #[serde(rename = "802.11b")]
    Dot11b,
    #[serde(rename = "802.11a")]
    Dot11a,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MacName {
    #[default]
    Dcf,
    Slotted,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConflictName {
    #[default]
    Audible,
    SharedHearer,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderName {
    #[default]
    Weight,
    Random,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SenseName {
    #[default]
    Audible,
    Everyone,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LinkPowerName {
    #[default]
    Equal,
    Rayleigh,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BurstsTable {
    mean_s: f64,
    #[serde(default)]
    loss_good: f64,
    #[serde(default = "one")]
    loss_bad: f64,
}

fn one() -> f64 {
    1.0
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModelName {
    FreeSpace,
    TwoRay,
    LogDistance,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FadingName {
    #[default]
    None,
    Rayleigh,
    Glomosim,
    Nakagami,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Propagation {
    model: ModelName,
    range_m: f64,
    sensing_range_m: f64,
    tx_power_dbm: Option<f64>,
    #[serde(default = "default_frequency_hz")]
    frequency_hz: f64,
    #[serde(default = "default_antenna_height_m")]
    antenna_height_m: f64,
    #[serde(default = "default_exponent")]
    exponent: f64,
    #[serde(default)]
    shadowing_db: f64,
    #[serde(default)]
    fading: FadingName,
    #[serde(default = "one")]
    nakagami_m: f64,
    #[serde(default)]
    fading_coherence_us: u64,
    interference_floor_dbm: Option<f64>,
}

/// The 2.4 GHz band.
fn default_frequency_hz() -> f64 {
    2.4e9
}

/// The height at which a person carries a device.
fn default_antenna_height_m() -> f64 {
    1.5
}

/// Path loss exponent of a suburb.
fn default_exponent() -> f64 {
    3.0
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceptionName {
    Threshold,
    BitErrors,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reception {
    model: ReceptionName,
    sinr_db: Option<f64>,
    preamble_sinr_db: Option<f64>,
    capture_db: Option<f64>,
    noise_figure_db: Option<f64>,
}

impl Medium {
    /// Returns the medium's settings: over links with the losses `loss`, or over radios at the
    /// positions of `nodes` where `[medium.propagation]` is present.
    ///
    /// # Errors
    /// A message of one line.
    pub(super) fn config(
        &self,
        loss: LossMatrix,
        nodes: &[Node],
        mtu: usize,
        seed: u64,
    ) -> Result<MediumConfig, String> {
        // The constructors fill in the defaults of the medium.
        let phy = self.phy();
        let rate_bps = self.bit_rate.0;
        let mut config = match &self.propagation {
            None => MediumConfig::with_links(phy, loss, rate_bps),
            Some(propagation) => {
                MediumConfig::with_radios(phy, propagation.as_ref().radios(nodes)?, rate_bps)
            }
        };

        // Keys of the file replace them where present.
        if let ChannelConfig::Links(links) = &mut config.channel {
            self.adjust(links);
        }
        if let Some(reception) = &self.reception {
            reception.adjust(&mut config.reception)?;
        }
        config.retry_limit = self.retry_limit.unwrap_or(config.retry_limit);
        config.mac_overhead_bytes = self.mac_overhead_bytes.unwrap_or(config.mac_overhead_bytes);
        config.overhear_unicast = self.overhear_unicast;
        config.seed = seed;

        // A slot lasts as long as the longest frame, so that one frame fits any slot.
        config.mac = match self.mac {
            MacName::Dcf => MacConfig::Dcf {
                rts_threshold_bytes: self.rts_threshold_bytes,
                long_retry_limit: self.long_retry_limit,
            },
            MacName::Slotted => MacConfig::Slotted {
                slot_ns: phy.airtime_ns(mtu.saturating_add(config.mac_overhead_bytes), rate_bps),
                conflict: match self.conflict {
                    ConflictName::Audible => Conflict::Audible,
                    ConflictName::SharedHearer => Conflict::SharedHearer,
                },
                order: match self.order {
                    OrderName::Weight => SlotOrder::Weight,
                    OrderName::Random => SlotOrder::Random,
                },
            },
        };

        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }

    /// Returns the physical layer, with the contention windows of the file.
    fn phy(&self) -> Phy {
        let mut phy = match self.phy {
            PhyName::Dot11b => Phy::DOT11B,
            PhyName::Dot11a => Phy::DOT11A,
        };
        phy.cw_min = self.cw_min.unwrap_or(phy.cw_min);
        phy.cw_max = self.cw_max.unwrap_or(phy.cw_max);
        phy
    }

    /// Applies the keys for links of given losses.
    fn adjust(&self, links: &mut LinksConfig) {
        links.sense = match self.sense {
            SenseName::Audible => Sense::Audible,
            SenseName::Everyone => Sense::Everyone,
        };
        links.bursts = self.bursts.as_ref().map(|bursts| Bursts {
            mean_s: bursts.mean_s,
            loss_good: bursts.loss_good,
            loss_bad: bursts.loss_bad,
        });
        links.power = match self.link_power {
            LinkPowerName::Equal => LinkPower::Equal,
            LinkPowerName::Rayleigh => LinkPower::Rayleigh,
        };
    }
}

impl Propagation {
    /// Returns the settings of radios at the positions of `nodes`.
    fn radios(&self, nodes: &[Node]) -> Result<RadioConfig, String> {
        let position = |node: &Node| match node.position {
            Some(Position { x, y, z }) => Ok([x, y, z]),
            None => Err(format!(
                "`{}` has no position: [medium.propagation] needs one of every node",
                node.name
            )),
        };
        let positions: Result<Vec<_>, _> = nodes.iter().map(position).collect();
        if !(self.range_m > 0.0 && self.sensing_range_m > 0.0) {
            return Err("`range_m` and `sensing_range_m` must be above 0".into());
        }

        // The file gives ranges, and the thresholds of reception follow from them. A transmit power
        // shifts the thresholds too, so the ranges stay.
        let fading = match self.fading {
            FadingName::None => Fading::None,
            FadingName::Rayleigh => Fading::Rayleigh,
            FadingName::Glomosim => Fading::Glomosim,
            FadingName::Nakagami => Fading::Nakagami { m: self.nakagami_m },
        };
        let (path_loss, ranges) = (self.path_loss(), (self.range_m, self.sensing_range_m));
        let mut radios =
            RadioConfig::with_ranges(positions?, path_loss, fading, ranges.0, ranges.1);
        if let Some(dbm) = self.tx_power_dbm {
            radios = radios.at_power(dbm);
        }
        radios.shadowing_db = self.shadowing_db;
        radios.fading_coherence_ns = self.fading_coherence_us.saturating_mul(1_000);
        if let Some(dbm) = self.interference_floor_dbm {
            radios.interference_floor_dbm = dbm;
        }
        Ok(radios)
    }

    /// Returns the model of path loss.
    fn path_loss(&self) -> PathLoss {
        let frequency_hz = self.frequency_hz;
        match self.model {
            ModelName::FreeSpace => PathLoss::FreeSpace { frequency_hz },
            ModelName::TwoRay => {
                PathLoss::TwoRay { frequency_hz, antenna_height_m: self.antenna_height_m }
            }
            ModelName::LogDistance => {
                PathLoss::LogDistance { frequency_hz, exponent: self.exponent }
            }
        }
    }
}

impl Reception {
    /// Applies the keys of `[medium.reception]`.
    fn adjust(&self, config: &mut ReceptionConfig) -> Result<(), String> {
        config.model = match (self.model, self.sinr_db) {
            (ReceptionName::Threshold, sinr_db) => {
                ReceptionModel::Threshold { sinr_db: sinr_db.unwrap_or(10.0) }
            }
            (ReceptionName::BitErrors, None) => ReceptionModel::BitErrors,
            (ReceptionName::BitErrors, Some(_)) => {
                return Err("`sinr_db` belongs to the reception model `threshold`".into());
            }
        };
        config.preamble_sinr_db = self.preamble_sinr_db.unwrap_or(config.preamble_sinr_db);
        config.capture_db = self.capture_db;
        config.noise_figure_db = self.noise_figure_db.or(config.noise_figure_db);
        Ok(())
    }
}
