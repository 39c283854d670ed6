//! Live streams through real daemons: the lab's own, the command's, and video that ffmpeg makes and
//! checks.

use crate::support::{room, room_alone};
use ncmesh_lab::{Lab, LabOptions, POLL_INTERVAL};
use ncmesh_node::api::types::{JoinedGroup, Status, Stream};
use ncmesh_node::stream::{Layer, SendStream};
use ncmesh_sim::scenario::Scenario;
use ncmesh_test_support::skip;
use serde_json::Value;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Timeout of every wait in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A source, a relay that receives too, and a receiver behind it.
const LINE: &str = r#"
name = "line"
nodes = ["a", "b", "c"]
medium = { phy = "802.11a", bit_rate = "6M", sense = "everyone" }
link = [{ from = "a", to = "b", loss = 0.0 }, { from = "b", to = "c", loss = 0.0 }]
protocol.link = { quick_hello_s = 0.05 }

[[stream]]
group = "tv"
from = "a"
packet = 1000
layers = [{ name = "base", rate = "100k" }, { name = "enh", rate = "8M" }]
receivers = [{ node = "b", min_rate = "100k" }, { node = "c", min_rate = "100k" }]
warm_up_s = 3
seconds = 5
"#;

fn options(scheme: &str) -> LabOptions {
    LabOptions {
        program: env!("CARGO_BIN_EXE_ncmesh").into(),
        dir: None,
        // The test is about what arrives, not when: a busy machine may lag.
        max_lag: Duration::from_secs(20),
        tunnel: None,
        stream: Some(scheme.into()),
        web: None,
    }
}

async fn line() -> Lab {
    line_of("multirate").await
}

/// Starts the line with a scheme for streams.
pub(crate) async fn line_of(scheme: &str) -> Lab {
    let scenario = Scenario::parse(LINE, "line.toml", Path::new("")).unwrap();
    let lab = Lab::start(&scenario, &options(scheme)).await.unwrap();
    lab.settle_streams().await.unwrap();
    lab
}

#[tokio::test]
async fn more_than_the_mesh_carries_is_dropped_from_the_enhancement() {
    let _room = room().await;
    let lab = line().await;
    let outcome = lab.run_streams("multirate").await.unwrap();
    let streams = outcome.streams().unwrap();
    for receiver in &streams.streams[0].receivers {
        assert_eq!(receiver.corrupt, 0, "{receiver:?}");
        assert!(receiver.layers[0].share > 0.5, "{receiver:?}");
        assert!(receiver.layers[1].share < 0.9, "{receiver:?}");
    }
    assert!(streams.queues.iter().all(|queue| queue.dropped.first() == Some(&0)), "{streams:?}");
    assert!(streams.queues.iter().any(|queue| queue.dropped[1] > 0), "{streams:?}");
    assert!(streams.cpu.values().all(|share| *share > 0.0), "{:?}", streams.cpu);
    // When all receivers have left, the stream ends.
    let left: Vec<Stream> = lab.client(0).read("/v1/streams").await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    lab.stop().await.unwrap();
}

pub(crate) fn command(lab: &Lab, node: usize, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    command.arg("--api").arg(lab.client(node).socket()).arg("stream").args(args);
    command.output().unwrap()
}

pub(crate) fn succeeds(lab: &Lab, node: usize, args: &[&str]) -> String {
    let output = command(lab, node, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn fails(lab: &Lab, node: usize, args: &[&str], code: i32) -> String {
    let output = command(lab, node, args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    said
}

/// Returns a port that is free now.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn streams_at(lab: &Lab, node: usize) -> Vec<Stream> {
    lab.client(node).read("/v1/streams").await.unwrap()
}

/// Repeats an action until the first node gives this hint.
pub(crate) async fn until_hinted(lab: &Lab, wanted: &str, mut does: impl FnMut()) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        does();
        let status: Status = lab.client(0).read("/v1/status").await.unwrap();
        if status.hints.iter().any(|hint| hint.contains(wanted)) {
            return;
        }
        assert!(Instant::now() < deadline, "{:?}", status.hints);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits until a node's streams satisfy a condition.
pub(crate) async fn until(lab: &mut Lab, node: usize, wanted: impl Fn(&[Stream]) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        lab.check().unwrap();
        let streams = streams_at(lab, node).await;
        if wanted(&streams) {
            return;
        }
        assert!(Instant::now() < deadline, "{streams:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test]
async fn streams_are_begun_joined_listed_and_ended_by_command() {
    let _room = room().await;
    let mut lab = line().await;
    let base = free_port();
    let out = UdpSocket::bind("127.0.0.1:0").unwrap();
    let layer = format!("base=udp:{base}");
    let played = format!("base=udp:{}", out.local_addr().unwrap().port());
    succeeds(&lab, 0, &["send", "--group", "tv", "--layer", &layer, "--no-wait"]);
    let joined = ["receive", "--group", "tv", "--min-rate", "100k", "--utility", "log"];
    succeeds(&lab, 2, &[&joined[..], &["--layer", &played, "--no-wait"]].concat());
    until(&mut lab, 0, |streams| streams.iter().any(|stream| stream.receivers == 1)).await;
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    out.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut buffer = [0; 100];
    sender.send_to(b"live", ("127.0.0.1", base)).unwrap();
    let length = out.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"live");
    // A packet that fits no frame is reported, not carried.
    sender.send_to(&[7; 2000], ("127.0.0.1", base)).unwrap();
    until_hinted(&lab, "pkt_size", || ()).await;
    // So are more packets at once than may enter and wait.
    let burst = || (0..2000).for_each(|_| drop(sender.send_to(b"much", ("127.0.0.1", base))));
    until_hinted(&lab, "were refused, as more came than may enter", burst).await;
    let listed: Value = serde_json::from_str(&succeeds(&lab, 1, &["list", "--json"])).unwrap();
    assert_eq!((&listed[0]["group"], &listed[0]["source"]), (&"tv".into(), &"a".into()));
    assert!(succeeds(&lab, 0, &["list"]).contains("QUEUE OF"));
    let port = format!("x=udp:{base}");
    let again = fails(&lab, 1, &["send", "--group", "radio", "--layer", &port, "--no-wait"], 8);
    assert!(again.contains("in use"), "{again}");
    let other = format!("x=udp:{}", free_port());
    let twice = fails(&lab, 0, &["send", "--group", "tv", "--layer", &other, "--no-wait"], 2);
    assert!(twice.contains("already"), "{twice}");
    let steep = [&joined[..], &["--layer", &played, "--weight", "50", "--no-wait"]].concat();
    assert!(fails(&lab, 2, &steep, 2).contains("theta"));
    assert!(fails(&lab, 1, &["stop", "--group", "tv"], 9).contains("no part"));
    succeeds(&lab, 2, &["stop", "--group", "tv"]);
    until(&mut lab, 0, |streams| streams.iter().all(|stream| stream.receivers == 0)).await;
    succeeds(&lab, 0, &["stop", "--group", "tv"]);
    until(&mut lab, 2, <[Stream]>::is_empty).await;
    lab.stop().await.unwrap();
}

#[tokio::test]
async fn a_node_that_announces_a_thousand_groups_announces_a_few_and_they_end() {
    let _room = room().await;
    let mut lab = line_of("delta").await;
    let mut begun = Vec::new();
    let mut refused = 0;
    for n in 0..1000 {
        let group = format!("g{n}");
        let layers = vec![Layer { name: "base".into(), port: free_port() }];
        let rtp = Vec::new();
        let request =
            SendStream { group: group.clone(), layers, rtp, sdp: None, deadline_ms: None };
        match lab.client(0).put::<SendStream>("/v1/streams/sent", &request).await {
            Ok(_) => begun.push(group),
            Err(e) => {
                assert!(e.to_string().contains("as many streams as it can"), "{e}");
                refused += 1;
            }
        }
    }
    assert_eq!((begun.len(), refused), (32, 968));

    // The others know no more, and are there for streams of their own when these have ended.
    until(&mut lab, 2, |streams| streams.len() == 32).await;
    for group in begun {
        succeeds(&lab, 0, &["stop", "--group", &group]);
    }
    until(&mut lab, 2, <[Stream]>::is_empty).await;
    let layer = format!("base=udp:{}", free_port());
    let send = ["send", "--group", "tv", "--layer", &layer, "--no-wait"];
    // A node remembers for a while that streams have ended.
    let deadline = Instant::now() + TIMEOUT;
    while !command(&lab, 2, &send).status.success() {
        assert!(Instant::now() < deadline, "{}", fails(&lab, 2, &send, 2));
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    until(&mut lab, 0, |streams| streams.iter().any(|stream| stream.group == "tv")).await;
    lab.stop().await.unwrap();
}

#[tokio::test]
async fn a_receiver_says_what_keeps_it_from_its_rate() {
    let _room = room().await;
    let mut lab = line().await;
    let played = format!("base=udp:{}", free_port());
    let join = ["receive", "--no-wait", "--layer", &played, "--min-rate", "9M", "--group"];
    succeeds(&lab, 2, &[&join[..], &["vt"]].concat());
    assert!(succeeds(&lab, 2, &["list"]).contains("waits"));
    let joined: Vec<JoinedGroup> = lab.client(2).read("/v1/streams/received").await.unwrap();
    assert_eq!((joined[0].group.as_str(), joined[0].streams.len()), ("vt", 0));
    assert_eq!(joined[0].playing.join(" "), played);
    // For a mistyped name, the hint has the right one.
    let base = free_port();
    let layer = format!("base=udp:{base}");
    succeeds(&lab, 0, &["send", "--group", "tv", "--layer", &layer, "--no-wait"]);
    until(&mut lab, 2, |streams| !streams.is_empty()).await;
    let status: Status = lab.client(2).read("/v1/status").await.unwrap();
    let hint = status.hints.iter().find(|hint| hint.contains("group vt: nobody")).unwrap();
    assert!(hint.ends_with("(streams known here are to tv)"), "{hint}");
    succeeds(&lab, 2, &["stop", "--group", "vt"]);
    succeeds(&lab, 2, &[&join[..], &["tv"]].concat());
    until(&mut lab, 0, |streams| streams.iter().any(|stream| stream.receivers == 1)).await;
    let twice = fails(&lab, 2, &[&join[..], &["tv", "--layer", &played]].concat(), 2);
    assert!(twice.contains("given twice"), "{twice}");
    let other = format!("bas=udp:{}", free_port());
    let misnamed = ["receive", "--no-wait", "--layer", &other, "--group", "tv"];
    succeeds(&lab, 2, &misnamed);
    let listed = succeeds(&lab, 2, &["list"]);
    assert!(listed.contains("it has no layer bas: its layers are base"), "{listed}");
    succeeds(&lab, 2, &[&join[..], &["tv"]].concat());
    // Everything that is sent arrives, and it is less than the receiver asks for.
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sends = move || sender.send_to(&[0; 500], ("127.0.0.1", base)).is_ok();
    until(&mut lab, 2, |streams| {
        sends();
        let problems = streams.iter().filter_map(|s| s.receiving.as_ref()?.problem.as_ref());
        problems.into_iter().any(|problem| problem.code == "source_sends_less")
    })
    .await;
    let listed = succeeds(&lab, 2, &["list"]);
    assert!(listed.contains("of at least 9.00 Mbit/s: the source sends no more"), "{listed}");
    lab.stop().await.unwrap();
}

/// Returns whether video can be made here. If not, the test is skipped and must return.
pub(crate) fn has_ffmpeg() -> bool {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command.arg("-version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let has_both = runs("ffmpeg") && runs("ffprobe");
    if !has_both {
        skip("streams of video need ffmpeg");
    }
    has_both
}

const FRAMES: usize = 60;
/// Length of the RTP header before the packet (RFC 3550, section 5.1).
const RTP_HEADER: usize = 12;

/// Starts a moving clip as MPEG-TS in RTP, in real time: a small base layer, and noise as the
/// enhancement layer, which is more than the mesh carries.
fn encode(base: u16, enhancement: u16) -> Command {
    let mut ffmpeg = Command::new("ffmpeg");
    let source = |size: &str, more: &str| format!("testsrc=size={size}:rate=10:duration=6{more}");
    let to = |port: u16| format!("rtp://127.0.0.1:{port}?pkt_size=1328");
    ffmpeg.args(["-v", "error", "-re", "-f", "lavfi", "-i", &source("176x144", "")]);
    ffmpeg.args(["-re", "-f", "lavfi", "-i", &source("640x480", ",noise=alls=60:allf=t")]);
    ffmpeg.args(["-map", "0:v", "-c:v", "mpeg2video", "-b:v", "200k", "-f", "rtp_mpegts"]);
    ffmpeg.arg(to(base));
    ffmpeg.args(["-map", "1:v", "-c:v", "mpeg2video", "-q:v", "2", "-f", "rtp_mpegts"]);
    ffmpeg.arg(to(enhancement));
    ffmpeg
}

/// Records what is sent to a port, until nothing arrives for a while after something did.
fn record(port: &UdpSocket, file: PathBuf) -> JoinHandle<PathBuf> {
    let port = port.try_clone().unwrap();
    port.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    std::thread::spawn(move || {
        let mut clip = Vec::new();
        let mut buffer = vec![0; 2000];
        while let Ok(length) = port.recv(&mut buffer) {
            clip.extend_from_slice(&buffer[RTP_HEADER..length]);
        }
        std::fs::write(&file, clip).unwrap();
        file
    })
}

/// Returns the number of undamaged pictures of a clip.
fn pictures(clip: &Path) -> usize {
    let decoded = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(clip)
        .args(["-f", "null", "-"])
        .output()
        .unwrap();
    assert!(decoded.status.success() && decoded.stderr.is_empty(), "{decoded:?}");
    let probed = Command::new("ffprobe")
        .args(["-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames"])
        .args(["-of", "default=nokey=1:noprint_wrappers=1"])
        .arg(clip)
        .output()
        .unwrap();
    let said = String::from_utf8(probed.stdout).unwrap();
    said.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn the_base_of_a_video_is_whole_at_every_receiver() {
    if !has_ffmpeg() {
        return;
    }
    let _room = room_alone().await;
    let dir = tempfile::tempdir().unwrap();
    let mut lab = line().await;
    let base = free_port();
    let enhancement = free_port();
    let layers = [format!("base=udp:{base}"), format!("enh=udp:{enhancement}")];
    let [b, e] = &layers;
    succeeds(&lab, 0, &["send", "--group", "tv", "--layer", b, "--layer", e, "--no-wait"]);
    let mut recorded = Vec::new();
    for node in [1, 2] {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap();
        let played = format!("base=udp:{}", port.local_addr().unwrap().port());
        let join = ["receive", "--group", "tv", "--min-rate", "400k", "--layer", &played];
        succeeds(&lab, node, &[&join[..], &["--no-wait"]].concat());
        recorded.push(record(&port, dir.path().join(format!("{node}.ts"))));
    }
    until(&mut lab, 0, |streams| streams.iter().any(|stream| stream.receivers == 2)).await;
    let encoded = tokio::task::spawn_blocking(move || encode(base, enhancement).output().unwrap());
    let encoded = encoded.await.unwrap();
    assert!(encoded.status.success() && encoded.stderr.is_empty(), "{encoded:?}");
    let sent = streams_at(&lab, 0).await[0].sending.clone().unwrap().taken[0];
    for node in [1, 2] {
        until(&mut lab, node, |streams| {
            streams
                .iter()
                .any(|s| s.receiving.as_ref().is_some_and(|r| r.values.packets[0] == sent))
        })
        .await;
    }
    let clips: Vec<PathBuf> = recorded.into_iter().map(|clip| clip.join().unwrap()).collect();
    for clip in clips {
        assert_eq!(pictures(&clip), FRAMES, "{}", clip.display());
    }
    lab.stop().await.unwrap();
}
