//! RTP of one encoder through real daemons, to a player.

use crate::streams::{TIMEOUT, fails, has_ffmpeg, line_of, succeeds, until, until_hinted};
use crate::support::{room, room_alone};
use ncmesh_lab::Lab;
use ncmesh_node::api::types::JoinedGroup;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Frames that the player shows before it is closed.
const FRAMES: &str = "60";

/// Returns a port that is free now, with the next one.
fn free_pair() -> u16 {
    loop {
        let rtp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = rtp.local_addr().unwrap().port();
        if port < u16::MAX && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// A process that ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts H.264 with B-frames, whose parameter sets come with each key frame, for as long as the
/// process runs.
fn encode(port: u16) -> Running {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=176x144:rate=20"]);
    ffmpeg.args(["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "20"]);
    ffmpeg.args(["-f", "rtp", &format!("rtp://127.0.0.1:{port}?pkt_size=1300")]);
    Running(ffmpeg.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

/// Puts a program of this name into a directory for programs.
fn install(dir: &Path, name: &str, script: &str) {
    let place = dir.join(name);
    fs::write(&place, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
}

/// Returns `ncmesh stream watch` for a node, with the players of a directory alone.
fn watch(lab: &Lab, node: usize, players: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    command.env("PATH", players).arg("--api").arg(lab.client(node).socket());
    command.args(["stream", "watch", "tv"]).stdin(Stdio::null());
    command
}

/// Waits until a process ends, and returns how; `None` if it does not.
async fn ends_within_time(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

#[tokio::test]
async fn one_encoder_gives_layers_and_every_player_a_clean_picture() {
    if !has_ffmpeg() {
        return;
    }
    let _room = room_alone().await;
    let dir = tempfile::tempdir().unwrap();
    let mut lab = line_of("delta").await;
    let port = free_pair();
    let rtp = format!("h264=udp:{port}");
    succeeds(&lab, 0, &["send", "--group", "tv", "--rtp", &rtp, "--no-wait"]);

    // In place of ffplay, which needs a screen: ffmpeg with the same options and description.
    let ffmpeg = "for sdp; do :; done; exec \"$FFMPEG\" -v warning -protocol_whitelist \
                  file,udp,rtp -reorder_queue_size 0 -i \"$sdp\" \
                  -frames:v $FRAMES -f null - 2>\"$ERRORS\"";
    install(dir.path(), "ffplay", ffmpeg);
    let which = Command::new("sh").args(["-c", "command -v ffmpeg"]).output().unwrap();
    let program = String::from_utf8(which.stdout).unwrap();
    let mut watches = Vec::new();
    for node in [1, 2] {
        let errors = dir.path().join(format!("{node}.errors"));
        let mut command = watch(&lab, node, dir.path());
        command.env("FFMPEG", program.trim()).env("FRAMES", FRAMES).env("ERRORS", &errors);
        watches.push((Running(command.spawn().unwrap()), errors));
    }
    until(&mut lab, 0, |streams| streams.iter().any(|stream| stream.receivers == 2)).await;
    let encoder = encode(port);

    for (Running(child), errors) in &mut watches {
        let ended = ends_within_time(child).await;
        let said = fs::read_to_string(errors).unwrap_or_default();
        assert!(ended.is_some_and(|status| status.success()), "{said}");
        // A player that comes later than the first key frame says so until the next one.
        for damage in ["missed", "concealing", "error while decoding", "reference picture"] {
            assert!(!said.contains(damage), "{said}");
        }
    }
    drop(encoder);

    // Both layers were in use, and nobody is in the group whose player is closed.
    until(&mut lab, 0, |streams| {
        streams.iter().any(|stream| {
            let taken = stream.sending.as_ref().map(|sending| sending.taken.clone());
            stream.receivers == 0 && taken.is_some_and(|taken| taken[0] > 0 && taken[1] > 0)
        })
    })
    .await;
    let joined: Vec<JoinedGroup> = lab.client(2).read("/v1/streams/received").await.unwrap();
    assert_eq!(joined, []);
    lab.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_no_rtp_or_cannot_be_played_is_told_in_one_line() {
    let _room = room().await;
    let dir = tempfile::tempdir().unwrap();
    let mut lab = line_of("delta").await;
    let none = watch(&lab, 2, dir.path()).output().unwrap();
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(said.contains("neither ffplay nor mpv is installed"), "{said}");

    // Datagrams that are none.
    let port = free_pair();
    let rtp = format!("h264=udp:{port}");
    succeeds(&lab, 0, &["send", "--group", "tv", "--rtp", &rtp, "--no-wait"]);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    until_hinted(&lab, "datagrams at its ports were no RTP", || {
        sender.send_to(b"hello", ("127.0.0.1", port)).unwrap();
    })
    .await;
    let both = ["--layer", "base=udp:5004", "--rtp", &rtp, "--no-wait"];
    assert!(fails(&lab, 0, &[&["send", "--group", "x"], &both[..]].concat(), 2).contains("--rtp"));
    let taken = ["send", "--group", "x", "--rtp", &rtp, "--no-wait"];
    assert!(fails(&lab, 0, &taken, 8).contains("RTP of video"));
    let sdp = dir.path().join("x.sdp");
    fs::write(&sdp, "hello").unwrap();
    let bad = ["send", "--group", "x", "--sdp", sdp.to_str().unwrap(), "--no-wait"];
    assert!(fails(&lab, 0, &bad, 2).contains("no session description"));
    let endless = ["send", "--group", "x", "--sdp", "/dev/zero", "--no-wait"];
    assert!(fails(&lab, 0, &endless, 5).contains("1200 bytes"));
    for (what, group) in [("send", "ip-239.1.2.3"), ("receive", "ip-ff05-0-0-0-0-0-0-77")] {
        let rtp = if what == "send" { "h264=udp:5020" } else { "6004" };
        let reserved = [what, "--group", group, "--rtp", rtp, "--no-wait"];
        assert!(fails(&lab, 0, &reserved, 2).contains("IP multicast"));
        assert!(fails(&lab, 0, &["stop", "--group", group], 2).contains("IP multicast"));
    }
    succeeds(&lab, 0, &["stop", "--group", "tv"]);

    // A group of plain layers has no picture, and a player that fails is told.
    install(dir.path(), "mpv", "exit 3");
    let layer = format!("base=udp:{port}");
    succeeds(&lab, 0, &["send", "--group", "tv", "--layer", &layer, "--no-wait"]);
    until(&mut lab, 2, |streams| !streams.is_empty()).await;
    let plain = watch(&lab, 2, dir.path()).output().unwrap();
    let said = String::from_utf8(plain.stderr).unwrap();
    assert!(said.contains("a sends no RTP to group tv"), "{said}");
    let own = watch(&lab, 0, dir.path()).output().unwrap();
    let said = String::from_utf8(own.stderr).unwrap();
    assert!(said.contains("this node sends to group tv itself"), "{said}");
    let joined: Vec<JoinedGroup> = lab.client(2).read("/v1/streams/received").await.unwrap();
    assert_eq!(joined, []);
    lab.stop().await.unwrap();
}

/// Returns a packet of H.264 that a frame later refers to.
fn reference(number: u32, length: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 0x80 | 96];
    packet.extend((number as u16).to_be_bytes());
    packet.extend((3000 * number).to_be_bytes());
    packet.extend([0, 0, 0, 9, 0x41]);
    packet.resize(length, 7);
    packet
}

/// Passes packets of a video to a source until `done`.
async fn stream_until(port: u16, done: impl Fn() -> bool) {
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let deadline = Instant::now() + TIMEOUT;
    for number in 0.. {
        drop(sender.send_to(&reference(number, 100), ("127.0.0.1", port)));
        if done() {
            return;
        }
        assert!(Instant::now() < deadline, "the player was not started");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_player_ends_when_its_node_does_not_play_the_group_for_it() {
    let _room = room().await;
    let dir = tempfile::tempdir().unwrap();
    let mut lab = line_of("delta").await;
    let port = free_pair();
    let rtp = format!("h264=udp:{port}");
    succeeds(&lab, 0, &["send", "--group", "tv", "--rtp", &rtp, "--no-wait"]);
    // Another source of the group, of layers that cannot be watched, is in nobody's way.
    let layer = format!("base=udp:{}", free_pair());
    succeeds(&lab, 2, &["send", "--group", "tv", "--layer", &layer, "--no-wait"]);
    until(&mut lab, 1, |streams| streams.len() == 2).await;

    install(dir.path(), "ffplay", "echo $$ >\"$PLAYER\"; PATH=/usr/bin:/bin; exec sleep 300");
    let player = dir.path().join("player");
    let other = ["receive", "--group", "tv", "--rtp", "6004", "--no-wait"];
    let stop = ["stop", "--group", "tv"];
    for (ends_it, code, why, remain) in [
        (&other[..], 8, "another command plays group tv", 1),
        (&stop[..], 9, "the node left group tv", 0),
    ] {
        let mut command = watch(&lab, 1, dir.path());
        let mut watch = command.env("PLAYER", &player).stderr(Stdio::piped()).spawn().unwrap();
        let is_shown = || fs::read_to_string(&player).is_ok_and(|text| text.ends_with('\n'));
        stream_until(port, is_shown).await;
        succeeds(&lab, 1, ends_it);
        let status = ends_within_time(&mut watch).await.unwrap();

        let mut said = String::new();
        watch.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains(why), "{said}");
        assert_eq!(status.code(), Some(code));
        let process = fs::read_to_string(&player).unwrap();
        assert!(!Path::new("/proc").join(process.trim()).exists());
        fs::remove_file(&player).unwrap();
        let joined: Vec<JoinedGroup> = lab.client(1).read("/v1/streams/received").await.unwrap();
        assert_eq!(joined.len(), remain);
    }
    lab.stop().await.unwrap();
}

#[tokio::test]
async fn closing_the_terminal_leaves_the_group_unless_the_command_outlives_it() {
    let _room = room().await;
    let lab = line_of("delta").await;
    // The tests themselves may run under nohup.
    for (signal, remain) in [("--default-signal=HUP", 0), ("--ignore-signal=HUP", 1)] {
        let mut command = Command::new("env");
        command
            .arg(signal)
            .arg(env!("CARGO_BIN_EXE_ncmesh"))
            .arg("--api")
            .arg(lab.client(1).socket());
        command.args(["stream", "receive", "--group", "tv", "--rtp", "6004"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut receive = Running(command.spawn().unwrap());
        // It says so once it listens for signals.
        let said = BufReader::new(receive.0.stderr.take().unwrap());
        assert!(said.lines().map_while(Result::ok).any(|line| line.contains("waiting: ")));

        let process = receive.0.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &process]).status().unwrap().success());
        if remain == 0 {
            assert!(ends_within_time(&mut receive.0).await.is_some_and(|status| status.success()));
        } else {
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(receive.0.try_wait().unwrap(), None);
        }
        let joined: Vec<JoinedGroup> = lab.client(1).read("/v1/streams/received").await.unwrap();
        assert_eq!(joined.len(), remain);
    }
    lab.stop().await.unwrap();
}

#[tokio::test]
async fn a_source_that_is_faster_than_any_link_is_heard_again_when_it_slows_down() {
    let _room = room_alone().await;
    let mut lab = line_of("delta").await;
    let port = free_pair();
    let rtp = format!("h264=udp:{port}");
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    let out = player.local_addr().unwrap().port().to_string();
    succeeds(&lab, 0, &["send", "--group", "tv", "--rtp", &rtp, "--no-wait"]);
    succeeds(&lab, 2, &["receive", "--group", "tv", "--rtp", &out, "--no-wait"]);
    until(&mut lab, 0, |streams| streams.iter().any(|stream| stream.receivers == 1)).await;

    // 40 Mbit/s for 5 s, on links of 6 Mbit/s.
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut number = 0;
    for _ in 0..500 {
        for _ in 0..40 {
            drop(sender.send_to(&reference(number, 1250), ("127.0.0.1", port)));
            number += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // Packets that waited are given up after their deadline. Then a slow source is heard at once.
    let deadline = Instant::now() + TIMEOUT;
    player.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2000];
    let mut came = 0;
    while came < 20 {
        assert!(Instant::now() < deadline, "{came} short packets came");
        drop(sender.send_to(&reference(number, 100), ("127.0.0.1", port)));
        number += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
        while let Ok(length) = player.recv(&mut buffer) {
            came += usize::from(length == 100);
        }
    }
    lab.stop().await.unwrap();
}
