//! A file always arrives whole: random connected meshes, loss up to 0.6, restarts, reordering.

use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Disturbance, Simulation};
use ncmesh_tests::{contents, ended, has, links, mesh, settled};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    nodes: usize,
    links: Vec<(usize, usize, f64)>,
    /// Node, seconds after the start of the transfer, and seconds it is down.
    restarts: Vec<(usize, f64, f64)>,
    len: usize,
    disorder: f64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (3usize..8).prop_flat_map(|nodes| {
        // A random tree keeps the mesh connected; further links are random.
        let tree = (1..nodes).map(|i| (0..i, 0.0..0.6f64)).collect::<Vec<_>>();
        let more = prop::collection::vec((0..nodes, 0..nodes, 0.1..0.6f64), 0..6);
        let restarts = prop::collection::vec((0..nodes, 0.0..3.0f64, 0.1..4.0f64), 0..3);
        (tree, more, restarts, 0usize..120_000, 0.0..0.3f64, any::<u64>()).prop_map(
            move |(tree, more, restarts, len, disorder, seed)| {
                let tree = tree.into_iter().enumerate().map(|(i, (to, loss))| (i + 1, to, loss));
                let more = more.into_iter().filter(|(a, b, _)| a != b);
                let links = tree.chain(more).collect();
                Case { nodes, links, restarts, len, disorder, seed }
            },
        )
    })
}

fn run(case: &Case, engine: &'static str) -> Simulation {
    let mut config = mesh(links(case.nodes, &case.links), case.seed);
    config.disturbance = Disturbance { duplicate: case.disorder, reorder: case.disorder };
    let mut s = settled(config);
    let to: Vec<usize> = (1..case.nodes).collect();
    s.send_file(engine, 0, Some(&to), contents(case.len)).expect("a file to send");
    let start = s.now();
    for (node, after, off) in &case.restarts {
        s.run_until(start + Duration::from_secs_f64(*after), |_| false);
        s.switch_off(*node);
        s.run_for(Duration::from_secs_f64(*off));
        s.switch_on(*node).expect("it ran before");
    }
    s.run_until(s.now() + Duration::from_secs(1200), ended);
    s
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_the_mesh(case in case()) {
        for engine in registry().of(ServiceKind::File) {
            let s = run(&case, engine.name);
            for node in 1..case.nodes {
                let flow = ncmesh_wire::FlowId { source: ncmesh_sim::node_id(0), serial: 1 };
                let received = s.host(node).storage().received(flow);
                prop_assert_eq!(received, &contents(case.len)[..], "node {}", node);
                prop_assert!(has(&s, node, flow), "node {} reports no delivery", node);
            }
            prop_assert!(ended(&s), "the source does not know");
        }
    }
}
