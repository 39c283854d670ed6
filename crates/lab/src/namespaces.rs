//! Network namespaces for the ends of flows.
//!
//! Namespaces outlive processes. A lab removes its own when it ends, and those of killed labs when
//! it starts.

use crate::LabError;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Directory in which `ip netns` keeps namespaces.
const PLACE: &str = "/run/netns";
/// Prefix of the names; the lab's process id and a number follow.
const PREFIX: &str = "ncmesh-lab-";

/// Namespaces that this process has made. It may run several labs.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Set of namespaces that are removed when this is dropped.
pub(crate) struct Namespaces {
    names: Vec<String>,
}

impl Namespaces {
    /// Returns an empty set. Removes the namespaces of labs whose process has ended.
    pub(crate) fn new() -> Self {
        for name in left_behind() {
            remove(&name);
        }
        Self { names: Vec::new() }
    }

    /// Makes a namespace and returns its name.
    pub(crate) fn add(&mut self) -> Result<String, LabError> {
        let number = MADE.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        // The name is kept as soon as the namespace exists, so that it is removed whatever follows.
        ip(&["netns", "add", &name]).map_err(LabError::Namespaces)?;
        self.names.push(name.clone());
        ip(&["-n", &name, "link", "set", "lo", "up"]).map_err(LabError::Namespaces)?;
        Ok(name)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.names.iter().for_each(|name| remove(name));
    }
}

/// Returns the namespaces of labs whose process has ended.
fn left_behind() -> Vec<String> {
    let Ok(all) = std::fs::read_dir(PLACE) else { return Vec::new() };
    let names = all.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| owner(name).is_some_and(|lab| !is_running(lab))).collect()
}

/// Returns the process id of the lab that made a namespace, or `None` for other namespaces.
fn owner(name: &str) -> Option<u32> {
    let (lab, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    lab.parse().ok()
}

/// Returns whether a process exists.
fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Kills all processes in a namespace and removes it. Errors are left to the next lab, which tries
/// again.
fn remove(name: &str) {
    for pid in ip(&["netns", "pids", name]).unwrap_or_default().split_whitespace() {
        if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let _ = ip(&["netns", "del", name]);
}

/// Runs iproute2 and returns its output.
pub(crate) fn ip(args: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(args).output().map_err(|e| format!("ip: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("ip {}: {}", args.join(" "), text(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn only_labs_namespaces_are_theirs() {
        assert_eq!(owner("ncmesh-lab-1234-7"), Some(1234));
        for other in ["ncmesh-lab-1234", "ncmesh-lab-x-7", "ncmesh-lab-1-x", "lab-1-7", "blue"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
