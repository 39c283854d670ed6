//! Captures and event lines of a run agree.

use crate::support::{Run, Tshark, shown};
use serde_json::Value;

/// Fields of a captured frame, each with the field of the event it comes from.
const FIELDS: [(&str, &str); 9] = [
    ("frame.time_epoch", "time_ns"),
    ("frame.interface_name", "node"),
    ("frame.packet_flags_direction", "kind"),
    ("ncmesh.sender", "sender"),
    ("ncmesh.salt", "salt"),
    ("ncmesh.counter", "counter"),
    ("ncmesh.type", "type"),
    ("ncmesh.flow", "flow"),
    ("ncmesh.generation", "generation"),
];

/// Returns the values of [`FIELDS`] that an event's captured frame must have.
fn expected(event: &Value) -> [String; 9] {
    FIELDS.map(|(_, field)| {
        let value = shown(event, field);
        match (field, value.as_str()) {
            ("time_ns", ns) => {
                let ns: u64 = ns.parse().unwrap();
                format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            }
            ("kind", "sent") => "0x00000002".into(),
            ("kind", "heard") => "0x00000001".into(),
            ("sender", name) => {
                let index = ["s", "r1", "r2", "d"].iter().position(|node| *node == name);
                (index.unwrap() + 1).to_string()
            }
            _ => value,
        }
    })
}

fn agree(tshark: &Tshark, run: &Run, kinds: &[&str], nodes: &[&str]) {
    let rows = tshark.fields(&run.pcap, FIELDS.map(|(name, _)| name));
    let events = run.of(kinds).filter(|event| nodes.contains(&event["node"].as_str().unwrap()));
    let expected: Vec<[String; 9]> = events.map(expected).collect();
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.into_iter().zip(expected) {
        assert_eq!(row, expected);
    }
}

#[test]
fn every_frame_is_captured_once_and_shown_whole() {
    let Some(tshark) = Tshark::new() else { return };
    let run = Run::new(&["--unsealed"]);
    assert_eq!(run.outcome["sealed"], false);
    agree(&tshark, &run, &["sent"], &["s", "r1", "r2", "d"]);
    let rows = tshark.fields(&run.pcap, ["ncmesh.type", "_ws.expert.message"]);
    let data = rows.iter().filter(|[kind, _]| kind == "data").count();
    assert_eq!(run.outcome["transmissions"], data);
    for kind in ["hello", "probe", "announcement", "data", "acknowledgment"] {
        assert!(rows.iter().any(|[shown, _]| shown == kind), "{kind}");
    }
    assert!(rows.iter().all(|[_, expert]| expert.is_empty()));
}

#[test]
fn a_node_captures_what_it_sends_and_hears() {
    let Some(tshark) = Tshark::new() else { return };
    let run = Run::new(&["--unsealed", "--pcap-node", "d,r1,d"]);
    agree(&tshark, &run, &["sent", "heard"], &["r1", "d"]);
    let run = Run::new(&["--unsealed", "--pcap-node", "all"]);
    agree(&tshark, &run, &["sent", "heard"], &["s", "r1", "r2", "d"]);
}

#[test]
fn of_sealed_frames_only_the_header_is_shown() {
    let Some(tshark) = Tshark::new() else { return };
    let sealed = Run::new(&[]);
    let open = Run::new(&["--unsealed"]);
    assert_eq!(sealed.outcome["sealed"], true);
    assert_eq!(sealed.outcome["transmissions"], open.outcome["transmissions"]);
    let header = ["frame.time_epoch", "ncmesh.sender", "ncmesh.counter", "frame.len"];
    assert_eq!(tshark.fields(&sealed.pcap, header), tshark.fields(&open.pcap, header));
    let body = ["ncmesh.sealed", "ncmesh.type", "ncmesh.service"];
    let shown = tshark.fields(&sealed.pcap, body);
    assert!(shown.iter().all(|[sealed, kind, service]| {
        !sealed.is_empty() && kind.is_empty() && service.is_empty()
    }));
    // The simulator has the key, so events say the same of sealed frames as of open ones.
    assert_eq!(sealed.events, open.events);
}

#[test]
fn writing_a_run_down_does_not_change_it() {
    let plain = crate::support::simulate(&["--json"]);
    let outcome: Value = serde_json::from_slice(&plain.stdout).unwrap();
    assert_eq!(outcome, Run::new(&[]).outcome);
}

/// Wireshark computes a frame's airtime from radiotap and its length. Captures hold no FCS, so that
/// it counts 4 bytes less than the medium.
#[test]
fn wireshark_reckons_the_airtime_that_the_medium_does() {
    let Some(tshark) = Tshark::new() else { return };
    for (settings, phy, rate_mbps, rounding_us) in [
        (["medium.phy=802.11b", "medium.bit_rate=11M"], "4", 11.0, 1.0),
        (["medium.phy=802.11b", "medium.bit_rate=5.5M"], "4", 5.5, 1.0),
        (["medium.phy=802.11a", "medium.bit_rate=6M"], "5", 6.0, 4.0),
    ] {
        let run = Run::new(&["--set", settings[0], "--set", settings[1]]);
        let rows = tshark.fields(
            &run.pcap,
            [
                "wlan_radio.phy",
                "wlan_radio.data_rate",
                "wlan_radio.duration",
                "frame.interface_name",
            ],
        );
        let mut reports = run.of(&["reported"]).collect::<Vec<_>>();
        let mut compared = 0;
        for [shown_phy, rate, duration, node] in rows {
            assert_eq!((shown_phy.as_str(), rate.parse()), (phy, Ok(rate_mbps)));
            // A node's reports come in the order of its frames. A frame still in the air at the end
            // has none.
            let report = reports.iter().position(|report| report["node"] == node.as_str());
            let Some(report) = report.map(|i| reports.remove(i)) else { continue };
            let airtime_ns = report["airtime_ns"].as_f64().unwrap();
            let medium_us = airtime_ns / report["attempts"].as_f64().unwrap() / 1e3;
            let more = medium_us - duration.parse::<f64>().unwrap();
            let fcs = 32.0 / rate_mbps;
            assert!(
                (more - fcs).abs() <= rounding_us,
                "{medium_us} us, in Wireshark {duration} us"
            );
            compared += 1;
        }
        assert!(compared > 200, "{compared}");
    }
}

/// The diamond's nodes on a line, with fading.
const PLACED: &str = r#"
name = "placed"
node = [
    { name = "s", x = 0, y = 0 },
    { name = "r1", x = 150, y = 0 },
    { name = "r2", x = 200, y = 50 },
    { name = "d", x = 400, y = 0 },
]

[medium]
phy = "802.11b"
bit_rate = "2M"

[medium.propagation]
model = "two_ray"
range_m = 250
sensing_range_m = 460
fading = "rayleigh"

[traffic]
from = "s"
to = ["d"]
size = 1
"#;

#[test]
fn received_power_is_shown_where_it_is_known() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("placed.toml");
    std::fs::write(&scenario, PLACED).unwrap();
    let run = Run::of_file(&scenario, &["--unsealed", "--pcap-node", "all"]);
    agree(&tshark, &run, &["sent", "heard"], &["s", "r1", "r2", "d"]);
    let names = ["frame.packet_flags_direction", "radiotap.dbm_antsignal"];
    let shown = tshark.fields(&run.pcap, names);
    let mut powers = Vec::new();
    for ([direction, signal], event) in shown.iter().zip(run.of(&["sent", "heard"])) {
        assert_eq!(signal.is_empty(), direction == "0x00000002", "known of what is heard");
        if let Ok(signal) = signal.parse::<f64>() {
            let power = event["power_dbm"].as_f64().unwrap();
            assert_eq!(signal, power.round());
            powers.push(power);
        }
    }
    assert!(powers.iter().all(|power| (-85.0..0.0).contains(power)), "{powers:?}");
    let known = Run::new(&[]).events.iter().any(|event| event.get("power_dbm").is_some());
    assert!(!known, "losses know no power");
}

#[test]
fn headers_are_those_of_stations_of_one_ibss() {
    let Some(tshark) = Tshark::new() else { return };
    let run = Run::new(&["--unsealed"]);
    let names = [
        "ncmesh.type",
        "wlan.ta",
        "wlan.ra",
        "wlan.bssid",
        "wlan.seq",
        "wlan.duration",
        "ncmesh.sender",
        "ncmesh.next_hop",
        "ncmesh.counter",
    ];
    let address = |id: &str| format!("02:6e:63:6d:00:{:02x}", id.parse::<u8>().unwrap());
    let mut unicast = 0;
    for row in tshark.fields(&run.pcap, names) {
        let [kind, from, to, bssid, sequence, duration, sender, next_hop, counter] =
            row.each_ref().map(String::as_str);
        assert_eq!(from, address(sender));
        assert_eq!(bssid, "02:6e:63:6d:00:00");
        assert_eq!(sequence.parse::<u32>().unwrap(), counter.parse::<u32>().unwrap() % 4096);
        if kind == "acknowledgment" {
            // SIFS and an acknowledgment at 2 Mbit/s.
            assert_eq!((to, duration), (address(next_hop).as_str(), "258"));
            unicast += 1;
        } else {
            assert_eq!((to, duration), ("ff:ff:ff:ff:ff:ff", "0"));
        }
    }
    assert!(unicast > 0);
}
