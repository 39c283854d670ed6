//! Scenarios with several channels: a daemon has a port on each channel that its node is on.

use crate::flows::options;
use crate::support::{contents, room};
use ncmesh_engine::file::Allowance;
use ncmesh_lab::{Lab, LabOptions, POLL_INTERVAL, SendAs};
use ncmesh_node::api::answers::{EchoRequest, Path};
use ncmesh_node::api::types::{State, Status};
use ncmesh_sim::scenario::Scenario;
use serde_json::Value;

/// Two roofs that a relay joins: by radio to one, by radio and by cable to the other.
const ROOFS: &str = r#"
name = "roofs"
nodes = ["a", "r", "b"]
medium = { phy = "802.11a", bit_rate = "12M" }
channel = [{ name = "cable" }]
link = [
    { from = "a", to = "r", loss = 0.1 },
    { from = "r", to = "b", loss = 0.4 },
    { from = "r", to = "b", wired = true, channel = "cable" },
]
protocol.link.quick_hello_s = 0.1
[traffic]
from = "a"
to = ["b"]
size = "300kB"
"#;

async fn status(lab: &Lab, node: usize) -> Status {
    lab.client(node).read("/v1/status").await.unwrap()
}

#[tokio::test]
async fn a_file_takes_the_cable_and_goes_on_when_the_relay_is_killed() {
    let _room = room().await;
    let scenario = Scenario::parse(ROOFS, "roofs.toml", std::path::Path::new("")).unwrap();
    let options = LabOptions { tunnel: None, ..options("braid") };
    let mut lab = Lab::start(&scenario, &options).await.unwrap();
    lab.wait_for_routes(0, &[2]).await.unwrap();

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, contents(300_000)).unwrap();
    let how = SendAs { scheme: "cascade", allowance: Allowance::default() };
    let id = lab.send(0, &[2], &file, how).await.unwrap();
    while lab.transfer(2, &id).await.is_ok_and(|transfer| transfer.values.bytes == 0) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    lab.kill(1).await.unwrap();
    lab.restart(1).await.unwrap();
    loop {
        lab.check().unwrap();
        if lab.transfer(0, &id).await.unwrap().ended {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let outcome = lab.outcome(0, &[2], &id, "cascade", &file).await.unwrap();
    assert!(outcome.transfer().unwrap().receivers[0].verified, "{outcome:?}");
    assert_eq!(lab.transfer(2, &id).await.unwrap().state, State::Complete);

    // Every node has the ports of its links, and frames for b go by the cable.
    for (node, expected) in [(0, vec!["air"]), (1, vec!["air", "cable"]), (2, vec!["air", "cable"])]
    {
        let ports = status(&lab, node).await.ports;
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        assert!(names == expected && ports.iter().all(|port| port.up), "{ports:?}");
    }
    let echo = EchoRequest { count: 0 };
    let path: Path = lab.client(1).post("/v1/paths/b", &echo).await.unwrap();
    assert_eq!(path.hops[0].port.as_deref(), Some("cable"), "{path:?}");
    let graph: Value = lab.client(1).read("/v1/topology").await.unwrap();
    let links = graph["links"].as_array().unwrap();
    let link = |from: &str, to: &str| {
        links.iter().find(|link| link["source"] == from && link["target"] == to).unwrap()
    };
    assert_eq!(link("r", "b")["properties"]["port"], "cable");
    assert_eq!(link("b", "r")["properties"]["ports"], serde_json::json!(["air", "cable"]));
    let sent = lab.stop().await.unwrap();
    let frames: Vec<u64> = sent.iter().map(|channel| channel.medium.total().frames_sent).collect();
    assert!(frames.len() == 2 && frames.iter().all(|frames| *frames > 200), "{frames:?}");
}
