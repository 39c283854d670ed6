//! The interface of a file-multicast scheme: who forwards, how much, and when the source moves on
//! to another generation.

use super::routing::{Forwarding, Routing};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;

/// Rule by which the source leaves a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Leaves it once every receiver has acknowledged it (MORE; Pacifier's TREE and TREE+RL).
    StopAndWait,
    /// As `StopAndWait`, but each turn is for one receiver: the nearest that lacks the generation.
    OneByOne,
    /// Leaves it once the scheduled packets are sent or one receiver has acknowledged it (Pacifier,
    /// III-C). A poor receiver then does not hold up the others.
    RoundRobin,
}

/// Plan for one generation: who forwards it to whom, and how much everyone sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The forwarders with their credits; of the form that [`Scheme::forwarding`] needs.
    pub routing: Routing,
    /// Expected transmissions of the source per packet (z_s).
    pub source_transmissions: f64,
    /// The source's children that forward. A source that limits its rate waits to overhear one.
    pub children: Vec<NodeId>,
    /// Sum of those children's credits.
    pub children_credit: f64,
}

/// Longest wait of a source for the transmission of a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildWait {
    /// Packet times for each transmission that the packet sent last triggers at the children
    /// (Pacifier, III-B).
    pub factor: f64,
    /// Whether the source learns how long children take, and waits no longer than that.
    pub is_learned: bool,
}

/// A file-multicast scheme.
pub trait Scheme {
    /// Returns its name in configuration, commands and results.
    fn name(&self) -> &'static str;

    /// Plans for the `receivers`, all of which `source` reaches.
    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan;

    /// Returns how its packets are forwarded.
    fn forwarding(&self) -> Forwarding;

    /// Returns when the source leaves a generation.
    fn switching(&self) -> Switching;

    /// Returns how long the source waits to overhear a child before it sends the next packet.
    /// `None` if it does not limit its rate.
    fn child_wait(&self) -> Option<ChildWait>;

    /// Returns the packets of a full generation (k).
    fn generation(&self) -> u8;

    /// Returns the payload of a packet, bytes; `None` to fit the radio.
    fn symbol_size(&self) -> Option<u16>;
}
