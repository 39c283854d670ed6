//! No flow of a tunnel stands still while there is a path: random meshes of links of one direction,
//! of links that deliver a twentieth, of relays that hide from each other, and dense ones, with
//! nodes that die and links that go and come, and without.

use ncmesh_engine::rng::{stream, unit};
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use ncmesh_medium::{LossMatrix, RadioId};
use ncmesh_sim::{Knowledge, Simulation};
use ncmesh_tests::{contents, ended, mesh};
use ncmesh_wire::NodeId;

/// Bound on the transmissions per packet up to which a flow has to carry something.
const BOUND: f64 = 20.0;
/// Least delivery of links that count in the bound. Link state may miss links that deliver less:
/// nodes use none below a twentieth, and measure with an error.
const COUNTS: f64 = 0.12;
/// Time until a mesh that has just started, or changed, knows its links; over poor ones longer,
/// until the source knows a path.
const SETTLES: Duration = Duration::from_secs(30);
const SETTLES_AT_MOST: Duration = Duration::from_secs(90);
/// A flow stands still if nothing arrives for so long. Under load, link state loses a poor link now
/// and then, and finds it again within this time.
const STILL: Duration = Duration::from_secs(12);
/// Times that a flow is watched for so long.
const WATCHED: usize = 2;
/// Packets are offered so often, many more than can be carried.
const EVERY: Duration = Duration::from_millis(4);

/// Time in which a file of 60,000 bytes is everywhere, and its source knows.
const FILE_TAKES: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Most links bring nothing back. What link state says is known from the start: it does not
    /// spread where a node cannot ask for what it missed.
    OneWay,
    /// Poor links of both directions connect all, and good ones of one direction are shorter.
    Shortcuts,
    /// Many links that deliver a twentieth to a fifth, and some better ones.
    Poor,
    /// Few links, all good, so that most nodes hide from each other.
    Hidden,
    /// Almost every node hears every other one.
    Dense,
}

/// A mesh, and a flow from its first node to its last.
struct Case {
    delivery: Vec<Vec<f64>>,
    bound: f64,
}

/// Returns a random mesh of a kind in which the flow's bound and that of its way back are below
/// [`BOUND`].
fn case(kind: Kind, seed: u64) -> Case {
    let mut rng = stream(seed, NodeId(0), "never_still", "mesh");
    let mut random = || unit(&mut rng);
    loop {
        let nodes = 4 + (random() * 7.0) as usize;
        let parents: Vec<usize> =
            (0..nodes).map(|node| (random() * node as f64) as usize).collect();
        let mut delivery = vec![vec![0.0; nodes]; nodes];
        for (a, b) in (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let chance = random();
            let there = random();
            let back = random();
            let [there, back] = match kind {
                Kind::OneWay if chance > 0.65 => [0.0, 0.0],
                Kind::OneWay if chance > 0.4 => [0.2 + 0.8 * there, 0.0],
                Kind::OneWay if chance > 0.15 => [0.0, 0.2 + 0.8 * back],
                Kind::OneWay => [0.2 + 0.8 * there, 0.2 + 0.8 * back],
                Kind::Shortcuts if parents[a] == b => [0.2 + 0.3 * there, 0.2 + 0.3 * back],
                Kind::Shortcuts if chance > 0.5 => [0.0, 0.0],
                Kind::Shortcuts if chance > 0.25 => [0.6 + 0.4 * there, 0.0],
                Kind::Shortcuts => [0.0, 0.6 + 0.4 * back],
                Kind::Poor if chance < 0.5 => [0.05, 0.05],
                Kind::Poor if chance < 0.85 => [0.2 * there, 0.2 * back],
                Kind::Poor => [0.1 + 0.9 * there, 0.1 + 0.9 * back],
                Kind::Hidden if chance > 0.3 => [0.0, 0.0],
                Kind::Hidden => [0.7 + 0.3 * there, 0.7 + 0.3 * there],
                Kind::Dense => [0.3 + 0.7 * there, 0.3 + 0.7 * back],
            };
            (delivery[a][b], delivery[b][a]) = (there, back);
        }
        let there = bound(&delivery, 0, nodes - 1);
        let back = bound(&delivery, nodes - 1, 0);
        if there.max(back) < BOUND {
            return Case { delivery, bound: there };
        }
    }
}

/// Returns the least transmissions with which a packet comes from one node to another, if all that
/// hear one help: the optimum of the linear program for one receiver (Lun et al., 2006). Nodes are
/// settled in the order of their bounds, as shortest paths are; a packet goes on from the nearest
/// of those that heard it.
fn bound(delivery: &[Vec<f64>], from: usize, to: usize) -> f64 {
    let mut settled: Vec<(usize, f64)> = vec![(to, 0.0)];
    loop {
        if let Some((_, bound)) = settled.iter().find(|(node, _)| *node == from) {
            return *bound;
        }
        let open = (0..delivery.len()).filter(|node| settled.iter().all(|(s, _)| s != node));
        let through = |node: usize| {
            let mut cost = 1.0;
            let mut lost = 1.0;
            for (next, bound) in &settled {
                let d = Some(delivery[node][*next]).filter(|d| *d >= COUNTS).unwrap_or(0.0);
                cost += lost * d * bound;
                lost *= 1.0 - d;
            }
            (node, if lost < 1.0 { cost / (1.0 - lost) } else { f64::INFINITY })
        };
        let nearest = open.map(through).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        if nearest.1.is_infinite() {
            return f64::INFINITY;
        }
        settled.push(nearest);
    }
}

/// Gives a link its delivery in a running mesh.
fn set(s: &mut Simulation, from: usize, to: usize, delivery: f64) {
    s.set_loss(from, to, 1.0 - delivery).unwrap();
}

fn start(case: &Case, kind: Kind, seed: u64) -> Simulation {
    let nodes = case.delivery.len();
    let mut loss = LossMatrix::new(nodes);
    for (a, row) in case.delivery.iter().enumerate() {
        for (b, d) in row.iter().enumerate().filter(|(b, _)| *b != a) {
            loss.set(RadioId(a), RadioId(b), 1.0 - d).unwrap();
        }
    }
    let mut config = mesh(loss, seed);
    config.sealed = false;
    if matches!(kind, Kind::OneWay) {
        config.knowledge = Knowledge::Perfect;
    }
    let mut s = Simulation::new(config).unwrap();
    s.run_for(SETTLES);
    let last = nodes - 1;
    s.run_until(s.now() + SETTLES_AT_MOST, |s| !s.lacks_path(0, last, Metric::Answered));
    s
}

/// Offers packets from the first node to the last, always more than can be carried. Returns how
/// many arrived.
fn carry(s: &mut Simulation, scheme: &str, time: Duration) -> usize {
    let last = s.len() - 1;
    let end = s.now() + time;
    while s.now() < end {
        let _ = s.send_packet(scheme, 0, last, &contents(1000));
        s.run_for(EVERY);
    }
    s.take_packets().len()
}

/// Returns what is wrong if a flow stands still at any time of a watch.
fn watch(s: &mut Simulation, scheme: &'static str) -> Result<(), String> {
    carry(s, scheme, STILL / 2);
    let arrived: Vec<usize> = (0..WATCHED).map(|_| carry(s, scheme, STILL)).collect();
    if arrived.contains(&0) { Err(format!("{arrived:?} packets")) } else { Ok(()) }
}

/// Carries a flow through a mesh that stays as it is.
fn at_rest(kind: Kind, seed: u64, scheme: &'static str) -> Result<(), String> {
    let case = case(kind, seed);
    let mut s = start(&case, kind, seed);
    watch(&mut s, scheme).map_err(|e| {
        format!(
            "{scheme}, {kind:?}, seed {seed}: {e}, bound {:.1}: {:.2?}",
            case.bound, case.delivery
        )
    })
}

/// Carries a flow while relays die and come back and links vanish and come back, for a minute, and
/// watches it when all have been there for a while again.
fn with_churn(kind: Kind, seed: u64, scheme: &'static str) -> Result<(), String> {
    let case = case(kind, seed);
    let mut s = start(&case, kind, seed);
    let nodes = s.len();
    let mut rng = stream(seed, NodeId(0), "never_still", "churn");
    let mut random = |below: usize| (unit(&mut rng) * below as f64) as usize;
    for _ in 0..8 {
        let relay = 1 + random(nodes - 2);
        let link = (random(nodes), random(nodes));
        s.switch_off(relay);
        if link.0 != link.1 {
            set(&mut s, link.0, link.1, 0.0);
        }
        carry(&mut s, scheme, Duration::from_secs(4));
        s.switch_on(relay).unwrap();
        carry(&mut s, scheme, Duration::from_secs(4));
        if link.0 != link.1 {
            set(&mut s, link.0, link.1, case.delivery[link.0][link.1]);
        }
    }
    carry(&mut s, scheme, SETTLES);
    watch(&mut s, scheme).map_err(|e| {
        format!(
            "{scheme}, {kind:?} with churn, seed {seed}: {e}, bound {:.1}: {:.2?}",
            case.bound, case.delivery
        )
    })
}

/// Carries flows of the schemes through meshes of all kinds, and says where one stands still.
fn check(
    kinds: &[Kind],
    schemes: &[&'static str],
    seeds: std::ops::Range<u64>,
    carried: fn(Kind, u64, &'static str) -> Result<(), String>,
) {
    let cases = seeds.flat_map(|seed| kinds.iter().map(move |kind| (*kind, seed)));
    let cases = cases.flat_map(|(kind, seed)| schemes.iter().map(move |s| (kind, seed, *s)));
    let wrong = cases.filter_map(|(kind, seed, scheme)| carried(kind, seed, scheme).err());
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "stand still:\n{}", wrong.join("\n"));
}

/// Sends a file from the first node to all others.
fn file_arrives(kind: Kind, seed: u64, scheme: &'static str) -> Result<(), String> {
    let case = case(kind, seed);
    let mut s = start(&case, kind, seed);
    let to: Vec<usize> = (1..s.len()).filter(|node| is_reached(&case, *node)).collect();
    s.send_file(scheme, 0, Some(&to), contents(60_000)).unwrap();
    s.run_until(s.now() + FILE_TAKES, ended);
    if ended(&s) {
        return Ok(());
    }
    Err(format!("{scheme}, {kind:?}, seed {seed}, to {to:?}: {:.2?}", case.delivery))
}

/// Returns whether there is a path from the first node to another one, and back.
fn is_reached(case: &Case, node: usize) -> bool {
    bound(&case.delivery, 0, node).max(bound(&case.delivery, node, 0)) < BOUND
}

const SCHEMES: [&str; 2] = ["braid", "forward"];

#[test]
fn no_flow_stands_still_in_a_mesh_at_rest() {
    let kinds = [Kind::OneWay, Kind::Shortcuts, Kind::Poor, Kind::Hidden, Kind::Dense];
    check(&kinds, &SCHEMES, 0..6, at_rest);
}

/// The schemes of the papers, as far as they can: the reports of `mc2` go to the previous hop only,
/// and `cope` asks the source for each lost packet.
#[test]
fn flows_of_other_schemes_stand_still_only_where_their_pages_say_so() {
    let all = [Kind::OneWay, Kind::Shortcuts, Kind::Poor, Kind::Hidden, Kind::Dense];
    check(&all, &["core_nc"], 0..3, at_rest);
    check(&[Kind::Poor, Kind::Hidden, Kind::Dense], &["mc2"], 0..3, at_rest);
    check(&[Kind::Shortcuts, Kind::Hidden, Kind::Dense], &["cope"], 0..3, at_rest);
}

#[test]
fn files_arrive_over_links_of_all_kinds() {
    let kinds = [Kind::OneWay, Kind::Shortcuts, Kind::Poor, Kind::Hidden, Kind::Dense];
    check(&kinds, &["cascade"], 0..24, file_arrives);
}

#[test]
fn no_flow_stands_still_after_churn() {
    let kinds = [Kind::Shortcuts, Kind::Poor, Kind::Hidden, Kind::Dense];
    check(&kinds, &SCHEMES, 100..102, with_churn);
}

/// The only path, 1 to 2 to 4, brings nothing back; what 4 has goes over 1.
#[test]
fn braid_sends_reports_by_a_way_that_exists() {
    at_rest(Kind::OneWay, 25, "braid").unwrap();
}

/// The next hop was the destination itself, over a link that delivers a twentieth both ways. Once
/// it had missed 80 questions it was asked four times a second, of which one in 400 was answered.
#[test]
fn braid_leaves_a_next_hop_that_is_silent() {
    at_rest(Kind::Poor, 15, "braid").unwrap();
}
