//! The rate that a flow's paths can carry at best, from the link state (MC2, eq. 1).
//!
//! Node i sends in a share of the slots and brings x_ij of flow to its next hops j such that for
//! every set J of them the sum of x_ij is at most that share times the probability that any of J
//! receives (Lun et al., *On coding for reliable communication over packet networks*, 2008). Nodes
//! that conflict do not send in one slot: those of which one hears the other, and those that a
//! third hears. `ncmesh_papers.mc2.optimum` solves the same program for several flows.

use crate::hops::HopSet;
use crate::paths::PathSet;
use crate::simplex::Program;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// Returns the most packets per slot that coding carries over `paths`, or a rate of at least
/// `enough` that it carries. Returns `None` if that takes too long to find out.
pub(crate) fn rate(paths: &PathSet, topology: &Topology, enough: f64) -> Option<f64> {
    let nodes = paths.nodes();
    let senders: Vec<NodeId> =
        nodes.iter().copied().filter(|node| *node != paths.destination()).collect();
    let links: Vec<(NodeId, NodeId)> = senders
        .iter()
        .flat_map(|from| paths.next_hops(*from).into_iter().map(|to| (*from, to)))
        .collect();
    let sets = independent_sets(&conflicts(&senders, topology));

    // Variables are the flow over each link, then the share of the slots of each set of senders.
    // The flow that leaves the source is the rate.
    let mut leaves: Vec<f64> =
        links.iter().map(|(from, _)| f64::from(u8::from(*from == paths.source()))).collect();
    leaves.resize(links.len() + sets.len(), 0.0);
    let mut program = Program::new(leaves);
    program.limit((0..sets.len()).map(|set| (links.len() + set, 1.0)), 1.0);

    for (number, sender) in senders.iter().enumerate() {
        // A relay sends on what it receives.
        if *sender != paths.source() {
            let flows = links.iter().enumerate().filter_map(|(at, (from, to))| match sender {
                _ if to == sender => Some((at, 1.0)),
                _ if from == sender => Some((at, -1.0)),
                _ => None,
            });

            program.limit(flows, 0.0);
        }

        // No set of next hops receives more than it hears in the slots of the sender.
        let own: Vec<usize> = (0..links.len()).filter(|at| links[*at].0 == *sender).collect();
        for hops in HopSet::nonempty(own.len()) {
            let missed: f64 = hops
                .iter()
                .map(|hop| 1.0 - topology.delivery(*sender, links[own[hop]].1))
                .product();
            let received = hops.iter().map(|hop| (own[hop], 1.0));
            let sending = sets.iter().enumerate().filter(|(_, set)| *set >> number & 1 == 1);
            let heard = sending.map(|(set, _)| (links.len() + set, missed - 1.0));
            program.limit(received.chain(heard), 0.0);
        }
    }

    program.maximum(enough)
}

/// Returns for each sender those that may not send in the same slot, as bits.
fn conflicts(senders: &[NodeId], topology: &Topology) -> Vec<u16> {
    let reach: Vec<BTreeSet<NodeId>> = senders
        .iter()
        .map(|sender| {
            let heard = topology.links_from(*sender).map(|(to, _)| to);
            heard.chain([*sender]).collect()
        })
        .collect();
    let apart = |one: usize, other: usize| one != other && !reach[one].is_disjoint(&reach[other]);
    let bits =
        |one| (0..senders.len()).filter(|other| apart(one, *other)).fold(0, |b, o| b | 1 << o);
    (0..senders.len()).map(bits).collect()
}

/// Lists the largest sets of senders that do not conflict, as bits (Bron and Kerbosch, 1973).
fn independent_sets(conflicts: &[u16]) -> Vec<u16> {
    let mut found = Vec::new();
    let all = u16::MAX >> (u16::BITS as usize - conflicts.len());
    extend(0, all, 0, conflicts, &mut found);
    found
}

/// Adds the largest sets that contain `chosen`, others of `candidates`, and none of `excluded`.
fn extend(
    chosen: u16,
    mut candidates: u16,
    mut excluded: u16,
    conflicts: &[u16],
    found: &mut Vec<u16>,
) {
    if candidates | excluded == 0 {
        found.push(chosen);
    }
    while candidates != 0 {
        let node = candidates.trailing_zeros();
        let bit = 1 << node;
        let free = !conflicts[node as usize] & !(1 << node);
        extend(chosen | bit, candidates & free, excluded & free, conflicts, found);
        candidates &= !bit;
        excluded |= bit;
    }
}
