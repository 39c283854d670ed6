//! Daemons that run out of something for a while: descriptors, space. No transfer ends by that.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, contents, mesh, send, wait_until};
use ncmesh_node::api::types::{Started, State, Transfer};
use ncmesh_test_support::skip;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File system of `size` in memory, which goes when this is dropped. Drop the daemons first.
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn mount(dir: &Path, size: &str) -> Option<Self> {
        fs::create_dir(dir).unwrap();
        let options = format!("size={size}");
        let mount = ["-t", "tmpfs", "-o", &options, "none", dir.to_str().unwrap()];
        if Command::new("mount").args(mount).status().is_ok_and(|status| status.success()) {
            return Some(Self(dir.to_owned()));
        }
        skip("no file system can be mounted here");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A test that failed may leave it in use.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn hints(node: &Node) -> String {
    node.status().hints.join("\n")
}

#[test]
fn idle_clients_of_the_api_cost_no_transfer() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    let limit = ["--nofile=64", "--pid", &mesh[1].pid().to_string()];
    if !Command::new("prlimit").args(limit).status().is_ok_and(|status| status.success()) {
        return skip("there is no prlimit here");
    }
    let idle: Vec<_> = (0..100).map(|_| UnixStream::connect(mesh[1].socket()).unwrap()).collect();
    let id = send(&mesh[0], "file", &contents(300_000, 1), "n2");
    wait_until("the transfer ends", || mesh[0].transfers()[0].ended);
    let sent = mesh[0].transfers().remove(0);
    assert_eq!((sent.id, sent.receivers[0].values.bytes), (id, 300_000), "{}", mesh[1].log());
    // The daemon answers others, though none of the idle clients has gone.
    mesh[1].wait_for_completion();
    drop(idle);
}

#[test]
fn a_disk_that_is_full_for_a_while_delays_a_file() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&dir.path().join("disk"), "4m") else { return };
    let inbox = format!("[inbox]\ndir = \"{}\"\nreserve = 0\n", disk.path().display());
    let mesh = mesh(&segment, dir.path(), &["", &inbox]);
    send(&mesh[0], "file", &contents(2_500_000, 1), "n2");
    mesh[1].wait_for_bytes(300_000);
    let ballast = disk.path().join("ballast");
    // Takes all that is left, and fails at the end.
    let _ = fs::write(&ballast, contents(4 << 20, 2));
    wait_until("the receiver says that it waits", || hints(&mesh[1]).contains("waits"));
    assert!(!mesh[0].transfers()[0].ended, "the source goes on");
    fs::remove_file(&ballast).unwrap();
    mesh[1].wait_for_completion();
    assert!(!hints(&mesh[1]).contains("waits"));
    wait_until("the source knows", || mesh[0].transfers()[0].ended);
    assert_eq!(fs::read(disk.path().join("file")).unwrap(), contents(2_500_000, 1));
    drop(mesh);
}

#[test]
fn a_daemon_that_cannot_write_its_state_says_so_and_goes_on() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    // The list of sent files cannot be changed, as on a disk that refuses.
    let outgoing = mesh[0].dir.join("state/outgoing");
    let id = send(&mesh[0], "file", &contents(2_000_000, 1), "n2");
    mesh[1].wait_for_bytes(100_000);
    let entry = outgoing.join(format!("{id}.json"));
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    mesh[1].wait_for_completion();
    wait_until("the source says what it cannot save", || hints(&mesh[0]).contains("outgoing"));
    fs::remove_dir(&entry).unwrap();
    wait_until("it is saved after all", || !hints(&mesh[0]).contains("outgoing"));
}

/// More files than a receiver keeps: the others wait for their turn at the source, by priority and
/// over a restart. One that nobody takes stays listed with its reason, and is logged.
#[test]
fn more_files_than_slots_all_arrive() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &["", INBOX, ""]);
    let refused = send(&mesh[0], "refused", b"x", "n3");
    wait_until("n3 refuses it", || {
        mesh[0].log().contains("n3 does not take it: it takes no files")
    });
    let files: Vec<String> = (0..72).map(|i| format!("f{i:02}")).collect();
    let bytes = contents(100_000, 1);
    // Slow ones fill all slots while the test looks at what waits, however slow the machine is.
    let slow: Vec<String> = (0..32).map(|i| send_slowly(&mesh[0], i, &bytes)).collect();
    for file in &files {
        send(&mesh[0], file, &bytes, "n2");
    }
    let waiting = |node: &Node| {
        let waits = |t: &Transfer| t.reason.as_ref().is_some_and(|why| why.contains("its turn"));
        node.transfers().into_iter().filter(waits).map(|t| t.name).collect::<Vec<String>>()
    };
    let path = mesh[0].dir.join("f00");
    let path = path.to_str().unwrap();
    let first = ["send", path, "--name", "first", "--priority", "9", "--to", "n2", "--no-wait"];
    let Started { id } = mesh[0].ask(&first);
    let wait = waiting(&mesh[0]);
    assert!(wait[0] == "first" && wait.ends_with(&files), "{wait:?}");
    assert!(mesh[0].call(&["cancel", &id]).status.success());
    assert!(!waiting(&mesh[0]).contains(&"first".to_owned()));
    let listed = mesh[0].transfers().into_iter().find(|t| t.id == refused).unwrap();
    assert_eq!(listed.receivers[0].state, State::Refused);

    // The source forgets nothing when it is killed.
    mesh[0].kill();
    mesh[0].start();
    for id in &slow {
        wait_until("it is known again", || mesh[0].call(&["cancel", id]).status.success());
    }
    let inbox = mesh[1].dir.join("inbox");
    wait_until("all arrive", || files.iter().all(|file| inbox.join(file).exists()));
    wait_until("the source knows", || {
        let is_done = |t: &Transfer| !files.contains(&t.name) || t.state == State::Complete;
        mesh[0].transfers().iter().all(is_done)
    });
    assert!(!inbox.join("first").exists());
}

/// Sends at a rate by which `bytes` take minutes.
fn send_slowly(node: &Node, number: usize, bytes: &[u8]) -> String {
    let path = node.dir.join(format!("slow{number}"));
    fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let Started { id } = node.ask(&["send", path, "--to", "n2", "--limit", "1k", "--no-wait"]);
    id
}
