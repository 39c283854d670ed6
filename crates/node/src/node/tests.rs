//! A node whose state directory cannot be written for a while.

use super::*;
use crate::api::types::{KeptParts, State};
use crate::config::token_warning;
use crate::state::{DELIVERIES_KEPT, Delivery, OutgoingFile};
use crate::store::naming::Naming;
use crate::store::reception::{Prepared, prepare};
use ncmesh_engine::Event;
use ncmesh_engine::file::{Allowance, Geometry, Manifest};
use ncmesh_engine::storage::Storage;
use ncmesh_host::measure::{MAX_ECHOES, MAX_RUNS};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

pub(super) const CONFIG: &str = "[node]\nid = 3\nkey = \"000102030405060708090a0b0c0d0e0f10111213\
                      1415161718191a1b1c1d1e1f\"\n[radio]\nkind = \"udp\"\ninterface = \"lo\"\n";

/// A node, the calls that other threads make on it, and its state directory.
pub(super) fn node() -> (Node, UnboundedReceiver<Command>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let file = dir.path().join("node.toml");
    std::fs::write(&file, CONFIG).unwrap();
    let config = NodeConfig::read(&file).unwrap();
    let (handle, calls) = Handle::new();
    let parts = Parts {
        fleet: FleetStart::default(),
        start: Start { salt: Salt([1; 16]), epoch: state.next_epoch().unwrap(), seed: 1 },
        delivered: state.delivered().unwrap(),
        handle,
        ports: Ports::new().0,
        set_log: Box::new(|_| ()),
        state,
        trust: TrustConfig::Key,
    };
    let mut node = Node::new(&config, parts).unwrap();
    let description = "none".to_owned();
    let news = PortNews { description, is_up: true, ..PortNews::default() };
    node.handle_port_news(Port::FIRST, news);
    (node, calls, dir)
}

/// Waits until a thread has answered, and lets the node go on as the daemon's loop does.
async fn answered(node: &mut Node, calls: &mut UnboundedReceiver<Command>) {
    calls.recv().await.unwrap()(node);
    node.handle_events();
}

/// Lets the node do what it wants to be woken for.
async fn woken(node: &mut Node, calls: &mut UnboundedReceiver<Command>) {
    while calls.is_empty() {
        let at = node.poll_timeout().unwrap();
        tokio::time::sleep_until(at.into()).await;
        node.handle_timeout();
        node.handle_events();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    answered(node, calls).await;
}

#[tokio::test]
async fn inboxes_that_cannot_be_saved_are_saved_as_soon_as_they_can() {
    let (mut node, mut calls, dir) = node();
    let obstacle = dir.path().join("inboxes.new");
    std::fs::create_dir(&obstacle).unwrap();
    node.use_inbox(dir.path().join("in"));
    let flow = FlowId { source: NodeId(7), serial: 1 };
    let geometry = Geometry::new(1000, 32, 1400).unwrap();
    let manifest = Manifest { flow, name: "a".into(), geometry, root: [1; 32], hash: [2; 32] };
    let now = node.clock.now();
    node.files.handle_event(Event::Announced(Box::new(manifest)), now, |_| None);
    node.handle_events();
    // Two threads answer, in either order: the one that prepares the file's place, and the one that
    // cannot save.
    answered(&mut node, &mut calls).await;
    answered(&mut node, &mut calls).await;
    assert!(node.state.inboxes().is_empty());

    std::fs::remove_dir(&obstacle).unwrap();
    woken(&mut node, &mut calls).await;
    assert_eq!(node.state.inboxes(), BTreeMap::from([(flow, dir.path().join("in"))]));
}

#[tokio::test]
async fn what_is_left_of_a_file_is_shown_and_can_be_removed() {
    let (mut node, mut calls, dir) = node();
    let inbox = dir.path().join("in");
    let flow = FlowId { source: NodeId(7), serial: 1 };
    let geometry = Geometry::new(1000, 32, 1400).unwrap();
    let manifest = Manifest { flow, name: "a".into(), geometry, root: [1; 32], hash: [2; 32] };
    let limits = node.inbox.limits.space;
    let Prepared::Receiving(incoming, _) =
        prepare(&inbox, &manifest, &limits, Naming::Announced).unwrap()
    else {
        panic!("nothing was delivered");
    };
    let mut earlier = FileStorage::new(limits);
    earlier.receive(flow, incoming);
    earlier.write(flow, 0, 0, &[7; 1000], &[0; 32]).unwrap();
    drop(earlier);

    node.use_inbox(inbox.clone());
    node.tidy();
    answered(&mut node, &mut calls).await;
    let shown = node.transfers();
    assert_eq!((shown[0].id.as_str(), shown[0].values.bytes), ("7-00000001", 1000));
    assert_eq!(shown[0].state, State::Lost);
    assert_eq!(node.status().kept, KeptParts { files: 1, bytes: 1000 });

    // Other threads answer too, in any order: those that save what the node has learned.
    node.cancel(flow).unwrap();
    let left = || std::fs::read_dir(inbox.join(".ncmesh")).unwrap().count();
    while left() > 0 {
        answered(&mut node, &mut calls).await;
    }
    assert_eq!(node.transfers(), []);
}

#[tokio::test]
async fn a_change_that_cannot_be_written_is_shown_and_written_later() {
    let (mut node, mut calls, dir) = node();
    let flow = FlowId { source: NodeId(3), serial: 9 };
    // A directory in the place of the entry cannot be removed as a file.
    let obstacle = dir.path().join("outgoing").join(format!("{flow}.json"));
    std::fs::create_dir(&obstacle).unwrap();
    node.files.send(flow);
    node.files.handle_event(Event::SendConfirmed(flow), node.clock.now(), |_| None);
    node.do_file_actions();
    answered(&mut node, &mut calls).await;
    let shown = |node: &Node| node.hints().iter().any(|hint| hint.contains("outgoing"));
    assert!(shown(&node));

    std::fs::remove_dir(&obstacle).unwrap();
    // The epoch is saved meanwhile, too.
    for _ in 0..2 {
        if shown(&node) {
            woken(&mut node, &mut calls).await;
        }
    }
    assert!(!shown(&node));
    assert_eq!(node.chores.poll_timeout(), None);
}

/// A nonce does not depend on the epoch, so a full disk does not silence a node.
#[tokio::test]
async fn a_node_whose_epoch_cannot_be_saved_sends_and_saves_it_as_soon_as_it_can() {
    let (mut node, mut calls, dir) = node();
    let obstacle = dir.path().join("epoch.new");
    std::fs::create_dir(&obstacle).unwrap();
    node.handle_events();
    answered(&mut node, &mut calls).await;
    assert!(!dir.path().join("epoch").exists());
    assert!(node.wants_radio(Port::FIRST));

    std::fs::remove_dir(&obstacle).unwrap();
    woken(&mut node, &mut calls).await;
    let saved = std::fs::read(dir.path().join("epoch")).unwrap();
    assert_eq!(crate::state::parse_epoch(&saved), Some(node.stack.epoch()));
}

/// Returns, for every table of a node that a peer can add to, its name, size and bound. A new field
/// does not compile until it is named here.
fn tables(node: &Node) -> Vec<(&'static str, usize, usize)> {
    let ids = usize::from(u16::MAX);
    let Node {
        // Bounded by tests of their own: the engines' limits, those of files and streams, and of
        // hooks.
        stack,
        hooks: _,
        files: _,
        streams: _,
        tunnel: _,
        // One file, and the nodes of a roll-out that the operator named.
        fleet: _,
        // Open files of transfers that the stack knows.
        storage: _,
        inbox,
        sending,
        measuring,
        noted,
        chores: _,
        savers: _,
        // With a fixed size, or the operator's.
        configuration: _,
        clock: _,
        state: _,
        handle: _,
        ports: _,
        set_log: _,
    } = node;
    let [last_heard, coding_stopped, neighbours] = noted.sizes();
    let [runs, echoes] = measuring.sizes();
    vec![
        ("delivered", inbox.delivered.len(), DELIVERIES_KEPT),
        ("sending", sending.len(), stack.transfers().len()),
        ("last_heard", last_heard, ids),
        ("coding_stopped", coding_stopped, ids),
        ("neighbours", neighbours, ids),
        ("parts", inbox.parts(), 256),
        ("runs", runs, MAX_RUNS),
        ("echoes", echoes, MAX_ECHOES),
    ]
}

#[tokio::test]
async fn a_hostile_member_grows_no_table_beyond_its_bound() {
    let (mut node, _calls, _dir) = node();
    let now = node.clock.now();
    for serial in 0..10_000 {
        let flow = FlowId { source: NodeId(7), serial };
        let geometry = Geometry::new(1000, 32, 1400).unwrap();
        let manifest = Manifest { flow, name: "a".into(), geometry, root: [1; 32], hash: [2; 32] };
        node.inbox.delivered.learn(flow, Delivery { hash: [2; 32], path: None });
        node.noted.hear(NodeId(serial as u16), now);
        let file = OutgoingFile {
            path: "/a".into(),
            manifest,
            scheme: "cascade".into(),
            scheme_reason: None,
            receivers: Vec::new(),
            done: BTreeMap::new(),
            open: true,
            allowance: Allowance::default(),
            priority: 5,
        };
        node.sending.insert(file);
        // A packet of a bandwidth run, each of another one.
        let packet = [&[3][..], &serial.to_be_bytes(), &[0; 4]].concat();
        node.handle_measurement(NodeId(serial as u16), &packet);
        node.handle_measurement(NodeId(serial as u16), &[0]);
        drop(node.echo(NodeId(serial as u16), now));
    }
    assert_eq!(node.status().drops["malformed"], 10_000);
    node.tidy();
    for (table, size, bound) in tables(&node) {
        assert!(size <= bound, "{table} has {size} entries, allowed are {bound}");
    }
    // The newest deliveries are the ones that are kept.
    let newest = FlowId { source: NodeId(7), serial: 9_999 };
    assert_eq!(node.inbox.delivered.len(), DELIVERIES_KEPT);
    node.inbox.delivered.learn(newest, Delivery { hash: [2; 32], path: Some("/a".into()) });
    assert!(node.inbox.delivered.path(newest).is_some());
    assert_eq!(node.noted.sizes()[0], 0, "the stack has forgotten them");
}

/// Reads server-sent events from the console until one has `text`. Returns it.
async fn told(stream: &mut tokio::net::TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    loop {
        let told = String::from_utf8_lossy(&read).into_owned();
        if let Some(line) = told.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        stream.readable().await.unwrap();
        let mut bytes = [0; 4096];
        match stream.try_read(&mut bytes) {
            Ok(n) => {
                assert!(n > 0, "the console hung up: {told}");
                read.extend_from_slice(&bytes[..n]);
            }
            Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

/// Sends a request to the console, and returns its connection.
async fn asked(address: std::net::SocketAddr, line: &str, more: &str) -> tokio::net::TcpStream {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nhost: {address}\r\n{more}\r\n");
    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(request.as_bytes()).unwrap(), request.len());
    stream
}

#[tokio::test]
async fn a_mesh_of_one_node_is_shown_in_the_browser() {
    let (mut node, mut calls, dir) = node();
    let token = "0123456789abcdef";
    std::fs::write(dir.path().join("token"), token).unwrap();
    let text = format!("{CONFIG}[web]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"token\"\n");
    std::fs::write(dir.path().join("node.toml"), text).unwrap();
    let config = NodeConfig::read(&dir.path().join("node.toml")).unwrap();
    let web = config.web.clone().unwrap();
    let hub = crate::web::hub(node.handle.clone(), true);
    let address = crate::web::serve(&config, &web, node.handle.clone(), hub).await.unwrap();

    let browsing = async {
        // The address that the log tells lets a browser in.
        let reads = crate::web::readers_token(&config);
        for line in ["GET /messages", "GET /metrics", "GET /", "GET /console.json"] {
            let refused = told(&mut asked(address, line, "").await, "HTTP").await;
            assert!(refused.contains("401"), "{line}: {refused}");
        }
        let opened = format!("GET /?token={reads}");
        let cookie = told(&mut asked(address, &opened, "").await, "set-cookie").await;
        let cookie = cookie.trim().strip_prefix("set-cookie: ").unwrap();
        let looks = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
        let mut stream = asked(address, "GET /messages", &looks).await;
        let meta = told(&mut stream, "\"type\":\"meta\"").await;
        assert!(meta.contains("\"source\":\"daemon\"") && meta.contains("\"name\":\"n03\""));
        told(&mut stream, "\"type\":\"tick\"").await;

        // Counters are for everybody who may look, programs by either token.
        let reads = format!("authorization: Bearer {reads}\r\n");
        let mut stream = asked(address, "GET /metrics", &reads).await;
        told(&mut stream, "content-type: application/openmetrics-text").await;
        let refused = told(&mut asked(address, "GET /v1/status", &reads).await, "HTTP").await;
        assert!(refused.contains("401"), "{refused}");
        let with = format!("authorization: Bearer {token}\r\n");
        let mut stream = asked(address, "GET /metrics", &with).await;
        told(&mut stream, "ncmesh_neighbors 0.0").await;

        // Commands take the token, the same as for the API on its socket.
        let refused = told(&mut asked(address, "GET /v1/status", "").await, "HTTP").await;
        assert!(refused.contains("401"), "{refused}");
        let status = told(&mut asked(address, "GET /v1/status", &with).await, "uptime_s").await;
        assert!(status.contains("\"name\":\"n03\""));
    };
    let answering = async {
        while let Some(call) = calls.recv().await {
            call(&mut node);
        }
    };
    tokio::select! {
        () = browsing => {}
        () = answering => panic!("nobody asks the node"),
    }
}

#[test]
fn a_token_must_be_there_and_long() {
    let (_, _, dir) = node();
    let file = dir.path().join("node.toml");
    let config = NodeConfig::read(&file).unwrap();
    let token = |text: &str| {
        std::fs::write(dir.path().join("token"), text).unwrap();
        config.token(std::path::Path::new("token")).map_err(|e| e.to_string())
    };
    assert_eq!(token("0123456789abcdef\nnotes\n"), Ok("0123456789abcdef".into()));
    assert!(token("short").unwrap_err().contains("16 characters or more"));
    assert!(config.token(std::path::Path::new("none")).unwrap_err().to_string().contains("none"));
    for (mode, words) in [(0o600, None), (0o640, Some("chmod 600"))] {
        let file = dir.path().join("token");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let warning = token_warning(&file);
        assert!(words.map_or(warning.is_none(), |words| warning.unwrap().contains(words)));
    }
    let text = format!("{CONFIG}[web]\nlisten = \"roof:7180\"\n");
    let error = NodeConfig::parse(&file, &text).unwrap_err().to_string();
    assert!(
        error.contains("node.toml:8") && error.contains("allowed is an address and a port"),
        "{error}"
    );
}

#[tokio::test]
async fn a_damaged_entry_of_a_file_under_way_is_named() {
    let (mut node, _calls, dir) = node();
    let outgoing = dir.path().join("outgoing");
    std::fs::write(outgoing.join("3-00000009.json"), "{").unwrap();
    let left = node.outgoing_journal().load().unwrap();
    node.note_damaged(left.damaged);
    let hints = node.status().hints;
    let named = |hint: &String| hint.contains("3-00000009.damaged is damaged");
    assert!(hints.iter().any(named), "{hints:?}");
}

#[tokio::test]
async fn who_speaks_another_version_is_named_with_what_to_do() {
    let (mut node, _calls, _dir) = node();
    assert_eq!((node.status().wire_version, node.status().strangers.len()), (2, 0));
    // In a frame of another version only the version and the sender can be read.
    for (version, sender) in [(1, 7), (3, 8)] {
        assert_eq!(
            node.handle_datagram(Port::FIRST, &[0xC0 | version, 0, sender, 0xFF]),
            Heard::Dropped
        );
    }
    assert_eq!(node.status().strangers, BTreeMap::from([(7, 1), (8, 3)]));
    let hints = node.status().hints;
    for hint in [
        "node 7 sends frames of version 1, and this node understands 2; run a newer ncmesh there",
        "node 8 sends frames of version 3, and this node understands 2; run a newer ncmesh here",
    ] {
        assert!(hints.iter().any(|told| told == hint), "{hints:?}");
    }
    assert_eq!(node.status().drops["version"], 2);
}
