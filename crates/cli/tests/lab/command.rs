//! `ncmesh lab` and `ncmesh simulate` as a user calls them.

use crate::support::{contents, room, scenario_file, wait};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engines::registry;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Settings for quick probes and a busy machine.
const QUICK: [&str; 2] = ["--set", "protocol.link.quick_hello_s=0.05"];

fn ncmesh(command: &str, scenario: &str, more: &[&str]) -> Command {
    let mut ncmesh = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    ncmesh.arg(command).arg(scenario_file(scenario)).args(more).stdin(Stdio::null());
    ncmesh
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fails(output: &Output, code: i32, word: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let error = said.lines().last().unwrap();
    assert!(error.contains(word), "{word:?} is not in {error:?}");
}

#[test]
fn the_schemes_are_listed() {
    let schemes = |more: &[&str]| {
        let ncmesh = env!("CARGO_BIN_EXE_ncmesh");
        Command::new(ncmesh).arg("schemes").args(more).output().unwrap()
    };

    let listed = json(&schemes(&["--json"]));
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|scheme| scheme["name"].as_str().unwrap()).collect();
    let known = ServiceKind::ALL.into_iter().flat_map(|service| registry().of(service));
    assert_eq!(names, known.map(|entry| entry.name).collect::<Vec<_>>());
    assert_eq!(listed[0]["service"], "file");
    assert_eq!((&listed[0]["default"], &listed[1]["default"]), (&true.into(), &false.into()));

    let table = String::from_utf8(schemes(&[]).stdout).unwrap();
    assert_eq!(table.lines().count(), 1 + names.len());
}

#[test]
fn a_file_without_a_token_is_named_as_the_user_named_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty"), "\n").unwrap();
    for (file, problem) in [
        ("none", "--token-file none cannot be read: No such file"),
        (".", "--token-file . cannot be read: Is a directory"),
        ("empty", "--token-file empty needs a line of 16 characters or more"),
    ] {
        let mut lab = ncmesh("lab", "line.toml", &["--web", "--token-file", file]);
        fails(&lab.current_dir(&dir).output().unwrap(), 5, problem);
    }
}

#[test]
fn a_users_file_arrives_and_the_run_is_told() {
    let _room = wait(room());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("photo.jpg");
    let kept = dir.path().join("lab");
    std::fs::write(&file, contents(100_000)).unwrap();
    let more = [
        "--from",
        "c",
        "--to",
        "e,a",
        "--send",
        file.to_str().unwrap(),
        "--dir",
        kept.to_str().unwrap(),
        "--scheme",
        "pacifier",
        "--max-lag",
        "20",
        "--json",
    ];
    let output = ncmesh("lab", "line.toml", &[&QUICK[..], &more[..]].concat()).output().unwrap();
    let outcome = json(&output);
    assert_eq!(outcome["bytes"], 100_000);
    for (i, name) in ["e", "a"].into_iter().enumerate() {
        assert_eq!(outcome["receivers"][i]["node"], name);
        assert_eq!(outcome["receivers"][i]["verified"], true);
    }
    assert_eq!(outcome["forwarders"], serde_json::json!(["b", "d"]));
    assert!(outcome["transmissions"].as_u64().unwrap() >= 70);
    assert_eq!(std::fs::read(kept.join("5-e/inbox/photo.jpg")).unwrap(), contents(100_000));
    assert!(!kept.join("1-a/state/api.sock").exists(), "ended in good order");
}

#[test]
fn every_scheme_is_named_in_the_help_and_carries_a_file() {
    let schemes: Vec<&str> = registry().of(ServiceKind::File).map(|e| e.name).collect();
    for command in ["lab", "simulate", "send"] {
        let help = Command::new(env!("CARGO_BIN_EXE_ncmesh")).args([command, "--help"]).output();
        let help = String::from_utf8(help.unwrap().stdout).unwrap();
        assert!(schemes.iter().all(|scheme| help.contains(scheme)), "{command}: {help}");
    }
    for scheme in schemes {
        let more = ["--scheme", scheme, "--set", "traffic.size=100kB", "--json"];
        let outcome = json(&ncmesh("simulate", "diamond.toml", &more).output().unwrap());
        assert_eq!(outcome["scheme"], scheme);
        assert_eq!(outcome["receivers"][0]["verified"], true);
    }
}

#[test]
fn the_scheme_is_by_default_that_of_what_the_scenario_carries() {
    for (scenario, scheme, length) in [
        ("diamond.toml", "cascade", "traffic.size=1kB"),
        ("cross.toml", "braid", "medium.bit_rate=2M"),
        ("stream.toml", "multirate", "seed=2"),
    ] {
        for named in [&[][..], &["--scheme", "auto"]] {
            let more = [&["--set", length, "--timeout", "1", "--json"], named].concat();
            let outcome = ncmesh("simulate", scenario, &more).output().unwrap();
            let outcome: Value = serde_json::from_slice(&outcome.stdout).unwrap();
            assert_eq!(outcome["scheme"], scheme, "{scenario}");
        }
    }
    let file = ["--from", "s1", "--to", "d1", "--send", "/nonexistent/file"];
    fails(&ncmesh("simulate", "cross.toml", &file).output().unwrap(), 5, "/nonexistent/file");
}

#[test]
fn data_goes_by_unicast_between_daemons_too() {
    let _room = wait(room());
    let more =
        ["--scheme", "etx_unicast", "--set", "traffic.size=100kB", "--max-lag", "20", "--json"];
    let outcome =
        json(&ncmesh("lab", "diamond.toml", &[&QUICK[..], &more[..]].concat()).output().unwrap());
    assert_eq!(outcome["receivers"][0]["verified"], true);
    assert_eq!(outcome["forwarders"].as_array().unwrap().len(), 1);
}

#[test]
fn several_files_are_sent_at_once() {
    let _room = wait(room());
    let files = r#"traffic=[{from="s",to=["d"],size="90kB"},{from="d",to=["r1","s"],size="50kB"}]"#;
    let more = [&QUICK[..], &["--set", files]].concat();
    for (command, mode) in [("simulate", &["--json"][..]), ("lab", &["--max-lag", "20", "--json"])]
    {
        let args = [&more[..], mode].concat();
        let outcome = json(&ncmesh(command, "diamond.toml", &args).output().unwrap());
        let receivers = outcome["receivers"].as_array().unwrap().iter();
        let told = receivers.map(|r| {
            assert_eq!(r["verified"], true, "{command}: {outcome}");
            (r["file"].as_u64().unwrap(), r["node"].as_str().unwrap(), r["bytes"].as_u64().unwrap())
        });
        let expected = [(0, "d", 90_000), (1, "r1", 50_000), (1, "s", 50_000)];
        assert_eq!(told.collect::<Vec<_>>(), expected, "{command}");
        assert_eq!(outcome["bytes"], 140_000);
    }

    let shown = ncmesh("simulate", "diamond.toml", &more).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("r1, file 2") && shown.contains("the sources sent"), "{shown}");
    let one = [&more[..], &["--to", "r1"]].concat();
    fails(&ncmesh("simulate", "diamond.toml", &one).output().unwrap(), 2, "has several");
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let output = |more: &[&str]| ncmesh("lab", "pair.toml", more).output().unwrap();
    fails(&output(&["--to", "c"]), 6, "no node `c`; there are a, b");
    fails(&output(&["--from", "b"]), 2, "both source and receiver");
    fails(&output(&["--to", "b,b"]), 2, "twice");
    let full = env!("CARGO_MANIFEST_DIR");
    fails(&output(&["--dir", full]), 5, &format!("{full}: it is not empty"));
    fails(&output(&["--dir", "/proc/lab"]), 5, "/proc/lab");
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(100));
    fails(&output(&["--dir", deep.to_str().unwrap()]), 5, "too long for a socket's path");
    fails(&ncmesh("lab", "nothing.toml", &[]).output().unwrap(), 3, "nothing.toml");
    let hidden = dir.path().join(".hidden");
    std::fs::write(&hidden, "x").unwrap();
    for command in ["lab", "simulate"] {
        let output = |more: &[&str]| ncmesh(command, "pair.toml", more).output().unwrap();
        fails(&output(&["--send", "/nonexistent/file"]), 5, "/nonexistent/file");
        fails(&output(&["--send", "/tmp"]), 5, "/tmp is not a regular file");
        fails(&output(&["--send", hidden.to_str().unwrap()]), 5, "rename it");
        fails(&output(&["--scheme", "x"]), 2, "there are: auto, cascade, pacifier");
        fails(&output(&["--scheme", "cascde"]), 2, "did you mean `cascade`?");
        fails(&output(&["--set", "traffic=7"]), 3, "`traffic` must be a table");
        fails(&output(&["--set", "mediun.phy=802.11a"]), 3, "did you mean `medium`?");
        fails(&output(&["--set", "medium.bit_rate=0"]), 3, "bit_rate");
        fails(&output(&["--set", "traffic.size=90000GB"]), 3, "to 4 GB");
        let error = "override `protocol.pacifier.knob=7`: [protocol.pacifier] knob = 7: allowed is";
        fails(&output(&["--set", "seed=2", "--set", "protocol.pacifier.knob=7"]), 3, error);
    }
}

#[test]
fn settings_of_protocols_are_blamed_on_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    let pair = std::fs::read_to_string(scenario_file("pair.toml")).unwrap();
    let lines = pair.lines().count();
    for (section, setting, problem) in [
        ("pacifier", "knob = 5", "knob = 5: allowed is 0 to 1"),
        ("pacifier", "knbo = 5", "unknown field `knbo`, expected one of"),
        ("pacifier", "variant = \"x\"", "variant = \"x\": allowed is \"tree\", \"tree_rl\""),
        ("link", "hello_s = \"x\"", "`hello_s` must be a number such as 0.5, not the text \"x\""),
    ] {
        let text = format!("{pair}\n[protocol.{section}]\n{setting}\n");
        std::fs::write(&file, text).unwrap();
        let place = file.to_str().unwrap();
        let line = lines + 3;
        let expected = format!("{place}:{line}: [protocol.{section}] {problem}");
        for command in ["lab", "simulate"] {
            let output = ncmesh(command, place, &["--set", "seed=2"]).output().unwrap();
            fails(&output, 3, &expected);
        }
    }
}

/// Packets of 1,300 bytes are too long for two schemes: the others are compared all the same.
#[test]
fn a_scheme_that_cannot_run_is_left_out_of_a_comparison() {
    let short = ["--set", "flow=[{ from = \"alice\", to = \"bob\", packet = 1300, seconds = 1 }]"];
    let compare =
        |more: &[&str]| ncmesh("simulate", "hub.toml", &[&short, more].concat()).output().unwrap();
    let all = json(&compare(&["--compare", "all", "--json"]));
    let names = |key: &str, field: &str| -> Vec<String> {
        let entries = all[key].as_array().unwrap().iter();
        entries.map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("left_out", "scheme"), ["core_nc", "cope"]);
    assert!(names("left_out", "reason")[0].contains("packets of 1300 bytes are too long"));
    assert_eq!(names("comparison", "against"), ["forward", "mc2", "xor"]);
    assert_eq!(names("runs", "scheme"), ["forward", "mc2", "xor", "braid"]);

    let text = compare(&["--compare", "all"]);
    let said = String::from_utf8_lossy(&text.stdout).into_owned();
    assert_eq!(said.matches("RTT MS WITHOUT LOAD").count(), 1, "one table: {said}");
    assert_eq!(said.matches("left out: ").count(), 2, "{said}");
    let only = compare(&["--scheme", "core_nc", "--compare", "forward"]);
    assert!(String::from_utf8_lossy(&only.stdout).contains("forward"), "the other is shown");
    fails(&only, 3, "packets of 1300 bytes are too long");
}

#[test]
fn a_terminated_lab_takes_its_daemons_with_it() {
    let _room = wait(room());
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("lab");
    let more = ["--dir", kept.to_str().unwrap(), "--max-lag", "20", "--set", "traffic.size=100MB"];
    let mut lab = ncmesh("lab", "pair.toml", &more).stderr(Stdio::null()).spawn().unwrap();
    let sockets = [kept.join("1-a/state/api.sock"), kept.join("2-b/state/api.sock")];
    let answers = |socket: &Path| UnixStream::connect(socket).is_ok();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait = |what: &str, up: bool| {
        while !sockets.iter().all(|socket| answers(socket) == up) {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait("the daemons are up", true);
    let id = lab.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(lab.wait().unwrap().code(), Some(7));
    wait("the daemons are gone", false);
}

#[test]
fn a_simulation_is_repeated_frame_for_frame() {
    let simulate = |seed: &str| {
        let more = ["--set", "traffic.size=50kB", "--seed", seed, "--json"];
        json(&ncmesh("simulate", "diamond.toml", &more).output().unwrap())
    };
    let first = simulate("3");
    let again = simulate("3");
    let other = simulate("4");
    assert_eq!(first, again);
    assert_ne!(first["trace_hash"], other["trace_hash"]);
    assert_eq!(first["receivers"][0]["verified"], true);
}

#[test]
fn schemes_are_compared_by_what_a_file_took() {
    let compare = |more: &[&str]| {
        let quick = ["--set", "traffic.size=100kB"];
        ncmesh("simulate", "pair.toml", &[&quick, more].concat()).output().unwrap()
    };
    let result = json(&compare(&["--compare", "pacifier,more", "--json"]));
    let schemes = ["pacifier", "more", "cascade"];
    for (i, scheme) in schemes.into_iter().enumerate() {
        let measures = &result["comparison"][i];
        let run = &result["runs"][i];
        assert_eq!((&measures["scheme"], &run["scheme"]), (&scheme.into(), &scheme.into()));
        assert_eq!(measures["last_s"], run["receivers"][0]["seconds"]);
        assert_eq!(measures["mean_s"], measures["last_s"], "there is one receiver");
        // The file crosses one link.
        let each = measures["transmissions_per_packet"].as_f64().unwrap();
        assert!((1.0..4.0).contains(&each), "{scheme}: {each}");
    }

    let output = compare(&["--compare", "all"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("TRANSMISSIONS PER PACKET") && text.contains("etx_unicast"), "{text}");
    assert!(text.contains("simulated: cascade takes"), "{text}");
    fails(&compare(&["--compare", "cascade"]), 2, "the scheme itself");
    fails(&compare(&["--compare", "pacifer"]), 2, "did you mean `pacifier`?");
    let streams = ncmesh("simulate", "stream.toml", &["--compare", "all"]).output().unwrap();
    fails(&streams, 2, "for files and flows");
}

#[test]
fn steps_of_a_run_are_lines_of_json() {
    let lines = |scenario: &str, more: &[&str]| -> Vec<Value> {
        let quiet = ncmesh("simulate", scenario, more).arg("--json-stream").output().unwrap();
        assert!(quiet.status.success() && quiet.stderr.is_empty(), "{quiet:?}");
        let text = String::from_utf8(quiet.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for (scenario, scheme, step) in
        [("pair.toml", "cascade", "receiver"), ("cross.toml", "braid", "share")]
    {
        let all = lines(scenario, &["--scheme", scheme]);
        let (result, steps) = all.split_last().unwrap();
        assert_eq!((&result["event"], &result["scheme"]), (&"result".into(), &scheme.into()));
        assert!(steps.len() > 1 && steps.iter().all(|line| line["event"] == step), "{steps:?}");
    }
}

#[test]
fn a_mesh_that_is_held_can_be_talked_to() {
    let _room = wait(room());
    let more = ["--hold", "--web", "--listen", "127.0.0.1:17190", "--set", "traffic.size=10kB"];
    let all = [&QUICK[..], &more, &["--max-lag", "20", "--scheme", "cascade"]].concat();
    let mut lab = ncmesh("lab", "pair.toml", &all);
    let mut lab = lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    // The lines that it prints are those to type.
    let mut said = BufReader::new(lab.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = said.find(|line| line.contains("--api")).unwrap();
    let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
    assert_eq!(words[0], "ncmesh");
    let peers = Command::new(env!("CARGO_BIN_EXE_ncmesh")).args(&words[1..]).output().unwrap();
    assert!(String::from_utf8(peers.stdout).unwrap().contains("b     2"));
    assert_eq!(said.next().unwrap().trim(), "http://127.0.0.1:17190/");
    let second = said.next().unwrap();
    let (_, process) = second.split_once("# b, process ").unwrap();
    assert_eq!(said.next().unwrap().trim(), "http://127.0.0.1:17191/");
    TcpStream::connect("127.0.0.1:17191").unwrap();

    // Killing a node does not end the others.
    assert!(Command::new("kill").args(["-KILL", process]).status().unwrap().success());
    assert!(said.next().unwrap().starts_with("the daemon of b has ended"));
    let peers = Command::new(env!("CARGO_BIN_EXE_ncmesh")).args(&words[1..]).output().unwrap();
    assert!(peers.status.success());

    let id = lab.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = lab.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "an interrupt is the end that is asked for");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("VERIFIED").count(), 1, "{text}");
    let ports = ["--web", "--listen", "127.0.0.1:65535"];
    fails(&ncmesh("lab", "pair.toml", &ports).output().unwrap(), 2, "not enough ports");
}
