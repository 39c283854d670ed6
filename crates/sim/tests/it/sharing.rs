//! A file leaves room for packets: tunnels go on beside it, and it goes on beside them.

use crate::support::{HIDDEN_LINE, outcome_of};
use ncmesh_sim::outcome::{FlowOutcome, Outcome};

fn outcome(mesh: &str, traffic: &str) -> Outcome {
    outcome_of(&format!("{mesh}{traffic}"), "auto", 200)
}

fn file(size: &str) -> String {
    format!("traffic = {{ from = \"a\", to = [\"c\"], size = \"{size}\" }}\n")
}

fn tcp(seconds: u32) -> String {
    format!(
        "[[flow]]\nfrom = \"a\"\nto = \"c\"\nprotocol = \"tcp\"\npacket = 1300\n\
         seconds = {seconds}\n"
    )
}

fn goodput(outcome: &Outcome) -> f64 {
    outcome.flows().unwrap().flows[0].throughput_bps
}

fn seconds(outcome: &Outcome) -> f64 {
    let receiver = &outcome.transfer().unwrap().receivers[0];
    assert!(receiver.verified, "{receiver:?}");
    receiver.seconds.unwrap()
}

/// The line, and the same in which all nodes defer to each other.
fn meshes() -> [(&'static str, String); 2] {
    let near = HIDDEN_LINE.replace(r#""11M" }"#, r#""11M", sense = "everyone" }"#);
    [("hidden", HIDDEN_LINE.to_owned()), ("in range", near)]
}

#[test]
fn packets_each_way_arrive_beside_a_file() {
    let flow = |from, to| {
        format!(
            "[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = 6720\npacket = 84\nseconds = 8\n"
        )
    };
    for (name, mesh) in meshes() {
        let traffic = [file("4MB"), flow("a", "c"), flow("c", "a")].concat();
        let outcome = outcome(&mesh, &traffic);
        for flow in &outcome.flows().unwrap().flows {
            let FlowOutcome { from, delivered, mean_delay_s, .. } = flow;
            let case = format!("{name}, from {from}: {delivered} of 80, {mean_delay_s:?}");
            assert!(*delivered >= 72 && *mean_delay_s < Some(0.12), "{case}");
        }
    }
}

#[test]
fn a_file_and_a_connection_share_the_airtime() {
    for (name, mesh) in meshes() {
        // The file outlasts the connection whose goodput is measured, and the other way round.
        let alone = goodput(&outcome(&mesh, &tcp(10)));
        let beside = goodput(&outcome(&mesh, &[file("12MB"), tcp(10)].concat()));
        assert!(beside > LEFT * alone, "{name}: {beside} of {alone} bit/s");

        let alone = seconds(&outcome(&mesh, &file("2MB")));
        let beside = seconds(&outcome(&mesh, &[file("2MB"), tcp(60)].concat()));
        assert!(beside < SLOWER * alone, "{name}: {beside} s instead of {alone} s");
    }
}

/// Share of its goodput alone that a connection keeps at least beside a file.
const LEFT: f64 = 0.4;
/// Times of its time alone that a file may take beside a connection.
const SLOWER: f64 = 3.0;

#[test]
fn a_file_in_the_background_gives_way_to_a_connection() {
    let in_background = |size: &str, most: u8| {
        let file = file(size);
        format!("{}, background = {most} }}\n", file.trim_end().trim_end_matches(" }"))
    };
    for (name, mesh) in meshes() {
        let alone = goodput(&outcome(&mesh, &tcp(10)));
        let beside = goodput(&outcome(&mesh, &[in_background("12MB", 100), tcp(10)].concat()));
        assert!(beside > 0.9 * alone, "{name}: {beside} of {alone} bit/s");

        let alone = seconds(&outcome(&mesh, &file("1MB")));
        let unbounded = seconds(&outcome(&mesh, &in_background("1MB", 100)));
        assert!(unbounded < 1.1 * alone, "{name}: {unbounded} s instead of {alone} s");
        let bounded = seconds(&outcome(&mesh, &in_background("1MB", 20)));
        assert!(bounded > 3.0 * alone && bounded < 6.0 * alone, "{name}: {bounded} s");
    }
}

/// 1 MB at 200 kbit/s takes 40 s, and more with what is sent again.
#[test]
fn a_source_sends_no_more_of_a_file_than_its_limit() {
    let limited = |size: &str| {
        let file = file(size);
        format!("{}, limit = \"200k\" }}\n", file.trim_end().trim_end_matches(" }"))
    };
    for (name, mesh) in meshes() {
        let outcome = outcome(&mesh, &limited("1MB"));
        let sent = outcome.transfer().unwrap().source_redundancy * 40.0;
        let seconds = seconds(&outcome);
        assert!(seconds > 0.95 * sent && seconds < 1.25 * sent, "{name}: {seconds} of {sent} s");
    }
}

/// A file without a bound does not wait for one of the same node that may take little airtime.
#[test]
fn files_in_the_background_have_bounds_of_their_own() {
    let file = |size: &str, most: u8| {
        format!("[[traffic]]\nfrom = \"a\"\nto = [\"c\"]\nsize = \"{size}\"\nbackground = {most}\n")
    };
    for (name, mesh) in meshes() {
        let alone = outcome(&mesh, &file("1MB", 100));
        let both = outcome(&mesh, &[file("1MB", 100), file("100kB", 2)].concat());
        let receivers = &both.transfer().unwrap().receivers;
        assert!(receivers.iter().all(|r| r.verified), "{name}: {receivers:?}");
        let [free, bounded] = [0, 1].map(|file| receivers[file].seconds.unwrap());
        assert!(free < 1.3 * seconds(&alone), "{name}: {free} s, alone {} s", seconds(&alone));
        assert!(bounded > 3.0 * free, "{name}: {bounded} s beside {free} s");
    }
}

/// Returns the measured mesh of a building.
fn building() -> String {
    let matrix = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/data/building.csv");
    let medium = r#"medium = { phy = "802.11b", bit_rate = "11M" }"#;
    format!("name = \"building\"\nsealed = false\ntopology.matrix = \"{matrix}\"\n{medium}\n")
}

/// Jain's index that three services have at least where all have as much weight.
const FAIR: f64 = 0.9;

#[test]
fn three_services_share_a_building_fairly() {
    let traffic = r#"
protocol.share.file = 1.0
traffic = { from = "n01", to = ["n05", "n14"], size = "20MB" }
flow = [{ from = "n01", to = "n09", protocol = "tcp", packet = 1300, seconds = 15 }]

[[stream]]
group = "tv"
from = "n01"
packet = 1200
layers = [{ name = "base", rate = "300k" }, { name = "enh", rate = "600k" }]
receivers = [{ node = "n05" }, { node = "n14" }]
seconds = 15
"#;
    let outcome = outcome_of(&format!("{}{traffic}", building()), "auto", 16);
    let sharing = outcome.sharing.unwrap();
    assert!(sharing.fairness > FAIR, "{sharing:?}");
}

/// Reports to a relay far from the connection collide with that. They come through all the same.
#[test]
fn a_file_reaches_those_who_do_not_hear_the_connection() {
    let mesh = building();
    let file = "traffic = { from = \"n01\", to = [\"n14\", \"n20\"], size = \"500kB\" }\n";
    let tcp = "[[flow]]\nfrom = \"n01\"\nto = \"n09\"\nprotocol = \"tcp\"\npacket = 1300\n\
               seconds = 60\n";
    let alone = seconds(&outcome(&mesh, file));
    let beside = seconds(&outcome(&mesh, &[file, tcp].concat()));
    assert!(beside < SLOWER * alone, "{beside} s instead of {alone} s");
}

#[test]
fn a_file_takes_no_more_than_its_user_allows() {
    let bounded = format!("{HIDDEN_LINE}protocol.share = {{ most_file = 0.2 }}\n");
    let airtime = |outcome: &Outcome| {
        outcome.nodes.values().map(|node| node.airtime_s).sum::<f64>() / (outcome.seconds + 7.0)
    };
    let [free, bounded] = [HIDDEN_LINE, &bounded].map(|mesh| outcome(mesh, &file("2MB")));
    // Frames that collide are not heard, and not counted by others.
    assert!(airtime(&free) > 0.3, "{}", airtime(&free));
    assert!(airtime(&bounded) < 0.25, "{}", airtime(&bounded));
}
