//! Belts computed by hand, compared with a walk of packets, and what holds for any mesh.

use super::belt::Belt;
use super::*;
use ncmesh_engine::rng::{stream, unit};
use ncmesh_engine::testing::{directed, symmetric};
use ncmesh_engine::topology::Metric;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Directed links: from, to, delivery.
type Links = Vec<(u16, u16, f64)>;

fn ids(nodes: &[u16]) -> Vec<NodeId> {
    nodes.iter().map(|node| NodeId(*node)).collect()
}

fn belts(t: &Topology, receivers: &[u16], prune: f64) -> Belts {
    Belts::new(t, NodeId(1), &ids(receivers), Prune::Below(prune), Metric::Broadcast)
}

fn threshold(t: &Topology, receivers: &[u16]) -> f64 {
    largest_threshold(t, NodeId(1), &ids(receivers), Metric::Broadcast)
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

#[test]
fn on_a_line_a_forwarder_owes_what_was_not_overheard() {
    // Node 1 sends until 3 hears (0.1) or, failing that, 2 (0.9 * 0.8): z_1 = 1 / 0.82. Node 2 owes
    // 0.72 z_1 over a link of 0.5.
    let t = symmetric(&[(1, 2, 0.8), (2, 3, 0.5), (1, 3, 0.1)]);
    let b = belts(&t, &[3], 0.1);
    assert_eq!(b.forwarders, ids(&[2]));
    assert_close(b.z[&NodeId(1)], 1.0 / 0.82);
    assert_close(b.z[&NodeId(2)], 0.72 / 0.82 / 0.5);
    assert_close(b.tx_credit[&NodeId(2)], 1.8);
    assert_close(threshold(&t, &[3]), 1.0);
}

#[test]
fn in_a_diamond_the_nearer_relay_takes_what_both_hear() {
    // Node 3 is at distance 1 / 0.7 from node 4, node 2 at 2.
    let t = symmetric(&[(1, 2, 0.8), (1, 3, 0.6), (2, 4, 0.5), (3, 4, 0.7)]);
    let b = belts(&t, &[4], 0.1);
    assert_eq!(b.forwarders, ids(&[2, 3]));
    let z = 1.0 / (1.0 - 0.2 * 0.4);
    assert_close(b.z[&NodeId(1)], z);
    assert_close(b.z[&NodeId(2)], z * 0.8 * 0.4 / 0.5);
    assert_close(b.z[&NodeId(3)], z * 0.6 / 0.7);
    assert_close(b.tx_credit[&NodeId(2)], 0.8);
    assert_close(b.tx_credit[&NodeId(3)], 1.0 / 0.7);
    // The widest path leads over node 3. A threshold above its share cuts node 4 off.
    let total = z + z * 0.8 * 0.4 / 0.5 + z * 0.6 / 0.7;
    assert_close(threshold(&t, &[4]), z * 0.6 / 0.7 / total);
    assert_eq!(belts(&t, &[4], 0.3).forwarders, ids(&[3]));
    assert_eq!(belts(&t, &[4], 0.4).disconnected, ids(&[4]));
}

/// Node 2 forwards to receivers 3 and 4. Node 4 hears the source and is nearer to 3 than that is.
fn two_receivers() -> Topology {
    symmetric(&[(1, 2, 0.5), (2, 3, 0.5), (2, 4, 0.8), (1, 4, 0.4)])
}

#[test]
fn merged_belts_have_the_largest_z_of_each_node() {
    let b = belts(&two_receivers(), &[3, 4], 0.0);
    assert_eq!(b.forwarders, ids(&[2, 4]));
    assert_close(b.z[&NodeId(1)], 1.0 / 0.7);
    // For receiver 3 every packet passes node 2, over 0.5. For receiver 4 node 2 would send only
    // 0.3 / 0.7, over 0.8.
    assert_close(b.z[&NodeId(2)], 2.0);
    // Packets that 4 hears and 2 does not go from 4 to 2, over 0.8.
    assert_close(b.z[&NodeId(4)], 0.5 * 0.4 / 0.7 / 0.8);
    assert_eq!(b.upstream[&NodeId(2)], ids(&[1, 4]).into_iter().collect());
    assert_eq!(b.upstream[&NodeId(4)], ids(&[1]).into_iter().collect());
    assert_close(b.tx_credit[&NodeId(2)], 2.0 / (0.5 / 0.7 + 0.5 * 0.4 / 0.7));
    assert_close(b.tx_credit[&NodeId(4)], 0.5 / 0.8);
}

#[test]
fn transmissions_are_computed_anew_after_pruning() {
    // In the belt of receiver 3, node 4 makes 0.357 of 3.786 transmissions: less than a tenth.
    let b = belts(&two_receivers(), &[3, 4], 0.1);
    assert_eq!(b.forwarders, ids(&[2]));
    assert_close(b.z[&NodeId(1)], 2.0);
    assert_close(b.z[&NodeId(2)], 2.0);
    assert_close(b.tx_credit[&NodeId(2)], 2.0);
    // Once receiver 3 has the generation, only the belt of 4 counts.
    let b = belts(&two_receivers(), &[4], 0.1);
    assert_close(b.z[&NodeId(1)], 1.0 / 0.7);
    assert_close(b.z[&NodeId(2)], 0.3 / 0.7 / 0.8);
}

#[test]
fn a_node_whose_only_next_hop_is_pruned_is_pruned_too() {
    // The only path of node 3 leads over node 4, which sends too little. Node 3 itself would not.
    let t = symmetric(&[(1, 2, 0.9), (2, 9, 0.2), (1, 3, 0.2), (3, 4, 0.26), (4, 9, 1.0)]);
    let all = belts(&t, &[9], 0.0);
    assert_eq!(all.forwarders, ids(&[2, 3, 4]));
    let total: f64 = all.z.values().sum();
    assert!(all.z[&NodeId(3)] / total > 0.1 && all.z[&NodeId(4)] / total < 0.1);
    let pruned = belts(&t, &[9], 0.1);
    assert_eq!(pruned.forwarders, ids(&[2]));
    assert_close(pruned.z[&NodeId(1)], 1.0 / 0.9);
}

#[test]
fn unreachable_and_disconnected_receivers_are_named() {
    let t = symmetric(&[(1, 2, 0.8), (2, 3, 0.5), (8, 9, 0.8)]);
    let b = belts(&t, &[3, 9], 0.7);
    assert_eq!((b.unreachable, b.disconnected), (ids(&[9]), ids(&[3])));
    assert!(b.forwarders.is_empty() && b.z.is_empty());
    let everything = belts(&t, &[1, 2], 0.1);
    assert_eq!(everything.z, BTreeMap::from([(NodeId(1), 1.25)]));
}

/// A line of seven hops. All but one lose half; the sender of that one makes 1 of 13 transmissions.
fn long_line() -> Topology {
    let loss = |a: u16| if a == 4 { 1.0 } else { 0.5 };
    symmetric(&(1..8).map(|a| (a, a + 1, loss(a))).collect::<Vec<_>>())
}

#[test]
fn the_threshold_is_lowered_as_far_as_needed_and_never_raised() {
    let t = long_line();
    assert_close(threshold(&t, &[8]), 1.0 / 13.0);
    assert_eq!(belts(&t, &[8, 2], 0.1).disconnected, ids(&[8]));
    let scheme = |prune| More::new(MoreConfig { prune, ..Default::default() });
    let listed = |prune, receivers: &[u16]| {
        let routing = scheme(prune).plan(&t, NodeId(1), &ids(receivers)).routing;
        routing.forwarders().iter().map(|node| node.0).collect::<Vec<_>>()
    };
    assert_eq!(listed(Prune::Connected, &[8, 2]), [2, 3, 4, 5, 6, 7]);
    assert_eq!(listed(Prune::Below(0.1), &[8, 3]), [2]);
    let diamond = symmetric(&[(1, 2, 0.8), (1, 3, 0.6), (2, 4, 0.5), (3, 4, 0.7)]);
    let plan = scheme(Prune::Connected).plan(&diamond, NodeId(1), &ids(&[4]));
    assert_eq!(plan.routing.listed(), 2, "0.1 cuts nobody off, so it is not lowered");
}

#[test]
fn a_plan_carries_credits_and_who_is_upstream() {
    let scheme = More::new(MoreConfig { prune: Prune::Below(0.0), ..Default::default() });
    let plan = scheme.plan(&two_receivers(), NodeId(1), &ids(&[3, 4]));
    let credit = |me, sender| plan.routing.credit(NodeId(me), NodeId(sender), NodeId(1));
    assert_eq!(credit(2, 1), Some(2.0));
    assert_eq!(credit(2, 4), Some(2.0));
    assert_eq!(credit(4, 1), Some(0.625));
    assert_eq!(credit(4, 2), None);
    assert_close(plan.source_transmissions, 1.0 / 0.7);
}

#[test]
fn settings_parse_and_those_out_of_range_are_named() {
    let read = |text: &str| {
        let config: Result<MoreConfig, _> = toml::from_str(text);
        config.map(|config| config.prune).map_err(|e| e.message().to_owned())
    };
    assert_eq!(read(""), Ok(Prune::Connected));
    assert_eq!(read("prune = \"connected\""), Ok(Prune::Connected));
    assert_eq!(read("prune = 0.03"), Ok(Prune::Below(0.03)));
    assert_eq!(read("prune = 0"), Ok(Prune::Below(0.0)));
    for bad in ["prune = 1.5", "prune = nan", "prune = \"x\"", "generation = 0", "symbol_size = 9"]
    {
        assert!(read(bad).unwrap_err().contains("allowed is"), "{bad}");
    }
}

/// Simulates what the recursion computes: a node sends until some node nearer to the destination
/// hears, and the nearest of those goes on. Returns the mean transmissions of each node.
fn walk(t: &Topology, to: NodeId, packets: u32, seed: u64) -> BTreeMap<NodeId, f64> {
    let paths = t.paths_to(to, Metric::Broadcast);
    let mut rng = stream(seed, to, "test", "walk");
    let mut sent: BTreeMap<NodeId, f64> = BTreeMap::new();
    for _ in 0..packets {
        let mut at = NodeId(1);
        while at != to {
            *sent.entry(at).or_default() += 1.0 / f64::from(packets);
            let heard: Vec<NodeId> = t
                .links_from(at)
                .filter(|(_, delivery)| unit(&mut rng) < *delivery)
                .map(|(node, _)| node)
                .collect();
            let nearest = heard.into_iter().min_by_key(|node| (paths.distance(*node), *node));
            at = nearest.filter(|n| paths.distance(*n) < paths.distance(at)).unwrap_or(at);
        }
    }
    sent
}

#[test]
fn the_recursion_agrees_with_simulated_packets() {
    let meshes = [
        symmetric(&[(1, 2, 0.8), (2, 3, 0.5), (1, 3, 0.1), (1, 4, 0.4), (4, 3, 0.6), (2, 4, 0.7)]),
        directed(&[
            (1, 2, 0.6),
            (1, 4, 0.5),
            (2, 5, 0.4),
            (4, 5, 0.3),
            (4, 2, 0.5),
            (5, 3, 0.7),
            (2, 3, 0.1),
            (1, 5, 0.2),
            (3, 1, 0.5),
        ]),
    ];
    for (seed, t) in meshes.iter().enumerate() {
        let planned = belts(t, &[3], 0.0).z;
        let walked = walk(t, NodeId(3), 100_000, seed as u64);
        assert_eq!(planned.keys().collect::<Vec<_>>(), walked.keys().collect::<Vec<_>>());
        for (node, z) in planned {
            assert!((z - walked[&node]).abs() < 0.02, "{node}: {z} and {}", walked[&node]);
        }
    }
}

/// A mesh of up to nine nodes, and a permutation of their ids.
fn mesh() -> impl Strategy<Value = (Links, Vec<u16>)> {
    (3u16..10).prop_flat_map(|n| {
        let pairs: Vec<(u16, u16)> = (1..=n).flat_map(|a| (1..=n).map(move |b| (a, b))).collect();
        let links = pairs.into_iter().filter(|(a, b)| a != b);
        let links: Vec<_> = links
            .map(|(a, b)| prop::option::weighted(0.5, 0.02..1.0f64).prop_map(move |d| (a, b, d)))
            .collect();
        let drawn = links.prop_map(|links| {
            links.into_iter().filter_map(|(a, b, d)| Some((a, b, d?))).collect::<Links>()
        });
        (drawn, Just((1..=n).collect::<Vec<u16>>()).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn plans_are_sound_on_any_mesh((links, labels) in mesh(), prune in 0.0..0.5f64) {
        let t = directed(&links);
        let receivers: Vec<u16> = (2..=labels.len() as u16).collect();
        let b = belts(&t, &receivers, prune);
        let served = receivers.len() - b.unreachable.len() - b.disconnected.len();
        prop_assert_eq!(b.z.is_empty(), served == 0);
        if let Some(z) = b.z.get(&NodeId(1)) {
            prop_assert!(*z >= 1.0 - 1e-9, "a packet takes at least one transmission: {}", z);
        }
        prop_assert!(b.z.values().all(|z| z.is_finite() && *z > 0.0));
        for node in &b.forwarders {
            prop_assert!(b.tx_credit[node].is_finite() && b.tx_credit[node] > 0.0);
            prop_assert!(b.upstream[node].contains(&NodeId(1)) && !b.upstream[node].contains(node));
        }
        prop_assert_eq!(b.tx_credit.len(), b.forwarders.len());
    }

    #[test]
    fn each_belt_delivers_one_packet((links, labels) in mesh(), prune in 0.0..0.5f64) {
        let t = directed(&links);
        for receiver in 2..=labels.len() as u16 {
            let whole = Belt::new(&t, NodeId(1), NodeId(receiver), Metric::Broadcast);
            let Some(whole) = whole else { continue };
            prop_assert!((whole.load().delivered - 1.0).abs() < 1e-9);
            let nodes = whole.nodes().to_vec();
            let load = whole.load();
            let total: f64 = load.z.iter().sum();
            let shares = load.z.iter().map(|z| z / total);
            let share: BTreeMap<_, _> = nodes.iter().zip(shares).collect();
            let Some(pruned) = whole.clone().pruned(prune) else { continue };
            prop_assert!((pruned.load().delivered - 1.0).abs() < 1e-9);
            for node in pruned.nodes().iter().filter(|n| n.0 != 1 && n.0 != receiver) {
                prop_assert!(share[node] >= prune);
            }
        }
    }

    #[test]
    fn the_largest_threshold_is_exact((links, labels) in mesh()) {
        let t = directed(&links);
        let receivers: Vec<u16> = (2..=labels.len() as u16).collect();
        let largest = threshold(&t, &receivers);
        prop_assert_eq!(belts(&t, &receivers, largest).disconnected, vec![]);
        if largest < 1.0 {
            prop_assert_ne!(belts(&t, &receivers, largest.next_up()).disconnected, vec![]);
        }
    }

    #[test]
    fn the_ids_of_nodes_do_not_matter((links, labels) in mesh(), prune in 0.0..0.3f64) {
        let new = |node: u16| labels[usize::from(node) - 1];
        let renamed: Links = links.iter().map(|(a, b, d)| (new(*a), new(*b), *d)).collect();
        let receivers: Vec<u16> = (2..=labels.len() as u16).collect();
        let before = belts(&directed(&links), &receivers, prune);
        let renamed_receivers: Vec<NodeId> = receivers.iter().map(|r| NodeId(new(*r))).collect();
        let t = directed(&renamed);
        let source = NodeId(new(1));
        let prune = Prune::Below(prune);
        let after = Belts::new(&t, source, &renamed_receivers, prune, Metric::Broadcast);
        prop_assert_eq!(before.z.len(), after.z.len());
        for (node, z) in &before.z {
            prop_assert!((z - after.z[&NodeId(new(node.0))]).abs() < 1e-9);
        }
        for (node, credit) in &before.tx_credit {
            prop_assert!((credit / after.tx_credit[&NodeId(new(node.0))] - 1.0).abs() < 1e-9);
        }
    }
}
