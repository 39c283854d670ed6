//! Real daemons for tests: processes, files and commands.

pub(crate) mod net;

use ncmesh_node::api::types::{Peer, Started, State, Status, Transfer};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Timeout of every wait in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Key of the test network.
pub(crate) const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The program under test.
pub(crate) fn ncmesh() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    command.env_remove("NCMESH_API").env_remove("NCMESH_LOG");
    command
}

/// Runs the program until it ends.
pub(crate) fn run(args: &[&str]) -> Output {
    ncmesh().args(args).stdin(Stdio::null()).output().unwrap()
}

/// Returns the writing end of a pipe that nobody reads.
pub(crate) fn closed_pipe() -> PipeWriter {
    std::io::pipe().unwrap().1
}

/// Asserts that the command failed with `code` and one line that contains all of `words`.
#[track_caller]
pub(crate) fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let error = said.lines().last().unwrap_or_default();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

/// Waits until `done` returns true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns bytes without a pattern.
pub(crate) fn contents(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Files of a node and, while it runs, its process, which is killed on drop.
pub(crate) struct Node {
    pub(crate) dir: PathBuf,
    namespace: String,
    process: Option<Child>,
}

impl Node {
    /// Returns a node with a configuration, not yet started.
    pub(crate) fn new(dir: &Path, namespace: &str, id: u16, more: &str) -> Self {
        fs::create_dir_all(dir).unwrap();
        let config = format!(
            "[node]\nid = {id}\nname = \"n{id}\"\nkey = \"{KEY}\"\nstate_dir = \"state\"\n\n\
             [radio]\nkind = \"udp\"\ninterface = \"mesh0\"\nrate = \"8M\"\n\n\
             [link]\nhello_s = 0.2\nquick_hello_s = 0.05\n\n{more}"
        );
        fs::write(dir.join("node.toml"), config).unwrap();
        Self { dir: dir.into(), namespace: namespace.into(), process: None }
    }

    /// Changes the configuration file.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let file = self.dir.join("node.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(file, text.replace(from, to)).unwrap();
    }

    /// Returns the command that runs the daemon.
    pub(crate) fn daemon(&self) -> Command {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.namespace,
            env!("CARGO_BIN_EXE_ncmesh"),
            "node",
            "--config",
        ]);
        command.arg(self.dir.join("node.toml")).stdin(Stdio::null());
        command
    }

    /// Starts the daemon.
    pub(crate) fn spawn(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.join("log")).unwrap();
        self.process = Some(self.daemon().stderr(log).spawn().unwrap());
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.spawn();
        wait_until("the daemon answers", || {
            let exited = self.process.as_mut().unwrap().try_wait().unwrap();
            assert_eq!(exited, None, "{}", self.log());
            self.call(&["status"]).status.success()
        });
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Asks the process to end and waits for it.
    pub(crate) fn stop(&mut self) -> i32 {
        let mut process = self.process.take().unwrap();
        let id = process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        process.wait().unwrap().code().unwrap()
    }

    /// Returns the id of the running process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("state/api.sock")
    }

    /// Runs a command against this daemon.
    pub(crate) fn call(&self, args: &[&str]) -> Output {
        ncmesh().arg("--api").arg(self.socket()).args(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command with `--json` and returns its parsed output.
    pub(crate) fn ask<T: DeserializeOwned>(&self, args: &[&str]) -> T {
        let output = self.call(&[args, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.stdout.is_empty(), "{args:?}: {said}\n{}", self.log());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn status(&self) -> Status {
        self.ask(&["status"])
    }

    pub(crate) fn transfers(&self) -> Vec<Transfer> {
        self.ask(&["transfers"])
    }

    /// Waits until all of `names` can be reached.
    pub(crate) fn wait_for_peers(&self, names: &[&str]) {
        wait_until(&format!("peers {names:?}"), || {
            let peers: Vec<Peer> = self.ask(&["peers"]);
            let reached = |name: &&str| {
                peers.iter().any(|p| p.name.as_deref() == Some(*name) && p.values.etx.is_some())
            };
            names.iter().all(reached)
        });
    }

    /// Waits until the only transfer of this node has more than `bytes`.
    pub(crate) fn wait_for_bytes(&self, bytes: u64) {
        wait_until(&format!("{bytes} bytes"), || {
            self.transfers().first().is_some_and(|t| t.values.bytes > bytes)
        });
    }

    /// Waits until the only transfer of this node is complete.
    pub(crate) fn wait_for_completion(&self) -> Transfer {
        let complete = |t: &Transfer| t.state == State::Complete;
        wait_until("completion", || self.transfers().first().is_some_and(complete));
        self.transfers().remove(0)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of {}:\n{}", self.dir.display(), self.log());
        }
    }
}

/// Returns an `[inbox]` section for the directory beside the configuration.
pub(crate) const INBOX: &str = "[inbox]\ndir = \"inbox\"\n";

/// Starts daemons n1, n2, ... on one segment, each with `more` configuration, and waits until all
/// know each other.
pub(crate) fn mesh(segment: &net::Segment, dir: &Path, more: &[&str]) -> Vec<Node> {
    let new = |(i, more): (usize, &&str)| {
        Node::new(&dir.join(format!("n{i}")), segment.host(i), i as u16, more)
    };
    let mut all: Vec<Node> = (1..).zip(more).map(new).collect();
    all.iter_mut().for_each(Node::start);
    let names: Vec<String> = (1..=all.len()).map(|i| format!("n{i}")).collect();
    for (node, own) in all.iter().zip(&names) {
        let others: Vec<&str> = names.iter().filter(|n| *n != own).map(String::as_str).collect();
        node.wait_for_peers(&others);
    }
    all
}

/// Starts sending `bytes` as `file`. Returns the transfer's id.
pub(crate) fn send(node: &Node, file: &str, bytes: &[u8], to: &str) -> String {
    let path = node.dir.join(file);
    fs::write(&path, bytes).unwrap();
    let started: Started = node.ask(&["send", path.to_str().unwrap(), "--to", to, "--no-wait"]);
    started.id
}
