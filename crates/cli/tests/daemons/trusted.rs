//! Daemons with identities: keys on disk, certificates from the command line, restarts, revocation.

use crate::support::net::Segment;
use crate::support::{Node, assert_fails, mesh, ncmesh, run, wait_until};
use ncmesh_node::api::types::{Identity, Peer};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

const FIRST_USE: &str = "[trust]\nmode = \"first_use\"\n";

fn identity(node: &Node) -> Identity {
    node.status().identity.unwrap()
}

fn said(output: &std::process::Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_owned()
}

/// Runs a command of `ncmesh network` in a directory.
fn network(dir: &Path, args: &[&str]) -> std::process::Output {
    ncmesh().arg("network").args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

/// Signs a certificate for the node, into its state directory.
fn admit(dir: &Path, id: u16, more: &[&str]) {
    let node = dir.join(format!("n{id}"));
    let config = node.join("node.toml");
    let key = said(&network(dir, &["key", "--config", config.to_str().unwrap()]));
    let id = id.to_string();
    let name = format!("n{id}");
    let out = node.join("state/certificate");
    let mut args = vec!["admit", "town.network", "--id", &id, "--name", &name, "--key", &key];
    args.extend(["--out", out.to_str().unwrap()]);
    args.extend(more);
    said(&network(dir, &args));
}

#[test]
fn keys_are_pinned_on_first_use_over_restarts_and_shown() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[FIRST_USE, FIRST_USE]);
    let own = identity(&mesh[1]);
    let shown = || {
        let peers: Vec<Peer> = mesh[0].ask(&["peers"]);
        peers[0].fingerprint.clone()
    };
    wait_until("the key is pinned", || shown().as_ref() == Some(&own.fingerprint));
    let text = String::from_utf8(mesh[0].call(&["peers"]).stdout).unwrap();
    assert!(text.contains("KEY") && text.contains(&own.fingerprint), "{text}");
    let text = String::from_utf8(mesh[1].call(&["status"]).stdout).unwrap();
    assert!(text.contains(&format!("identity   key {}", own.fingerprint)), "{text}");
    let pins = mesh[0].dir.join("state/pins");
    wait_until("the pin is saved", || fs::read_to_string(&pins).is_ok_and(|t| t.contains("n2")));
    let mode = fs::metadata(mesh[1].dir.join("state/identity")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // The second node comes back with another key; the first one has pinned the old one.
    mesh[0].stop();
    mesh[1].stop();
    fs::remove_file(mesh[1].dir.join("state/identity")).unwrap();
    mesh.iter_mut().for_each(Node::start);
    wait_until("a conflict is shown", || identity(&mesh[0]).conflicts == [2]);
    let hints = mesh[0].status().hints;
    assert!(hints.iter().any(|hint| hint.contains("`pins`")), "{hints:?}");
    assert_eq!(mesh[0].status().values.nodes, 0, "its states are not believed");

    // The operator forgets the pin.
    mesh[0].stop();
    fs::remove_file(&pins).unwrap();
    mesh[0].start();
    mesh[0].wait_for_peers(&["n2"]);
    assert_ne!(identity(&mesh[1]).fingerprint, own.fingerprint);
}

#[test]
fn a_network_admits_nodes_and_puts_one_out() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let key = said(&network(dir.path(), &["create", "town.network"]));
    let trust = format!("[trust]\nmode = \"network\"\nnetworks = [\"{key}\"]\n");
    let new = |i: u16| {
        let place = dir.path().join(format!("n{i}"));
        Node::new(&place, segment.host(i.into()), i, &trust)
    };
    let mut nodes: Vec<Node> = (1..=3).map(new).collect();

    // Without a certificate a node does not start, and says what it needs.
    let refused = nodes[0].daemon().output().unwrap();
    assert_fails(&refused, 3, &["[trust]", "certificate is missing", "ncmesh network admit"]);
    (1..=3).for_each(|id| admit(dir.path(), id, &["--days", "30"]));
    nodes.iter_mut().for_each(Node::start);
    nodes[0].wait_for_peers(&["n2", "n3"]);
    nodes[2].wait_for_peers(&["n1", "n2"]);
    let own = identity(&nodes[0]);
    assert_eq!((own.serial, own.known, own.revoked), (Some(1), 2, 0));
    let shown = said(&network(dir.path(), &["show", "town.network"]));
    for word in [key.as_str(), "n1", "n3", &own.fingerprint, "29 days"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }

    // The third node is stolen. One node is told, by a file.
    let list = dir.path().join("revoked.list");
    let list = list.to_str().unwrap();
    said(&network(dir.path(), &["revoke", "town.network", "n3", "--out", list]));
    nodes[0].edit("[trust]\n", &format!("[trust]\nrevocations = \"{list}\"\n"));
    let reloaded = said(&nodes[0].call(&["reload"]));
    assert!(reloaded.contains("[trust] revocations"), "{reloaded}");
    for node in [0, 1] {
        wait_until("the third node is out", || {
            let peers: Vec<Peer> = nodes[node].ask(&["peers"]);
            let peers: Vec<u16> = peers.iter().map(|peer| peer.id).collect();
            identity(&nodes[node]).revoked == 1 && !peers.contains(&3)
        });
    }
    // It stays out after a restart of a node that only heard of it.
    wait_until("the list is saved", || nodes[1].dir.join("state/revocations").exists());
    nodes[1].stop();
    nodes[1].start();
    nodes[1].wait_for_peers(&["n1"]);
    assert_eq!(identity(&nodes[1]).revoked, 1);
    let peers: Vec<Peer> = nodes[1].ask(&["peers"]);
    assert!(peers.iter().all(|peer| peer.id != 3), "{peers:?}");
    let drops = nodes[1].status().drops;
    assert!(drops.contains_key("untrusted"), "{drops:?}");
}

#[test]
fn certificates_that_do_not_fit_are_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let key = said(&network(dir.path(), &["create", "town.network"]));
    let other = said(&network(dir.path(), &["create", "other.network"]));
    assert_fails(&network(dir.path(), &["create", "town.network"]), 5, &["not overwritten"]);
    let node = |more: &str| {
        let place = dir.path().join("n1");
        fs::create_dir_all(place.join("state")).unwrap();
        let config = format!(
            "[node]\nid = 1\nname = \"n1\"\nkey = \"{}\"\nstate_dir = \"state\"\n\n[radio]\n\
             kind = \"udp\"\ninterface = \"lo\"\n\n{more}",
            crate::support::KEY
        );
        fs::write(place.join("node.toml"), config).unwrap();
        run(&["node", "--config", place.join("node.toml").to_str().unwrap()])
    };
    let trust = |key: &str| format!("[trust]\nmode = \"network\"\nnetworks = [\"{key}\"]\n");
    assert_fails(&node("[trust]\nmode = \"network\"\n"), 3, &["needs networks"]);
    assert_fails(&node("[trust]\nmode = \"nobody\"\n"), 3, &["mode"]);
    assert_fails(&node("[trust]\nnetworks = [\"12\"]\n"), 3, &["64 hexadecimal digits"]);
    admit(dir.path(), 1, &[]);
    assert_fails(&node(&trust(&other)), 3, &["of another network"]);
    let file = dir.path().join("n1/state/certificate");
    let certificate = fs::read_to_string(&file).unwrap();
    fs::write(&file, certificate.replace("6e31", "6e32")).unwrap();
    assert_fails(&node(&trust(&key)), 3, &["not of this node", "name"]);
    fs::write(&file, "abc").unwrap();
    assert_fails(&node(&trust(&key)), 3, &["it is no certificate"]);
    fs::write(&file, certificate).unwrap();
    let identity = dir.path().join("n1/state/identity");
    fs::set_permissions(&identity, PermissionsExt::from_mode(0o644)).unwrap();
    assert_fails(&node(&trust(&key)), 3, &["others can read it", "chmod 600"]);
    fs::remove_file(&identity).unwrap();
    assert_fails(&node(&trust(&key)), 3, &["not of this node", "key"]);
    // Two nodes of one name would be one for `--to`.
    let key = said(&network(
        dir.path(),
        &["key", "--config", dir.path().join("n1/node.toml").to_str().unwrap()],
    ));
    let twice = ["admit", "town.network", "--id", "2", "--name", "n1", "--key", &key];
    assert_fails(&network(dir.path(), &twice), 2, &["node 1 is named n1"]);
}
