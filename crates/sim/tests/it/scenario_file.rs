//! Scenario files: how they are read, and the errors for faulty ones.

use std::path::Path;

use crate::support::by_ends;
use ncmesh_medium::{ChannelConfig, Fading, MacConfig, Phy, RadioId, Sense};
use ncmesh_sim::scenario::{Content, Position, Scenario, ScenarioError, netjson};
use proptest::prelude::*;

const SMALL: &str = r#"
name = "small"
nodes = ["a", "b", "c"]
link = [
    { from = "a", to = "b", loss = 0.25 },
    { from = "b", to = "c", loss = 0.5, loss_back = 1.0 },
]
[medium]
phy = "802.11b"
bit_rate = "5.5M"
[traffic]
from = "a"
to = ["b", "c"]
size = "2.3MB"
[protocol.pacifier]
knob = 0
"#;

fn data() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"))
}

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, "s.toml", data())
}

fn fault(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_small_file_is_read() {
    let scenario = parse(SMALL).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seed), ("small", 1));
    let config = scenario.medium_config();
    assert_eq!((config.bit_rate_bps, config.phy, config.radios()), (5_500_000, Phy::DOT11B, 3));
    let links = by_ends(&scenario);
    assert_eq!(links, [(0, 1, 0.75), (1, 0, 0.75), (1, 2, 0.5)]);
    let traffic = scenario.traffic.into_iter().next().unwrap();
    assert_eq!(
        (traffic.from, traffic.to, traffic.content),
        (0, vec![1, 2], Content::Random { bytes: 2_300_000 })
    );
    assert_eq!(scenario.protocol["pacifier"]["knob"].as_integer(), Some(0));
}

#[test]
fn several_files_are_read_and_errors_have_their_places() {
    let mesh = "name = \"x\"\nnodes = [\"a\", \"b\", \"c\"]\n\
                medium = { phy = \"802.11b\", bit_rate = \"2M\" }\n";
    let first = "[[traffic]]\nfrom = \"a\"\nto = [\"b\"]\nsize = \"1kB\"\n";
    let second = "[[traffic]]\nfrom = \"c\"\nto = [\"a\"]\nsize = \"2kB\"\nbackground = 10\n";
    let scenario = parse(&[mesh, first, second].concat()).unwrap();
    let files =
        scenario.traffic.iter().map(|file| (file.from, file.allowance.background.is_some()));
    assert_eq!(files.collect::<Vec<_>>(), [(0, false), (2, true)]);

    let wrong = |second: &str| fault(&[mesh, first, second].concat());
    let unknown = wrong(&second.replace("background", "backgruond"));
    assert!(unknown.contains(":12: unknown field `backgruond`"), "{unknown}");
    let receiver = wrong(&second.replace("\"a\"", "\"d\""));
    assert!(receiver.contains(":10: no node `d`"), "{receiver}");
    let number = fault(&format!("{mesh}traffic = 7\n"));
    assert!(number.contains("`traffic` must be a table, or a list of tables, not"), "{number}");
    let missing = fault(&format!("{mesh}[traffic]\nfrom = \"a\"\n"));
    assert!(missing.contains("missing field `to`"), "{missing}");
}

#[test]
fn errors_are_one_line_with_place_and_remedy() {
    let medium =
        "name = \"x\"\nnodes = [\"a\", \"b\"]\n[medium]\nphy = \"802.11b\"\nbit_rate = \"2M\"\n";
    let with = |more: &str| fault(&format!("{medium}{more}"));
    let cases = [
        (fault("name = \"x\"\n"), "missing field `medium`"),
        (
            fault("name = 3"),
            "s.toml:1: `name` must be text in quotes such as \"a\", not the number `3`",
        ),
        (fault("name = \"x\"\nnodes = [\n"), "s.toml:2: "),
        (
            fault(&medium.replace("2M", "2X")),
            "s.toml:5: bit_rate = \"2X\": allowed is a bit rate such as 2000000, \"2M\" or",
        ),
        (
            fault(&medium.replace("2M", "2MB")),
            "s.toml:5: bit_rate = \"2MB\": allowed is a bit rate such as",
        ),
        (
            fault(&medium.replace("\"2M\"", "-1")),
            "s.toml:5: bit_rate = -1: allowed is a quantity from 1 kbit/s",
        ),
        (with("mtu = 2305\n"), "s.toml:6: mtu = 2305: allowed is 256 to 2304 bytes"),
        (with("mtu = 255\n"), "s.toml:6: mtu = 255: allowed is 256 to 2304 bytes"),
        (
            with("[traffic]\nfrom = \"a\"\nto = [\"b\"]\nsize = \"2Mbit\"\n"),
            "s.toml:9: size = \"2Mbit\": allowed is a size such as 2300000, \"2.3MB\"",
        ),
        (
            fault(&medium.replace("2M", "1")),
            "s.toml:5: bit_rate = \"1\": allowed is a quantity from 1 kbit/s to 10 Gbit/s",
        ),
        (
            fault(&medium.replace("802.11b", "802.11q")),
            "s.toml:4: phy = \"802.11q\": allowed is \"802.11b\", \"802.11a\"",
        ),
        (
            fault(&medium.replace("\"b\"", "\"b c\"")),
            "s.toml:2: node name `b c`: must be 1 to 63 of a-z, A-Z",
        ),
        (
            fault(&medium.replace("\"b\"", "\"a\"")),
            "s.toml:2: two nodes are named `a`, the first at s.toml:2",
        ),
        (
            fault(&medium.replace("nodes = [\"a\", \"b\"]", "")),
            "s.toml: no nodes: give `nodes`, `[[node]]` or `[topology]`",
        ),
        (with("speed = 3\n"), "s.toml:6: unknown field `speed`, expected one of `phy`, `bit_rate`"),
        (with("cw_min = 2000\n"), "s.toml:3: medium timing: the contention window must"),
        (
            with("[[link]]\nfrom = \"a\"\nto = \"z\"\nloss = 0\n"),
            "s.toml:8: no node `z`: there are a, b",
        ),
        (
            with("[traffic]\nfrom = \"a\"\nto = \"r\"\nsize = 1\n"),
            "s.toml:8: `to` must be a list such as [\"a\", \"b\"], not the text \"r\"",
        ),
        (fault(&medium.replace("bit_rate", "bitrate")), "`mtu`, `"),
        (
            with("[[link]]\nfrom = \"a\"\nto = \"b\"\nloss = 1.5\n"),
            "s.toml:9: loss = 1.5: allowed is 0 to 1",
        ),
        (
            with("[[link]]\nfrom = \"a\"\nto = \"a\"\nloss = 0.5\n"),
            "s.toml:6: loss 0.5: must be from 0 to 1, between two different",
        ),
        (with("[[node]]\nname = \"c\"\n"), "s.toml:7: give `nodes` or `[[node]]`, not both"),
        (
            with("[traffic]\nfrom = \"a\"\nto = [\"a\"]\nsize = 1\n"),
            "s.toml:8: a receiver must not be the source",
        ),
        (
            with("[traffic]\nfrom = \"a\"\nto = []\nsize = 1\n"),
            "s.toml:7: `to` must name at least one node",
        ),
        (
            with("[traffic]\nfrom = \"a\"\nto = [\"b\"]\n"),
            "s.toml:7: give `size` or `file`, one of them",
        ),
        (
            with("[traffic]\nfrom = \"a\"\nto = [\"b\"]\nsize = \"5GB\"\n"),
            "s.toml:9: size = \"5GB\": allowed is a quantity from 1 byte to 4 GB; for more",
        ),
        (
            with("[topology]\nmatrix = \"a\"\nlinks = \"b\"\n"),
            "s.toml:7: give one of `matrix`, `links`, `netjson`",
        ),
        (with("[topology]\nmatrix = \"nowhere.csv\"\n"), "nowhere.csv: No such file"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "`{message}` does not say `{expected}`");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn settings_are_overridden_by_key() {
    let mut scenario = parse(SMALL).unwrap();
    for assignment in [
        "medium.bit_rate=2M",
        "seed=9",
        "traffic.to=c",
        "traffic.size=64KiB",
        "protocol.pacifier.knob=1",
        "protocol.more.threshold = 0.2",
        "medium.sense=everyone",
        "medium.mtu=2304",
    ] {
        scenario.set(assignment).unwrap();
    }
    let config = scenario.medium_config();
    assert_eq!((config.bit_rate_bps, config.seed), (2_000_000, 9));
    assert!(
        matches!(config.channel, ChannelConfig::Links(links) if links.sense == Sense::Everyone)
    );
    assert_eq!(scenario.mtu, 2304);
    assert_eq!(scenario.protocol["pacifier"]["knob"].as_integer(), Some(1));
    assert_eq!(scenario.protocol["more"]["threshold"].as_float(), Some(0.2));
    let traffic = scenario.traffic.into_iter().next().unwrap();
    assert_eq!((traffic.to, traffic.content), (vec![2], Content::Random { bytes: 65_536 }));
}

#[test]
fn a_table_is_read_like_a_file_and_errors_quote_it() {
    let table = |text: &str| Scenario::from_table(&toml::from_str(text).unwrap(), data());
    assert_eq!(table(SMALL).unwrap().medium_config(), parse(SMALL).unwrap().medium_config());
    let fault = |from: &str, to: &str| table(&SMALL.replace(from, to)).unwrap_err().to_string();
    assert_eq!(
        fault("\"b\", \"c\"]\nsize", "\"d\"]\nsize"),
        "no node `d`: there are a, b, c, in `to = [\"d\"]`"
    );
    assert!(fault("[\"a\", \"b\", \"c\"]", "[]").starts_with("no nodes: give `nodes`"));
    let other_file = fault("nodes = [\"a\", \"b\", \"c\"]", "topology.matrix = \"none.csv\"");
    assert!(other_file.contains("none.csv: No such file"), "{other_file}");
}

#[test]
fn faulty_overrides_are_refused_and_change_nothing() {
    let mut scenario = parse(SMALL).unwrap();
    let cases = [
        ("seed", "must read key=value"),
        ("medium.bitrate=2M", "unknown field `bitrate`, expected one of"),
        ("medium.bit_rate=fast", "allowed is a bit rate such as"),
        ("seed=-1", "seed = -1: allowed is 0 to 9223372036854775807"),
        ("name.first=x", "`name` is not a table"),
        ("=3", "`` is no key"),
        ("a..b=3", "`a..b` is no key"),
        ("seed=1\nname=\"y\"", "`seed` must be a whole number such as 3, not the text"),
        ("traffic.to=a,b", "a receiver must not be the source"),
    ];
    for (assignment, expected) in cases {
        let message = scenario.set(assignment).unwrap_err().to_string();
        assert!(message.starts_with("override `") && message.contains(expected), "{message}");
    }
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.medium_config(), parse(SMALL).unwrap().medium_config());
}

/// A value is refused with its key and range, whether or not anything uses it.
#[test]
fn numbers_out_of_range_are_refused_where_nothing_uses_them() {
    let fault = |table: &str, setting: &str| {
        let header = format!("[{table}]\n");
        let text = RADIOS.replace(&header, &format!("{header}{setting}\n"));
        parse(&text).unwrap_err().to_string()
    };
    for (table, setting, problem) in [
        ("medium.propagation", "nakagami_m = nan", "nakagami_m = nan: allowed is 0.5 to 100"),
        ("medium.propagation", "exponent = 0", "exponent = 0: allowed is 1 to 10"),
        ("medium", "long_retry_limit = 256", "long_retry_limit = 256: allowed is 1 to 255"),
        ("medium", "bursts = { mean_s = inf }", "mean_s = inf: allowed is above 0 s"),
        ("medium", "cw_max = -1", "cw_max = -1: allowed is 0 to 65535 slots"),
    ] {
        let error = fault(table, setting);
        let line = 1 + RADIOS.lines().position(|line| line == format!("[{table}]")).unwrap() + 1;
        assert_eq!(error, format!("s.toml:{line}: {problem}"));
    }
    let placed = "name = \"p\"\n[[node]]\nname = \"a\"\nx = inf\ny = 0\n";
    let error = parse(&format!("{placed}[medium]\nphy = \"802.11b\"\nbit_rate = 1_000_000\n"));
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "s.toml:4: x = inf: allowed is -10000000 to 10000000 m");
}

const RADIOS: &str = r#"
name = "radios"
seed = 3
[topology]
uniform = { nodes = 12, width_m = 600, height_m = 400 }
[medium]
phy = "802.11b"
bit_rate = "2M"
mtu = 1500
rts_threshold_bytes = 500
[medium.propagation]
model = "two_ray"
range_m = 250
sensing_range_m = 460
fading = "rayleigh"
[medium.reception]
model = "threshold"
sinr_db = 9
capture_db = 12
[measure]
seconds = 600
bytes = 1500
period_s = 1
"#;

#[test]
fn radios_are_placed_by_the_seed_and_received_by_their_power() {
    let scenario = parse(RADIOS).unwrap();
    assert_eq!((scenario.nodes.len(), scenario.nodes[0].name.as_str()), (12, "n01"));
    let places: Vec<_> = scenario.nodes.iter().filter_map(|node| node.position).collect();
    assert!(places.iter().all(|p| (0.0..600.0).contains(&p.x) && (0.0..400.0).contains(&p.y)));
    let config = scenario.medium_config();
    let mac = MacConfig::Dcf { rts_threshold_bytes: Some(500), long_retry_limit: None };
    assert_eq!(config.mac, mac);
    assert_eq!(config.reception.capture_db, Some(12.0));
    let ChannelConfig::Radio(radios) = &config.channel else { panic!("{config:?}") };
    assert_eq!(radios.fading, Fading::Rayleigh);
    assert!((radios.rx_threshold_dbm + 64.37).abs() < 0.01);
    // Rayleigh: exp(-(d / 250)^4) of frames reach the threshold.
    let distance = libm::hypot(places[0].x - places[1].x, places[0].y - places[1].y);
    let delivery = 1.0 - scenario.loss().loss(RadioId(0), RadioId(1));
    assert!(
        (delivery - libm::exp(-libm::pow(distance / 250.0, 4.0))).abs() < 1e-3,
        "{distance} {delivery}"
    );
    let measure = scenario.measure.unwrap();
    assert_eq!((measure.bytes, measure.duration.as_secs()), (1_500, 600));

    let mut other = scenario.clone();
    other.set("seed=4").unwrap();
    assert_ne!(other.nodes, scenario.nodes);
    let again = parse(RADIOS).unwrap();
    assert_eq!(again.nodes, scenario.nodes);
}

#[test]
fn radios_can_be_those_of_glomosim() {
    let keys = "fading = \"glomosim\"\nfading_coherence_us = 1000\ninterference_floor_dbm = -94.97";
    let file =
        RADIOS.replace("fading = \"rayleigh\"", keys).replace("= 500", "= 0\nlong_retry_limit = 5");
    let config = parse(&file).unwrap().medium_config();
    let mac = MacConfig::Dcf { rts_threshold_bytes: Some(0), long_retry_limit: Some(5) };
    assert_eq!(config.mac, mac);
    let ChannelConfig::Radio(radios) = &config.channel else { panic!("{config:?}") };
    assert_eq!((radios.fading, radios.fading_coherence_ns), (Fading::Glomosim, 1_000_000));
    assert_eq!(radios.interference_floor_dbm, -94.97);
}

#[test]
fn grids_and_files_of_positions_place_nodes_too() {
    let mut scenario = parse(&RADIOS.replace(
        "uniform = { nodes = 12, width_m = 600, height_m = 400 }",
        "grid = { columns = 3, rows = 2, spacing_m = 100 }",
    ))
    .unwrap();
    let last = scenario.nodes[5].clone();
    assert_eq!((last.name.as_str(), last.position.unwrap().x), ("n6", 200.0));
    assert_eq!(last.position.unwrap().y, 100.0);
    scenario.set("medium.mac=slotted").unwrap();
    let MacConfig::Slotted { slot_ns, .. } = scenario.medium_config().mac else {
        panic!("slotted")
    };
    // 1536 bytes at 2 Mbit/s.
    assert_eq!(slot_ns, 6_336_000);
    let from_file = RADIOS.replace(
        "uniform = { nodes = 12, width_m = 600, height_m = 400 }",
        "positions = \"positions.csv\"",
    );
    let scenario = parse(&from_file).unwrap();
    let places: Vec<_> = scenario.nodes.iter().filter_map(|node| node.position).collect();
    assert_eq!(places.len(), 2);
    assert_eq!((places[0].x, places[1].y, places[1].z), (1.5, -4.0, 2.0));
}

#[test]
fn invalid_radios_are_refused_with_the_reason() {
    let cases = [
        ("range_m = 250", "range_m = 0", "allowed is above 0 m"),
        ("range_m = 250", "range_m = nan", "allowed is above 0 m"),
        ("fading = \"rayleigh\"", "fading = \"nakagami\"\nnakagami_m = 0.1", "0.5 to 100"),
        ("fading = \"rayleigh\"", "frequency_hz = 0", "1000000 to 1000000000000 Hz"),
        ("fading = \"rayleigh\"", "fading_coherence_us = 1000001", "0 to 1000000 us"),
        ("rts_threshold_bytes = 500", "long_retry_limit = 0", "1 to 255"),
        ("model = \"two_ray\"", "model = \"three_ray\"", "allowed is \"free_space\""),
        ("sinr_db = 9", "sinr_db = 900", "-30 to 100 dB"),
        ("model = \"threshold\"\n", "model = \"bit_errors\"\n", "belongs to"),
        ("nodes = 12", "nodes = 0", "nodes = 0: allowed is 1 to"),
        ("width_m = 600", "width_m = -1", "width_m = -1: allowed is 0 to"),
        (
            "uniform = { nodes = 12, width_m = 600, height_m = 400 }",
            "grid = { columns = 60000, rows = 2, spacing_m = 1 }",
            "must be at most",
        ),
        ("[measure]", "[topology2]", "unknown field"),
        ("[measure]", "[processing]\nmost_s = 2\n[measure]", "most_s = 2: allowed is 0 to 1 s"),
        ("[measure]", "[processing]\nleast_s = 0.2\nmost_s = 0.1\n[measure]", "is 0 to 0.1 s"),
        ("period_s = 1", "period_s = 0", "period_s = 0: allowed is 0.001"),
        ("seconds = 600", "seconds = inf", "seconds = inf: allowed is `period_s` to"),
        ("seed = 3", "nodes = [\"a\"]", "no node `n01`"),
        (
            "seed = 3",
            "link = [{ from = \"n01\", to = \"n02\", loss = 0.1 }]",
            "give positions, not losses",
        ),
        ("[topology]", "[topology]\nnetjson = \"small.json\"", "give one of"),
    ];
    for (from, to, expected) in cases {
        let message = fault(&RADIOS.replacen(from, to, 1));
        assert!(message.contains(expected) && !message.contains('\n'), "{to}: {message}");
    }
}

#[test]
fn netjson_costs_become_losses() {
    let scenario = parse(&with_netjson("small.json")).unwrap();
    let names: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["10.0.0.1", "fe80--2", "c"]);
    let loss = |a, b| scenario.loss().loss(RadioId(a), RadioId(b));
    assert_eq!((loss(0, 1), loss(1, 0)), (0.5, 0.5));
    assert!(loss(1, 2).abs() < 1e-12 && (loss(2, 1) - 0.2).abs() < 1e-12);
    assert_eq!((loss(0, 2), loss(2, 0)), (1.0, 1.0));
}

/// Returns a scenario with the topology of a NetJSON file.
fn with_netjson(file: &str) -> String {
    format!(
        r#"
        name = "n"
        medium = {{ phy = "802.11b", bit_rate = "5.5M" }}
        topology = {{ netjson = "{file}" }}
        "#
    )
}

#[test]
fn netjson_that_is_written_is_read_back() {
    let scenario = parse(SMALL).unwrap();
    let directory = std::env::temp_dir().join(format!("ncmesh-netjson-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("graph.json"), netjson::write_scenario(&scenario)).unwrap();
    let back = Scenario::parse(&with_netjson("graph.json"), "back.toml", &directory).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(back.nodes, scenario.nodes);
    assert_eq!(back.loss(), scenario.loss());

    let graph: serde_json::Value =
        serde_json::from_str(&netjson::write_scenario(&scenario)).unwrap();
    let costs: Vec<_> = graph["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["cost"].as_f64().unwrap())
        .collect();
    assert_eq!(costs, [1.0 / 0.5625, 1.0 / 0.5625, 4096.0]);
}

/// `data/daemon.json` is what a daemon writes; a test of the daemon holds it against that.
#[test]
fn the_graph_of_a_daemon_is_read_back_by_name_with_positions() {
    let scenario = parse(&with_netjson("daemon.json")).unwrap();
    let at = |x, y, z| Some(Position { x, y, z });
    let expected = [
        ("roof-east", at(0.0, 0.0, 0.0)),
        ("barn", at(120.5, -40.0, 3.0)),
        ("n7", None),
        ("shop", at(60.0, 0.0, 0.0)),
    ];
    let nodes = scenario.nodes.iter().map(|node| (node.name.as_str(), node.position));
    assert_eq!(nodes.collect::<Vec<_>>(), expected);
    let from = scenario.node_index("roof-east").unwrap();
    let loss = scenario.loss().loss(RadioId(from), RadioId(1));
    assert!((loss - 0.2).abs() < 1e-12);
}

#[test]
fn degrees_become_metres_from_the_first_node_that_has_them() {
    let graph = |nodes: &str| {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(r#"{{"type": "NetworkGraph", "nodes": [{nodes}], "links": []}}"#);
        std::fs::write(directory.path().join("g.json"), text).unwrap();
        Scenario::parse(&with_netjson("g.json"), "g.toml", directory.path())
    };
    let node = |id: &str, place: &str| format!(r#"{{"id": "{id}", "properties": {{{place}}}}}"#);
    let west = node("west", r#""latitude": 60, "longitude": 179.999"#);
    let east = node("east", r#""latitude": 60.001, "longitude": -179.999"#);
    let scenario = graph(&format!("{west}, {east}")).unwrap();
    let Some(Position { x, y, z }) = scenario.nodes[1].position else { panic!("no position") };
    // A thousandth of a degree is 111.2 m to the north, and half as many to the east at 60 degrees.
    assert!((x - 111.2).abs() < 0.1 && (y - 111.2).abs() < 0.1 && z == 0.0, "{x} {y} {z}");
    let nowhere = node("x", r#""latitude": 91, "longitude": 0"#);
    let error = graph(&nowhere).unwrap_err().to_string();
    assert!(error.contains("node `x`: latitude must be"), "{error}");
}

proptest! {
    #[test]
    fn garbled_files_are_refused_without_panic(
        cut in 0usize..SMALL.len(),
        more in ".{0,40}",
        from in 0usize..SMALL.len(),
    ) {
        let head = SMALL.chars().take(cut);
        let tail = SMALL.chars().skip(from);
        let text: String = head.chain(more.chars()).chain(tail).collect();
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn garbled_overrides_are_refused_without_panic(key in "[a-z._]{0,20}", value in "\\PC{0,20}") {
        let mut scenario = parse(SMALL).unwrap();
        let _ = scenario.set(&format!("{key}={value}"));
    }
}

#[test]
fn links_have_rates_and_may_be_cables() {
    let parse = |link: &str| {
        let text = format!(
            r#"
            name = "kinds"
            nodes = ["a", "b"]
            medium = {{ phy = "802.11a", bit_rate = "6M" }}
            link = [{{ from = "a", to = "b", {link} }}]
            "#
        );
        Scenario::parse(&text, "kinds.toml", Path::new(""))
    };
    let kinds = |link: &str| parse(link).unwrap().medium_config().links;
    assert!(kinds("loss = 0.1").is_empty());
    assert_eq!(kinds("loss = 0.1, rate = \"18M\"").len(), 2);
    let wired = parse("wired = true").unwrap();
    assert_eq!(by_ends(&wired), [(0, 1, 1.0), (1, 0, 1.0)]);
    assert_eq!(wired.medium_config().links.values().next().unwrap().bit_rate_bps(), 1_000_000_000);
    let refused = |link: &str| parse(link).unwrap_err().to_string();
    assert!(refused("rate = \"18M\"").contains("needs `loss`"));
    assert!(refused("wired = true, loss = 0.1").contains("has no `loss`"));
    assert!(
        refused("wired = true, rate = \"10\"").contains("rate = \"10\": allowed is a quantity")
    );
}
