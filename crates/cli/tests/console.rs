//! Commands that serve the console: replay, simulate and demo.

use ncmesh_console::recording::Reader;
use ncmesh_console::schema::{Message, Source};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn ncmesh(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    ncmesh(arguments).output().expect("it starts")
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/tests/fixtures").join(name)
}

/// A command that serves, until the test ends.
struct Serving {
    child: Child,
    address: SocketAddr,
}

impl Serving {
    /// Starts a command that prints the console's address on standard error.
    fn start(arguments: &[&str]) -> Self {
        let mut child = ncmesh(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let line = lines.find_map(|line| line.ok()?.split_once("http://").map(|l| l.1.to_owned()));
        let line = line.expect("it prints an address");
        let (address, _) = line.split_once('/').expect("an address");
        let address = address.parse().expect("an address");
        // Others are read on, so that the command can go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Sends a request as a page of the server does, and returns the body of the answer.
    fn ask(&self, line: &str, body: &str) -> Vec<u8> {
        let address = self.address;
        let length = body.len();
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        answer.split_off(end + 4)
    }

    fn json(&self, line: &str, body: &str) -> Value {
        let answer = self.ask(line, body);
        let text = String::from_utf8_lossy(&answer);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the messages of a recording.
fn messages(recording: &[u8]) -> Vec<Message> {
    Reader::new(recording).collect::<Result<_, _>>().expect("a whole recording")
}

#[test]
fn a_recording_is_replayed_byte_for_byte() {
    let path = fixture("cross.ncrec");
    let serving = Serving::start(&["replay", path.to_str().expect("a path")]);
    let offered = serving.json("GET /console.json", "");
    assert_eq!(offered["kind"], "recording");
    assert_eq!(offered["runs"][0]["name"], "cross.ncrec");
    let recording = serving.ask("GET /recordings/0", "");
    assert_eq!(recording, std::fs::read(path).expect("a file"));
}

#[test]
fn two_recordings_are_shown_in_step() {
    let files = ["cross-forward.ncrec", "cross-braid.ncrec"].map(fixture);
    let [first, second] = files.each_ref().map(|file| file.to_str().expect("a path"));
    let serving = Serving::start(&["replay", first, second]);
    let offered = serving.json("GET /console.json", "");
    let names = offered["runs"].as_array().expect("runs").iter().map(|run| &run["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["cross-forward.ncrec", "cross-braid.ncrec"]);
    assert_eq!(serving.ask("GET /recordings/1", ""), std::fs::read(second).expect("a file"));

    let page = tempfile::NamedTempFile::new().expect("a file");
    let path = page.path().to_str().expect("a path");
    let output = output(&["replay", first, second, "--html", path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let both: u64 = files.iter().map(|file| file.metadata().expect("a file").len()).sum();
    assert!(page.path().metadata().expect("written").len() > both);
}

/// The picture is drawn by scripts/race_picture.py, whose text says how.
#[test]
fn the_picture_of_the_readme_states_what_its_runs_give() {
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/race.svg");
    let picture = std::fs::read_to_string(picture).expect("the picture");
    for scheme in ["tree_flood", "cascade"] {
        let run = output(&["simulate", "building", "--scheme", scheme, "--json"]);
        let result: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        let seconds = result["seconds"].as_f64().expect("a time");
        // Ticks of the recording come every 0.1 s.
        let near = [seconds, seconds + 0.05, seconds + 0.1].map(|s| format!("{s:.1} s ✓"));
        assert!(near.iter().any(|text| picture.contains(text)), "{scheme}: {near:?}");
        assert!(picture.contains(&format!(">{scheme}<")), "{scheme}");
    }
}

#[test]
fn wrong_files_and_ports_in_use_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let whole = std::fs::read(fixture("cross.ncrec")).expect("a file");
    let cut = dir.path().join("cut.ncrec");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let foreign = dir.path().join("foreign.ncrec");
    std::fs::write(&foreign, "<html>").expect("written");
    let page = fixture("cross.ncrec");
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    for (path, message) in [
        (text(&cut), "cut off after"),
        (text(&foreign), "not a recording"),
        (text(&dir.path().join("none")), "No such file"),
    ] {
        let output = output(&["replay", &path]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{error}");
        assert!(error.contains(&path) && error.contains(message), "{error}");
    }

    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    for arguments in [vec!["replay", page.to_str().expect("a path")], vec!["demo", "--no-browser"]]
    {
        let output = output(&[arguments.as_slice(), &["--listen", &address]].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(8), "{error}");
        assert!(error.contains(&format!("{address} is in use")), "{error}");
    }
}

#[test]
fn a_built_in_scenario_becomes_a_recording_and_a_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = ncmesh(&["simulate", "pair", "--record", "pair.ncrec", "--html", "pair.html"])
        .current_dir(dir.path())
        .output()
        .expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let recording = std::fs::read(dir.path().join("pair.ncrec")).expect("recorded");
    let Some(Message::Meta(meta)) = messages(&recording).into_iter().next() else {
        panic!("no meta");
    };
    assert_eq!((meta.source, meta.scenario.as_deref()), (Source::Simulation, Some("pair")));
    let page = std::fs::read_to_string(dir.path().join("pair.html")).expect("written");
    assert!(page.starts_with("<!doctype html>") && page.len() > recording.len());

    let page = |name: &str| dir.path().join(name).display().to_string();
    let replayed = output(&["replay", &page("pair.ncrec"), "--html", &page("again.html")]);
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));

    let unknown = output(&["simulate", "buildin"]);
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(error.contains("built in: building, ") && error.contains("did you mean"), "{error}");
    let twice = output(&["simulate", "pair", "--record", "x", "--events", "x"]);
    assert_eq!(twice.status.code(), Some(2));
}

#[test]
fn a_simulation_is_served_while_it_runs_and_afterwards() {
    let serving = Serving::start(&["simulate", "pair", "--web"]);
    let offered = loop {
        let offered = serving.json("GET /console.json", "");
        if offered["kind"] != "live" {
            break offered;
        }
        std::thread::yield_now();
    };
    assert_eq!(offered["runs"][0]["name"], "pair, cascade");
    assert!(messages(&serving.ask("GET /recordings/0", "")).len() > 10);

    // A late listener gets the last key, and the end.
    let text = serving.ask("GET /messages", "");
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("\"meta\"") && text.contains("\"end\""), "{text}");
}

#[test]
fn a_demonstration_runs_without_and_with_coding() {
    let serving = Serving::start(&["demo", "--no-browser"]);
    assert_eq!(serving.json("GET /console.json", ""), json!({"kind": "demo"}));
    let wish = json!({"demonstration": "cross", "loss": 0.1, "seed": 3}).to_string();
    let answer = serving.json("POST /demo/run", &wish);
    let mut delivered = Vec::new();
    for (run, scheme) in
        answer["runs"].as_array().expect("two runs").iter().zip(["forward", "core_nc"])
    {
        let url = run["url"].as_str().expect("an address");
        let messages = messages(&serving.ask(&format!("GET /{url}"), ""));
        let Some(Message::Meta(meta)) = messages.first() else { panic!("no meta") };
        assert_eq!((run["name"].as_str(), meta.schemes[0].as_str()), (Some(scheme), scheme));
        assert!(meta.links.iter().all(|link| link.loss == Some(0.1)));
        let mut keys = messages.iter().filter_map(|message| match message {
            Message::Key(key) => {
                Some(key.flows.iter().filter_map(|flow| flow.delivered).map(|n| n.0).sum::<u64>())
            }
            _ => None,
        });
        delivered.push(keys.next_back().expect("a key"));
    }
    assert!(delivered[1] > delivered[0], "coding gains: {delivered:?}");

    for wrong in [
        json!({"demonstration": "cross", "loss": 0.9, "seed": 1}),
        json!({"demonstration": "building", "loss": 0.1, "seed": 1}),
        json!({"demonstration": "../hub", "loss": null, "seed": 1}),
    ] {
        let answer = serving.ask("POST /demo/run", &wrong.to_string());
        assert!(serde_json::from_slice::<Value>(&answer).is_err(), "{wrong}");
    }
}
