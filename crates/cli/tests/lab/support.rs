//! A mesh to test with.

use ncmesh_lab::{Lab, LabOptions, POLL_INTERVAL};
use ncmesh_node::api::types::{State, Transfer};
use ncmesh_sim::scenario::Scenario;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// No wait in a test takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whole meshes run one at a time: together they would only slow each other down.
pub(crate) static TURN: Mutex<()> = Mutex::const_new(());

/// A shipped scenario.
pub(crate) fn scenario_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// Bytes without a pattern.
pub(crate) fn contents(length: usize) -> Vec<u8> {
    use ncmesh_sim::{contents, scenario::Content};
    contents(&Content::Random { bytes: length as u64 }, 7).unwrap()
}

/// The mesh of the building, with fast radios and quick probes, and files to send.
pub(crate) struct Building {
    pub(crate) lab: Lab,
    pub(crate) from: usize,
    pub(crate) to: Vec<usize>,
    scenario: Scenario,
    files: TempDir,
}

impl Building {
    /// Starts it and waits until it has measured itself.
    pub(crate) async fn start() -> Self {
        let mut scenario = Scenario::load(&scenario_file("building.toml")).unwrap();
        for setting in
            ["medium.phy=802.11a", "medium.bit_rate=54M", "protocol.link.fast_period_s=0.1"]
        {
            scenario.set(setting).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_ncmesh").into();
        // What is tested is what arrives, not when: a busy machine may lag.
        let options =
            LabOptions { program, dir: None, max_lag: Duration::from_secs(20), tunnel: None };
        let traffic = scenario.traffic.clone().unwrap();
        let mut lab = Lab::start(&scenario, &options).await.unwrap();
        lab.settle(traffic.from, &traffic.to).await.unwrap();
        let files = tempfile::tempdir().unwrap();
        Self { lab, from: traffic.from, to: traffic.to, scenario, files }
    }

    /// The index of a node.
    pub(crate) fn node(&self, name: &str) -> usize {
        self.scenario.node_index(name).unwrap()
    }

    /// Begins to send a file of so many bytes, and returns the transfer's id.
    pub(crate) async fn send(&self, name: &str, length: usize) -> String {
        std::fs::write(self.file(name), contents(length)).unwrap();
        self.lab.send(self.from, &self.to, &self.file(name), "pacifier").await.unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Waits until `node` says of the transfer what is wanted.
    pub(crate) async fn wait(
        &mut self,
        node: usize,
        id: &str,
        wanted: impl Fn(&Transfer) -> bool,
    ) -> Transfer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.lab.check().unwrap();
            // A receiver that has not heard of it yet knows no such transfer.
            let transfer = self.lab.transfer(node, id).await.ok();
            match transfer {
                Some(transfer) if wanted(&transfer) => return transfer,
                last => assert!(Instant::now() < deadline, "waited in vain; last seen: {last:?}"),
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until all receivers have the file, and compares it byte for byte.
    pub(crate) async fn wait_for_all(&mut self, name: &str, id: &str) -> Transfer {
        let sent = self.wait(self.from, id, |t| t.ended).await;
        assert_eq!(sent.state, State::Complete, "{sent:?}");
        let file = self.file(name);
        let outcome = self.lab.outcome(self.from, &self.to, id, "pacifier", &file).await.unwrap();
        assert!(outcome.receivers.iter().all(|r| r.verified), "{outcome:?}");
        assert_eq!(outcome.receivers.len(), self.to.len());
        sent
    }
}
