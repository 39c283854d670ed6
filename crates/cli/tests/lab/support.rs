//! A mesh for the lab's tests.

use ncmesh_engine::file::Allowance;
use ncmesh_lab::{Lab, LabOptions, POLL_INTERVAL, SendAs};
use ncmesh_node::api::types::{State, Transfer};
use ncmesh_sim::scenario::Scenario;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Timeout of every wait in a test.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Whole meshes for which this machine has room at once. More would slow each other down.
const MESHES: u32 = 3;
static ROOM: Semaphore = Semaphore::const_new(MESHES as usize);

/// Waits until a mesh can run, perhaps beside one of another test.
pub(crate) async fn room() -> SemaphorePermit<'static> {
    ROOM.acquire().await.unwrap()
}

/// Waits until a mesh can run that is compared with figures, or with what is left on the machine.
pub(crate) async fn room_alone() -> SemaphorePermit<'static> {
    ROOM.acquire_many(MESHES).await.unwrap()
}

/// Waits for `permit` where no runtime runs.
pub(crate) fn wait<T>(permit: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(permit)
}

/// Reads a shipped scenario.
pub(crate) fn scenario_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// Returns bytes without a pattern.
pub(crate) fn contents(length: usize) -> Vec<u8> {
    use ncmesh_sim::{contents, scenario::Content};
    contents(&Content::Random { bytes: length as u64 }, 7, 0).unwrap()
}

/// The building's mesh with fast radios and quick probes, and files to send.
pub(crate) struct Building {
    pub(crate) lab: Lab,
    pub(crate) from: usize,
    pub(crate) to: Vec<usize>,
    scenario: Scenario,
    files: TempDir,
}

impl Building {
    /// Starts the mesh and waits until its links are measured.
    pub(crate) async fn start() -> Self {
        let mut scenario = Scenario::load(&scenario_file("building.toml")).unwrap();
        for setting in
            ["medium.phy=802.11a", "medium.bit_rate=54M", "protocol.link.quick_hello_s=0.1"]
        {
            scenario.set(setting).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_ncmesh").into();
        // The test is about what arrives, not when: a busy machine may lag.
        let options = LabOptions {
            program,
            dir: None,
            max_lag: Duration::from_secs(20),
            tunnel: None,
            stream: None,
            web: None,
        };
        let traffic = scenario.traffic[0].clone();
        let lab = Lab::start(&scenario, &options).await.unwrap();
        lab.wait_for_routes(traffic.from, &traffic.to).await.unwrap();
        let files = tempfile::tempdir().unwrap();
        Self { lab, from: traffic.from, to: traffic.to, scenario, files }
    }

    /// Returns the index of a node.
    pub(crate) fn node(&self, name: &str) -> usize {
        self.scenario.node_index(name).unwrap()
    }

    /// Starts sending a file of this length. Returns the transfer's id.
    pub(crate) async fn send(&self, name: &str, length: usize) -> String {
        std::fs::write(self.file(name), contents(length)).unwrap();
        let how = SendAs { scheme: "pacifier", allowance: Allowance::default() };
        self.lab.send(self.from, &self.to, &self.file(name), how).await.unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Waits until the transfer at `node` satisfies a condition.
    pub(crate) async fn wait(
        &mut self,
        node: usize,
        id: &str,
        wanted: impl Fn(&Transfer) -> bool,
    ) -> Transfer {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            self.lab.check().unwrap();
            // A receiver that has not heard of the transfer yet answers with an error.
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
        let receivers = &outcome.transfer().unwrap().receivers;
        assert!(receivers.iter().all(|r| r.verified), "{outcome:?}");
        assert_eq!(receivers.len(), self.to.len());
        sent
    }
}
