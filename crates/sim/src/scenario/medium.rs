//! The tables `[medium]`, `[medium.propagation]` and `[medium.reception]`.
//!
//! The types mirror the keys of the file. [`Medium::config`] turns them into a [`MediumConfig`]:
//! over links of given losses, or over radios at the nodes' positions where `[medium.propagation]`
//! is present. Keys that are absent keep the medium's defaults. [`MediumConfig::validate`] checks
//! what depends on several of them.

use ncmesh_engine::settings::{Declared, Section};
use ncmesh_medium::{
    BIT_RATES, Bursts, ChannelConfig, Conflict, Fading, LinkPower, LinksConfig, LossMatrix,
    MAC_OVERHEAD_BYTES, MAX_FRAME_BYTES, MacConfig, MediumConfig, PathLoss, Phy, RETRY_LIMIT,
    RadioConfig, ReceptionConfig, ReceptionModel, Sense, SlotOrder,
};
use ncmesh_stack::MTUS;

use super::quantity::{ALLOWED_BIT_RATES, BitRate};
use super::value::Nested;
use super::{Node, Position};
use toml::Spanned;

ncmesh_engine::settings! {
    /// `[medium]`.
    pub(super) struct Medium {
        /// Physical layer: timing, see below. `"802.11a"` is also pure 802.11g.
        phy: PhyName;
        /// Bit rate of all data frames.
        bit_rate: BitRate, within BIT_RATES, allowed ALLOWED_BIT_RATES;
        /// Access to the channel, see above.
        mac: MacName = MacName::Dcf;
        /// Slotted: two nodes do not send together if either hears the other; or also if a third
        /// node hears both. With the first, two relays that do not hear each other still collide at
        /// a common receiver: in `diamond` they hardly ever reach the destination.
        conflict: ConflictName = ConflictName::Audible;
        /// Slotted: the order in which nodes join the set of a slot. By weight: the node with the
        /// largest MC2 weight W(n) first; nodes of other engines weigh the same. Ties, and
        /// `"random"`, are random.
        order: OrderName = OrderName::Weight;
        /// DCF: unicast frames of at least this length, MAC overhead included, use RTS and CTS.
        rts_threshold_bytes: Option<usize> = None, allowed "bytes, 0 or more";
        /// Which radios sense each other: those between which frames can pass in either direction;
        /// or all. Slotted access has no carrier sense: with `"audible"` a frame disturbs only
        /// nodes that can read it.
        sense: SenseName = SenseName::Audible;
        /// Most transmissions of a unicast frame, the first included (dot11ShortRetryLimit).
        retry_limit: u32 = RETRY_LIMIT, within 1..=255;
        /// DCF with RTS: most transmissions of a data frame after its CTS (dot11LongRetryLimit).
        /// `retry_limit` then holds for the RTS alone; without this key it holds for both together.
        long_retry_limit: Option<u32> = None, within 1..=255;
        /// Length that is added to each frame: 802.11 header 24, LLC/SNAP 8, FCS 4.
        mac_overhead_bytes: usize = MAC_OVERHEAD_BYTES, within 0..=MAX_FRAME_BYTES, unit "bytes";
        /// Length of the largest frame that a node hands to its radio: the MTU of Wi-Fi interfaces
        /// under Linux.
        pub(super) mtu: usize = 1500, within *MTUS.start()..=MAX_FRAME_BYTES, unit "bytes";
        /// First contention window: backoff is drawn from 0 to `cw_min`.
        cw_min: Option<u32> = None, absent "of the `phy`", within 0..=65_535, at_most "cw_max",
            unit "slots";
        /// Largest contention window.
        cw_max: Option<u32> = None, absent "of the `phy`", within 0..=65_535, unit "slots";
        /// Whether other nodes also receive unicast frames, as a radio in monitor mode would. Linux
        /// does not deliver them to a station's socket.
        overhear_unicast: bool = false;
        /// Bursty losses (Gilbert-Elliott). A burst lasts `mean_s` on average. Each link is bad for
        /// the share of time that gives its mean loss. A link whose loss is not between
        /// `loss_good` and `loss_bad` has no bursts.
        bursts: Option<Nested<BurstsTable>> = None, allowed "`{ mean_s, loss_good, loss_bad }`";
        /// Power of overlapping frames. Equal: both are lost. Rayleigh: as strong as the link's
        /// loss says under Rayleigh fading (mean power `needed / -ln(1 - loss)`, drawn again for
        /// each frame), so the stronger one may be received, as `[medium.reception]` says.
        link_power: LinkPowerName = LinkPowerName::Equal;
        /// Power over distance instead of losses, see below.
        pub(super) propagation: Option<Nested<Propagation>> = None, allowed "a table";
        /// Which of several overlapping frames is received, see below.
        reception: Option<Nested<Reception>> = None, allowed "a table",
            absent "threshold of 10 dB, no capture";
    }
}

ncmesh_engine::settings! {
    /// A table `[[channel]]`.
    pub(super) struct ChannelTable {
        /// Name of the channel.
        pub(super) name: Spanned<String>, allowed "1 to 63 of letters, digits, `.`, `_`, `-`";
        /// Physical layer.
        phy: Option<PhyName> = None, absent "that of `[medium]`";
        /// Bit rate of all data frames.
        bit_rate: Option<BitRate> = None, absent "that of `[medium]`", within BIT_RATES,
            allowed ALLOWED_BIT_RATES;
    }
}

ncmesh_engine::settings! {
    /// `bursts` of `[medium]`.
    struct BurstsTable {
        /// Mean length of a burst.
        mean_s: f64, above 0, unit "s";
        /// Loss outside bursts.
        loss_good: f64 = 0.0, within 0..=1;
        /// Loss in a burst.
        loss_bad: f64 = 1.0, within 0..=1;
    }
}

ncmesh_engine::settings! {
    /// `[medium.propagation]`.
    pub(super) struct Propagation {
        /// Path loss: Friis; two-ray ground, with free space up to its crossover; free space up to
        /// 1 m, then the power `exponent` of the distance.
        model: ModelName;
        /// Distance up to which frames are received without fading: sets the reception threshold.
        range_m: f64, above 0, unit "m";
        /// Distance of carrier sense: the channel is busy where the sum of all power reaches that
        /// of one frame at this distance.
        sensing_range_m: f64, above 0, unit "m";
        /// Factor of the power, drawn again for each frame and receiver. GloMoSim 2.02's is
        /// `5 log10(-(4 / pi) ln u)` dB for a uniform u: half the swings of Rayleigh fading in dB.
        fading: FadingName = FadingName::None;
        /// Shape of Nakagami fading; 1 is Rayleigh.
        nakagami_m: f64 = 1.0, within 0.5..=100.0;
        /// Time for which fading lasts. A frame that begins less than this after a frame of its
        /// destination ended, with no other frame in between, meets that frame's fading: CTS, ACK,
        /// and the data frame after a CTS. 0: every frame has a fading of its own.
        fading_coherence_us: u64 = 0, within 0..=1_000_000, unit "us";
        /// Standard deviation of a log-normal factor for each pair of nodes, drawn once.
        shadowing_db: f64 = 0.0, within 0..=30, unit "dB";
        /// Frequency of the carrier.
        // The 2.4 GHz band.
        frequency_hz: f64 = 2.4e9, within 1e6..=1e12, unit "Hz";
        /// Two-ray: height of the antennas.
        // The height at which a person carries a device.
        antenna_height_m: f64 = 1.5, within 0.01..=10_000.0, unit "m";
        /// Log-distance: exponent of the path loss.
        // A suburb.
        exponent: f64 = 3.0, within 1..=10;
        /// Transmit power. It matters against noise only; the ranges stay.
        tx_power_dbm: Option<f64> = None, absent "24.4995", within -120..=40, unit "dBm";
        /// Power below which signals are ignored, at most both thresholds.
        interference_floor_dbm: Option<f64> = None, absent "the sensing threshold",
            within f64::NEG_INFINITY..=40.0, allowed "`-inf`, or -120 to 40 dBm";
    }
}

ncmesh_engine::settings! {
    /// `[medium.reception]`.
    struct Reception {
        /// Rule of reception: signal over noise and interference of at least `sinr_db` throughout;
        /// or the bit error probability of the rate's modulation and code.
        model: ReceptionName;
        /// Threshold model: least signal over noise and interference.
        sinr_db: Option<f64> = None, absent "10", within -30..=100, unit "dB";
        /// Least signal over noise and interference by which a frame's preamble is recognised. If
        /// several frames begin within 4 us, the strongest is taken.
        preamble_sinr_db: f64 = ReceptionConfig::default().preamble_sinr_db, within -30..=100,
            unit "dB";
        /// Switch to a later frame that exceeds everything else by this.
        capture_db: Option<f64> = None, within -30..=100, unit "dB";
        /// Noise figure of the receivers, over thermal noise; none is no noise.
        noise_figure_db: Option<f64> = None, absent "7 with propagation, none without",
            within -30..=100, unit "dB";
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum PhyName {
        Dot11b = "802.11b",
        Dot11a = "802.11a",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum MacName {
        Dcf = "dcf",
        Slotted = "slotted",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum ConflictName {
        Audible = "audible",
        SharedHearer = "shared_hearer",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum OrderName {
        Weight = "weight",
        Random = "random",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum SenseName {
        Audible = "audible",
        Everyone = "everyone",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum LinkPowerName {
        Equal = "equal",
        Rayleigh = "rayleigh",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum ModelName {
        FreeSpace = "free_space",
        TwoRay = "two_ray",
        LogDistance = "log_distance",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum FadingName {
        None = "none",
        Rayleigh = "rayleigh",
        Nakagami = "nakagami",
        Glomosim = "glomosim",
    }
}

ncmesh_engine::choices! {
    #[derive(Clone, Copy)]
    enum ReceptionName {
        Threshold = "threshold",
        BitErrors = "bit_errors",
    }
}

/// Returns what is declared of `[medium]` and of the tables in it.
pub(super) fn sections() -> [(&'static str, Vec<Declared>); 4] {
    [
        ("medium", Medium::settings()),
        ("medium.bursts", BurstsTable::settings()),
        ("medium.propagation", Propagation::settings()),
        ("medium.reception", Reception::settings()),
    ]
}

impl Medium {
    /// Returns whether access to the channel is slotted.
    pub(super) fn is_slotted(&self) -> bool {
        matches!(self.mac, MacName::Slotted)
    }

    /// Returns the settings of the medium, or of a further channel: over links with the losses
    /// `loss`, or over radios at the positions of `nodes` where `[medium.propagation]` is present.
    ///
    /// # Errors
    /// A message of one line.
    pub(super) fn config(
        &self,
        channel: Option<&ChannelTable>,
        loss: LossMatrix,
        nodes: &[Node],
        mtu: usize,
        seed: u64,
    ) -> Result<MediumConfig, String> {
        // The constructors fill in the defaults of the medium.
        let phy = self.phy(channel.and_then(|channel| channel.phy));
        let own_rate = channel.and_then(|channel| channel.bit_rate.as_ref());
        let rate_bps = own_rate.unwrap_or(&self.bit_rate).0;
        let mut config = match &self.propagation {
            None => MediumConfig::with_links(phy, loss, rate_bps),
            Some(Nested(propagation)) => {
                MediumConfig::with_radios(phy, propagation.as_ref().radios(nodes)?, rate_bps)
            }
        };

        // Keys of the file replace them where present.
        if let ChannelConfig::Links(links) = &mut config.channel {
            self.adjust(links);
        }
        if let Some(Nested(reception)) = &self.reception {
            reception.as_ref().adjust(&mut config.reception)?;
        }
        config.retry_limit = self.retry_limit;
        config.mac_overhead_bytes = self.mac_overhead_bytes;
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

    /// Returns the physical layer, which may be a channel's own, with the contention windows of the
    /// file.
    fn phy(&self, own: Option<PhyName>) -> Phy {
        let mut phy = match own.unwrap_or(self.phy) {
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
        links.bursts = self.bursts.as_ref().map(|Nested(bursts)| {
            let BurstsTable { mean_s, loss_good, loss_bad } = *bursts.get_ref();
            Bursts { mean_s, loss_good, loss_bad }
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

        // The file gives ranges, and the thresholds of reception follow from them. A transmit power
        // shifts the thresholds too, so the ranges stay.
        let fading = match self.fading {
            FadingName::None => Fading::None,
            FadingName::Rayleigh => Fading::Rayleigh,
            FadingName::Glomosim => Fading::Glomosim,
            FadingName::Nakagami => Fading::Nakagami { m: self.nakagami_m },
        };

        let path_loss = self.path_loss();
        let ranges = (self.range_m, self.sensing_range_m);
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

        config.preamble_sinr_db = self.preamble_sinr_db;
        config.capture_db = self.capture_db;
        config.noise_figure_db = self.noise_figure_db.or(config.noise_figure_db);
        Ok(())
    }
}
