//! Ports as this node tells them, so that paths go by airtime.
//!
//! A node with several ports tells them. One with a single port does so only once it knows of such
//! a node: in a mesh where each node has one radio all links count alike, and there is nothing to
//! tell.

use crate::links::Links as PortLinks;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{Pace, ToldPort, ToldPorts};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a pace that are told. One step is within what measurements vary by.
const STEPS: u8 = 2;
/// Time for which another pace must last. Repetitions make single frames take longer.
const LASTING: Duration = Duration::from_secs(10);
/// Part of the room of a state that the names of neighbours may take.
const NAMED_PART: usize = 4;
/// Most neighbours that the ports name together.
const MAX_REACHED: usize = u8::MAX as usize;

/// Looks at the ports of this node.
#[derive(Debug, Default)]
pub(super) struct PortsWatch {
    /// Since when frames on a port take longer, or less long, than was told.
    other_pace_since: Option<Instant>,
}

impl PortsWatch {
    /// Returns the ports if they are to be told again, because the paths of others may depend on
    /// what has changed since they were `told`. A state has room for `room` bytes.
    pub(super) fn look(
        &mut self,
        told: &ToldPorts,
        link: &PortLinks,
        room: usize,
        now: Instant,
    ) -> Option<ToldPorts> {
        let heard = link.heard();
        let named = room / NAMED_PART / size_of::<NodeId>();
        let ports = ports_now(link, &heard, named.min(MAX_REACHED));
        let channel = |ports: &ToldPorts, node| ports.to(node).map(|port| port.channel);
        let pace = |ports: &ToldPorts, node| ports.to(node).map_or(Pace::UNKNOWN, |port| port.pace);

        // Another way matters at once, as does the first measurement of a pace.
        let is_moved = heard.iter().any(|node| channel(told, *node) != channel(&ports, *node));
        let mut measured = heard.iter().filter(|node| pace(&ports, **node) != Pace::UNKNOWN);
        let is_first = measured.clone().any(|node| pace(told, *node) == Pace::UNKNOWN);

        // Another pace matters if it lasts.
        let steps = |node: NodeId| pace(told, node).0.abs_diff(pace(&ports, node).0);
        let is_other = measured.any(|node| steps(*node) >= STEPS);
        let since = self.other_pace_since.filter(|_| is_other).or(is_other.then_some(now));
        let has_lasted = since.is_some_and(|since| now.since(since) >= LASTING);
        self.other_pace_since = since;

        let is_news = is_moved || is_first || has_lasted;
        if is_news {
            self.other_pace_since = None;
        }
        is_news.then_some(ports)
    }
}

/// Returns the ports that lead to neighbours. The one that leads to most comes first: it need not
/// name them. The others name `room` neighbours at most.
fn ports_now(link: &PortLinks, heard: &BTreeSet<NodeId>, room: usize) -> ToldPorts {
    let mut reached: BTreeMap<_, Vec<NodeId>> = BTreeMap::new();
    for node in heard {
        reached.entry(link.way_to(*node)).or_default().push(*node);
    }

    let first = reached.iter().max_by_key(|(_, nodes)| nodes.len()).map(|(port, _)| *port);
    let mut left = room;
    let mut ports = Vec::new();
    for (port, mut reaches) in reached {
        let is_first = Some(port) == first;
        reaches.truncate(if is_first { 0 } else { left });
        left -= reaches.len();
        let pace = link.on(port).long_airtime().map_or(Pace::UNKNOWN, Pace::of);
        let told = ToldPort { channel: link.channel_of(port), pace, reaches };
        if is_first {
            ports.insert(0, told);
        } else {
            ports.push(told);
        }
    }

    ToldPorts { ports }
}
