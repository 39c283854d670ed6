//! Files between real daemons over UDP broadcast: delivery, crashes at both ends, odd files.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, contents, mesh, ncmesh, send, wait_until};
use ncmesh_console::schema::{Key, Message, Meta, Stage};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engines::registry;
use ncmesh_node::api::client::ApiClient;
use ncmesh_node::api::types::{State, Transfer};
use std::fs;
use std::process::Stdio;

#[test]
fn a_file_reaches_all_and_odd_files_too() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[INBOX; 3]);
    for (name, length) in [("large.bin", 700_001), ("one", 1), ("empty", 0)] {
        let bytes = contents(length, 7);
        let path = mesh[0].dir.join(name);
        fs::write(&path, &bytes).unwrap();
        let sent: Transfer = mesh[0].ask(&["send", path.to_str().unwrap(), "--to", "n2,n3"]);
        assert_eq!(sent.state, State::Complete, "{sent:?}");
        assert!(
            sent.receivers
                .iter()
                .all(|r| r.state == State::Complete && r.values.bytes == length as u64)
        );
        for node in &mesh[1..] {
            assert_eq!(fs::read(node.dir.join("inbox").join(name)).unwrap(), bytes);
            wait_until("nothing is left of its parts", || {
                fs::read_dir(node.dir.join("inbox/.ncmesh")).unwrap().count() == 0
            });
        }
    }
    // A different file of the same name does not replace the first.
    let other = contents(5000, 8);
    let id = send(&mesh[1], "one", &other, "all");
    wait_until("a second file named one", || {
        fs::read(mesh[2].dir.join("inbox/one (2)")).is_ok_and(|read| read == other)
    });
    assert_eq!(fs::read(mesh[2].dir.join("inbox/one")).unwrap(), contents(1, 7));
    // The daemon records it a moment after the file is there.
    wait_until("the daemon names it", || {
        let named = |t: &Transfer| t.path.as_ref().is_some_and(|path| path.ends_with("one (2)"));
        mesh[2].transfers().iter().any(|t| t.id == id && named(t))
    });
    // A console that is opened now has the times that commands state.
    for node in &mesh[..2] {
        let transfers = node.transfers();
        let (meta, key) = console_of(node);
        let places = meta.transfers.iter().map(|t| t.id.as_str()).zip(&key.transfers);
        for (id, state) in places.filter(|(_, state)| state.stage != Some(Stage::Open)) {
            let transfer = transfers.iter().find(|t| t.id == id).unwrap();
            let own = [&transfer.values];
            let theirs = transfer.receivers.iter().map(|r| &r.values);
            let told: Vec<f64> = match state.stage {
                None => own.into_iter().map(|values| values.seconds).collect(),
                Some(_) => theirs.map(|values| values.seconds).collect(),
            };
            for (receiver, seconds) in state.receivers.iter().zip(told) {
                let finished = receiver.finished_s.unwrap();
                assert!((finished - seconds).abs() < 1e-5, "{id}: {finished} {seconds}");
            }
        }
    }
    assert_eq!(mesh[0].stop(), 0);
    assert!(!mesh[0].socket().exists());
}

/// Returns what the console of a node is told first.
fn console_of(node: &Node) -> (Meta, Key) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut messages = ApiClient::new(node.socket()).follow("/v1/messages").await.unwrap();
        let mut meta = None;
        loop {
            match serde_json::from_str(&messages.next().await.unwrap().unwrap()).unwrap() {
                Message::Meta(told) => meta = Some(told),
                // The first is of the daemon's start.
                Message::Key(key) if !key.transfers.is_empty() => return (meta.unwrap(), key),
                _ => {}
            }
        }
    })
}

#[test]
fn the_source_says_which_scheme_carries_a_file_and_why() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    let path = mesh[0].dir.join("file");
    fs::write(&path, "hello").unwrap();
    for (named, scheme, reason) in [
        (&[][..], "cascade", "auto: the best on every measured mesh"),
        (&["--scheme", "auto"], "cascade", "auto: the best on every measured mesh"),
        (&["--scheme", "tree_flood"], "tree_flood", "as asked"),
    ] {
        let send = [&["send", path.to_str().unwrap(), "--to", "n2"], named].concat();
        let said = mesh[0].call(&send);
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.trim_end().ends_with(&format!("by {scheme} ({reason})")), "{said}");

        let sent: Transfer = mesh[0].ask(&send);
        assert_eq!(sent.scheme.as_deref(), Some(scheme));
        assert_eq!(sent.scheme_reason.as_deref(), Some(reason));
        let known = mesh[1].transfers();
        let received = known.iter().find(|t| t.id == sent.id).unwrap();
        assert_eq!((&received.scheme, &received.scheme_reason), (&sent.scheme, &None));
    }
}

#[test]
fn a_file_arrives_though_frames_are_lost() {
    let Some(segment) = Segment::new(3) else { return };
    if !segment.lose(2, 30) || !segment.lose(3, 30) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &[INBOX; 3]);
    let schemes = registry().of(ServiceKind::File).map(|e| e.name);
    for (seed, scheme) in schemes.enumerate() {
        let bytes = contents(1_000_000, seed as u64);
        let path = mesh[0].dir.join(scheme);
        fs::write(&path, &bytes).unwrap();
        let to = ["--to", "n2,n3", "--timeout", "60", "--scheme", scheme];
        let sent: Transfer = mesh[0].ask(&[&["send", path.to_str().unwrap()], &to[..]].concat());
        assert_eq!(sent.state, State::Complete, "{sent:?}");
        // There was loss: even a perfect code needs 1/0.7 of the file for a single receiver.
        assert!(sent.sent.source_redundancy > Some(1.1), "{sent:?}");
        for node in &mesh[1..] {
            assert_eq!(fs::read(node.dir.join("inbox").join(scheme)).unwrap(), bytes);
        }
    }
}

#[test]
fn a_killed_receiver_resumes_with_what_it_has() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[INBOX; 3]);
    let bytes = contents(3_000_000, 1);
    let id = send(&mesh[0], "file", &bytes, "n2,n3");
    mesh[1].wait_for_bytes(600_000);
    mesh[1].kill();
    // n3 has the whole file: asked again after a crash, it answers and receives nothing again.
    mesh[2].wait_for_completion();
    mesh[2].kill();
    mesh[2].start();
    let known = mesh[2].wait_for_completion();
    assert_eq!((known.id.as_str(), known.values.innovative), (id.as_str(), Some(0)));
    assert_eq!(known.path, Some(mesh[2].dir.join("inbox/file")));
    mesh[1].start();
    let resumed = mesh[1].wait_for_completion();
    assert_eq!(resumed.id, id);
    assert_eq!(fs::read(mesh[1].dir.join("inbox/file")).unwrap(), bytes);
    assert!(mesh[1].log().contains("resumed with"), "{}", mesh[1].log());
    let packets = bytes.len() as u64 / 1300;
    let innovative = resumed.values.innovative.unwrap();
    assert!(innovative < packets * 9 / 10, "{innovative} of {packets}");
    mesh[0].wait_for_completion();
}

#[test]
fn a_killed_receiver_goes_on_in_the_inbox_that_was_chosen_at_run_time() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &["", ""]);
    let downloads = mesh[1].dir.join("downloads");
    let socket = mesh[1].socket();
    let mut receiver = ncmesh()
        .args(["receive", "--dir", downloads.to_str().unwrap(), "--api"])
        .arg(socket)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the inbox is set", || mesh[1].status().inbox.is_some());
    let bytes = contents(3_000_000, 2);
    send(&mesh[0], "file", &bytes, "n2");
    mesh[1].wait_for_bytes(600_000);
    mesh[1].kill();
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    mesh[1].start();
    let received = mesh[1].wait_for_completion();
    assert_eq!(fs::read(downloads.join("file")).unwrap(), bytes);
    let whole = bytes.len() as u64 / 1200;
    let innovative = received.values.innovative.unwrap();
    assert!(innovative < whole, "{innovative} packets after the restart");
}

#[test]
fn an_interface_that_goes_and_comes_back_is_used_again() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    segment.unplug(2);
    wait_until("n2 notices", || mesh[1].log().contains("no interface mesh0"));
    segment.plug(2).unwrap();
    wait_until("n2 sends again", || mesh[1].log().contains("can send, from"));
    let path = mesh[0].dir.join("file");
    fs::write(&path, "hello").unwrap();
    mesh[0].wait_for_peers(&["n2"]);
    assert!(mesh[0].call(&["send", path.to_str().unwrap(), "--to", "n2"]).status.success());
}

#[test]
fn a_killed_source_sends_on_under_the_same_id() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[INBOX; 2]);
    let bytes = contents(3_000_000, 2);
    let id = send(&mesh[0], "file", &bytes, "n2");
    mesh[1].wait_for_bytes(600_000);
    mesh[0].kill();
    mesh[0].start();
    let received = mesh[1].wait_for_completion();
    assert_eq!(received.id, id);
    assert_eq!(fs::read(mesh[1].dir.join("inbox/file")).unwrap(), bytes);
    assert_eq!(mesh[0].wait_for_completion().id, id);
    wait_until("the journal is empty", || {
        fs::read_dir(mesh[0].dir.join("state/outgoing")).unwrap().count() == 0
    });
}

#[test]
fn a_file_that_changed_while_its_source_was_down_is_withdrawn() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[INBOX; 2]);
    let id = send(&mesh[0], "file", &contents(3_000_000, 3), "n2");
    mesh[1].wait_for_bytes(300_000);
    mesh[0].kill();
    fs::write(mesh[0].dir.join("file"), contents(3_000_000, 4)).unwrap();
    mesh[0].start();
    let state_is = |node: &Node, state| node.transfers().first().is_some_and(|t| t.state == state);
    wait_until("failure at the source", || state_is(&mesh[0], State::Failed));
    wait_until("withdrawal at the receiver", || state_is(&mesh[1], State::Withdrawn));
    // Any member could have withdrawn it: the part is kept until somebody cancels it here.
    let left = || fs::read_dir(mesh[1].dir.join("inbox/.ncmesh")).unwrap().count();
    assert_eq!(left(), 2);
    wait_until("it is cancelled", || mesh[1].call(&["cancel", &id]).status.success());
    wait_until("the part is removed", || left() == 0);
}
