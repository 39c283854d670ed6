//! Network namespaces for the ends of flows. A lab that is killed leaves them behind; the next one removes them.

use crate::LabError;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;

/// Where `ip netns` keeps them.
const PLACE: &str = "/run/netns";
/// Their names are this, the lab's process id and the node's number.
const PREFIX: &str = "ncmesh-lab-";

/// Namespaces that are gone when this is.
pub(crate) struct Namespaces {
    names: Vec<String>,
}

impl Namespaces {
    /// None yet; those of labs that are no more are removed.
    pub(crate) fn new() -> Self {
        for name in left_behind() {
            remove(&name);
        }
        Self { names: Vec::new() }
    }

    /// Makes the namespace of a node and returns its name.
    pub(crate) fn add(&mut self, node: usize) -> Result<String, LabError> {
        let name = format!("{PREFIX}{}-{}", std::process::id(), node + 1);
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

/// The namespaces of labs whose process is gone.
fn left_behind() -> Vec<String> {
    let Ok(all) = std::fs::read_dir(PLACE) else { return Vec::new() };
    let names = all.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| owner(name).is_some_and(|lab| !is_running(lab))).collect()
}

/// The process id of the lab that a namespace belongs to, if it is a lab's.
fn owner(name: &str) -> Option<u32> {
    let (lab, node) = name.strip_prefix(PREFIX)?.split_once('-')?;
    node.parse::<u32>().ok()?;
    lab.parse().ok()
}

fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Removes a namespace and ends what runs in it. What cannot be removed now is removed by the next lab.
fn remove(name: &str) {
    for pid in ip(&["netns", "pids", name]).unwrap_or_default().split_whitespace() {
        if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let _ = ip(&["netns", "del", name]);
}

/// Runs iproute2 and returns what it says.
fn ip(args: &[&str]) -> Result<String, String> {
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
