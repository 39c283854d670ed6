//! What there is: links, sessions, and capacities that change.

use super::arrivals::{Arrivals, Kind};
use super::error::WirelineError;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine_multirate::Tree;
use serde::Deserialize;
use std::fmt;

/// The most packets of a link or stream in a slot.
const MOST_RATE: f64 = 1e6;

/// A node's name. 1 and "1" are the same node.
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
    /// Where it begins.
    pub from: Node,
    /// Where it leads.
    pub to: Node,
    /// Packets per slot; need not be whole. Of a wireless link: while the node serves it.
    pub capacity: f64,
    /// Whether it shares its node's radio: the wireless links of a node are served one at a time.
    #[serde(default)]
    pub wireless: bool,
}

/// A multicast session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Where its stream begins.
    pub source: Node,
    /// Who is to get it.
    pub receivers: Vec<Node>,
    /// Indices of the links that carry it.
    pub tree: Vec<usize>,
    /// Packets per slot; with `layers` left out.
    #[serde(default)]
    pub rate: Option<f64>,
    /// How packets arrive at the source.
    #[serde(default)]
    pub arrivals: Kind,
    /// Packets per slot of each layer, the base first; left out, there is one.
    #[serde(default)]
    pub layers: Option<Vec<f64>>,
}

/// A link's capacity from some slot on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From when on.
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
    /// In any order.
    pub changes: Vec<Change>,
}

impl Network {
    /// The trees of all sessions, if all of the network is in order.
    ///
    /// # Errors
    /// What cannot be, and where it stands.
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

    /// The most packets that any link ever carries in a slot (mu_max): capacities rounded up, since what a fraction
    /// leaves over is carried with the next packet.
    pub(super) fn mu_max(&self) -> u32 {
        let ever = self.links.iter().map(|l| l.capacity);
        let ever = ever.chain(self.changes.iter().map(|c| c.capacity));
        ever.fold(0.0, f64::max).ceil() as u32
    }

    /// The most packets of any stream that come at once.
    pub(super) fn burst(&self) -> Result<u32, WirelineError> {
        let mut most = 0;
        for (id, session) in self.sessions.iter().enumerate() {
            let rates = session.layer_rates(id)?;
            most = most.max(session.arrivals.burst(rates.iter().sum(), rates.len()));
        }
        Ok(most)
    }
}

impl Session {
    /// The rate of each layer.
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

    /// Packets per slot of all layers.
    ///
    /// # Errors
    /// Rates that cannot be; `session` is its index.
    pub(super) fn total_rate(&self, session: usize) -> Result<f64, WirelineError> {
        Ok(self.layer_rates(session)?.iter().sum())
    }

    /// How its packets arrive, layer by layer.
    pub(super) fn arrivals(&self, session: usize) -> Result<Vec<Arrivals>, WirelineError> {
        let rates = self.layer_rates(session)?;
        Ok(rates.into_iter().map(|rate| Arrivals::new(self.arrivals, rate)).collect())
    }
}

fn is_rate(rate: f64) -> bool {
    (0.0..=MOST_RATE).contains(&rate)
}
