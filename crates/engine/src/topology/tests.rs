//! Shortest paths, what they are when the mesh changes, and links that are not used.

use super::*;
use proptest::prelude::*;

fn state(seq: u32, hears: &[(u16, f64)]) -> LinkState {
    LinkState {
        version: (1, seq),
        name: format!("s{seq}"),
        hears: hears.iter().map(|(node, d)| (NodeId(*node), *d)).collect(),
        ..LinkState::default()
    }
}

/// 1 -> 2 -> 3 at 0.8 each way, and a direct 1 -> 3 of 0.3.
fn triangle() -> Topology {
    let mut t = Topology::new(0.05);
    t.learn(NodeId(1), state(1, &[(2, 0.8), (3, 0.5)]));
    t.learn(NodeId(2), state(1, &[(1, 0.8), (3, 0.8)]));
    t.learn(NodeId(3), state(1, &[(1, 0.3), (2, 0.8)]));
    t
}

#[test]
fn paths_take_the_fewest_expected_transmissions() {
    let paths = triangle().paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(2), NodeId(3)]);
    assert_eq!(paths.first_hop(NodeId(3)), Some(NodeId(2)));
    assert!((paths.etx(NodeId(3)).unwrap() - 2.5).abs() < 1e-6);
    assert_eq!(paths.etx(NodeId(9)), None);
    assert_eq!((paths.first_hop(NodeId(9)), paths.first_hop(NodeId(1))), (None, None));
    let back = triangle().paths_from(NodeId(3), Metric::Unicast);
    assert!((back.etx(NodeId(1)).unwrap() - 3.125).abs() < 1e-6);
}

/// 1 -> 2 brings nothing back, but 2 -> 3 -> 1 does.
#[test]
fn a_link_of_one_direction_is_the_last_resort_where_answers_can_take_another_way() {
    let mut t = Topology::new(0.05);
    t.learn(NodeId(1), state(1, &[(3, 0.5)]));
    t.learn(NodeId(2), state(1, &[(1, 0.8), (3, 0.5)]));
    t.learn(NodeId(3), state(1, &[(2, 0.8)]));
    let etx = |t: &Topology, metric| t.paths_from(NodeId(1), metric).etx(NodeId(2));
    assert_eq!(etx(&t, Metric::Unicast), None);
    assert!((etx(&t, Metric::Answered).unwrap() - 25.0).abs() < 1e-6);
    // A way of both directions is taken whatever it loses, if it is shorter.
    t.learn(NodeId(3), state(2, &[(1, 0.5), (2, 0.2)]));
    let paths = t.paths_from(NodeId(1), Metric::Answered);
    assert_eq!(paths.path_to(NodeId(2)), [NodeId(3), NodeId(2)]);
    assert_eq!(etx(&t, Metric::Unicast), etx(&t, Metric::Answered));
}

#[test]
fn in_a_mesh_known_from_elsewhere_every_link_counts() {
    let hears = [vec![], vec![(1, 1e-15)], vec![(1, 1e-16), (2, 1.0)], vec![(3, 0.0)]];
    let hears = hears.map(|links| links.iter().map(|(n, d)| (NodeId(*n), *d)).collect());
    let t = Topology::known(hears.into());
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(2), NodeId(3)]);
    assert!((paths.etx(NodeId(3)).unwrap() / (1e15 + 1.0) - 1.0).abs() < 1e-15);
    assert!(!paths.reaches(NodeId(4)));
    assert_eq!(t.len(), 4);
}

#[test]
fn a_node_nobody_hears_is_not_a_hop() {
    let mut t = triangle();
    t.learn(NodeId(1), state(2, &[(3, 0.5)]));
    t.learn(NodeId(3), state(2, &[(1, 0.3)]));
    assert_eq!(t.delivery(NodeId(1), NodeId(2)), 0.0);
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(3)]);
    assert!(!paths.reaches(NodeId(2)));
}

#[test]
fn older_states_do_not_replace_newer_and_a_forgotten_node_has_no_links_to_it() {
    let mut t = triangle();
    assert!(!t.learn(NodeId(1), state(1, &[])));
    assert!(t.learn(NodeId(1), state(5, &[(2, 0.8)])));
    let version = t.version();
    t.forget(NodeId(2));
    assert_eq!(t.nodes().collect::<Vec<_>>(), [NodeId(1), NodeId(3)]);
    assert_eq!(t.delivery(NodeId(1), NodeId(2)), 0.0);
    assert_ne!(t.version(), version);
}

#[test]
fn a_link_that_was_removed_counts_again_when_it_is_put_back_or_its_receiver_tells_it_anew() {
    let mut t = triangle();
    assert_eq!(t.set_link(NodeId(1), NodeId(2), None), Some(0.8));
    assert_eq!((t.delivery(NodeId(1), NodeId(2)), t.delivery(NodeId(2), NodeId(1))), (0.0, 0.8));
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(3)]);
    let version = t.version();
    assert_eq!(t.set_link(NodeId(1), NodeId(2), None), None);
    assert_eq!(t.set_link(NodeId(1), NodeId(9), None), None);
    assert_eq!(t.version(), version);
    assert_eq!(t.set_link(NodeId(1), NodeId(2), Some(0.8)), None);
    assert_eq!(t.delivery(NodeId(1), NodeId(2)), 0.8);
    t.set_link(NodeId(1), NodeId(2), None);
    assert!(t.learn(NodeId(2), state(2, &[(1, 0.7), (3, 0.8)])));
    assert_eq!(t.delivery(NodeId(1), NodeId(2)), 0.7);
}

#[test]
fn a_change_that_moves_no_path_keeps_the_paths() {
    let mut t = triangle();
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    t.learn(NodeId(3), state(2, &[(1, 0.35), (2, 0.8)]));
    assert!(Arc::ptr_eq(&paths, &t.paths_from(NodeId(1), Metric::Broadcast)));
    // A change of what nobody uses is no new version.
    let version = t.version();
    t.learn(NodeId(3), state(3, &[(1, 0.35), (2, 0.8), (9, 0.01)]));
    assert_eq!(t.version(), version);
    t.learn(NodeId(3), state(4, &[(1, 0.6), (2, 0.8)]));
    assert_eq!(t.next_hop(NodeId(1), NodeId(3), Metric::Broadcast), Some(NodeId(3)));
}

#[test]
fn around_a_node_is_what_it_hears_over_others() {
    let mut t = triangle();
    t.learn(NodeId(7), state(1, &[(8, 1.0)]));
    t.learn(NodeId(3), state(2, &[(4, 0.2)]));
    assert_eq!(t.around(NodeId(1)), [1, 2, 3, 4].map(NodeId).into());
    assert_eq!(t.around(NodeId(7)), [7, 8].map(NodeId).into());
}

/// A node, and its links in a state that is learned; none if its state is forgotten.
type Step = (u16, Option<Vec<(u16, f64)>>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let links = prop::collection::vec((0u16..8, 0.0..1.0f64), 0..6);
    prop::collection::vec((0u16..8, prop::option::weighted(0.9, links)), 1..40)
}

proptest! {
    /// Whatever happens, paths that were kept are as long as paths computed anew.
    #[test]
    fn kept_paths_are_as_short_as_new_ones(steps in steps()) {
        let mut t = Topology::new(0.05);
        for (seq, (node, links)) in (1u32..).zip(steps) {
            match links {
                Some(links) => drop(t.learn(NodeId(node), state(seq, &links))),
                None => t.forget(NodeId(node)),
            }
            let anew = t.clone();
            for metric in [Metric::Broadcast, Metric::Unicast, Metric::Answered] {
                for root in (0..8).map(NodeId) {
                    let ends = (0..8).map(NodeId);
                    let from = t.paths_from(root, metric);
                    let to = t.paths_to(root, metric);
                    let fresh = (anew.paths_from(root, metric), anew.paths_to(root, metric));
                    for end in ends {
                        prop_assert_eq!(from.distance(end), fresh.0.distance(end));
                        prop_assert_eq!(to.distance(end), fresh.1.distance(end));
                    }
                    let kept = t.links_from(root);
                    let fresh = anew.links_from(root);
                    prop_assert_eq!(kept.collect::<Vec<_>>(), fresh.collect::<Vec<_>>());
                }
            }
        }
    }
}

/// Ports of a node: the channel and the airtime of each, us, and the neighbours that it reaches.
fn ports(told: &[(u8, u64, &[u16])]) -> ToldPorts {
    let port = |(channel, us, reaches): &(u8, u64, &[u16])| ToldPort {
        channel: *channel,
        pace: Pace::of(crate::time::Duration::from_micros(*us)),
        reaches: reaches.iter().copied().map(NodeId).collect(),
    };
    ToldPorts { ports: told.iter().map(port).collect() }
}

fn on(ports: ToldPorts, hears: &[(u16, f64)]) -> LinkState {
    LinkState { profile: Profile { ports, ..Profile::default() }, ..state(1, hears) }
}

/// Airtimes of a long frame by radio and by cable, us.
const RADIO: u64 = 8_500;
const CABLE: u64 = 9;

#[test]
fn two_hops_by_cable_are_shorter_than_one_by_radio() {
    let mut t = Topology::new(0.05);
    t.learn(NodeId(1), on(ports(&[(1, RADIO, &[]), (2, CABLE, &[2])]), &[(2, 1.0), (3, 1.0)]));
    t.learn(NodeId(3), on(ports(&[(1, RADIO, &[]), (2, CABLE, &[2])]), &[(1, 1.0), (2, 1.0)]));
    let direct = t.paths_from(NodeId(1), Metric::Unicast).path_to(NodeId(3));
    assert_eq!(direct, [NodeId(3)], "node 2 has told nothing");

    t.learn(NodeId(2), on(ports(&[(1, CABLE, &[])]), &[(1, 1.0), (3, 1.0)]));
    for metric in [Metric::Broadcast, Metric::Unicast] {
        let paths = t.paths_from(NodeId(1), metric);
        assert_eq!(paths.path_to(NodeId(3)), [NodeId(2), NodeId(3)]);
        assert_eq!(t.paths_to(NodeId(1), metric).path_to(NodeId(3)), [NodeId(2), NodeId(3)]);
    }
    assert!(t.airtime(NodeId(1), NodeId(3)) > 500.0 * t.airtime(NodeId(1), NodeId(2)));

    // Equal deliveries count alike again where nobody tells ports.
    for node in [1, 2, 3] {
        t.forget(NodeId(node));
    }
    assert!(!t.tells_ports());
}

#[test]
fn the_node_with_the_shortest_frames_is_known_while_any_tells_its_own() {
    let framed = |longest_frame| {
        let profile = Profile { longest_frame, ..Profile::default() };
        LinkState { profile, ..state(1, &[]) }
    };
    let mut t = Topology::new(0.05);
    t.learn(NodeId(1), framed(None));
    t.learn(NodeId(2), framed(None));
    assert_eq!(t.shortest_frame(), None);

    t.learn(NodeId(3), framed(Some(1392)));
    assert_eq!(t.shortest_frame(), Some((NodeId(3), 1392)));
    t.forget(NodeId(3));
    assert_eq!(t.shortest_frame(), None);

    // Nodes that tell nothing have frames of the usual length.
    t.learn(NodeId(4), framed(Some(2000)));
    assert_eq!(t.shortest_frame(), Some((NodeId(1), USUAL_FRAME)));
    t.learn(NodeId(4), LinkState { version: (9, 9), ..state(1, &[]) });
    assert_eq!(t.shortest_frame(), None);
}

/// Node 1 reaches node 4 over node 2, which has one radio, or over node 3, which has two.
fn relays(second_channel: u8, loss: f64) -> Topology {
    let mut t = Topology::new(0.05);
    let d = 1.0 - loss;
    t.learn(NodeId(1), on(ports(&[(1, RADIO, &[]), (2, RADIO, &[4])]), &[(2, 1.0), (3, d)]));
    t.learn(NodeId(2), on(ports(&[(1, RADIO, &[])]), &[(1, 1.0), (4, 1.0)]));
    let two = ports(&[(1, RADIO, &[]), (second_channel, RADIO, &[4])]);
    t.learn(NodeId(3), on(two, &[(1, d), (4, d)]));
    t.learn(NodeId(4), on(ports(&[(1, RADIO, &[]), (2, RADIO, &[3])]), &[(2, 1.0), (3, d)]));
    t
}

#[test]
fn a_relay_on_two_channels_is_preferred_and_one_with_two_radios_on_one_is_not() {
    let over = |t: &Topology| {
        let there = t.paths_from(NodeId(1), Metric::Broadcast);
        let back = t.paths_to(NodeId(4), Metric::Broadcast);
        assert_eq!(there.distance(NodeId(4)), back.distance(NodeId(1)));
        (there.first_hop(NodeId(4)), back.parent(NodeId(1)), there.etx(NodeId(4)).unwrap())
    };

    // On two channels half of a hop is saved, so that a loss of a fifth is worth it.
    let two = over(&relays(2, 0.2));
    assert_eq!((two.0, two.1), (Some(NodeId(3)), Some(NodeId(3))));
    assert!((two.2 - 1.5 / 0.8).abs() < 1e-6, "{two:?}");
    let one = over(&relays(1, 0.2));
    assert_eq!((one.0, one.1), (Some(NodeId(2)), Some(NodeId(2))));
    assert!((one.2 - 2.0).abs() < 1e-6, "{one:?}");
}

#[test]
fn a_cable_before_a_radio_hides_none_of_the_radio() {
    let mut t = Topology::new(0.05);
    t.learn(NodeId(1), on(ports(&[(1, RADIO, &[]), (2, CABLE, &[2])]), &[(2, 1.0), (3, 1.0)]));
    t.learn(NodeId(2), on(ports(&[(1, RADIO, &[]), (2, CABLE, &[1])]), &[(1, 1.0), (3, 1.0)]));
    t.learn(NodeId(3), on(ports(&[(1, RADIO, &[])]), &[(1, 1.0), (2, 1.0)]));
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(3)]);
}

proptest! {
    /// Each node forwards to the next hop of its own shortest path: every packet arrives.
    #[test]
    fn hops_that_each_node_chooses_lead_to_the_destination(
        links in prop::collection::vec((1u16..=9, 1u16..=9, 0.1f64..1.0), 8..50),
        told in prop::collection::vec((1u8..=3, 1u64..20_000, 1u16..=9), 0..40),
    ) {
        let mut t = Topology::new(0.05);
        for node in 1..=9 {
            let heard = |(a, b, d): &(u16, u16, f64)| match node {
                n if n == *a && n != *b => Some((*b, *d)),
                n if n == *b && n != *a => Some((*a, *d)),
                _ => None,
            };
            let hears: Vec<(u16, f64)> = links.iter().filter_map(heard).collect();
            let own = told.iter().skip(usize::from(node)).step_by(9);
            let own: Vec<(u8, u64, Vec<u16>)> = own.map(|(c, us, n)| (*c, *us, vec![*n])).collect();
            let own = own.iter().map(|(c, us, n)| (*c, *us, &n[..]));
            let own: Vec<(u8, u64, &[u16])> = own.collect();
            t.learn(NodeId(node), on(ports(&own), &hears));
        }
        for metric in [Metric::Broadcast, Metric::Unicast] {
            for to in (1..=9).map(NodeId) {
                let back = t.paths_to(to, metric);
                for from in (1..=9).map(NodeId).filter(|from| *from != to && back.reaches(*from)) {
                    let hops = std::iter::successors(Some(from), |at| t.next_hop(*at, to, metric));
                    prop_assert!(hops.take(9).any(|at| at == to), "{from} {to}");
                    let own = t.paths_from(from, metric);
                    let path = own.path_to(to);
                    prop_assert_eq!(path.last(), Some(&to));
                    let parent = back.parent(from).unwrap();
                    prop_assert!(back.distance(parent) < back.distance(from));
                }
            }
        }
    }
}
