//! Links of a node with several ports: a table for each port, and all of them as one.
//!
//! A node that is heard on several ports is one neighbour: it is gone once it is gone on all of
//! them, and link state tells the best of what its ports deliver. The *way* to it is the port on
//! which a frame takes the least airtime: the airtime of a long frame over what arrives there and
//! what comes back. A way on which the neighbour keeps silent counts for nothing, so frames move to
//! another within a hello. A better way must be clearly better for some time.

use crate::link::{HeardBack, Link, MAX_HEARD_BACK, OnPort};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::hop::{Choice, ChoicePolicy, Ways as Lengths};
use ncmesh_engine::{PerPort, Port, Ways};
use ncmesh_wire::{NodeId, RadioAddress, StartId, Versions};
use std::collections::{BTreeMap, BTreeSet};

/// When another way to a neighbour takes the place of the present one. What is on its way by the
/// old one may arrive after what goes by the new one.
const CHOICE: ChoicePolicy = ChoicePolicy { better: 1.3, lasting: Duration::from_secs(2) };

/// Neighbours on a port that unicast serves much faster than broadcasts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unicast {
    /// None, as far as is known.
    #[default]
    Nobody,
    /// All, for a trial.
    Everyone,
    /// All with these addresses.
    These(BTreeSet<RadioAddress>),
}

/// Link measurement on all ports.
#[derive(Debug)]
pub(crate) struct Links {
    ports: Vec<Link>,
    /// Neighbours lost with a port that went down, for the next review.
    lost: Vec<NodeId>,
    chosen: BTreeMap<NodeId, Chosen>,
    /// Number of each port's channel, from 1. Ports that share a channel have the same.
    channels: Vec<u8>,
    unicast: PerPort<Unicast>,
}

/// A port on which a neighbour is heard.
#[derive(Clone, Copy, Debug)]
struct Way {
    port: Port,
    /// Airtime of a long frame and its answer, s.
    airtime: f64,
}

/// The way to a neighbour.
#[derive(Debug)]
struct Chosen {
    port: Port,
    choice: Choice,
}

/// Changes of the neighbours since the last look.
#[derive(Debug, Default)]
pub(crate) struct Review {
    /// Neighbours that are on no port any more.
    pub gone: Vec<NodeId>,
    /// Whether the delivery of another is to be told again.
    pub is_news: bool,
}

impl Links {
    /// Returns the links of a node with one port.
    pub(crate) fn new(first: Link) -> Self {
        Self {
            ports: vec![first],
            lost: Vec::new(),
            chosen: BTreeMap::new(),
            channels: vec![1],
            unicast: PerPort::default(),
        }
    }

    /// Adds a port, on a channel of its own.
    pub(crate) fn add(&mut self, link: Link) {
        self.ports.push(link);
        self.channels.push(self.ports.len() as u8);
    }

    /// Notes which ports share a channel: those with the same number here.
    pub(crate) fn set_channels<T: PartialEq>(&mut self, channels: &[Option<T>]) {
        for (place, channel) in self.channels.iter_mut().enumerate() {
            let same = |other: &Option<T>| other.is_some() && Some(other) == channels.get(place);
            let first = channels.iter().position(same).unwrap_or(place);
            *channel = first as u8 + 1;
        }
    }

    /// Returns the number of a port's channel.
    pub(crate) fn channel_of(&self, port: Port) -> u8 {
        self.channels[port.index()]
    }

    /// Returns the port by which frames go to a neighbour.
    pub(crate) fn way_to(&self, node: NodeId) -> Port {
        self.chosen.get(&node).map_or(Port::FIRST, |chosen| chosen.port)
    }

    /// Returns whether there are several ports.
    pub(crate) fn are_several(&self) -> bool {
        self.ports.len() > 1
    }

    /// Returns the links of a port.
    pub(crate) fn on(&self, port: Port) -> &Link {
        &self.ports[port.index()]
    }

    /// Returns the links of a port, to change them.
    pub(crate) fn on_mut(&mut self, port: Port) -> &mut Link {
        &mut self.ports[port.index()]
    }

    /// Returns the links of each port.
    pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.ports.iter_mut()
    }

    /// Returns the ports, with their links.
    fn each(&self) -> impl Iterator<Item = (Port, &Link)> {
        let port = |(place, link)| Some((Port::new(place)?, link));
        self.ports.iter().enumerate().filter_map(port)
    }

    // ---- all ports as one

    /// Returns the neighbours heard, with the greatest share of their long frames that arrives here
    /// on a port.
    pub(crate) fn inbound(&self) -> BTreeMap<NodeId, f64> {
        let mut all: BTreeMap<NodeId, f64> = BTreeMap::new();
        for (node, delivery) in self.ports.iter().flat_map(Link::inbound) {
            all.entry(node).and_modify(|best| *best = best.max(delivery)).or_insert(delivery);
        }
        all
    }

    /// Returns the neighbours that were heard lately on any port, measured or not.
    pub(crate) fn heard(&self) -> BTreeSet<NodeId> {
        self.ports.iter().flat_map(Link::heard).collect()
    }

    /// Returns the versions of the wire format that a neighbour understands.
    pub(crate) fn versions_of(&self, node: NodeId) -> Option<Versions> {
        self.ports.iter().find_map(|link| link.versions_of(node))
    }

    /// Returns the newest version that this node and all its neighbours understand.
    pub(crate) fn shared_version(&self) -> u8 {
        let shared = self.ports.iter().map(Link::shared_version);
        shared.min().unwrap_or(Versions::OWN.newest)
    }

    /// Returns whether a node is a neighbour in this start of it.
    pub(crate) fn knows_start(&self, node: NodeId, start: StartId) -> bool {
        self.ports.iter().any(|link| link.knows_start(node, start))
    }

    /// Returns the number of nodes that share the most crowded channel.
    pub(crate) fn crowd(&self) -> usize {
        self.ports.iter().map(Link::crowd).max().unwrap_or(0)
    }

    /// Returns the neighbours that did not send what they promised, on any port.
    pub(crate) fn late(&self, now: Instant) -> impl Iterator<Item = NodeId> + '_ {
        let late: BTreeSet<NodeId> = self.ports.iter().flat_map(|link| link.late(now)).collect();
        late.into_iter().filter(move |node| !self.is_punctual(*node, now))
    }

    /// Returns whether a neighbour sends what it promises on some port.
    fn is_punctual(&self, node: NodeId, now: Instant) -> bool {
        self.ports.iter().any(|link| link.is_punctual(node, now))
    }

    /// Returns whether a neighbour is probably gone, on all ports where it is known.
    pub(crate) fn is_doubtful(&self, node: NodeId) -> bool {
        let mut known = self.ports.iter().filter(|link| link.knows(node)).peekable();
        known.peek().is_some() && known.all(|link| link.is_doubtful(node))
    }

    /// Returns whether the answer of a silent neighbour is overdue.
    pub(crate) fn is_answer_due(&self, now: Instant) -> bool {
        self.ports.iter().any(|link| link.is_answer_due(now))
    }

    /// Returns when, later than `after`, a hello or the answer of a silent neighbour is due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.ports.iter().filter_map(|link| link.poll_timeout(after)).min()
    }

    /// Removes a neighbour.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.ports.iter_mut().for_each(|link| link.forget(node));
    }

    /// Removes the neighbours that keep silent on a port, as [`Link::review`] says.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        delivery: impl Fn(NodeId, NodeId) -> f64,
        is_lost_with_others: impl Fn(NodeId, Instant) -> bool,
    ) -> Review {
        let mut review = Review { gone: core::mem::take(&mut self.lost), is_news: false };
        for link in &mut self.ports {
            let (gone, is_news) = link.review(now, &delivery, &is_lost_with_others);
            review.gone.extend(gone);
            review.is_news |= is_news;
        }

        // One that is left on another port is a neighbour that delivers less.
        let lost = review.gone.len();
        let ports = &self.ports;
        review.gone.retain(|node| !ports.iter().any(|link| link.knows(*node)));
        review.is_news |= review.gone.len() < lost;
        if ports.len() > 1 {
            review.gone.sort_unstable();
            review.gone.dedup();
        }
        review
    }

    // ---- ports

    /// Notes that a port is up, or that nothing passes it.
    pub(crate) fn set_up(&mut self, port: Port, is_up: bool, now: Instant) {
        let link = &mut self.ports[port.index()];
        if is_up {
            return link.begin_start(now);
        }
        let lost = link.heard();
        lost.iter().for_each(|node| link.forget(*node));
        self.lost.extend(lost);
    }

    /// Returns what a hello on a port says of that port; nothing if there is no other.
    pub(crate) fn on_port(&self, port: Port) -> Option<OnPort> {
        let link = self.on(port);
        let is_elsewhere = |node: &NodeId| self.ports.iter().filter(|l| l.knows(*node)).count() > 1;
        self.are_several().then(|| {
            let heard = link.inbound().filter(|(node, _)| is_elsewhere(node));
            let heard = heard.map(|(node, delivery)| HeardBack::of(node, delivery));
            OnPort { frames: link.frames_sent(), heard: heard.take(MAX_HEARD_BACK).collect() }
        })
    }

    /// Looks at the ways to the neighbours again. Returns them.
    pub(crate) fn choose_ways(&mut self, now: Instant) -> Ways {
        let mut ways = if self.are_several() { self.choose_ports(now) } else { Ways::default() };
        if self.unicast.values().any(|unicast| *unicast != Unicast::Nobody) {
            let heard = self.heard().into_iter();
            ways.set_by_unicast(heard.filter(|node| self.goes_by_unicast(*node, &ways)).collect());
        }
        ways
    }

    /// Notes which neighbours unicast serves much faster than broadcasts on a port.
    pub(crate) fn set_unicast(&mut self, port: Port, unicast: Unicast) {
        self.unicast[port] = unicast;
    }

    /// Returns whether unicast serves a neighbour much faster on the port that leads there.
    fn goes_by_unicast(&self, node: NodeId, ways: &Ways) -> bool {
        let port = ways.port_to(node);
        let Some(address) = self.on(port).address_of(node) else { return false };
        match &self.unicast[port] {
            Unicast::Nobody => false,
            Unicast::Everyone => true,
            Unicast::These(addresses) => addresses.contains(&address),
        }
    }

    /// Looks at the ports that lead to the neighbours again.
    fn choose_ports(&mut self, now: Instant) -> Ways {
        let neighbours = self.heard();
        self.chosen.retain(|node, _| neighbours.contains(node));
        for node in neighbours {
            let ways = self
                .each()
                .filter_map(|(port, link)| Some(Way { port, airtime: link.cost(node, now)? }));
            let ways: Vec<Way> = ways.collect();
            let best = ways.iter().min_by(|a, b| a.airtime.total_cmp(&b.airtime));
            let Some(best) = best.copied() else { continue };
            let chosen = self.chosen.entry(node);
            let chosen =
                chosen.or_insert_with(|| Chosen { port: best.port, choice: Choice::default() });
            let present = ways.iter().find(|way| way.port == chosen.port);
            let present = present.map_or(f64::INFINITY, |way| way.airtime);
            let lengths = Lengths { present, best: best.airtime };
            if chosen.choice.leaves(lengths, false, &CHOICE, now) {
                chosen.port = best.port;
            }
        }

        self.chosen.iter().map(|(node, chosen)| (*node, chosen.port)).collect()
    }
}
