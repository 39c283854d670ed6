//! Runs of `ncmesh simulate`, and of tshark over its captures.

use ncmesh_test_support::skip;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn from_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Runs `ncmesh simulate` on the diamond, which carries 50 kB.
pub(crate) fn simulate(more: &[&str]) -> Output {
    simulate_file(&from_root("scenarios/diamond.toml"), more)
}

fn simulate_file(scenario: &Path, more: &[&str]) -> Output {
    let mut ncmesh = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    ncmesh.arg("simulate").arg(scenario);
    ncmesh.args(["--set", "traffic.size=50kB"]).args(more).stdin(Stdio::null());
    ncmesh.output().unwrap()
}

/// A run with its files.
pub(crate) struct Run {
    /// Outcome, as JSON.
    pub(crate) outcome: Value,
    /// Event lines.
    pub(crate) events: Vec<Value>,
    /// Path of the capture.
    pub(crate) pcap: PathBuf,
    /// Directory of the files.
    pub(crate) dir: TempDir,
}

impl Run {
    /// Runs the diamond.
    pub(crate) fn new(more: &[&str]) -> Self {
        Self::of_file(&from_root("scenarios/diamond.toml"), more)
    }

    /// Runs another scenario, whose nodes are named s, r1, r2 and d too.
    pub(crate) fn of_file(scenario: &Path, more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pcap = dir.path().join("run.pcapng");
        let events = dir.path().join("events.jsonl");
        let files =
            ["--json", "--pcap", pcap.to_str().unwrap(), "--events", events.to_str().unwrap()];
        let output = simulate_file(scenario, &[&files, more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = std::fs::read_to_string(events).unwrap();
        let events = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { outcome: serde_json::from_slice(&output.stdout).unwrap(), events, pcap, dir }
    }

    /// Returns the events of these kinds.
    pub(crate) fn of<'a>(&'a self, kinds: &'a [&str]) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(|event| kinds.contains(&event["kind"].as_str().unwrap()))
    }
}

/// tshark with our dissector and without the user's settings.
pub(crate) struct Tshark {
    home: TempDir,
}

impl Tshark {
    /// Returns tshark. If it is not installed, the test is skipped and must return.
    pub(crate) fn new() -> Option<Self> {
        let found = Command::new("tshark").arg("--version").output();
        if found.is_ok_and(|output| output.status.success()) {
            return Some(Self { home: tempfile::tempdir().unwrap() });
        }
        skip("tshark is not installed");
        None
    }

    /// Returns tshark's output for a capture. Its complaint about root is ignored; one of Lua is an
    /// error.
    pub(crate) fn read(&self, pcap: &Path, more: &[&str]) -> Output {
        let script = format!("lua_script:{}", from_root("wireshark/ncmesh.lua").display());
        let mut tshark = Command::new("tshark");
        tshark.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        tshark.env("HOME", self.home.path()).args(["-X", &script, "-r"]).arg(pcap).args(more);
        let output = tshark.output().unwrap();
        for said in [&output.stdout, &output.stderr] {
            let said = String::from_utf8_lossy(said);
            assert!(!said.to_lowercase().contains("lua"), "{said}");
        }
        output
    }

    /// Returns the fields of each frame, by name. Checks that no dissector reported a bug.
    pub(crate) fn table(&self, pcap: &Path, names: &[&str]) -> Vec<Vec<String>> {
        const NEVER: [&str; 3] =
            ["_ws.lua.error", "_ws.malformed.expert", "_ws.malformed.dissector_bug"];
        let columns = names.iter().copied().chain(NEVER).flat_map(|name| ["-e", name]);
        let more: Vec<&str> = ["-T", "fields"].into_iter().chain(columns).collect();
        let output = self.read(pcap, &more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().map(|line| {
            let mut row: Vec<String> = line.split('\t').map(plain).collect();
            assert!(row.drain(names.len()..).all(|cell| cell.is_empty()), "{line}");
            row
        });
        rows.collect()
    }

    /// Like [`table`](Self::table), with rows as arrays.
    pub(crate) fn fields<const N: usize>(&self, pcap: &Path, names: [&str; N]) -> Vec<[String; N]> {
        self.table(pcap, &names).into_iter().map(|row| row.try_into().unwrap()).collect()
    }
}

/// Returns a truth value as a number, for all versions of tshark.
fn plain(cell: &str) -> String {
    match cell {
        "True" => "1".into(),
        "False" => "0".into(),
        other => other.into(),
    }
}

/// Returns a field of an event as tshark shows it: empty if it is absent.
pub(crate) fn shown(event: &Value, field: &str) -> String {
    match &event[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    }
}
