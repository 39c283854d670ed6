//! Hours of crashes. `make soak` runs these tests, `make test` leaves them out.
//!
//! Whatever happens, every file arrives whole, and its source says so. Each test draws its moments
//! from `NCMESH_SOAK_SEED`; how long it goes on is a variable beside it.

use crate::limits::Disk;
use crate::support::net::Segment;
use crate::support::{INBOX, Node, contents, mesh, send, wait_until};
use ncmesh_node::api::types::State;
use ncmesh_test_support::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Seeded random numbers (SplitMix64).
struct Draw(u64);

impl Draw {
    fn new() -> Self {
        Self(setting("NCMESH_SOAK_SEED", 1))
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    /// Lets a random time below `end` pass.
    fn pause(&mut self, end: Duration) {
        std::thread::sleep(Duration::from_millis(self.below(end.as_millis() as u64)));
    }
}

/// Returns the number in an environment variable, or a default.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A file on its way, and what it must be.
struct Sent {
    id: String,
    name: String,
    bytes: Vec<u8>,
    from: usize,
}

impl Sent {
    /// Sends a file of a random length below a megabyte from node `from` to all others.
    fn new(mesh: &[Node], from: usize, round: u64, draw: &mut Draw) -> Self {
        let bytes = contents(draw.below(1_000_000) as usize, round);
        let name = format!("file-{round}");
        let others = (1..=mesh.len()).filter(|i| i - 1 != from);
        let others: Vec<_> = others.map(|i| format!("n{i}")).collect();
        // One that has just restarted knows nobody yet.
        mesh[from].wait_for_peers(&others.iter().map(String::as_str).collect::<Vec<_>>());
        let id = send(&mesh[from], &name, &bytes, &others.join(","));
        Self { id, name, bytes, from }
    }

    /// Waits until all others have the file, byte for byte, and the source says so. Removes it.
    fn arrives(&self, mesh: &[Node]) {
        for (i, node) in mesh.iter().enumerate().filter(|(i, _)| *i != self.from) {
            let path = node.dir.join("inbox").join(&self.name);
            wait_until(&format!("n{} has {}", i + 1, self.name), || {
                fs::read(&path).is_ok_and(|read| read == self.bytes)
            });
        }
        // A source that was killed after the end has nothing left to say about it.
        wait_until(&format!("n{} knows that {} arrived", self.from + 1, self.name), || {
            let known = mesh[self.from].transfers();
            known.iter().filter(|t| t.id == self.id).all(|t| t.state == State::Complete && t.ended)
        });
        fs::remove_file(mesh[self.from].dir.join(&self.name)).unwrap();
        for node in mesh.iter().enumerate().filter(|(i, _)| *i != self.from).map(|(_, n)| n) {
            fs::remove_file(node.dir.join("inbox").join(&self.name)).unwrap();
        }
    }
}

#[test]
#[ignore = "an hour; `make soak` runs it"]
fn no_file_is_lost_by_kills_at_any_moment() {
    let Some(segment) = Segment::new(3) else { return };
    if !segment.lose(2, 20) || !segment.lose(3, 20) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[INBOX; 3]);
    let mut draw = Draw::new();
    let kills = setting("NCMESH_SOAK_KILLS", 1000);
    for round in 1..=kills {
        let from = draw.below(3) as usize;
        let sent = Sent::new(&mesh, from, round, &mut draw);
        draw.pause(Duration::from_millis(1500));
        let victim = draw.below(3) as usize;
        mesh[victim].kill();
        draw.pause(Duration::from_millis(500));
        // One in four is killed once more while it reads what it saved.
        if draw.below(4) == 0 {
            mesh[victim].spawn();
            draw.pause(Duration::from_millis(100));
            mesh[victim].kill();
        }
        mesh[victim].start();
        sent.arrives(&mesh);
        if round % 50 == 0 {
            println!("{round} of {kills} kills");
        }
    }
}

/// Resources that a process holds.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    resident_kib: u64,
    descriptors: u64,
}

impl Held {
    fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident_kib = line.trim().trim_end_matches(" kB").parse().unwrap();
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
        Self { resident_kib, descriptors }
    }

    fn most(all: &[Self]) -> Self {
        Self {
            resident_kib: all.iter().map(|held| held.resident_kib).max().unwrap_or(0),
            descriptors: all.iter().map(|held| held.descriptors).max().unwrap_or(0),
        }
    }
}

#[test]
#[ignore = "an hour; `make soak` runs it"]
fn memory_and_descriptors_stay_flat_while_others_come_and_go() {
    let Some(segment) = Segment::new(4) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut mesh = mesh(&segment, dir.path(), &[INBOX; 4]);
    let mut draw = Draw::new();
    let span = Duration::from_secs(setting("NCMESH_SOAK_SECONDS", 3600));
    let begun = Instant::now();
    let mut held = Vec::new();
    let mut round = 0;
    // n1 stays. It sends and receives by turns, while one of the others is killed.
    while begun.elapsed() < span {
        round += 1;
        let from = if round % 2 == 0 { 0 } else { 1 + draw.below(3) as usize };
        let sent = Sent::new(&mesh, from, round, &mut draw);
        draw.pause(Duration::from_secs(1));
        let victim = 1 + draw.below(3) as usize;
        mesh[victim].kill();
        draw.pause(Duration::from_secs(2));
        mesh[victim].start();
        sent.arrives(&mesh);
        held.push(Held::of(mesh[0].pid()));
    }
    // The first quarter fills tables and caches, which have bounds.
    let quarter = held.len() / 4;
    assert!(quarter > 0, "too few transfers to compare; raise NCMESH_SOAK_SECONDS");
    let before = Held::most(&held[quarter..2 * quarter]);
    let after = Held::most(&held[held.len() - quarter..]);
    println!("{} transfers: {before:?} in the second quarter, {after:?} in the last", held.len());
    assert!(after.resident_kib <= before.resident_kib * 11 / 10 + 1024, "{held:?}");
    assert!(after.descriptors <= before.descriptors + 2, "{held:?}");
}

/// A disk that can lose power: an ext4 image.
struct Ext4 {
    image: PathBuf,
    dir: PathBuf,
}

impl Ext4 {
    fn new(dir: &Path) -> Option<Self> {
        let disk = Self { image: dir.join("image"), dir: dir.join("disk") };
        fs::File::create(&disk.image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(&disk.dir).unwrap();
        let made = Command::new("mkfs.ext4").arg("-q").arg(&disk.image).status();
        if made.is_ok_and(|status| status.success()) && disk.mount() {
            return Some(disk);
        }
        skip("no ext4 image can be mounted here");
        None
    }

    fn mount(&self) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).args([&self.image, &self.dir]);
        mount.status().is_ok_and(|status| status.success())
    }

    /// Cuts the power: the file system forgets at once what was not synced, and fails from now on.
    fn cut(&self) {
        // EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH. It needs a call that Rust holds
        // unsafe, so Python makes it.
        let code = "import fcntl, os, struct, sys\n\
                    fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, \
                    struct.pack('I', 2))";
        let status = Command::new("python3").arg("-c").arg(code).arg(&self.dir).status().unwrap();
        assert!(status.success());
    }

    /// Mounts it again as after a power cut.
    fn power_on(&self) {
        assert!(Command::new("umount").arg(&self.dir).status().unwrap().success());
        assert!(self.mount());
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // A test that failed may leave it in use.
        let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}

#[test]
#[ignore = "minutes; `make soak` runs it"]
fn power_cuts_lose_no_file() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut source = Node::new(&dir.path().join("n1"), segment.host(1), 1, INBOX);
    source.start();
    // n2 has its configuration, state and inbox on the disk. It is mounted when n1 runs already,
    // whose mount namespace would keep it mounted.
    let Some(disk) = Ext4::new(dir.path()) else { return };
    let mut victim = Node::new(&disk.dir.join("n2"), segment.host(2), 2, INBOX);
    assert!(Command::new("sync").status().unwrap().success());
    victim.start();
    let mut mesh = [source, victim];
    mesh[0].wait_for_peers(&["n2"]);
    mesh[1].wait_for_peers(&["n1"]);
    let mut draw = Draw::new();
    for round in 1..=setting("NCMESH_SOAK_CUTS", 100) {
        // The disk is the receiver's, or the source's.
        let from = draw.below(2) as usize;
        let sent = Sent::new(&mesh, from, round, &mut draw);
        // The user keeps the file that is sent; the daemon need not make it durable.
        assert!(
            Command::new("sync").arg(mesh[from].dir.join(&sent.name)).status().unwrap().success()
        );
        draw.pause(Duration::from_millis(1500));
        disk.cut();
        mesh[1].kill();
        disk.power_on();
        mesh[1].start();
        sent.arrives(&mesh);
    }
}

#[test]
#[ignore = "minutes; `make soak` runs it"]
fn what_runs_out_for_a_while_loses_no_file() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&dir.path().join("disk"), "4m") else { return };
    let mut mesh = vec![
        Node::new(&dir.path().join("n1"), segment.host(1), 1, INBOX),
        Node::new(
            &disk.path().join("n2"),
            segment.host(2),
            2,
            "[inbox]\ndir = \"inbox\"\nreserve = 0\n",
        ),
    ];
    mesh.iter_mut().for_each(Node::start);
    mesh[0].wait_for_peers(&["n2"]);
    mesh[1].wait_for_peers(&["n1"]);
    let mut draw = Draw::new();
    let limit = |pid: u32, files: u64| {
        let args = [format!("--nofile={files}:"), "--pid".into(), pid.to_string()];
        assert!(Command::new("prlimit").args(args).status().unwrap().success());
    };
    for round in 1..=setting("NCMESH_SOAK_SHORTAGES", 50) {
        let sent = Sent::new(&mesh, 0, round, &mut draw);
        draw.pause(Duration::from_millis(1000));
        // Space, descriptors, or both.
        let kind = draw.below(3);
        let ballast = disk.path().join("ballast");
        if kind != 0 {
            // Takes all that is left, and fails at the end.
            let _ = fs::write(&ballast, contents(4 << 20, 2));
        }
        if kind != 1 {
            limit(mesh[1].pid(), Held::of(mesh[1].pid()).descriptors);
        }
        draw.pause(Duration::from_secs(3));
        limit(mesh[1].pid(), 1024);
        // It was never written if the disk was full already.
        let _ = fs::remove_file(&ballast);
        sent.arrives(&mesh);
    }
}
