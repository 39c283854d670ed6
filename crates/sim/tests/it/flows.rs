//! Flows of a scenario through a tunnel: the counters, and the time that they cover.

use ipnet::IpNet;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::PacketError;
use ncmesh_host::gateway::{DEFAULT_QUEUE, Gateway, GatewayConfig, Mesh, Target};
use ncmesh_sim::outcome::{FlowsOutcome, Outcome};
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Event, Observer, RunError, SimulationConfig, What, check_traffic, run};
use ncmesh_wire::NodeId;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

const LINE: &str = r#"
name = "line"
nodes = ["a", "b", "c"]
medium = { phy = "802.11b", bit_rate = "11M" }
link = [{ from = "a", to = "b", loss = 0.1 }, { from = "b", to = "c", loss = 0.0 }]
protocol.link = { quick_hello_s = 0.1 }
"#;

fn carried(flows: &str) -> Result<Outcome, RunError> {
    carried_by("forward", flows, vec![])
}

fn carried_by(
    scheme: &str,
    flows: &str,
    observers: Vec<Box<dyn Observer>>,
) -> Result<Outcome, RunError> {
    let text = format!("{LINE}{flows}");
    let scenario = Scenario::parse(&text, "line.toml", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(1000);
    run(&scenario, config, scheme, limit, observers, |_| ControlFlow::Continue(()))
}

fn flows(flows: &str) -> Result<FlowsOutcome, RunError> {
    Ok(carried(flows)?.flows().unwrap().clone())
}

#[test]
fn packets_of_a_real_time_class_do_not_wait_behind_a_connection() {
    let delay = |dscp: u8| {
        let beside = format!(
            r#"
            flow = [
                {{ from = "a", to = "c", protocol = "tcp", warm_up_s = 2, seconds = 20 }},
                {{ from = "a", to = "c", rate = "64k", packet = 200, warm_up_s = 2, seconds = 20,
                   dscp = {dscp} }},
            ]
            "#
        );
        let outcome = carried_by("braid", &beside, vec![]).unwrap();
        let [tcp, call] = &outcome.flows().unwrap().flows[..] else { panic!("{outcome:?}") };
        assert!(tcp.throughput_bps > 1e6, "{tcp:?}");
        call.mean_delay_s.unwrap()
    };
    let expedited = delay(46);
    let plain = delay(0);
    assert!(expedited < 0.7 * plain, "{expedited} {plain}");
}

#[test]
fn a_constant_rate_arrives_at_that_rate() {
    let outcome = carried(
        r#"
        [[flow]]
        from = "a"
        to = "c"
        rate = "80k"
        packet = 1000
        start_s = 1
        warm_up_s = 2
        seconds = 20
        "#,
    )
    .unwrap();
    let flow = &outcome.flows().unwrap().flows[0];
    // 10 packets/s for 20 s.
    assert_eq!((flow.taken, flow.refused, flow.delivered), (Some(200), Some(0), 200));
    assert_eq!((flow.corrupt, flow.disordered), (Some(0), Some(0)));
    assert_eq!((flow.seconds, flow.throughput_bps), (20.0, 80_000.0));
    assert_eq!(flow.packets_per_slot, None);
    // Two hops of 1.3 ms, retries and queueing.
    let delay = flow.mean_delay_s.unwrap();
    assert!((0.002..0.01).contains(&delay), "{delay}");
    assert_eq!(outcome.seconds, 23.0);
    let samples = &flow.series.seconds;
    let last = flow.series.delivered.last().unwrap();
    assert!(samples.len() > 100 && samples.is_sorted(), "{samples:?}");
    assert!((210..=220).contains(last), "{last}");
}

#[test]
fn each_hop_takes_the_time_of_processing() {
    let flow = |processing: &str| {
        let flow = r#"
        [[flow]]
        from = "a"
        to = "c"
        rate = "80k"
        packet = 1000
        start_s = 1
        warm_up_s = 2
        seconds = 20
        "#;
        flows(&format!("{processing}{flow}")).unwrap().flows[0].clone()
    };
    let direct = flow("");
    for (processing, mean_s) in [
        ("[processing]\nleast_s = 0.005\nmost_s = 0.005", 0.005),
        ("[processing]\nmost_s = 0.02", 0.01),
    ] {
        // Two hops, more or fewer retries, and hellos now and then before frames of the flow.
        let flow = flow(processing);
        let more_s = flow.mean_delay_s.unwrap() - direct.mean_delay_s.unwrap();
        assert!((1.8 * mean_s..2.4 * mean_s).contains(&more_s), "{more_s} with {processing}");
        assert_eq!((flow.delivered, flow.disordered), (200, Some(0)));
    }
}

#[test]
fn a_greedy_flow_fills_the_channel_and_two_share_it() {
    let one = flows(r#"flow = [{ from = "b", to = "c", seconds = 5 }]"#).unwrap();
    let alone = one.flows[0].throughput_bps;
    // A packet of 1393 bytes takes 1.5 ms, with acknowledgment and backoff.
    assert!((5e6..7e6).contains(&alone), "{alone}");
    assert_eq!(one.flows[0].corrupt, Some(0));
    let two = flows(
        r#"flow = [{ from = "b", to = "c", seconds = 5 }, { from = "c", to = "b", seconds = 5 }]"#,
    )
    .unwrap();
    for flow in &two.flows {
        assert!((0.35..0.65).contains(&(flow.throughput_bps / alone)), "{flow:?}");
    }
}

#[test]
fn greedy_flows_of_one_node_take_turns_at_its_gateway() {
    let both = flows(
        r#"flow = [{ from = "b", to = "c", seconds = 5 }, { from = "b", to = "a", seconds = 5 }]"#,
    );
    let [one, other] = &both.unwrap().flows[..] else { panic!("two flows") };
    let ratio = one.throughput_bps / other.throughput_bps;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn tcp_arrives_whole_and_says_how() {
    let tcp = r#"flow = [{ from = "a", to = "c", protocol = "tcp", size = "2MB", seconds = 60 }]"#;
    let outcome = carried(tcp).unwrap();
    let flow = &outcome.flows().unwrap().flows[0];
    let tcp = flow.tcp.as_ref().unwrap();
    assert_eq!((tcp.bytes, flow.corrupt, flow.packet_bytes), (2_000_000, Some(0), 1452));
    assert_eq!(tcp.segment_bytes, 1400);
    // 1,429 segments; the MAC repeats what is lost on the way.
    assert!((1429..1500).contains(&tcp.segments), "{tcp:?}");
    assert!(tcp.arrived <= tcp.segments && tcp.retransmissions < 60, "{tcp:?}");
    let rtt = tcp.rtt_s.unwrap();
    let least = tcp.min_rtt_s.unwrap();
    assert!((0.003..0.02).contains(&least) && rtt > least, "{rtt} {least}");
    // The run ends with the last byte.
    let finished = tcp.finished_s.unwrap();
    assert!((5.0..20.0).contains(&finished), "{finished}");
    assert!((outcome.seconds - finished).abs() < 1e-6);
    assert_eq!(flow.throughput_bps.round(), (16e6 / finished).round());
}

/// The mesh behind a gateway that is asked for round trips only: it takes every packet.
struct Anywhere;

impl Mesh for Anywhere {
    fn version(&self) -> u64 {
        0
    }

    fn each_announced(&self, _: &mut dyn FnMut(NodeId, IpNet)) {}

    fn nearest(&self, _: &[NodeId]) -> Option<NodeId> {
        None
    }

    fn named(&self, _: &str) -> Option<NodeId> {
        None
    }

    fn below_low_watermark(&self, _: NodeId) -> bool {
        true
    }

    fn send(&mut self, _: NodeId, _: &[u8]) -> Result<(), PacketError> {
        Ok(())
    }
}

/// Gateway that sees what the host of the first node sends and gets.
struct Beside {
    gateway: Gateway,
    /// Smoothed round trips at all arrivals, s, and the shortest that was ever shown.
    smoothed: Vec<f64>,
    min: f64,
}

/// Node behind which the other host is.
const FAR: NodeId = NodeId(3);

impl Observer for Beside {
    fn observe(&mut self, event: &Event<'_>) -> std::io::Result<()> {
        let Event { at, node: 0, what } = *event else { return Ok(()) };
        match what {
            What::Offered(packet) => {
                self.gateway.handle_outbound(packet.into(), &mut Anywhere, at);
            }
            What::Arrived(packet) => {
                self.gateway.handle_inbound(FAR, packet.into(), &Anywhere, at);
                let trip = self.gateway.round_trip(FAR, at).unwrap();
                self.smoothed.push(trip.smoothed.as_secs_f64());
                self.min = trip.min.as_secs_f64().min(self.min);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The sender measures by sequence numbers, the gateway by timestamps.
#[test]
fn a_gateway_measures_the_round_trip_that_the_sender_does() {
    let config = GatewayConfig {
        addresses: Vec::new(),
        routes: vec![("0.0.0.0/0".parse().unwrap(), Target::Id(FAR))],
        accept: Vec::new(),
        announce: Vec::new(),
        mtu: 1500,
        whole: 1500,
        clamp_mss: false,
        padding: false,
        queue: DEFAULT_QUEUE,
        multicast: None,
    };
    let gateway = Gateway::new(config);
    let beside = Beside { gateway, smoothed: Vec::new(), min: f64::INFINITY };
    let beside = Rc::new(RefCell::new(beside));
    let tcp = r#"
        [[flow]]
        from = "a"
        to = "c"
        protocol = "tcp"
        congestion = "reno"
        window = 20000
        ack_delay_s = 0
        seconds = 20
        "#;
    let outcome = carried_by("forward", tcp, vec![Box::new(Rc::clone(&beside))]).unwrap();
    let tcp = outcome.flows().unwrap().flows[0].tcp.clone().unwrap();
    let beside = beside.borrow();
    let mean = beside.smoothed.iter().sum::<f64>() / beside.smoothed.len() as f64;
    let rtt = tcp.rtt_s.unwrap();
    let least = tcp.min_rtt_s.unwrap();
    assert!((0.98..1.02).contains(&(mean / rtt)), "{mean} {rtt}");
    // The packets that open the connection are shorter than those the sender measures.
    assert!((0.002..least).contains(&beside.min), "{} {least}", beside.min);
}

#[test]
fn datagrams_and_tcp_share_the_mesh_and_a_warm_up_is_not_counted() {
    let outcome = flows(
        r#"
        [[flow]]
        from = "a"
        to = "c"
        protocol = "tcp"
        warm_up_s = 3
        seconds = 5
        packet = 1000

        [[flow]]
        from = "c"
        to = "a"
        rate = "80k"
        packet = 1000
        seconds = 8

        [[flow]]
        from = "b"
        to = "c"
        protocol = "tcp"
        congestion = "reno"
        ack_delay_s = 0.04
        seconds = 8
        "#,
    )
    .unwrap();
    let [forth, packets, beside] = &outcome.flows[..] else { panic!("three flows") };
    let tcp = forth.tcp.as_ref().unwrap();
    assert_eq!((forth.seconds, tcp.bytes), (5.0, (forth.throughput_bps * 5.0 / 8.0) as u64));
    // Segments that came before it was measured, behind a gap, count as bytes when that is filled.
    let in_order = tcp.bytes / 948;
    assert!(tcp.arrived + 16 >= in_order && forth.delivered >= tcp.arrived, "{forth:?}");
    assert!((75..=80).contains(&packets.delivered) && packets.tcp.is_none());
    assert!(beside.tcp.as_ref().unwrap().bytes > 100_000, "{beside:?}");
    assert!([beside, forth, packets].iter().all(|flow| flow.corrupt == Some(0)));
    assert!(outcome.coding.is_empty());
}

#[test]
fn slots_are_counted_where_access_is_slotted() {
    let text =
        LINE.replace(r#""11M" }"#, r#""11M", mac = "slotted", conflict = "shared_hearer" }"#);
    let text = format!(r#"{text}flow = [{{ from = "b", to = "c", seconds = 5 }}]"#);
    let scenario = Scenario::parse(&text, "line.toml", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(1000);
    let outcome =
        run(&scenario, config, "forward", limit, vec![], |_| ControlFlow::Continue(())).unwrap();
    // The flow uses all slots except those of probes and link states.
    let rate = outcome.flows().unwrap().flows[0].packets_per_slot.unwrap();
    assert!((0.97..=1.0).contains(&rate), "{rate}");
}

#[test]
fn auto_is_the_default_for_what_the_scenario_carries() {
    let chosen = |traffic: &str, scheme: &str| {
        let text = format!("{LINE}{traffic}");
        let scenario = Scenario::parse(&text, "line.toml", Path::new("")).unwrap();
        check_traffic(&scenario, scheme).map(|s| s.to_string()).map_err(|e| e.to_string())
    };
    let flow = r#"flow = [{ from = "a", to = "c" }]"#;
    let both = format!("traffic = {{ from = \"a\", to = [\"c\"], size = \"1kB\" }}\n{flow}");
    let all = "file=cascade,tunnel=braid";
    for (traffic, schemes, carried) in [
        (flow, "auto", "braid"),
        (&both, "auto", all),
        (&both, all, all),
        (&both, "tunnel=auto, file=cascade", all),
        // A name, and a list, leave out the traffic of other services.
        (&both, "xor", "xor"),
        (&both, "file=more", "more"),
        // The scenario's own choice holds for `auto` only.
        (&format!("scheme = \"file=more\"\n{both}"), "auto", "more"),
        (&format!("scheme = \"file=more\"\n{both}"), "tunnel=xor", "xor"),
    ] {
        assert_eq!(chosen(traffic, schemes).as_deref(), Ok(carried), "{schemes}");
    }
}

#[test]
fn wrong_names_of_schemes_give_one_clear_line() {
    let flow = r#"flow = [{ from = "a", to = "c" }]"#;
    let scenario = Scenario::parse(&format!("{LINE}{flow}"), "line.toml", Path::new("")).unwrap();
    for (schemes, problem) in [
        ("x", "no tunnel scheme is called \"x\"; there are: auto, braid, "),
        ("tunnel=cascade", "no tunnel scheme is called \"cascade\"; there are: auto, braid, "),
        ("tunel=braid", "no service is called \"tunel\"; there are: file, tunnel, stream; did you"),
        (
            "tunnel=braid,xor",
            "\"xor\" in a list of schemes lacks its service: write SERVICE=SCHEME",
        ),
        ("tunnel=braid,tunnel=xor", "service tunnel is named twice: give it one scheme"),
        ("tunnel=braid,file=auto", "the scenario has no [traffic]: cascade has nothing to carry"),
        ("", "no tunnel scheme is called \"\""),
    ] {
        let error = check_traffic(&scenario, schemes).err().unwrap().to_string();
        assert!(error.starts_with(problem), "{schemes}: {error}");
    }

    // In the scenario, the line is named too.
    let text = format!("{LINE}scheme = \"tunnel=x\"\n{flow}");
    let error = Scenario::parse(&text, "line.toml", Path::new("")).unwrap_err().to_string();
    assert!(error.starts_with("line.toml:7: no tunnel scheme is called \"x\""), "{error}");
}

#[test]
fn errors_name_what_cannot_be_carried() {
    let too_long = flows(r#"flow = [{ from = "a", to = "c", packet = 5000 }]"#).unwrap_err();
    assert_eq!(
        too_long.to_string(),
        "packets of 5000 bytes are too long: forward carries up to 1452 here"
    );
    assert_eq!(
        flows("").unwrap_err().to_string(),
        "the scenario has no [[flow]]: forward has nothing to carry"
    );
    for (tcp, problem) in [
        (r#"congestion = "bbr""#, r#"has congestion "cubic", "reno" and "none", not "bbr""#),
        (r#"rate = "1k""#, "sends as fast as it can"),
    ] {
        let error =
            flows(&format!(r#"flow = [{{ from = "a", to = "c", protocol = "tcp", {tcp} }}]"#));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("`ncmesh lab`"), "{error}");
    }
    for (flow, problem) in [
        (r#"from = "a", to = "a""#, "`to` must not be the source"),
        (r#"from = "a", to = "x""#, "no node `x`"),
        (r#"from = "a", to = "c", seconds = 0"#, "seconds = 0: allowed is 0.001 to"),
        (r#"from = "a", to = "c", rate = 0"#, "rate = 0: allowed is a quantity above 0"),
        (r#"from = "a", to = "c", start_s = nan"#, "start_s = nan: allowed is 0 to"),
        (
            r#"from = "a", to = "c", protocol = "sctp""#,
            "protocol = \"sctp\": allowed is \"udp\", \"tcp\"",
        ),
        (r#"from = "a", to = "c", speed = 1"#, "unknown field `speed`"),
        (r#"from = "a", to = "c", size = 9"#, "need `protocol = \"tcp\"`"),
        (r#"from = "a", to = "c", congestion = "reno""#, "need `protocol = \"tcp\"`"),
        (
            r#"from = "a", to = "c", protocol = "tcp", size = 0"#,
            "size = 0: allowed is a quantity above 0",
        ),
        (
            r#"from = "a", to = "c", protocol = "tcp", window = 100"#,
            "window = 100: allowed is a quantity from 4 KiB",
        ),
        (
            r#"from = "a", to = "c", protocol = "tcp", ack_delay_s = 2"#,
            "ack_delay_s = 2: allowed is 0 to 1 s",
        ),
        (r#"from = "a", to = "c", min_rto_s = 1"#, "need `protocol = \"tcp\"`"),
        (
            r#"from = "a", to = "c", protocol = "tcp", min_rto_s = 0"#,
            "min_rto_s = 0: allowed is 0.001 to 60 s",
        ),
    ] {
        let text = format!("{LINE}flow = [{{ {flow} }}]");
        let error = Scenario::parse(&text, "line.toml", Path::new("")).unwrap_err();
        assert!(error.to_string().contains(problem), "{flow}: {error}");
    }
}
