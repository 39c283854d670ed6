//! A daemon of the lab: its directory and its process.

use crate::LabError;
use ncmesh_node::api::client::ApiClient;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Time that a daemon has to end after it was asked to.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Process and directory of one node.
pub(crate) struct NodeProcess {
    name: String,
    dir: PathBuf,
    program: PathBuf,
    client: ApiClient,
    /// `None` while the node is meant to be down. Looking whether it runs changes it.
    child: Mutex<Option<Child>>,
}

impl NodeProcess {
    /// Makes the node's directory and writes its configuration.
    pub(crate) fn new(
        name: &str,
        dir: PathBuf,
        program: PathBuf,
        config: &str,
    ) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;

        // The configuration holds the network's key: only its owner may read it.
        let mut file = OpenOptions::new();
        let mut file =
            file.write(true).create(true).truncate(true).mode(0o600).open(dir.join("node.toml"))?;
        file.write_all(config.as_bytes())?;
        let client = ApiClient::new(dir.join("state/api.sock"));
        Ok(Self { name: name.to_owned(), dir, program, client, child: Mutex::new(None) })
    }

    /// Returns the client of the daemon's API.
    pub(crate) fn client(&self) -> &ApiClient {
        &self.client
    }

    /// Returns the name of the node.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the processor time used so far, s; 0 while the process does not run.
    pub(crate) fn cpu_seconds(&self) -> io::Result<f64> {
        let Some(id) = self.id() else { return Ok(0.0) };
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // Fields 12 and 13 behind the name in brackets are user and system time in clock ticks.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
        Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Starts the daemon. Its log continues that of an earlier start.
    pub(crate) fn spawn(&mut self) -> Result<(), LabError> {
        let log = OpenOptions::new().create(true).append(true).open(self.dir.join("log"))?;
        let spawned = Command::new(&self.program)
            .args(["node", "--config"])
            .arg(self.dir.join("node.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // In a group of its own, so that Ctrl-C reaches only the lab.
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let program = || self.program.display().to_string();
        let child = spawned.map_err(|source| LabError::Program { program: program(), source })?;
        *self.child() = Some(child);
        Ok(())
    }

    /// Returns the process. The lock is never held across a wait.
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the process, if it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child().as_ref().and_then(Child::id)
    }

    /// Checks that the process runs if it is meant to. The error, which comes once, holds the last
    /// line of its log.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let mut held = self.child();
        let Some(child) = held.as_mut() else { return Ok(()) };
        match child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                *held = None;
                let node = self.name.clone();
                let reason = self.last_log_line();
                Err(LabError::NodeEnded { node, status, reason })
            }
        }
    }

    /// Returns the last line of the log.
    fn last_log_line(&self) -> String {
        let log = fs::read(self.dir.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        log.lines().last().unwrap_or("it says nothing").to_owned()
    }

    /// Kills the daemon and waits until it is gone.
    pub(crate) async fn kill(&mut self) -> Result<(), LabError> {
        let child = self.child().take();
        if let Some(mut child) = child {
            child.kill().await?;
        }
        Ok(())
    }

    /// Asks the daemon to end properly.
    pub(crate) fn ask_to_end(&self) {
        let id = self.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            // Fails only if the process has ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Waits until the daemon has ended. Kills it if that takes too long.
    pub(crate) async fn wait_for_end(&mut self) {
        let child = self.child().take();
        if let Some(mut child) = child {
            // A process that does not end in time is killed when `child` is dropped.
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, child.wait()).await;
        }
    }
}
