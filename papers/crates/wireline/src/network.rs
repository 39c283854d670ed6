//! Description of a network: links, sessions, and changes of capacity.

use crate::arrivals::{Arrivals, Kind};
use crate::error::WirelineError;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine_multirate::Tree;
use serde::Deserialize;
use std::fmt;

/// Largest rate of a link or stream, in packets per slot.
const MOST_RATE: f64 = 1e6;

/// Name of a node. The number 1 and the string "1" name the same node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "Named")]
pub struct Node(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Number(i64),
    Word(String),
}

impl From<Named> for Node {
    fn from(named: Named) -> Self {
        match named {
            Named::Number(number) => Self(number.to_string()),
            Named::Word(word) => Self(word),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A directed link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The sending node.
    pub from: Node,
    /// The receiving node.
    pub to: Node,
    /// Packets per slot, possibly a fraction. A wireless link has this capacity while it is served.
    pub capacity: f64,
    /// Whether the link shares the radio of its node, which serves one link at a time.
    #[serde(default)]
    pub wireless: bool,
}

/// A multicast session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The node that offers the stream.
    pub source: Node,
    /// The nodes that receive it.
    pub receivers: Vec<Node>,
    /// Indices of the links that carry it.
    pub tree: Vec<usize>,
    /// Packets per slot, for a stream without `layers`.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Arrival process at the source.
    #[serde(default)]
    pub arrivals: Kind,
    /// Packets per slot of each layer, base layer first; without it there is one layer.
    #[serde(default)]
    pub layers: Option<Vec<f64>>,
}

/// A change of a link's capacity.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// First slot with the new capacity.
    pub slot: u64,
    /// Index of the link.
    pub link: usize,
    /// Packets per slot; 0 while the link is down.
    pub capacity: f64,
}

/// A network and its sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Links, by index.
    pub links: Vec<Link>,
    /// Sessions, by index.
    pub sessions: Vec<Session>,
    /// Changes of capacity, in any order.
    pub changes: Vec<Change>,
}

impl Network {
    /// Checks the network and returns the trees of all sessions.
    ///
    /// # Errors
    /// The first fault, with the index of the link, session or change.
    pub fn trees(&self) -> Result<Vec<Tree>, WirelineError> {
        self.check_links()?;
        self.check_changes()?;
        if self.sessions.is_empty() {
            return Err(WirelineError::Empty("sessions"));
        }
        let ends: Vec<(&Node, &Node)> = self.links.iter().map(|l| (&l.from, &l.to)).collect();
        let tree = |(session, described): (usize, &Session)| {
            described.layer_rates(session)?;
            let receivers: Vec<&Node> = described.receivers.iter().collect();
            Tree::new(&ends, &described.tree, &described.source, &receivers)
                .map_err(|error| WirelineError::Tree { session, error })
        };
        self.sessions.iter().enumerate().map(tree).collect()
    }

    fn check_links(&self) -> Result<(), WirelineError> {
        if self.links.is_empty() {
            return Err(WirelineError::Empty("links"));
        }
        for (link, Link { from, to, capacity, .. }) in self.links.iter().enumerate() {
            let fault = if from == to {
                format!("leads from {from} to itself")
            } else if !is_rate(*capacity) || *capacity == 0.0 {
                format!("capacity = {capacity}: allowed is above 0, at most {MOST_RATE}")
            } else {
                continue;
            };
            return Err(WirelineError::Link { link, fault });
        }
        Ok(())
    }

    fn check_changes(&self) -> Result<(), WirelineError> {
        for (change, Change { link, capacity, .. }) in self.changes.iter().enumerate() {
            let fault = if *link >= self.links.len() {
                format!("there is no link {link}: allowed is 0 to {}", self.links.len() - 1)
            } else if !is_rate(*capacity) {
                format!("capacity = {capacity}: allowed is 0 to {MOST_RATE}")
            } else {
                continue;
            };
            return Err(WirelineError::Change { change, fault });
        }
        Ok(())
    }

    /// Returns mu_max: the largest capacity of any link at any time, rounded up, because a link
    /// carries its accumulated fraction together with a whole packet.
    pub(crate) fn mu_max(&self) -> u32 {
        let ever = self.links.iter().map(|l| l.capacity);
        let ever = ever.chain(self.changes.iter().map(|c| c.capacity));
        ever.fold(0.0, f64::max).ceil() as u32
    }

    /// Returns the largest burst of any stream, in packets.
    pub(crate) fn burst(&self) -> Result<u32, WirelineError> {
        let mut most = 0;
        for (id, session) in self.sessions.iter().enumerate() {
            let rates = session.layer_rates(id)?;
            most = most.max(session.arrivals.burst(rates.iter().sum(), rates.len()));
        }
        Ok(most)
    }
}

impl Session {
    /// Returns the rate of each layer.
    fn layer_rates(&self, session: usize) -> Result<Vec<f64>, WirelineError> {
        let fault = |fault: String| WirelineError::Session { session, fault };
        let rates = match (&self.rate, &self.layers) {
            (Some(rate), None) => vec![*rate],
            (None, Some(layers)) => layers.clone(),
            (Some(rate), Some(layers)) => {
                let sum: f64 = layers.iter().sum();
                if (sum - rate).abs() > 1e-9 * rate.abs() {
                    return Err(fault(format!("layers make {sum}, rate is {rate}: leave one out")));
                }
                layers.clone()
            }
            (None, None) => return Err(fault("needed is rate, or layers".into())),
        };
        if !(1..=LAYERS).contains(&rates.len()) {
            return Err(WirelineError::Layers { session, layers: rates.len() });
        }
        match rates.iter().find(|rate| !is_rate(**rate)) {
            Some(rate) => Err(fault(format!("rate = {rate}: allowed is 0 to {MOST_RATE}"))),
            None => Ok(rates),
        }
    }

    /// Returns the packets per slot of all layers together.
    ///
    /// # Errors
    /// Invalid rates of the session with index `session`.
    pub(crate) fn total_rate(&self, session: usize) -> Result<f64, WirelineError> {
        Ok(self.layer_rates(session)?.iter().sum())
    }

    /// Returns the arrival process of each layer.
    pub(crate) fn arrivals(&self, session: usize) -> Result<Vec<Arrivals>, WirelineError> {
        let rates = self.layer_rates(session)?;
        Ok(rates.into_iter().map(|rate| Arrivals::new(self.arrivals, rate)).collect())
    }
}

fn is_rate(rate: f64) -> bool {
    (0.0..=MOST_RATE).contains(&rate)
}
