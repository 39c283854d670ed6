//! A node that leads a roll-out and takes part in it, and what others tell it.

use super::*;
use crate::api::types::ErrorCode;
use crate::config::NodeConfig;
use crate::identity::write_secret;
use crate::node::tests::{CONFIG, node};
use crate::node::{Node, View};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::Geometry;
use ncmesh_fleet::rollout::{Packet, Report, Settings, Standing, Why};
use ncmesh_fleet::{Digests, Head, Manifest, Release};
use ncmesh_host::files::Known;
use std::collections::BTreeMap;
use tempfile::TempDir;

fn key(seed: u8) -> SecretKey {
    SecretKey::new(&[seed; 32].into())
}

/// Lets the node take part in roll-outs and lead them.
fn join(node: &mut Node, dir: &TempDir) {
    let at = dir.path().display();
    write_secret(&dir.path().join("operator"), &key(1)).unwrap();
    std::fs::write(dir.path().join("version"), "1.0\n").unwrap();
    let section = format!(
        "[fleet]\nmodel = \"m\"\nversion_file = \"{at}/version\"\nname = \"town\"\n\
         keys = [\"{}\"]\noperators = [\"{}\"]\napply = [\"true\"]\nrollback = [\"true\"]\n\
         operator_key = \"{at}/operator\"\n",
        key(3).public(),
        key(1).public(),
    );
    let file = dir.path().join("fleet.toml");
    std::fs::write(&file, format!("{CONFIG}{section}")).unwrap();
    let fleet = NodeConfig::read(&file).unwrap().fleet;
    let start = FleetStart::read(fleet.as_ref(), &node.state).unwrap();
    node.fleet = Fleet::new(node.clock.now(), node.id(), fleet.as_ref(), start);
}

/// Returns a release of an image, with its signature.
fn release() -> Manifest {
    let (size, digests) = Digests::read(&b"image"[..]).unwrap();
    let image = Image { model: "m".into(), file: "m.bin".into(), size, digests };
    let head = Head {
        name: "town".into(),
        version: "1.1".parse().unwrap(),
        channel: "stable".into(),
        replaces: Vec::new(),
    };
    let mut manifest = Manifest::new(Release::new(head, vec![image]).unwrap());
    manifest.sign(&key(3)).unwrap();
    manifest
}

fn push(nodes: &[u16], dir: &TempDir) -> Push {
    Push {
        manifest: release(),
        source: Source { images: dir.path().into(), background: None, is_open: false },
        nodes: nodes.iter().copied().map(NodeId).collect(),
        settings: Settings::default(),
    }
}

#[tokio::test]
async fn a_console_is_told_how_far_each_node_of_a_roll_out_is() {
    let (mut node, _calls, dir) = node();
    join(&mut node, &dir);
    let mut view = View::of(&node);
    view.look(&node);
    assert!(view.meta().rollouts.is_empty() && view.state().rollouts.is_empty());

    node.push_fleet(push(&[3, 5], &dir)).unwrap();
    let number = node.fleet_status().rollout.unwrap().number;
    let report = |why: Why| Report {
        node: ncmesh_fleet::rollout::Node(5),
        operator: key(1).public(),
        rollout: number,
        standing: Standing::Staging,
        why: Some(why),
        running: "1.0".parse().unwrap(),
    };
    for why in [Why::Space, Why::Release("a terminal obeys \x1b[2J".into())] {
        let packet = Packet::Report { report: report(why), model: "m".into() };
        node.handle_fleet_packet(NodeId(5), &packet.to_bytes());
    }
    let drops: BTreeMap<_, _> = node.stack.counters().drops().collect();
    assert_eq!(drops[&DropReason::Malformed], 1);
    view.look(&node);

    let about = &view.meta().rollouts[0];
    assert_eq!((about.name.as_str(), about.version.as_str(), about.from), ("town", "1.1", 3));
    let shown = &view.state().rollouts[0];
    assert_eq!((shown.stage.as_str(), shown.batch, shown.batches), ("pushing", None, 0));
    assert!(shown.waits_for.contains("staging at nodes 3, 5"), "{}", shown.waits_for);
    let [own, other] = &shown.nodes[..] else { panic!("{:?}", shown.nodes) };
    assert_eq!((own.node, &own.standing, own.heard_s), (3, &None, None));
    assert_eq!((other.node, other.standing.as_deref()), (5, Some("staging")));
    assert_eq!(other.why, "no space for the image");
    assert_eq!(other.model.as_deref(), Some("m"));
    assert!(other.heard_s.is_some());

    // The next roll-out has a place of its own, and the one before stays as it was.
    node.push_fleet(push(&[5], &dir)).unwrap();
    view.look(&node);
    assert_eq!(view.meta().rollouts.len(), 2);
    assert_eq!(view.state().rollouts[0].nodes.len(), 2);
    assert_eq!(view.state().rollouts[1].nodes.len(), 1);
}

#[tokio::test]
async fn ten_thousand_releases_that_a_member_announces_leave_nothing_behind() {
    let (mut node, _calls, dir) = node();
    join(&mut node, &dir);
    let geometry = Geometry::new(1000, 32, 1400).unwrap();
    let announced = |serial: u32, name: String| {
        let flow = FlowId { source: NodeId(7), serial };
        file::Manifest { flow, name, geometry, root: [1; 32], hash: [2; 32] }
    };

    // It leads no roll-out, so none of them is waited for.
    for serial in 0..10_000 {
        let release = ncmesh_fleet::ReleaseId([serial as u8; 32]);
        let mut name = files::manifest_name(release);
        if serial % 2 == 0 {
            name = format!("{name}{serial}");
        }
        let known = node.known(&announced(serial, name));
        assert!(matches!(known, Some(Known::Unwelcome)), "{serial}");
    }

    // The one that is waited for is announced under as many flows: a bounded number is remembered.
    let release = release().release().id();
    node.fleet.member.as_mut().unwrap().wanted = Some(release);
    for serial in 0..10_000 {
        node.known(&announced(serial, files::manifest_name(release)));
    }
    assert_eq!(node.fleet.member.as_ref().unwrap().arriving.len(), MAX_ARRIVING);

    // Orders of that member are dropped as well, and so are answers that nobody asked for.
    let order = ncmesh_fleet::rollout::Order {
        operator: key(9).public(),
        number: ncmesh_fleet::rollout::Number { rollout: 1, sequence: 1 },
        release,
        may_downgrade: false,
        step: ncmesh_fleet::rollout::Step::Stage,
    };
    let order = order.sign(&key(9));
    node.handle_fleet_packet(NodeId(7), &Packet::Order(Box::new(order)).to_bytes());
    let answer = Packet::Passed { has: true, passed: None };
    node.handle_fleet_packet(NodeId(7), &answer.to_bytes());
    let drops: BTreeMap<_, _> = node.stack.counters().drops().collect();
    assert_eq!(drops[&DropReason::Untrusted], 1);
    assert_eq!(drops[&DropReason::UnknownFlow], 1);
    assert_eq!(node.fleet_status().member.unwrap().standing, None);
}

#[tokio::test]
async fn a_roll_out_with_longer_orders_than_packets_is_refused_before_a_node_hears_of_it() {
    let (mut node, _calls, dir) = node();
    join(&mut node, &dir);
    let many: Vec<u16> = (1..=4000).map(|id| id * 7).collect();
    let refused = node.push_fleet(push(&many, &dir)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadRequest);
    assert!(refused.error.contains("a roll-out to 4000 nodes has orders of"), "{refused:?}");
    assert_eq!(node.fleet_status().rollout, None);
}
