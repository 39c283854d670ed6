//! Files of other programs, as they really are: dialects, marks, compression, and the same thing
//! twice.

use crate::support::by_ends;
use ncmesh_sim::scenario::Scenario;
use std::io::Write as _;

const MEDIUM: &str = "[medium]\nphy = \"802.11b\"\nbit_rate = \"11M\"\n";

/// Reads a scenario whose topology is a file with these bytes.
fn with_file(key: &str, bytes: &[u8]) -> Result<Scenario, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("t"), bytes).unwrap();
    let text = format!("name = \"t\"\ntopology = {{ {key} = \"t\" }}\n{MEDIUM}");
    let read = Scenario::parse(&text, "s.toml", directory.path());
    read.map_err(|error| error.to_string().replace(&directory.path().display().to_string(), ""))
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn byte_order_marks_are_skipped_in_every_file() {
    let mark = |text: &str| format!("\u{feff}{text}").into_bytes();
    for (key, text) in [
        ("links", "from,to,loss\r\na,b,0.5\r\n"),
        ("matrix", "from\\to,a,b\na,,0.5\nb,0.5,\n"),
        (
            "netjson",
            r#"{"type": "NetworkGraph", "nodes": [{"id": "a"}, {"id": "b"}],
                "links": [{"source": "a", "target": "b", "cost": 4}]}"#,
        ),
    ] {
        let scenario = with_file(key, &mark(text)).unwrap();
        assert_eq!(by_ends(&scenario), [(0, 1, 0.5), (1, 0, 0.5)][..scenario.deliveries().len()]);
        assert_eq!(scenario.nodes[0].name, "a", "{key}");
        // PowerShell writes UTF-16.
        let wide = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(with_file(key, &wide.collect::<Vec<u8>>()).unwrap().nodes.len(), 2, "{key}");
    }

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.toml");
    std::fs::write(&file, mark(&format!("name = \"t\"\nnodes = [\"a\"]\n{MEDIUM}"))).unwrap();
    assert_eq!(Scenario::load(&file).unwrap().name, "t");
    let text = format!("\u{feff}name = \"t\"\nnodes = [\"a\"]\n{MEDIUM}");
    assert_eq!(Scenario::parse(&text, "s", directory.path()).unwrap().name, "t");
}

#[test]
fn files_of_gzip_are_read_and_others_named() {
    let list = "from,to,loss\na,b,0.5\n";
    assert_eq!(with_file("links", &gzip(list)).unwrap().nodes.len(), 2);
    let halves = [gzip("from,to,loss\n"), gzip("a,b,0.5\n")].concat();
    assert_eq!(with_file("links", &halves).unwrap().nodes.len(), 2);
    for (bytes, program) in [
        (&b"BZh91AY"[..], "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"PK\x03\x04", "zip"),
    ] {
        let error = with_file("links", bytes).unwrap_err();
        assert_eq!(
            error,
            format!("/t: compressed by {program}: only gzip is read, unpack it first")
        );
    }
    let cut = &gzip(list)[..20];
    assert!(with_file("links", cut).unwrap_err().starts_with("/t: "));
}

#[test]
fn dialects_of_netjson_are_read() {
    let olsrd = r#"{"type": "NetworkGraph", "protocol": "OLSR", "version": "0.9.6", "metric": "",
        "router_id": "10.1.1.1", "nodes": [
        {"id": "10.1.1.1", "label": "roof", "local_addresses": ["10.9.1.1"], "properties": null},
        {"id": "10.1.1.2", "local_addresses": [{"address": "10.9.1.2"}], "properties": {}},
        {"id": 3, "local_addresses": null}], "links": [
        {"source": "10.1.1.1", "target": "10.1.1.2", "cost": "4.0", "properties": null},
        {"source": "10.9.1.2", "target": "10.9.1.1", "weight": 1.0},
        {"source": "10.1.1.2", "target": "3", "cost": "INFINITE"}]}"#;
    let scenario = with_file("netjson", olsrd.as_bytes()).unwrap();
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["10.1.1.1", "10.1.1.2", "3"]);
    assert_eq!(by_ends(&scenario), [(0, 1, 0.5), (1, 0, 1.0)]);
    assert_eq!(scenario.notes, [""; 0]);

    let collection = format!("{{\"type\": \"NetworkCollection\", \"collection\": [{olsrd}]}}");
    assert_eq!(with_file("netjson", collection.as_bytes()).unwrap().nodes.len(), 3);
    let several =
        format!("{{\"type\": \"NetworkCollection\", \"collection\": [{olsrd}, {olsrd}]}}");
    let error = with_file("netjson", several.as_bytes()).unwrap_err();
    assert_eq!(error, "/t: several NetworkGraph in the collection: must be one");
    let shared = olsrd.replace("10.9.1.2\"}", "10.9.1.1\"}").replace("10.9.1.2", "10.1.1.2");
    let error = with_file("netjson", shared.as_bytes()).unwrap_err();
    assert_eq!(error, "/t: a link names `10.9.1.1`, a local address of several nodes");
}

#[test]
fn of_parallel_links_the_better_one_counts_and_is_said() {
    let graph = r#"{"type": "NetworkGraph", "nodes": [{"id": "a"}, {"id": "b"}], "links": [
        {"source": "a", "target": "b", "cost": 1}, {"source": "a", "target": "b", "cost": 4},
        {"source": "b", "target": "a", "cost": 16}, {"source": "b", "target": "a", "cost": 4}]}"#;
    let scenario = with_file("netjson", graph.as_bytes()).unwrap();
    assert_eq!(by_ends(&scenario), [(0, 1, 1.0), (1, 0, 0.5)]);
    assert_eq!(scenario.notes.len(), 1);
    assert!(scenario.notes[0].contains("2 links have the ends of another"), "{:?}", scenario.notes);
}

#[test]
fn the_same_thing_twice_is_an_error_with_both_lines() {
    let text = |more: &str| format!("name = \"t\"\n{more}\n{MEDIUM}");
    let nodes = "nodes = [\"a\", \"b\"]";
    for (more, message) in [
        (
            format!(
                "{nodes}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nloss = 0.1\n\
                     [[link]]\nfrom = \"a\"\nto = \"b\"\nloss = 0.2"
            ),
            "s.toml:7: the link between `a` and `b` is given twice, first at s.toml:3",
        ),
        (
            format!(
                "{nodes}\nlink = [{{ from = \"a\", to = \"b\", loss = 0.1 }},\n\
                     {{ from = \"b\", to = \"a\", loss = 0.2 }}]"
            ),
            "s.toml:4: the link between `b` and `a` is given twice, first at s.toml:3",
        ),
        (
            format!(
                "{nodes}\nlink = [{{ from = \"a\", to = \"b\", wired = true }},\n\
                     {{ from = \"a\", to = \"b\", loss = 0.2, rate = \"2M\" }}]"
            ),
            "s.toml:4: the link between `a` and `b` is given twice",
        ),
        (
            "nodes = [\"a\",\n\"a\"]".to_owned(),
            "s.toml:3: two nodes are named `a`, the first at s.toml:2",
        ),
        (
            "[[node]]\nname = \"a\"\n[[node]]\nname = \"a\"".to_owned(),
            "s.toml:5: two nodes are named `a`, the first at s.toml:3",
        ),
    ] {
        let error = Scenario::parse(&text(&more), "s.toml", "".as_ref()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    for (key, file, message) in [
        ("links", "from,to,loss\na,b,0.1\na,b,0.1\n", "/t:3: the link from `a` to `b` is given on"),
        ("matrix", ",a,b,a\n", "/t:1: node `a` is named twice"),
    ] {
        let error = with_file(key, file.as_bytes()).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn numbers_that_are_not_used_are_checked_all_the_same() {
    let radios = "[medium.propagation]\nmodel = \"free_space\"\nrange_m = 100\n\
                  sensing_range_m = 200\n";
    for (line, message) in [
        ("nakagami_m = nan", "nakagami_m = nan: allowed is 0.5 to 100"),
        ("nakagami_m = 1e400", "nakagami_m = inf: allowed is 0.5 to 100"),
        ("antenna_height_m = -1", "antenna_height_m = -1: allowed is 0.01 to 10000 m"),
        ("exponent = inf", "exponent = inf: allowed is 1 to 10"),
        ("fading_coherence_us = 99999999999999999999", "fading_coherence_us = 1e20: allowed is 0"),
        ("shadowing_db = -nan", "shadowing_db = nan: allowed is 0 to 30 dB"),
    ] {
        let text = format!(
            "name = \"t\"\ntopology = {{ grid = {{ columns = 2, rows = 1, spacing_m = 9 }} \
                     }}\n{MEDIUM}{radios}{line}\n"
        );
        let error = Scenario::parse(&text, "s.toml", "".as_ref()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("s.toml:10: {message}")), "{error}");
    }
}
