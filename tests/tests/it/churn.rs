//! Meshes that do not stay as they are: cut in two and joined, nodes that move, nodes that restart.
//! No path stays stale for ever, and control does not storm.

use ncmesh_engine::rng::{stream, unit};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_medium::LossMatrix;
use ncmesh_sim::{Simulation, SimulationConfig, node_id};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_tests::mesh;
use ncmesh_wire::NodeId;

/// Metres up to which a link delivers anything, and what one of this length loses.
const REACH: f64 = 230.0;
const WORST: f64 = 0.7;
/// Time after which poor links, too, are known to be gone.
const LONG: Duration = Duration::from_secs(10);
/// Time after that in which the last of many is: one that delivers a third, of whose end no sure
/// link has been lost, is silent for ten seconds by chance once in fifty hellos.
const GONE: Duration = Duration::from_secs(30);
/// Greatest share of the channel that control of a node may take while things change.
const STORM: f64 = 0.01;

type Point = (f64, f64);

/// Share of frames that a link between two places loses.
fn loss(a: Point, b: Point) -> f64 {
    let distance = (a.0 - b.0).hypot(a.1 - b.1) / REACH;
    if distance >= 1.0 { 1.0 } else { WORST * distance.powi(4) }
}

/// Random places in a rectangle of metres, drawn from `random`.
fn places(nodes: usize, (width, height): Point, random: &mut impl FnMut() -> f64) -> Vec<Point> {
    (0..nodes).map(|_| (width * random(), height * random())).collect()
}

/// Random numbers from 0 to 1.
fn random(seed: u64, purpose: &str) -> impl FnMut() -> f64 {
    let mut rng = stream(seed, NodeId(0), "churn", purpose);
    move || unit(&mut rng)
}

/// A mesh with the settings of daemons.
fn daemons(places: &[Point], seed: u64) -> SimulationConfig {
    let mut config = mesh(LossMatrix::new(places.len()), seed);
    config.link = LinkConfig::default();
    config.route = RouteConfig::default();
    config
}

/// Gives every link the loss of its length, or of no link at all where `cut` says so.
fn place(s: &mut Simulation, places: &[Point], cut: impl Fn(Point, Point) -> bool) {
    for (i, a) in places.iter().enumerate() {
        for (j, b) in places.iter().enumerate().filter(|(j, _)| *j != i) {
            let p = if cut(*a, *b) { 1.0 } else { loss(*a, *b) };
            s.set_loss(i, j, p).unwrap();
        }
    }
}

/// Airtime of control that each running node has used since it started, s.
fn control(s: &Simulation) -> Vec<f64> {
    let of = |node| {
        let usage = s.host(node).stack().map(|stack| stack.usage().control).unwrap_or_default();
        usage.values().map(|kind| kind.airtime_s).sum()
    };
    (0..s.len()).map(of).collect()
}

/// Runs, and checks that control does not storm meanwhile.
fn run_calmly(s: &mut Simulation, time: Duration) {
    let before = control(s);
    s.run_for(time);
    assert_calm(s, &before, time);
}

/// Checks that no node has used too much of the channel for control in this time.
fn assert_calm(s: &Simulation, before: &[f64], time: Duration) {
    // A node that has restarted begins anew.
    let used = control(s).into_iter().zip(before).map(|(now, before)| now - before);
    let worst = used.fold(0.0, f64::max) / time.as_secs_f64();
    assert!(
        worst <= STORM,
        "a node used {worst:.4} of the channel for control until {:?}",
        s.now()
    );
}

/// Pairs of running nodes of which the first knows a path to the second.
fn reached(s: &Simulation, of: impl Fn(usize, usize) -> bool) -> (usize, usize) {
    let nodes = || (0..s.len()).filter(|node| s.host(*node).stack().is_some());
    let pairs = nodes().flat_map(|from| nodes().map(move |to| (from, to)));
    let pairs: Vec<_> = pairs.filter(|(from, to)| from != to && of(*from, *to)).collect();
    let known = pairs.iter().filter(|(from, to)| !s.lacks_path(*from, *to, Metric::Unicast));
    (known.count(), pairs.len())
}

#[test]
fn a_mesh_that_is_cut_in_two_and_joined_again_knows_both_soon() {
    for seed in 1..=6 {
        let mut rng = random(seed, "cut");
        let places = places(30, (900.0, 400.0), &mut rng);
        let is_left = |point: Point| point.0 < 450.0;
        let mut s = Simulation::new(daemons(&places, seed)).unwrap();
        place(&mut s, &places, |_, _| false);
        s.run_for(Duration::from_secs(30));
        let across = |a: usize, b: usize| is_left(places[a]) != is_left(places[b]);
        let (known, pairs) = reached(&s, |_, _| true);
        assert_eq!(known, pairs, "seed {seed}, at first");

        place(&mut s, &places, |a, b| is_left(a) != is_left(b));
        run_calmly(&mut s, LONG);
        let (known, pairs) = reached(&s, |a, b| !across(a, b));
        assert!(known * 20 >= pairs * 19, "seed {seed}: {known} of {pairs} within the parts");
        run_calmly(&mut s, GONE);
        let (known, _) = reached(&s, across);
        assert_eq!(known, 0, "seed {seed}: stale paths to the other part");

        // While the other part is out of reach its states are forgotten, and later ones go round.
        run_calmly(&mut s, Duration::from_secs(60));
        place(&mut s, &places, |_, _| false);
        run_calmly(&mut s, Duration::from_secs(45));
        let (known, pairs) = reached(&s, |_, _| true);
        assert_eq!(known, pairs, "seed {seed}, joined again");
    }
}

/// Power comes back: 120 nodes with about 25 neighbours each begin at once.
#[test]
fn a_crowd_that_starts_at_once_soon_knows_all_of_itself() {
    for seed in 1..=3 {
        let mut rng = random(seed, "crowd");
        let places = places(120, (900.0, 900.0), &mut rng);
        let mut s = Simulation::new(daemons(&places, seed)).unwrap();
        place(&mut s, &places, |_, _| false);
        s.run_for(Duration::from_secs(20));
        let (known, pairs) = reached(&s, |_, _| true);
        assert_eq!(known, pairs, "seed {seed}");
    }
}

/// Fifty vehicles at 15 m/s, each to one random place after another.
#[test]
fn vehicles_have_no_path_over_a_link_that_has_been_gone_for_long() {
    const STEP: Duration = Duration::from_millis(500);
    const SPEED: f64 = 15.0;
    const AREA: Point = (1000.0, 1000.0);
    let mut rng = random(1, "vehicles");
    let mut vehicles = places(50, AREA, &mut rng);
    let mut goals = places(50, AREA, &mut rng);
    let mut s = Simulation::new(daemons(&vehicles, 1)).unwrap();
    place(&mut s, &vehicles, |_, _| false);
    s.run_for(Duration::from_secs(20));

    // When each link last delivered anything.
    let mut alive = vec![s.now(); 50 * 50];
    let mut hops = 0;
    let mut stale = 0;
    let before = control(&s);
    for step in 0..120 {
        for (at, goal) in vehicles.iter_mut().zip(&mut goals) {
            let dx = goal.0 - at.0;
            let dy = goal.1 - at.1;
            let left = dx.hypot(dy);
            let stride = (SPEED * STEP.as_secs_f64()).min(left);
            if left > 0.0 {
                *at = (at.0 + dx / left * stride, at.1 + dy / left * stride);
            }
            if stride == left {
                *goal = places(1, AREA, &mut rng)[0];
            }
        }
        place(&mut s, &vehicles, |_, _| false);
        s.run_for(STEP);
        note_alive(&vehicles, s.now(), &mut alive);
        if step % 10 == 9 {
            let (all, old) = hops_of_paths(&s, &alive);
            hops += all;
            stale += old;
        }
    }
    assert_calm(&s, &before, 120 * STEP);
    assert!(hops > 10_000, "{hops}");
    assert!(stale * 200 <= hops, "{stale} of {hops} hops were over links long gone");
}

/// Notes which links deliver now.
fn note_alive(places: &[Point], now: Instant, alive: &mut [Instant]) {
    for (i, a) in places.iter().enumerate() {
        for (j, b) in places.iter().enumerate() {
            if loss(*a, *b) < 1.0 {
                alive[i * places.len() + j] = now;
            }
        }
    }
}

/// The hops of all paths that nodes know, and those over links that have been gone for long.
fn hops_of_paths(s: &Simulation, alive: &[Instant]) -> (usize, usize) {
    let mut all = 0;
    let mut stale = 0;
    for from in 0..s.len() {
        let paths =
            s.host(from).stack().unwrap().topology().paths_from(node_id(from), Metric::Unicast);
        for to in (0..s.len()).filter(|to| *to != from) {
            let mut at = from;
            for next in paths.path_to(node_id(to)) {
                let next = usize::from(next.0) - 1;
                all += 1;
                let age = s.now().since(alive[at * s.len() + next]);
                stale += usize::from(age >= LONG);
                at = next;
            }
        }
    }
    (all, stale)
}

/// 30 % of the nodes restart in a minute, each for two seconds.
#[test]
fn nodes_that_restart_are_found_again_and_the_others_keep_their_paths() {
    let mut rng = random(2, "restarts");
    let places = places(40, (900.0, 500.0), &mut rng);
    let mut s = Simulation::new(daemons(&places, 2)).unwrap();
    place(&mut s, &places, |_, _| false);
    s.run_for(Duration::from_secs(30));
    for _ in 0..12 {
        let node = (rng() * 40.0) as usize;
        s.switch_off(node);
        run_calmly(&mut s, Duration::from_secs(2));
        s.switch_on(node).unwrap();
        run_calmly(&mut s, Duration::from_secs(3));
        let (known, pairs) = reached(&s, |_, _| true);
        assert!(known * 10 >= pairs * 9, "{known} of {pairs} after {:?}", s.now());
    }
    run_calmly(&mut s, Duration::from_secs(10));
    let (known, pairs) = reached(&s, |_, _| true);
    assert_eq!(known, pairs);
}
