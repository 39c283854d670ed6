//! Braid in whole meshes: what it codes, and that no flow stands still.

use ncmesh_engine::rng::{stream, unit};
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::CodingStatus;
use ncmesh_sim::Simulation;
use ncmesh_sim::scenario::Processing;
use ncmesh_tests::{contents, links, mesh, settled};
use ncmesh_wire::NodeId;

const NAME: &str = "braid";

/// Sends a packet each way of `ways` in each of `rounds` rounds of 4 ms, as far as they are taken.
fn offer(s: &mut Simulation, scheme: &str, ways: &[(usize, usize)], rounds: usize) {
    for _ in 0..rounds {
        for (from, to) in ways {
            let _ = s.send_packet(scheme, *from, *to, &contents(1000));
        }
        s.run_for(Duration::from_millis(4));
    }
}

fn status(s: &Simulation, node: usize) -> CodingStatus {
    let statuses = s.host(node).stack().unwrap().coding();
    statuses.into_iter().find(|(scheme, _)| *scheme == NAME).unwrap().1
}

#[test]
fn a_relay_says_what_it_gains_and_why_it_does_not_code() {
    // The ends sense each other, so that nothing collides.
    let senses = [(0, 1, 0.0), (1, 2, 0.0), (0, 2, 0.95)];
    let mut s = settled(mesh(links(3, &senses), 1));
    assert_eq!((status(&s, 1).gain(), status(&s, 1).why_not.len()), (None, 0));

    // One way over links that lose nothing: as forwarding does.
    offer(&mut s, NAME, &[(0, 2)], 300);
    let relay = status(&s, 1);
    assert!((0.9..1.05).contains(&relay.gain().unwrap()), "{relay:?}");
    let why = ["no combinations: the next hops miss almost nothing", "no pairs: one flow alone"];
    assert!(relay.why_not.iter().zip(why).all(|(a, b)| a.starts_with(b)), "{relay:?}");
    assert_eq!(relay.why_not.len(), 2);

    // Both ways: one frame serves both.
    let mut s = settled(mesh(links(3, &senses), 1));
    offer(&mut s, NAME, &[(0, 2), (2, 0)], 300);
    let relay = status(&s, 1);
    assert!(relay.coded > 100 && (1.4..2.05).contains(&relay.gain().unwrap()), "{relay:?}");
    assert!(relay.why_not.iter().all(|why| !why.starts_with("no pairs")), "{relay:?}");
    s.run_for(Duration::from_secs(6));
    assert!(status(&s, 1).why_not.is_empty());

    // A lossy link: an acknowledgment for each frame costs more than what is sent again.
    let mut s = settled(mesh(links(3, &[(0, 1, 0.4), (1, 2, 0.4)]), 1));
    offer(&mut s, NAME, &[(0, 2)], 600);
    let relay = status(&s, 1);
    assert!((1.2..1.8).contains(&relay.gain().unwrap()), "{relay:?}");
}

/// Ends that do not hear each other send to the relay at the same time. It gives them turns, so
/// that both carry more than forwarding does, which the MAC's acknowledgments hold back.
#[test]
fn ends_that_hide_from_each_other_take_turns() {
    for (seed, loss) in [(1, 0.0), (2, 0.0), (3, 0.2), (4, 0.2)] {
        let arrived = [NAME, "forward"].map(|scheme| {
            let mut s = settled(mesh(links(3, &[(0, 1, loss), (1, 2, loss)]), seed));
            let ways = [(0, 2), (2, 0)];
            offer(&mut s, scheme, &ways, 500);
            s.take_packets();
            offer(&mut s, scheme, &ways, 1500);
            let arrived = s.take_packets();
            [0, 2].map(|to| arrived.iter().filter(|arrival| arrival.to == to).count())
        });
        let [[a, b], [c, d]] = arrived;
        assert!(a + b > (c + d) * 6 / 5, "{arrived:?} with seed {seed}");
        assert!(a.min(b) * 2 > a.max(b), "{arrived:?} with seed {seed}");
    }
}

/// Packets of 1,000 bytes that arrive in six seconds over a line whose nodes hear only the next.
fn carried_by_a_line(scheme: &str, hops: usize, loss: f64, seed: u64) -> usize {
    let chain: Vec<_> = (0..hops).map(|node| (node, node + 1, loss)).collect();
    let mut s = settled(mesh(links(hops + 1, &chain), seed));
    offer(&mut s, scheme, &[(0, hops), (0, hops)], 500);
    s.take_packets();
    offer(&mut s, scheme, &[(0, hops), (0, hops)], 1500);
    s.take_packets().len()
}

/// The first node does not hear the last one, whose reports would meet its packets.
#[test]
fn a_line_whose_ends_hide_carries_more_than_other_schemes_do() {
    for (hops, loss) in [(2, 0.0), (2, 0.2), (3, 0.0), (3, 0.2)] {
        let mean = |scheme| (1..=3).map(|seed| carried_by_a_line(scheme, hops, loss, seed)).sum();
        let [braid, forward, core]: [usize; 3] = [NAME, "forward", "core_nc"].map(mean);
        assert!(braid * 20 > forward * 21, "{braid} and {forward} over {hops} hops, {loss}");
        assert!(braid * 10 > core * 9, "{braid} and {core} over {hops} hops, {loss}");
    }
}

/// Clients of a gateway that do not hear each other.
#[test]
fn hidden_clients_of_a_gateway_share_the_channel() {
    let clients: Vec<_> = (1..6).map(|client| (0, client, 0.05)).collect();
    let up: Vec<_> = (1..6).map(|client| (client, 0)).collect();
    for seed in 1..=3 {
        let arrived = [NAME, "forward"].map(|scheme| {
            let mut s = settled(mesh(links(6, &clients), seed));
            offer(&mut s, scheme, &up, 500);
            s.take_packets();
            offer(&mut s, scheme, &up, 1500);
            let arrived = s.take_packets();
            // Client `n` has the id n + 1.
            let of = |id| arrived.iter().filter(|arrival| arrival.from == NodeId(id)).count();
            (2..7).map(|id| of(id) as f64).collect::<Vec<_>>()
        });
        let [braid, forward] = arrived.each_ref().map(|counts| counts.iter().sum::<f64>());
        assert!(braid > 2.0 * forward, "{arrived:?} with seed {seed}");
        let squares: f64 = arrived[0].iter().map(|count| count * count).sum();
        let jain = braid * braid / (5.0 * squares);
        assert!(jain > 0.95, "{jain} of {arrived:?} with seed {seed}");
    }
}

/// The state in a frame is old where nodes take long for frames that they receive. It is not taken
/// for a sign that the last packets were lost. Answers come too late for the time that is left to
/// them.
#[test]
fn slow_nodes_carry_almost_as_much() {
    let mut carried = [0, 0];
    for seed in 1..=8 {
        for (ms, sum) in [0, 1].into_iter().zip(&mut carried) {
            let chain = [(0, 1, 0.2), (1, 2, 0.2), (2, 3, 0.2)];
            let mut config = mesh(links(4, &chain), seed);
            let most = Duration::from_millis(ms);
            config.processing = Some(Processing { least: Duration::ZERO, most });
            let mut s = settled(config);
            offer(&mut s, NAME, &[(0, 3)], 2000);
            *sum += s.take_packets().len();
        }
    }
    let [quick, slow] = carried;
    assert!(slow * 5 > quick * 4, "{slow} packets, quick nodes {quick}");
}

/// Nodes at one end of a dense mesh, in its middle, and at the other end. Those of one end hear all
/// but those of the other.
const END: usize = 6;
const MIDDLE: usize = 12;
const DENSE: usize = 2 * END + MIDDLE;

fn is_linked(from: usize, to: usize) -> bool {
    let place = |node: usize| usize::from(node >= END) + usize::from(node >= END + MIDDLE);
    from != to && place(from).abs_diff(place(to)) < 2
}

/// Over two hops that lose nothing, with a dozen relays, one is enough, whatever others did before
/// while relays came and went: of the frames that are sent, at most one in seven is in vain.
#[test]
fn one_relay_of_many_carries_a_flow_after_any_history() {
    for seed in 1..=6 {
        let all: Vec<_> = (0..DENSE).flat_map(|a| (0..DENSE).map(move |b| (a, b))).collect();
        let links_of_all: Vec<_> = all
            .iter()
            .filter(|(a, b)| a < b && is_linked(*a, *b))
            .map(|(a, b)| (*a, *b, 0.0))
            .collect();
        let mut s = settled(mesh(links(DENSE, &links_of_all), seed));
        let mut rng = stream(seed, NodeId(0), "braid", "history");
        let way = [(0, DENSE - 1)];
        let count = |s: &Simulation| (0..DENSE).map(|node| status(s, node).sent).sum::<u64>();

        // Relays come and go, so that each takes part at some time.
        for _ in 0..6 {
            let is_away: Vec<bool> = (0..DENSE)
                .map(|node| (END..END + MIDDLE).contains(&node) && unit(&mut rng) < 0.6)
                .collect();
            for (from, to) in all.iter().filter(|(a, b)| is_linked(*a, *b)) {
                let loss = if is_away[*from] || is_away[*to] { 1.0 } else { 0.0 };
                s.set_loss(*from, *to, loss).unwrap();
            }
            offer(&mut s, NAME, &way, 1000);
        }
        for (from, to) in all.iter().filter(|(a, b)| is_linked(*a, *b)) {
            s.set_loss(*from, *to, 0.0).unwrap();
        }
        offer(&mut s, NAME, &way, 2000);

        let before = count(&s);
        s.take_packets();
        offer(&mut s, NAME, &way, 2000);
        let arrived = s.take_packets().len();
        let share = 2.0 * arrived as f64 / (count(&s) - before) as f64;
        assert!(arrived > 1000, "{arrived} with seed {seed}");
        assert!(share > 0.85, "{share:.2} of the frames were innovative with seed {seed}");
    }
}
