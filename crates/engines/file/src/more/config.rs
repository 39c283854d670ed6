//! Settings of MORE.

use ncmesh_engine::settings::{Kind, Mismatch, Range, Toml, Value, choice};
use ncmesh_engine::topology::Metric;

/// Rule by which nodes of a belt are pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Prune {
    /// Prunes nodes that make less than 0.1 of its transmissions, or less than the largest share
    /// below that which cuts no receiver off (MORE_new; Pacifier, IV-B.1).
    #[default]
    Connected,
    /// Prunes nodes that make less than this share (MORE_orig: 0.1). A receiver that this cuts off
    /// never gets the file, and holds up the others.
    Below(f64),
}

ncmesh_engine::settings! {
    /// `[more]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MoreConfig {
        /// Share of a belt's transmissions below which a node is pruned. `"connected"` (MORE_new of
        /// the Pacifier paper, IV-B.1) is 0.1, or the largest lower share that disconnects no
        /// receiver. A number is used as it is; MORE_orig is 0.1. **A receiver that it disconnects
        /// never gets the file and delays the others.**
        pub prune: Prune = Prune::Connected, within 0..=1, allowed "0 to 1, or \"connected\"";
        /// Packets of a generation (k).
        pub generation: u8 = 32, within 1..=255, unit "packets";
        /// Payload of a packet.
        pub symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
            unit "bytes";
        /// ETX that orders the nodes: 1/d_f, or 1/(d_f d_r).
        pub metric: Metric = Metric::Broadcast;
    }
}

impl Value for Prune {
    const KINDS: &'static [Kind] = &[Kind::Text, Kind::Number];

    fn range() -> Option<Range> {
        f64::range()
    }

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        if value.is_str() {
            return choice(&value, &["connected"]).map(|_| Self::Connected);
        }
        f64::from_toml(value).map(Self::Below)
    }

    fn to_toml(&self) -> Option<Toml> {
        match self {
            Self::Connected => Some("connected".into()),
            Self::Below(share) => share.to_toml(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Connected => None,
            Self::Below(share) => Some(*share),
        }
    }
}
