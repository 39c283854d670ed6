//! Bad input to real daemons: each mistake gives one line and its own exit code, and nothing is
//! lost.

use crate::support::net::Segment;
use crate::support::{
    INBOX, Node, assert_fails, closed_pipe, contents, mesh, ncmesh, send, wait_until,
};
use ncmesh_node::api::types::{Peer, State, Transfer};
use ncmesh_test_support::skip;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn files_and_receivers_that_cannot_be() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    let file = mesh[0].dir.join("file");
    fs::write(&file, contents(1000, 1)).unwrap();
    let file = file.to_str().unwrap();
    let fails =
        |args: &[&str], code, words: &[&str]| assert_fails(&mesh[0].call(args), code, words);
    fails(
        &["send", "/nonexistent/file", "--to", "n2"],
        5,
        &["/nonexistent/file", "cannot be read"],
    );
    fails(&["send", "/sys", "--to", "n2"], 5, &["not a regular file"]);
    fails(&["send", file, "--to", "n2", "--name", "../file"], 5, &["name"]);
    fails(&["send", file, "--to", "n7"], 6, &["n7", "known are: n2"]);
    fails(&["send", file, "--to", "n1"], 2, &["this very node"]);
    for scheme in ["x", "forward"] {
        let words = [scheme, "there are: auto, cascade, pacifier"];
        fails(&["send", file, "--to", "n2", "--scheme", scheme], 2, &words);
    }
    fails(&["cancel", "1-00000000"], 9, &["no transfer 1-00000000"]);
    fails(&["receive"], 5, &["no inbox", "--dir"]);
    fails(&["receive", "--dir", "/proc/inbox"], 5, &["/proc/inbox"]);
    // n1 has no inbox, so it refuses and gives the reason.
    let answer = mesh[1].call(&["send", file, "--to", "n1"]);
    assert_fails(&answer, 7, &["0 of 1 receivers"]);
    assert!(String::from_utf8_lossy(&answer.stdout).contains("no inbox configured"));
    // The exit code is the same if nobody reads the output.
    let args = ["send", file, "--to", "n1"];
    let mut unread = ncmesh();
    unread
        .arg("--api")
        .arg(mesh[1].socket())
        .args(args)
        .stderr(closed_pipe())
        .stdout(closed_pipe());
    assert_eq!(unread.status().unwrap().code(), Some(7));
    // By id instead of name it works.
    let sent: Transfer = mesh[0].ask(&["send", file, "--to", "2"]);
    assert_eq!(sent.receivers[0].name, "n2");
    fails(&["cancel", &sent.id], 7, &["ended already"]);
}

#[test]
fn a_node_alone_says_what_may_be_wrong() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut right = Node::new(&dir.path().join("a"), segment.host(1), 1, "");
    let mut wrong = Node::new(&dir.path().join("b"), segment.host(2), 2, "");
    wrong.edit("0001", "ffff");
    right.start();
    fs::write(right.dir.join("file"), "x").unwrap();
    let file = right.dir.join("file");
    let send = |to| right.call(&["send", file.to_str().unwrap(), "--to", to]);
    assert_fails(&send("all"), 6, &["no other node is known"]);
    assert_fails(&send("n2"), 6, &["no other node is known"]);
    wrong.start();
    wait_until("foreign frames", || right.status().drops.contains_key("unauthentic"));
    assert!(right.status().hints[0].contains("key"));
    assert_fails(&send("n2"), 6, &["key"]);
}

#[test]
fn what_another_program_uses_is_not_taken() {
    let Some(segment) = Segment::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::new(&dir.path().join("a"), segment.host(1), 1, "");
    node.start();
    assert_fails(&node.daemon().output().unwrap(), 8, &["state", "another ncmesh daemon"]);
    let other = Node::new(&dir.path().join("b"), segment.host(1), 2, "");
    assert_fails(&other.daemon().output().unwrap(), 8, &["7117", "in use"]);
    other.edit("[radio]", "[api]\nsocket = \"../a/state/api.sock\"\n[radio]\nport = 7118");
    assert_fails(&other.daemon().output().unwrap(), 8, &["api.sock"]);
    assert!(node.call(&["status"]).status.success());
}

#[test]
fn an_inbox_that_cannot_be_written_stops_nobody_else() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let unusable = Node::new(&dir.path().join("x"), segment.host(1), 9, INBOX);
    fs::write(unusable.dir.join("inbox"), "a file, no directory").unwrap();
    assert_fails(&unusable.daemon().output().unwrap(), 5, &["inbox"]);
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    fs::remove_dir_all(mesh[1].dir.join("inbox")).unwrap();
    fs::write(mesh[1].dir.join("inbox"), "gone bad while it runs").unwrap();
    fs::write(mesh[0].dir.join("file"), contents(1000, 1)).unwrap();
    let answer = mesh[0].call(&["send", mesh[0].dir.join("file").to_str().unwrap(), "--to", "n2"]);
    assert_fails(&answer, 7, &["0 of 1 receivers"]);
    assert!(String::from_utf8_lossy(&answer.stdout).contains("inbox cannot be written"));
}

#[test]
fn a_full_disk_is_told_to_the_source() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let full = dir.path().join("full");
    fs::create_dir(&full).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=1m", "none", full.to_str().unwrap()];
    if !Command::new("mount").args(mount).status().is_ok_and(|s| s.success()) {
        return skip("no file system can be mounted here");
    }
    let inbox = format!("[inbox]\ndir = \"{}\"\n", full.display());
    let mesh = mesh(&segment, dir.path(), &["", &inbox]);
    fs::write(mesh[0].dir.join("file"), contents(2_000_000, 1)).unwrap();
    let answer = mesh[0].call(&["send", mesh[0].dir.join("file").to_str().unwrap(), "--to", "n2"]);
    drop(mesh);
    let left = fs::read_dir(full.join(".ncmesh")).unwrap().count();
    assert!(Command::new("umount").arg(&full).status().unwrap().success());
    assert_fails(&answer, 7, &["0 of 1 receivers"]);
    assert!(String::from_utf8_lossy(&answer.stdout).contains("no space"));
    assert_eq!(left, 0, "files left of what was refused");
}

#[test]
fn a_source_that_is_not_allowed_is_told() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let inbox = format!("{INBOX}allow_from = [\"n1\"]\n");
    let mesh = mesh(&segment, dir.path(), &["", &inbox, ""]);
    fs::write(mesh[0].dir.join("file"), "hello").unwrap();
    let file = mesh[0].dir.join("file");
    let args = ["send", file.to_str().unwrap(), "--to", "n2"];
    assert!(mesh[0].call(&args).status.success());
    let answer = mesh[2].call(&args);
    assert_fails(&answer, 7, &["0 of 1 receivers"]);
    assert!(String::from_utf8_lossy(&answer.stdout).contains("no files from this node"));
}

#[test]
fn a_name_that_two_nodes_have_is_not_guessed() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &["", INBOX, INBOX]);
    mesh[2].kill();
    mesh[2].edit("\"n3\"", "\"n2\"");
    mesh[2].start();
    fs::write(mesh[0].dir.join("file"), "hello").unwrap();
    let path = mesh[0].dir.join("file");
    let send = |to: &str| mesh[0].call(&["send", path.to_str().unwrap(), "--to", to]);
    wait_until("the new name is known", || {
        let peers: Vec<Peer> = mesh[0].ask(&["peers"]);
        let in_reach = |p: &&Peer| p.name.as_deref() == Some("n2") && p.values.etx.is_some();
        peers.iter().filter(in_reach).count() == 2
    });
    assert_fails(&send("n2"), 6, &["2 nodes are named", "2, 3"]);
    let sent = send("3");
    assert!(sent.status.success(), "{sent:?}");
    assert!(mesh[2].dir.join("inbox/file").exists() && !mesh[1].dir.join("inbox/file").exists());
}

#[test]
fn a_file_cut_short_while_it_is_sent_ends_its_transfer() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    send(&mesh[0], "file", &contents(3_000_000, 1), "n2");
    mesh[1].wait_for_bytes(300_000);
    fs::File::create(mesh[0].dir.join("file")).unwrap().write_all(b"new").unwrap();
    let failed = |t: &Transfer| t.state == State::Failed && t.reason.is_some();
    wait_until("the source notices", || mesh[0].transfers().iter().any(failed));
    wait_until("the receiver is told", || mesh[1].transfers()[0].state == State::Withdrawn);
    assert!(!mesh[1].dir.join("inbox/file").exists());
}

#[test]
fn cancelling_at_either_end_cleans_up() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX, INBOX]);
    let id = send(&mesh[0], "file", &contents(3_000_000, 1), "n2,n3");
    mesh[1].wait_for_bytes(100_000);
    assert!(mesh[1].call(&["cancel", &id]).status.success());
    let is_gone = |node: &Node| fs::read_dir(node.dir.join("inbox/.ncmesh")).unwrap().count() == 0;
    wait_until("the part at n2 is removed", || is_gone(&mesh[1]));
    mesh[2].wait_for_bytes(200_000);
    assert!(mesh[0].call(&["cancel", &id]).status.success());
    wait_until("n3 is told", || mesh[2].transfers()[0].state == State::Withdrawn);
    // Any member could have said so: what is there is kept until somebody cancels it here, too.
    assert!(!is_gone(&mesh[2]));
    wait_until("n3 cancels, too", || mesh[2].call(&["cancel", &id]).status.success());
    wait_until("the part at n3 is removed", || is_gone(&mesh[2]));
    assert_eq!(mesh[0].transfers()[0].state, State::Withdrawn);
}

#[test]
fn an_inbox_chosen_at_run_time_shows_what_arrives() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", ""]);
    let downloads = mesh[1].dir.join("downloads");
    std::thread::scope(|threads| {
        let dir = downloads.to_str().unwrap();
        let receiver = threads.spawn(|| mesh[1].call(&["receive", "--dir", dir, "--once"]));
        let watch = ["transfers", "--watch", "--json"];
        let mut watcher = ncmesh();
        watcher.arg("--api").arg(mesh[1].socket()).args(watch).stdout(Stdio::piped());
        let mut watcher = watcher.spawn().unwrap();
        wait_until("the inbox is set", || mesh[1].status().inbox.is_some());
        send(&mesh[0], "file", b"hello", "all");
        let output = receiver.join().unwrap();
        assert!(output.status.success());
        let path = downloads.join("file");
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), path.to_str().unwrap());
        assert_eq!(fs::read(path).unwrap(), b"hello");
        let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
        let complete = |line: String| {
            serde_json::from_str::<Transfer>(&line).unwrap().state == State::Complete
        };
        assert!(lines.any(|line| complete(line.unwrap())));
        watcher.kill().unwrap();
        watcher.wait().unwrap();
    });
}

#[test]
fn a_receiver_that_is_gone_can_be_waited_for_or_not() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &["", INBOX]);
    fs::write(mesh[0].dir.join("file"), contents(100_000, 1)).unwrap();
    let file = mesh[0].dir.join("file");
    let args = ["send", file.to_str().unwrap(), "--to", "n2"];
    mesh[1].kill();
    let waited = mesh[0].call(&[&args[..], &["--timeout", "0.5"]].concat());
    assert_fails(&waited, 7, &["0 of 1 receivers", "the transfer goes on"]);
    wait_until("n2 is out of reach", || {
        mesh[0].ask::<Vec<Peer>>(&["peers"]).iter().all(|peer| peer.values.etx.is_none())
    });
    assert_fails(&mesh[0].call(&args), 6, &["cannot be reached"]);
    // The first transfer continues when its receiver returns.
    mesh[1].start();
    mesh[1].wait_for_completion();
}
