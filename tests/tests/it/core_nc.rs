//! CORE and its baseline in whole meshes with flows that cross at relays.

use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;
use ncmesh_engine::tunnel::Relaying;
use ncmesh_medium::{ChannelConfig, Sense};
use ncmesh_sim::outcome::{CodingOutcome, FlowOutcome};
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Disturbance, Outcome, Simulation, SimulationConfig, run};
use ncmesh_tests::{contents, links, mesh, settled};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Flows s1 to d1 and s2 to d2 over r. Links of r have the loss `e_x`; d1 overhears s2 and d2
/// overhears s1 with the loss `e_oh`.
fn cross(mac: &str, e_x: f64, e_oh: f64, settings: &str, seconds: u32) -> String {
    format!(
        r#"
        name = "cross"
        seed = 1
        nodes = ["s1", "s2", "r", "d1", "d2"]
        medium = {{ phy = "802.11a", bit_rate = "6M", sense = "everyone", {mac} }}
        link = [
            {{ from = "s1", to = "r", loss = {e_x} }}, {{ from = "s2", to = "r", loss = {e_x} }},
            {{ from = "r", to = "d1", loss = {e_x} }}, {{ from = "r", to = "d2", loss = {e_x} }},
            {{ from = "s1", to = "d2", loss = {e_oh} }},
            {{ from = "s2", to = "d1", loss = {e_oh} }},
        ]
        measure = {{ seconds = 100, bytes = 1100, period_s = 0.1 }}
        protocol = {{ {settings} }}
        flow = [
            {{ from = "s1", to = "d1", packet = 1100, seconds = {seconds} }},
            {{ from = "s2", to = "d2", packet = 1100, seconds = {seconds} }},
        ]
    "#
    )
}

const SLOTTED: &str = r#"mac = "slotted", conflict = "shared_hearer""#;
const DCF: &str = r#"mac = "dcf""#;

fn simulated(text: &str, scheme: &str) -> Outcome {
    let scenario = Scenario::parse(text, "cross.toml", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(1000);
    run(&scenario, config, scheme, limit, vec![], |_| ControlFlow::Continue(())).unwrap()
}

fn flows(outcome: &Outcome) -> &[FlowOutcome] {
    &outcome.flows().unwrap().flows
}

fn coding<'a>(outcome: &'a Outcome, node: &str) -> &'a CodingOutcome {
    &outcome.flows().unwrap().coding[node]
}

/// Returns the data transmissions of all nodes for each delivered packet.
fn cost(outcome: &Outcome) -> f64 {
    let delivered: u64 = flows(outcome).iter().map(|flow| flow.delivered).sum();
    outcome.transmissions as f64 / delivered as f64
}

fn rate(outcome: &Outcome) -> f64 {
    flows(outcome).iter().map(|flow| flow.throughput_bps).sum()
}

/// Compares with `ncmesh_papers.core_nc.simulate("core", e_x, e_oh)` and `efficiency`, mean of 200
/// trials: 1.5, 1.672, 2.157, 3.031, 2.349.
///
/// The models leave out at most 6 %: credits of 1.06, requests, and the generation in flight at the
/// end.
#[test]
fn the_engine_costs_what_its_analysis_says() {
    let all = [(0.0, 0.0), (0.1, 0.1), (0.3, 0.3), (0.5, 0.5), (0.3, 0.5)];
    for (losses, expected) in all.into_iter().zip([1.503, 1.714, 2.237, 3.164, 2.398]) {
        let outcome = simulated(&cross(SLOTTED, losses.0, losses.1, "", 20), "core_nc");
        let cost = cost(&outcome);
        assert!((cost / expected - 1.0).abs() < 0.06, "{losses:?}: {cost} where {expected}");
        for flow in flows(&outcome) {
            assert_eq!((flow.disordered, flow.corrupt), (Some(0), Some(0)));
        }
    }
}

#[test]
fn it_carries_more_than_forwarding_and_than_cope() {
    for (mac, e) in [(SLOTTED, 0.1), (SLOTTED, 0.3), (SLOTTED, 0.5), (DCF, 0.0), (DCF, 0.3)] {
        let of = |scheme, settings: &str| rate(&simulated(&cross(mac, e, e, settings, 8), scheme));
        let core = of("core_nc", "");
        for (scheme, settings) in [
            ("forward", ""),
            ("cope", ""),
            ("cope", "cope.min_decodable = 0.0"),
            ("cope", "cope.coding = false"),
            ("core_nc", "core_nc.coding = false"),
        ] {
            let other = of(scheme, settings);
            assert!(core > 1.05 * other, "{mac} {e}: {core}, {scheme} {settings}: {other}");
        }
    }
}

/// The three relays of section 4: the more a relay does the less is sent. Sources and destinations
/// need not know.
#[test]
fn relays_differ_as_section_4_says() {
    let costs = ["core", "recoding", "non_recoding"].map(|relay| {
        let settings = format!("core_nc.relay = \"{relay}\"");
        let outcome = simulated(&cross(SLOTTED, 0.3, 0.3, &settings, 10), "core_nc");
        for flow in flows(&outcome) {
            assert_eq!((flow.disordered, flow.corrupt), (Some(0), Some(0)));
            assert!(flow.delivered > 500, "{flow:?}");
        }
        assert!(coding(&outcome, "r").values.coded > 100);
        cost(&outcome)
    });
    assert!(costs[0] < costs[1] && costs[1] < costs[2], "{costs:?}");
}

#[test]
fn without_overhearing_nothing_is_combined_and_nothing_is_lost_by_it() {
    let deaf = simulated(&cross(SLOTTED, 0.1, 1.0, "", 8), "core_nc");
    let plain = simulated(&cross(SLOTTED, 0.1, 1.0, "core_nc.coding = false", 8), "core_nc");
    assert_eq!((coding(&deaf, "r").values.coded, coding(&deaf, "r").stopped.len()), (0, 2));
    assert!(coding(&deaf, "r").stopped[0].contains("knows only 0 %"), "{:?}", coding(&deaf, "r"));
    assert!((cost(&deaf) / cost(&plain) - 1.0).abs() < 0.02);
    // COPE's rule forwards where a quarter of the combined packets could not be decoded.
    let rule = simulated(&cross(SLOTTED, 0.0, 0.15, "", 8), "cope");
    assert_eq!(coding(&rule, "r").values.coded, 0);
    let all = simulated(&cross(SLOTTED, 0.0, 0.05, "", 8), "cope");
    assert!(coding(&all, "r").values.coded > 500 && coding(&all, "d1").values.undecodable > 0);
}

// ---- Flows whose packets the test offers itself.

/// Returns a packet of any length that holds its number.
fn packet(flow: (usize, usize), number: usize) -> Vec<u8> {
    let mut packet = contents(8 + (number * 37 + flow.0 * 501) % 1100);
    packet[..2].copy_from_slice(&(number as u16).to_be_bytes());
    packet
}

/// Adds the packets that have arrived to `got`, and checks that each is intact, in order, and new.
fn take(s: &mut Simulation, got: &mut BTreeMap<(usize, usize), Vec<usize>>) {
    for arrival in s.take_packets() {
        let flow = (usize::from(arrival.from.0) - 1, arrival.to);
        let number = usize::from(u16::from_be_bytes([arrival.packet[0], arrival.packet[1]]));
        assert_eq!(arrival.packet, packet(flow, number), "{flow:?}");
        let numbers = got.entry(flow).or_default();
        assert!(numbers.last().is_none_or(|last| *last < number), "{flow:?}: {number} came late");
        numbers.push(number);
    }
}

/// Offers packets of these flows whenever they can send, for a given time.
fn busy(s: &mut Simulation, scheme: &str, sent: &mut BTreeMap<(usize, usize), usize>, ms: u64) {
    for _ in 0..ms / 10 {
        for (flow, number) in sent.iter_mut() {
            while s.can_send(scheme, flow.0, flow.1) {
                if s.send_packet(scheme, flow.0, flow.1, &packet(*flow, *number)).is_err() {
                    break;
                }
                *number += 1;
            }
        }
        s.run_for(Duration::from_millis(10));
    }
}

/// The cross: sources 0 and 1, relay 2, destinations 3 and 4.
fn five(loss: f64, seed: u64) -> SimulationConfig {
    let links =
        [(0, 2, loss), (1, 2, loss), (2, 3, loss), (2, 4, loss), (0, 4, loss), (1, 3, loss)];
    let mut config = mesh(ncmesh_tests::links(5, &links), seed);
    if let ChannelConfig::Links(links) = &mut config.medium.channel {
        links.sense = Sense::Everyone;
    }
    config
}

const ONE: (usize, usize) = (0, 3);
const TWO: (usize, usize) = (1, 4);

#[test]
fn a_destination_vanishes_and_comes_back_and_the_other_flow_goes_on() {
    for scheme in ["core_nc", "cope"] {
        let mut s = settled(five(0.2, 1));
        let mut sent = [(ONE, 0), (TWO, 0)].into();
        let mut got = BTreeMap::new();
        busy(&mut s, scheme, &mut sent, 3000);
        take(&mut s, &mut got);
        let before = got[&ONE].len();
        s.switch_off(4);
        busy(&mut s, scheme, &mut sent, 3000);
        take(&mut s, &mut got);
        let without = got[&ONE].len() - before;
        assert!(without * 10 > before * 8, "{scheme}: {before}, without the other {without}");
        s.switch_on(4).unwrap();
        got.remove(&TWO);
        busy(&mut s, scheme, &mut sent, 12_000);
        // A restarted node may get packets again, but in order.
        take(&mut s, &mut got);
        assert!(got[&TWO].len() > 200, "{scheme}: {}", got[&TWO].len());
    }
}

/// A relay that for a while hears others and is not heard.
#[test]
fn a_stuck_relay_loses_little() {
    for scheme in ["core_nc", "cope"] {
        let mut s = settled(five(0.2, 2));
        let mut sent = [(ONE, 0), (TWO, 0)].into();
        let mut got = BTreeMap::new();
        busy(&mut s, scheme, &mut sent, 2000);
        for node in [0, 1, 3, 4] {
            s.set_loss(2, node, 1.0).unwrap();
        }
        busy(&mut s, scheme, &mut sent, 1000);
        for node in [0, 1, 3, 4] {
            s.set_loss(2, node, 0.2).unwrap();
        }
        take(&mut s, &mut got);
        assert_eq!(got.len(), 2, "{scheme}");
        let before: Vec<usize> = got.values().map(Vec::len).collect();
        busy(&mut s, scheme, &mut sent, 6000);
        take(&mut s, &mut got);
        for ((flow, numbers), before) in got.iter().zip(before) {
            assert!(numbers.len() > before + 300, "{scheme} {flow:?}: {before}, {}", numbers.len());
            let missing = numbers.last().unwrap() + 1 - numbers.len();
            assert!(missing <= 64, "{scheme} {flow:?}: {missing} lost");
        }
    }
}

/// Three sources, three destinations that overhear the other two sources, and one relay. Flows
/// begin and end one after the other. All of them fill the channel; then `core_nc` may give up
/// whole generations, which happens in one run of twelve, but never a part of one.
#[test]
fn of_three_flows_that_begin_and_end_at_any_time_nearly_all_arrive() {
    const GENERATION: usize = 64;
    let mut lossy = Vec::new();
    for i in 0..3 {
        lossy.extend([(i, 3, 0.2), (3, 4 + i, 0.2)]);
        lossy.extend((0..3).filter(|j| *j != i).map(|j| (j, 4 + i, 0.2)));
    }
    let mut in_all = 0;
    let mut lost = 0;
    for (scheme, seed) in (1..=6).flat_map(|seed| [("core_nc", seed), ("cope", seed)]) {
        let mut config = mesh(links(7, &lossy), seed);
        config.disturbance = Disturbance { duplicate: 0.05, reorder: 0.05 };
        let mut s = settled(config);
        let mut sent: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut got = BTreeMap::new();
        let mut all = BTreeMap::new();
        for i in 0..3 {
            sent.insert((i, 4 + i), 0);
            busy(&mut s, scheme, &mut sent, 1500);
        }
        while let Some((flow, number)) = sent.pop_first() {
            all.insert(flow, number);
            busy(&mut s, scheme, &mut sent, 700);
        }
        s.run_for(Duration::from_secs(8));
        take(&mut s, &mut got);
        for (flow, number) in all {
            let missing = number - got.get(&flow).map_or(0, Vec::len);
            assert_eq!(missing % GENERATION, 0, "{scheme}, seed {seed}: {flow:?}");
            assert!(scheme == "core_nc" || missing == 0, "{scheme}, seed {seed}: {flow:?}");
            in_all += number;
            lost += missing;
        }
        let coded = s.host(3).stack().unwrap().coding().iter().map(|(_, c)| c.coded).max();
        assert!(scheme == "cope" || coded > Some(200), "seed {seed}: {coded:?}");
    }
    assert!(lost * 20 <= in_all, "{lost} of {in_all} packets lost");
}

/// Opposite directions of a line: each relay is a region, and a packet's sender need not overhear
/// it. The ends hide from each other's relay. Now and then `cope`, which sends counts and answers
/// for every few packets, is still busy with the last ones at the end: in one of 32 runs.
#[test]
fn regions_follow_one_another_along_a_path() {
    let mut unfinished = 0;
    for (scheme, seed) in (1..=6).flat_map(|seed| [("core_nc", seed), ("cope", seed)]) {
        let mut s = settled(mesh(links(4, &[(0, 1, 0.1), (1, 2, 0.1), (2, 3, 0.1)]), seed));
        let mut sent = [((0, 3), 0), ((3, 0), 0)].into();
        let mut got = BTreeMap::new();
        busy(&mut s, scheme, &mut sent, 6000);
        s.run_for(Duration::from_secs(8));
        take(&mut s, &mut got);
        for (flow, number) in sent {
            let missing = number - got[&flow].len();
            assert!(scheme == "cope" || missing == 0, "seed {seed}: {flow:?} lacks {missing}");
            assert!(number > 200, "{scheme}, seed {seed}: {flow:?} {number}");
            unfinished += usize::from(missing > 0);
        }
        for relay in [1, 2] {
            let status = s.host(relay).stack().unwrap().coding();
            let coded = status.iter().map(|(_, c)| c.coded).max().unwrap();
            assert!(coded > 50, "{scheme}, seed {seed}: {coded} at {relay}");
        }
    }
    assert!(unfinished <= 2, "{unfinished} of 24 flows did not arrive whole");
}

const RELAYS: [RelayMode; 3] = [RelayMode::Core, RelayMode::Recoding, RelayMode::NonRecoding];

fn relay_as(s: &mut Simulation, node: usize, relay: RelayMode) {
    s.relay_as(node, Relaying { relay: Some(relay), coding: None }).unwrap();
}

/// Three regions in a row, n0 to n4 and back, without hidden nodes.
fn three_regions(seed: u64) -> Simulation {
    let line = [(0, 1, 0.1), (1, 2, 0.1), (2, 3, 0.1), (3, 4, 0.1)];
    let mut config = mesh(links(5, &line), seed);
    if let ChannelConfig::Links(links) = &mut config.medium.channel {
        links.sense = Sense::Everyone;
    }
    settled(config)
}

/// Offers packets in both directions of the regions in turn, and checks that all arrive.
fn all_arrives(s: &mut Simulation, mut turn: impl FnMut(&mut Simulation, usize)) {
    let mut sent = [((0, 4), 0), ((4, 0), 0)].into();
    let mut got = BTreeMap::new();
    for number in 0..6 {
        turn(s, number);
        // Generations end at other times than the turns.
        busy(s, "core_nc", &mut sent, 730);
    }
    s.run_for(Duration::from_secs(10));
    take(s, &mut got);
    for (flow, number) in sent {
        assert_eq!(got[&flow].len(), number, "{flow:?}");
        assert!(number > 300, "{flow:?} {number}");
    }
}

#[test]
fn relays_of_a_path_may_be_alike_or_differ() {
    for kinds in [[1, 1, 1], [2, 2, 2], [0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let mut s = three_regions(6);
        for (node, kind) in (1..).zip(kinds) {
            relay_as(&mut s, node, RELAYS[kind]);
        }
        all_arrives(&mut s, |_, _| ());
        for node in 1..=3 {
            let coding = s.host(node).stack().unwrap().coding();
            let (_, core) = coding.iter().find(|(scheme, _)| *scheme == "core_nc").unwrap();
            assert!(core.coded > 100, "{kinds:?} {node}: {core:?}");
        }
    }
}

/// Relay modes change while generations are in flight, and so does whether the middle relay
/// combines.
#[test]
fn relays_of_a_path_change_and_everything_arrives() {
    for seed in [5, 6] {
        all_arrives(&mut three_regions(seed), |s, turn| {
            for node in 1..=3 {
                relay_as(s, node, RELAYS[(node + turn) % 3]);
            }
            let coding = Relaying { relay: None, coding: Some(turn % 3 != 2) };
            s.relay_as(2, coding).unwrap();
        });
    }
}

/// In the cross, where receivers depend on what they overhear.
#[test]
fn the_relay_of_a_cross_changes_and_everything_arrives() {
    let mut s = settled(five(0.2, 7));
    let mut sent = [(ONE, 0), (TWO, 0)].into();
    let mut got = BTreeMap::new();
    for turn in 0..9 {
        relay_as(&mut s, 2, RELAYS[turn % 3]);
        busy(&mut s, "core_nc", &mut sent, 330);
    }
    s.run_for(Duration::from_secs(8));
    take(&mut s, &mut got);
    for (flow, number) in sent {
        assert_eq!(got[&flow].len(), number, "{flow:?}");
    }
    let coding = s.host(2).stack().unwrap().coding();
    let (_, core) = coding.iter().find(|(scheme, _)| *scheme == "core_nc").unwrap();
    assert!(core.coded > 200 && core.relaying.relay == Some(RELAYS[2]), "{core:?}");
}

/// Six hops. Hops far from each other may be busy at once, and with two generations in flight they
/// are.
#[test]
fn a_longer_window_carries_more_over_a_long_path() {
    let carried = |window: u32| {
        let links: Vec<String> = (0..6)
            .map(|i| format!(r#"{{ from = "n{i}", to = "n{}", loss = 0.1 }}"#, i + 1))
            .collect();
        let text = format!(
            r#"
            name = "line"
            nodes = ["n0", "n1", "n2", "n3", "n4", "n5", "n6"]
            medium = {{ phy = "802.11a", bit_rate = "6M", {SLOTTED} }}
            link = [{}]
            measure = {{ seconds = 100, bytes = 1100, period_s = 0.1 }}
            protocol.core_nc = {{ window = {window}, generation = 16 }}
            flow = [{{ from = "n0", to = "n6", packet = 1100, warm_up_s = 2, seconds = 10 }}]
        "#,
            links.join(", ")
        );
        rate(&simulated(&text, "core_nc"))
    };
    let one = carried(1);
    let two = carried(2);
    assert!(two > 1.1 * one, "{one} {two}");
}

#[test]
fn two_runs_are_the_same_run() {
    let hash = |seed| {
        let mut s = settled(five(0.3, seed));
        busy(&mut s, "core_nc", &mut [(ONE, 0), (TWO, 0)].into(), 1000);
        s.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
