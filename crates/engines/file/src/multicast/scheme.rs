//! What tells one file-multicast scheme from another: who forwards, how much, and when the source moves on.

use super::routing::{Forwarding, Routing};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;

/// When the source leaves a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Once every receiver has acknowledged it (MORE; Pacifier's TREE and TREE+RL).
    StopAndWait,
    /// As `StopAndWait`, but a turn is for one receiver: the nearest that lacks the batch.
    OneByOne,
    /// Once its scheduled packets are sent or one receiver acknowledges it (Pacifier, III-C).
    RoundRobin,
}

/// Who forwards a batch to whom, and how much.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The forwarders with their credits; of the kind that [`Scheme::forwarding`] says.
    pub routing: Routing,
    /// Expected transmissions of the source per packet (z_s).
    pub source_transmissions: f64,
    /// Whose forwarding the source waits for when it limits its rate: its children that forward.
    pub children: Vec<NodeId>,
    /// Sum of those children's credits.
    pub children_credit: f64,
}

/// A file-multicast scheme.
pub trait Scheme {
    /// Its name in configuration, commands and results.
    fn name(&self) -> &'static str;

    /// Plans for the `receivers`, all of which `source` reaches.
    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan;

    /// How its packets are forwarded.
    fn forwarding(&self) -> Forwarding;

    /// When the source leaves a batch.
    fn switching(&self) -> Switching;

    /// How long the source waits to overhear a child before it sends on, in packet times for each packet its
    /// children owe (Pacifier, III-B); `None`: not at all.
    fn patience(&self) -> Option<f64>;

    /// Packets of a batch (k).
    fn generation(&self) -> u8;

    /// Payload of a packet, bytes; `None` to fit the radio.
    fn symbol_size(&self) -> Option<u16>;
}
