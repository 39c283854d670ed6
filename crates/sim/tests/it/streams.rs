//! Live streams over the mesh: every receiver gets the rate that its links allow, the base first.

use ncmesh_engine::time::Duration;
use ncmesh_sim::outcome::{Outcome, StreamReceiverOutcome, StreamsOutcome};
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{RunError, SimulationConfig, run};
use std::ops::ControlFlow;
use std::path::Path;

/// A mesh in which a frame of 1,400 bytes takes 2 ms, at 6 Mbit/s.
const HEAD: &str = r#"
name = "star"
sealed = false
nodes = ["s", "b", "c", "d"]
medium = { phy = "802.11a", bit_rate = "6M" }
protocol.link = { quick_hello_s = 0.1 }
"#;

const STAR: &str = r#"link = [
    { from = "s", to = "b", wired = true },
    { from = "b", to = "c", loss = 0.0, rate = "18M" },
    { from = "b", to = "d", loss = 0.0 },
    { from = "c", to = "d", loss = 0.0 },
]
"#;

fn carried(text: &str) -> Result<Outcome, RunError> {
    let scenario = Scenario::parse(&format!("{HEAD}{text}"), "star.toml", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(1000);
    run(&scenario, config, "multirate", limit, vec![], |_| ControlFlow::Continue(()))
}

/// A node says itself of its reception what the run measured.
#[test]
fn a_receiver_tells_the_truth_about_order_delays_and_whole_seconds() {
    let line = crate::support::HIDDEN_LINE.replace("0.1 }", "0.3 }");
    let layers = r#"[{ name = "base", rate = "200k" }, { name = "enh", rate = "300k" }]"#;
    let stream = format!(
        "[[stream]]\ngroup = \"tv\"\nfrom = \"a\"\nlayers = {layers}\n\
         receivers = [{{ node = \"c\" }}]\nseconds = 30\n"
    );
    for scheme in ["delta", "stream_tree"] {
        let scenario =
            Scenario::parse(&[&line, stream.as_str()].concat(), "", Path::new("")).unwrap();
        let config = SimulationConfig::from_scenario(&scenario).unwrap();
        let mut told = None;
        let outcome = run(&scenario, config, scheme, Duration::from_secs(100), vec![], |step| {
            let stack = step.sim.host(2).stack().unwrap();
            let mut streams = stack.streams().into_iter();
            told = streams.find_map(|(_, status)| status.receiving).or(told.take());
            ControlFlow::Continue(())
        });
        let outcome = outcome.unwrap();
        let measured = &outcome.streams().unwrap().streams[0].receivers[0];
        let told = told.unwrap();
        let timely = told.timeliness.unwrap();
        let shown = format!("{scheme}: {timely:?} {measured:?}");
        for (layer, measured) in measured.layers.iter().enumerate() {
            assert!(told.packets[layer].abs_diff(measured.delivered) <= 30, "{shown}");
            assert!(
                timely.out_of_order[layer].abs_diff(measured.out_of_order.unwrap()) <= 5,
                "{shown}"
            );
            let of_delays = [
                (timely.delay_p50_s[layer], measured.delay_p50_s),
                (timely.delay_p99_s[layer], measured.delay_p99_s),
            ];
            for (told, measured) in of_delays {
                // Ages are written in quarters of a millisecond, and leave out times on the air.
                let most = measured.unwrap();
                assert!(told <= most * 1.1 && told >= most * 0.7 - 0.02, "{shown}");
            }
        }
        // The first second is a part, and the last ones are not judged yet.
        assert!((20..=30).contains(&timely.base_s), "{shown}");
        let broken = timely.base_s - timely.whole_base_s;
        assert!(broken.abs_diff(30 - measured.whole_base_s.unwrap()) <= 3, "{shown}");
    }
}

fn streams(text: &str) -> StreamsOutcome {
    carried(text).unwrap().streams().unwrap().clone()
}

fn stream(group: &str, rest: &str) -> String {
    format!("[[stream]]\ngroup = \"{group}\"\nfrom = \"s\"\npacket = 1400\n{rest}\n")
}

fn mbit(receiver: &StreamReceiverOutcome) -> f64 {
    receiver.rate_bps / 1e6
}

#[test]
fn every_receiver_gets_what_its_links_allow_and_the_base_comes_first() {
    let layers = r#"layers = [{ name = "base", rate = "500k" }, { name = "enh", rate = "15M" }]"#;
    let to = r#"receivers = [{ node = "b" }, { node = "c" }, { node = "d", min_rate = "500k" }]"#;
    let wired = "[protocol.multirate]\nv = 200\nwired = [\"b\"]\n";
    let text =
        [STAR, &stream("tv", &format!("{layers}\n{to}\nwarm_up_s = 30\nseconds = 40")), wired]
            .concat();
    let outcome = streams(&text);
    let [b, c, d] = &outcome.streams[0].receivers[..] else { panic!("three receivers") };
    let shown = format!("{:?} {:?} {:?}", b.layers, c.layers, d.layers);
    // b gets everything by cable. The radio serves c, whose link is almost three times as fast
    // (13.6 against 5.2 Mbit/s), except for the minimum rate of d, which is the base layer.
    assert!(mbit(b) > 0.9 * 15.5, "{shown}");
    assert!(mbit(c) > 0.9 * 12.3, "{shown}");
    assert!((0.47..0.7).contains(&mbit(d)), "{shown}");
    for receiver in [b, c, d] {
        assert!(receiver.layers[0].share > 0.95, "{shown}");
        assert_eq!((receiver.corrupt, receiver.layers[0].out_of_order), (0, Some(0)));
        let half = receiver.layers[0].delay_p50_s;
        let most = receiver.layers[0].delay_p99_s;
        assert!(half.is_some() && half <= most && most < Some(10.0), "{shown}");
        assert!((20..=40).contains(&receiver.whole_base_s.unwrap()), "{receiver:?}");
    }
    assert!(d.layers[1].share < 0.05, "{shown}");
    // No node drops packets of the base. Most of the enhancement is dropped where the paths part.
    assert!(outcome.queues.iter().all(|queue| queue.dropped[0] == 0), "{:?}", outcome.queues);
    let dropped = |node: &str, to: &str| {
        outcome.queues.iter().find(|q| q.node == node && q.to == to).unwrap().dropped[1]
    };
    assert!(dropped("b", "d") > 10 * dropped("s", "b"), "{:?}", outcome.queues);
}

/// Returns the rate over a single hop that loses `loss` of its frames, in Mbit/s, when more is
/// offered than it carries.
fn one_hop(loss: f64) -> f64 {
    let link = format!("link = [{{ from = \"s\", to = \"b\", loss = {loss}, loss_back = 0.0 }}]\n");
    let rest = r#"layers = [{ name = "all", rate = "8M" }]
        receivers = [{ node = "b" }]
        warm_up_s = 20
        seconds = 30"#;
    mbit(&streams(&(link + &stream("tv", rest))).streams[0].receivers[0])
}

#[test]
fn loss_without_congestion_costs_little_more_than_the_lost_packets() {
    let whole = one_hop(0.0);
    let lossy = one_hop(0.3);
    assert!(whole > 4.5, "{whole}");
    assert!(lossy > 0.8 * 0.7 * whole, "{lossy} of {whole}");
}

#[test]
fn a_rate_backs_off_where_queues_are_real_and_its_base_stays_whole() {
    let layers = r#"layers = [{ name = "base", rate = "300k" }, { name = "enh", rate = "8M" }]"#;
    let to = r#"receivers = [{ node = "b", utility = "log" }]"#;
    let first = stream("first", &format!("{layers}\n{to}\nwarm_up_s = 60\nseconds = 40"));
    let second =
        stream("second", &format!("{layers}\n{to}\nstart_s = 30\nwarm_up_s = 30\nseconds = 40"));
    let outcome =
        streams(&format!("link = [{{ from = \"s\", to = \"b\", loss = 0.0 }}]\n{first}{second}"));
    let [first, second] = [0, 1].map(|i| &outcome.streams[i].receivers[0]);
    let mean = |from: usize, to: usize| {
        first.series.rate_bps[from..to].iter().sum::<f64>() / (to - from) as f64 / 1e6
    };
    let alone = mean(15, 30);
    let shared = mean(60, 100);
    assert!(alone > 4.5, "{alone}");
    assert!((0.4..0.6).contains(&(shared / alone)), "{shared} of {alone}");
    assert!((mbit(second) / mbit(first) - 1.0).abs() < 0.2, "{first:?} {second:?}");
    for receiver in [first, second] {
        assert!(receiver.layers[0].share > 0.97, "{:?}", receiver.layers);
    }
}

#[test]
fn receivers_come_and_go_and_one_seed_gives_one_trace() {
    let rest = r#"layers = [{ name = "all", rate = "1M" }]
        receivers = [{ node = "b", join_s = 5, leave_s = 20 }, { node = "c", join_s = 10 }]
        seconds = 40"#;
    let text = [STAR, &stream("tv", rest)].concat();
    let outcome = carried(&text).unwrap();
    assert_eq!(outcome.trace, carried(&text).unwrap().trace);
    let streams = outcome.streams().unwrap();
    let rates = |i: usize| &streams.streams[0].receivers[i].series.rate_bps;
    let b = rates(0);
    let c = rates(1);
    assert!(b[..5].iter().chain(&b[21..]).all(|bps| *bps == 0.0), "{b:?}");
    assert!(b[12..20].iter().all(|bps| *bps > 0.0), "{b:?}");
    // b forwards the stream to c even after it has left the group.
    assert!(c[..10].iter().all(|bps| *bps == 0.0), "{c:?}");
    assert!(c[30..].iter().sum::<f64>() > 9.5e6, "{c:?}");
}

#[test]
fn a_stream_that_fits_begins_whole_and_waits_nowhere() {
    // A packet every 7 ms, and a packet every 200 ms.
    for (base, enhancement, longest_delay_s) in [("500k", "1M", 0.01), ("14k", "42k", 0.01)] {
        for utility in ["linear", "log"] {
            let rest = format!(
                r#"layers = [
                    {{ name = "base", rate = "{base}" }},
                    {{ name = "enh", rate = "{enhancement}" }},
                ]
                receivers = [
                    {{ node = "b", utility = "{utility}" }},
                    {{ node = "c", utility = "{utility}", join_s = 5 }},
                ]
                seconds = 30"#
            );
            let text = [STAR, &stream("tv", &rest)].concat();
            let outcome = streams(&text);
            for (receiver, joins) in outcome.streams[0].receivers.iter().zip([0, 5]) {
                let rates = &receiver.series.rate_bps[joins + 1..];
                let offered: f64 = if base == "14k" { 56e3 } else { 1.5e6 };
                // A second may hold one packet fewer.
                let least = 0.97 * offered - 11_200.0;
                assert!(rates.iter().all(|bps| *bps > least), "{utility}: {rates:?}");
                assert!(
                    receiver.mean_delay_s.unwrap() < longest_delay_s,
                    "{utility}: {receiver:?}"
                );
                assert_eq!(receiver.problem, None);
            }
        }
    }
}

#[test]
fn infeasible_minimum_rates_are_approached_and_reported() {
    // The radio carries about 5 Mbit/s.
    let to = r#"receivers = [{ node = "b", min_rate = "4M" }, { node = "c", min_rate = "4M" }]"#;
    let rest = format!(
        "layers = [{{ name = \"all\", rate = \"6M\" }}]\n{to}\nwarm_up_s = 40\nseconds = 100"
    );
    let star = r#"link = [
        { from = "s", to = "b", loss = 0.0 },
        { from = "s", to = "c", loss = 0.0 },
        { from = "b", to = "c", loss = 0.0 },
    ]
    "#;
    let outcome = streams(&[star, &stream("tv", &rest)].concat());
    let all = &outcome.streams[0].receivers;
    assert!(all.iter().map(mbit).sum::<f64>() > 4.7, "{all:?}");
    assert!(all.iter().all(|receiver| mbit(receiver) < 4.0), "{all:?}");
    // They take turns: one may have had enough lately.
    let problems: Vec<&str> = all.iter().filter_map(|r| r.problem.as_deref()).collect();
    assert!(!problems.is_empty(), "{all:?}");
    for problem in problems {
        assert!(problem.contains("of at least 4.00 Mbit/s: more than links"), "{problem}");
    }
}

#[test]
fn a_source_slower_than_a_minimum_rate_is_reported_as_the_reason() {
    let rest = r#"layers = [{ name = "all", rate = "1M" }]
        receivers = [{ node = "b", min_rate = "2M" }]
        seconds = 30"#;
    let outcome = streams(&[STAR, &stream("tv", rest)].concat());
    let receiver = &outcome.streams[0].receivers[0];
    assert!(mbit(receiver) > 0.97, "{receiver:?}");
    let problem = receiver.problem.as_deref().unwrap();
    assert!(problem.contains("at least 2.00 Mbit/s: the source sends no more"), "{problem}");
}

#[test]
fn a_receiver_that_joins_and_leaves_within_a_slot_disturbs_nobody() {
    let rest = r#"layers = [{ name = "all", rate = "1M" }]
        receivers = [
            { node = "b" },
            { node = "c", join_s = 5, leave_s = 5.001 },
            { node = "d", join_s = 5, leave_s = 5 },
        ]
        warm_up_s = 1
        seconds = 20"#;
    let outcome = streams(&[STAR, &stream("tv", rest)].concat());
    let [b, c, d] = &outcome.streams[0].receivers[..] else { panic!("three receivers") };
    assert!(b.layers[0].share > 0.99, "{b:?}");
    assert!(c.layers[0].delivered + d.layers[0].delivered < 3, "{c:?} {d:?}");
    assert!(outcome.queues.iter().all(|queue| queue.node != "b" || queue.sent[0] < 3));
}

#[test]
fn a_source_refuses_what_exceeds_the_admitted_rate() {
    // A_max admits 18 Mbit/s.
    let rest = r#"layers = [{ name = "base", rate = "1M" }, { name = "enh", rate = "40M" }]
        receivers = [{ node = "c" }]
        warm_up_s = 20
        seconds = 10"#;
    let outcome = streams(&[STAR, &stream("tv", rest)].concat());
    let stream = &outcome.streams[0];
    assert!(stream.refused > 10_000, "{stream:?}");
    assert!(mbit(&stream.receivers[0]) > 11.0, "{stream:?}");
}

#[test]
fn errors_name_what_cannot_be_streamed() {
    let rest = "layers = [{ name = \"all\", rate = \"1M\" }]\nreceivers = [{ node = \"d\" }]";
    let lonely = r#"link = [{ from = "s", to = "b", loss = 0.0 }]"#;
    let refused = |text: String| carried(&text).unwrap_err().to_string();
    let unreachable = refused(format!("{lonely}\n{}", stream("tv", rest)));
    assert!(unreachable.contains("d cannot be reached from s"), "{unreachable}");
    assert!(refused(lonely.into()).contains("[[stream]]"));
    let long = stream("tv", rest).replace("1400", "1480");
    let long = refused([STAR, &long].concat());
    assert!(long.contains("too long") && long.contains("multirate carries up to"), "{long}");
    let steep = rest.replace("\"d\"", "\"d\", utility = { name = \"linear\", weight = 5.0 }");
    let steep = refused([STAR, &stream("tv", &steep)].concat());
    assert!(steep.contains("theta"), "{steep}");
    let parse = |rest: &str| {
        let text = [HEAD, STAR, &stream("tv", rest)].concat();
        Scenario::parse(&text, "star.toml", Path::new("")).unwrap_err().to_string()
    };
    assert!(
        parse("layers = []\nreceivers = [{ node = \"d\" }]").contains("`layers` must be 1 to 4")
    );
    assert!(parse(&rest.replace("\"d\"", "\"s\"")).contains("must not be the source"));
    assert!(parse(&rest.replace("1M", "0")).contains("above 0"));
}
