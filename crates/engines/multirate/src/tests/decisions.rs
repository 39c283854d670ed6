//! The paper's decisions: cases worked out by hand, and what the paper proves for random input.

use crate::*;
use ncmesh_engine::stream::UtilityConfig;
use proptest::prelude::*;

fn parameters(v: f64, theta: f64) -> Parameters {
    let given =
        Given { v, d_max: Some(5), epsilon: Some(0.1), zeta: None, a_max: 4, mu_max: 1, theta };
    Parameters::derive(&given).unwrap()
}

fn utility(name: &str, xi: Option<f64>, alpha: Option<f64>) -> Utility {
    let config = UtilityConfig { name: name.into(), xi, alpha, ..UtilityConfig::default() };
    Utility::try_from(config).unwrap()
}

fn with_minimum(utility: UtilityConfig, minimum: f64, penalty: f64) -> Utility {
    let config = UtilityConfig { minimum: Some(minimum), penalty: Some(penalty), ..utility };
    Utility::try_from(config).unwrap()
}

#[test]
fn figure_2_weighs_9_q1_less_the_queues_behind() {
    let behind = pressure(3, 2) + pressure(1, 4) + pressure(5, 6);
    assert_eq!(differential_backlog(pressure(9, 10), behind), 90.0 - 6.0 - 4.0 - 30.0);
}

#[test]
fn the_largest_product_of_rate_and_weight_is_served() {
    let of = |key, rate, weight| Candidate { key, rate, weight };
    assert_eq!(max_weight([of("a", 1.0, 5.0), of("b", 1.0, 7.0), of("c", 1.0, 7.0)]), Some("b"));
    // MMU-W prefers the faster link.
    assert_eq!(max_weight([of("slow", 6.0, 10.0), of("fast", 18.0, 4.0)]), Some("fast"));
    assert_eq!(max_weight([of("a", 1.0, 0.0), of("b", 1.0, -3.0)]), None);
    assert_eq!(max_weight([of("a", 1.0, f64::NAN)]), None);
}

#[test]
fn the_enhancement_is_dropped_first_and_served_last() {
    let held = Packets([2, 3, 4, 0]);
    assert_eq!(held.lowest(4), Packets([2, 2, 0, 0]));
    assert_eq!(held.highest(5), Packets([0, 1, 4, 0]));
    assert_eq!(held.lowest(100), held);
}

#[test]
fn a_slot_serves_then_drops_what_is_left_then_receives() {
    let p = parameters(10.0, 1.0);
    let mut queues = Queues::new(&Dropping::new(Policy::Mmt, &p));
    assert_eq!((queues.backlog(), queues.drop_queue()), (0, 10.0));
    let rules = Dropping::new(Policy::Mmt, &p);
    queues.receive(Packets([0, 11, 0, 0]));
    // 11 > D = 10: 5 of the 10 that are left after service are dropped.
    let moved = queues.advance(1, &rules);
    assert_eq!(moved, Moved { sent: Packets([0, 1, 0, 0]), dropped: Packets([0, 5, 0, 0]) });
    assert_eq!((queues.backlog(), queues.drop_queue()), (5, 15.0));
    // D = 15 > V = 10: d_max are discarded; Q = 5 is not above D.
    assert_eq!(queues.advance(0, &rules), Moved::default());
    assert_eq!((queues.backlog(), queues.drop_queue()), (5, 10.0));
}

#[test]
fn no_more_is_dropped_than_service_leaves() {
    let p = parameters(2.0, 1.0);
    let rules = Dropping::new(Policy::MmuQ, &p);
    let mut queues = Queues::new(&rules);
    queues.receive(Packets([3, 0, 0, 0]));
    let moved = queues.advance(2, &rules);
    assert_eq!((moved.sent.total(), moved.dropped.total(), queues.backlog()), (2, 1, 0));
    assert_eq!(queues.drop_queue(), 0.0);
}

#[test]
fn table_1_follows_from_a_few_parameters() {
    let p = parameters(25.0, 2.0);
    assert_eq!((p.nu_max, p.delta_max, p.zeta, p.threshold()), (1.05, 1.05, 1.05, 50.0));
    assert!((p.w - 0.1 / 1.1025 * libm::exp(-0.1 / 1.05)).abs() < 1e-12);
    assert_eq!((p.q_bound(), p.d_bound()), (60.0, 55.0));
    let named: Vec<_> = p.explained().iter().map(|e| e.name).collect();
    assert_eq!(named.len(), 10);
    // The virtual queue begins where its pressure is V theta.
    let receiver = Receiver::new(Utility::default(), &p);
    assert!((receiver.pressure(&p) - 50.0).abs() < 1e-9);
}

#[test]
fn parameters_that_contradict_table_1_are_refused() {
    let given =
        Given { v: 25.0, d_max: None, epsilon: None, zeta: None, a_max: 4, mu_max: 1, theta: 1.0 };
    assert_eq!(Parameters::derive(&given).unwrap().d_max, 5);
    let refused = |given: Given| Parameters::derive(&given).unwrap_err().to_string();
    for v in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(Given { v, ..given }).starts_with("V = "));
    }
    assert_eq!(
        refused(Given { d_max: Some(4), ..given }),
        "d_max = 4: needed is at least A_max + mu_max = 4 + 1 (II-A)"
    );
    assert!(refused(Given { zeta: Some(0.5), ..given }).contains("nu_max"));
    assert!(refused(Given { zeta: Some(f64::NAN), ..given }).contains("zeta"));
    assert!(refused(Given { epsilon: Some(0.0), ..given }).contains("epsilon"));
    assert!(refused(Given { theta: f64::INFINITY, ..given }).contains("theta"));
    assert!(refused(Given { v: 1e12, ..given }).contains("queues would grow"));
    let barely = Given { v: 1e-9, epsilon: Some(100.0), a_max: 0, d_max: Some(1), ..given };
    assert!(Parameters::derive(&barely).is_ok());
}

#[test]
fn utilities_have_the_values_of_their_formulas() {
    assert_eq!(utility("linear", None, None).value(0.3), 0.3);
    assert!((utility("log", Some(0.5), None).value(0.5)).abs() < 1e-12);
    assert!((utility("alpha_fair", Some(1.0), Some(2.0)).value(1.0) + 0.5).abs() < 1e-12);
    assert!((utility("max_min", Some(0.2), None).steepest() - 16.0).abs() < 1e-12);
    assert!(
        (utility("alpha_fair", Some(1.0), Some(1.0)).value(1.0) - libm::log(2.0)).abs() < 1e-12
    );
    let linear = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    let floor = with_minimum(linear, 0.2, 3.0);
    assert_eq!(floor.steepest(), 4.0);
    assert!((floor.value(0.1) - (0.1 - 0.3)).abs() < 1e-12);
    // A cost below the slope: all; between slope and penalty: the minimum; above both: none.
    assert_eq!([0.5, 2.0, 4.5].map(|cost| floor.rate_at(cost, 1.0)), [1.0, 0.2, 0.0]);
}

#[test]
fn contradictory_utilities_are_refused() {
    let refused = |config: UtilityConfig| Utility::try_from(config).unwrap_err().to_string();
    let named = |name: &str| UtilityConfig { name: name.into(), ..UtilityConfig::default() };
    let table = |values: &[f64], slopes: &[f64]| UtilityConfig {
        values: values.to_vec(),
        slopes: slopes.to_vec(),
        step: Some(1.0),
        ..named("table")
    };
    assert!(refused(named("logg")).contains("\"logg\""));
    assert!(refused(named("log")).contains("unbounded at rate 0"));
    assert!(refused(UtilityConfig { xi: Some(0.0), ..named("log") }).contains("unbounded"));
    assert!(refused(UtilityConfig { xi: Some(0.1), ..named("alpha_fair") }).contains("alpha"));
    assert!(refused(UtilityConfig { xi: Some(0.1), ..named("linear") }).contains("has no xi"));
    assert!(refused(UtilityConfig { weight: Some(-1.0), ..named("linear") }).contains("weight"));
    assert!(
        refused(UtilityConfig { minimum: Some(1.0), ..named("linear") }).contains("go together")
    );
    assert!(refused(table(&[0.0, 1.0, 3.0], &[1.0, 1.0, 2.0])).contains("not concave"));
    assert!(refused(table(&[0.0, 1.0], &[1.0, f64::INFINITY])).contains("finite"));
    assert!(refused(table(&[0.0, 0.0], &[0.5, -0.5])).contains("not increasing"));
    assert!(refused(table(&[0.0, 5.0], &[1.0, 0.5])).contains("values grow by 5"));
    assert!(refused(table(&[0.0], &[1.0])).contains("two at least"));
}

#[test]
fn trees_know_their_parents_and_receivers() {
    // Figure 3, session 2: 2 -> a -> b -> d, e; receivers are b, d and e.
    let links = [("1", "a"), ("2", "a"), ("a", "b"), ("b", "c"), ("b", "d"), ("b", "e")];
    let tree = Tree::new(&links, &[5, 4, 2, 1], "2", &["b", "d", "e"]).unwrap();
    let of = |at: usize| (tree.hops[at].link, tree.hops[at].parent, tree.hops[at].receivers);
    assert_eq!([of(0), of(1)], [(1, None, 3), (2, Some(0), 3)]);
    assert_eq!([of(2), of(3)], [(5, Some(1), 1), (4, Some(1), 1)]);
    assert_eq!(tree.last, [1, 3, 2]);
    assert_eq!(tree.hops[1].receiver, Some(0));
}

#[test]
fn links_that_are_no_tree_are_refused() {
    let links = [("s", "a"), ("a", "b"), ("b", "a"), ("a", "s"), ("x", "y"), ("y", "x")];
    let refused = |tree: &[usize], receivers: &[&str]| {
        Tree::new(&links, tree, "s", receivers).unwrap_err().to_string()
    };
    assert_eq!(refused(&[0, 9], &["a"]), "tree: there is no link 9: allowed is 0 to 5");
    assert!(refused(&[0, 1, 2], &["a"]).contains("link 2 leads to a, which is reached by another"));
    assert!(refused(&[0, 3], &["a"]).contains("which is the source"));
    assert!(refused(&[0, 0], &["a"]).contains("reached by another"));
    assert!(refused(&[0, 4, 5], &["a"]).contains("does not reach from s"));
    assert!(refused(&[0, 4], &["a"]).contains("begins at x"));
    assert_eq!(refused(&[0], &["b"]), "receiver b is not reached by the tree");
    assert!(refused(&[0], &["a", "a"]).contains("named twice"));
    assert!(refused(&[0], &["s"]).contains("must not be the source"));
    assert_eq!(refused(&[0], &[]), "receivers: name one at least");
}

/// Generates utilities of all kinds.
fn utilities() -> impl Strategy<Value = Utility> {
    let shape = prop_oneof![
        Just((
            utility("linear", None, None),
            UtilityConfig { name: "linear".into(), ..Default::default() }
        )),
        (0.01..2.0f64).prop_map(|xi| {
            let config = UtilityConfig { name: "log".into(), xi: Some(xi), ..Default::default() };
            (Utility::try_from(config.clone()).unwrap(), config)
        }),
        (0.05..2.0f64, 0.1..9.0f64).prop_map(|(xi, alpha)| {
            let config = UtilityConfig {
                name: "alpha_fair".into(),
                xi: Some(xi),
                alpha: Some(alpha),
                ..Default::default()
            };
            (Utility::try_from(config.clone()).unwrap(), config)
        }),
        prop::collection::vec(0.0..3.0f64, 2..20).prop_map(|mut slopes| {
            slopes.sort_by(|a, b| b.total_cmp(a));
            let mut values = vec![0.0];
            for pair in slopes.windows(2) {
                values.push(values[values.len() - 1] + 0.05 * (pair[0] + pair[1]));
            }
            let config = UtilityConfig {
                name: "table".into(),
                values,
                slopes,
                step: Some(0.1),
                ..Default::default()
            };
            (Utility::try_from(config.clone()).unwrap(), config)
        }),
    ];
    (shape, prop::option::of((0.0..1.0f64, 0.0..5.0f64))).prop_map(|((free, config), minimum)| {
        minimum.map_or(free, |(rate, penalty)| with_minimum(config, rate, penalty))
    })
}

proptest! {
    #[test]
    fn no_rate_is_worth_more_than_the_chosen_one(
        utility in utilities(), cost in -1.0..8.0f64, other in 0.0..1.0f64,
    ) {
        let chosen = utility.rate_at(cost, 1.0);
        prop_assert!((0.0..=1.0).contains(&chosen));
        let worth = |rate: f64| utility.value(rate) - cost * rate;
        // A table's value is linear between its rates, and so is its slope. The integral of the
        // slope exceeds the value by at most an eighth of a step times the fall of the slope.
        let table = if utility.formula().is_none() { 0.1 * 3.0 / 8.0 } else { 0.0 };
        prop_assert!(worth(other) <= worth(chosen) + table + 1e-9 * (1.0 + worth(other).abs()));
        prop_assert!(utility.rate_at(utility.steepest() + 1e-6, 1.0) <= 1e-4);
    }

    #[test]
    fn a_queue_stays_within_its_bounds_and_loses_nothing(
        v in 0.1..50.0f64, slots in prop::collection::vec((0u32..3, 0u32..5, 0u32..5), 1..300),
        has_drop_queues: bool,
    ) {
        let given = Given {
            v, d_max: None, epsilon: None, zeta: None, a_max: 8, mu_max: 2, theta: 1.5,
        };
        let p = Parameters::derive(&given).unwrap();
        let rules = Dropping::new(if has_drop_queues { Policy::Mmu } else { Policy::MmuQ }, &p);
        let mut queues = Queues::new(&rules);
        let [mut entered, mut left] = [0, 0];
        for (rate, base, enhancement) in slots {
            let moved = queues.advance(rate, &rules);
            let arriving = Packets([base, enhancement, 0, 0]);
            queues.receive(arriving);
            entered += arriving.total();
            left += moved.sent.total() + moved.dropped.total();
            prop_assert_eq!(entered, left + queues.backlog());
            prop_assert!(f64::from(queues.backlog()) <= p.q_bound());
            prop_assert!(queues.drop_queue() <= p.d_bound());
            // The base is dropped only where no enhancement is left.
            prop_assert!(moved.dropped.0[0] == 0 || queues.held().0[1] == enhancement);
        }
    }
}
