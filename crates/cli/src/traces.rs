//! Files that record a simulation event by event: captures and event lines.

use crate::args::TraceArgs;
use crate::failure::{Failure, Kind};
use crate::plan;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Capture, CapturePoints, EventLines, Observer, SimulationConfig};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Returns the observers that write the requested files.
pub(crate) fn observers(
    args: &TraceArgs,
    scenario: &Scenario,
    config: &SimulationConfig,
) -> Result<Vec<Box<dyn Observer>>, Failure> {
    // Names and paths are checked before a file is created, since that overwrites an old one.
    let points = capture_points(args, scenario)?;
    let mut observers: Vec<Box<dyn Observer>> = Vec::new();
    if let Some(pcap) = &args.pcap {
        if args.events.as_ref() == Some(pcap) {
            let message = format!("--pcap and --events both name {}", pcap.display());
            return Err(Failure::new(Kind::Usage, message));
        }
        let capture = Capture::new(create(pcap)?, config, &points);
        observers.push(Box::new(capture.map_err(|e| Failure::new(Kind::File, e.to_string()))?));
    }
    if let Some(events) = &args.events {
        observers.push(Box::new(EventLines::new(create(events)?, config)));
    }
    Ok(observers)
}

/// Returns the nodes at which frames are captured.
fn capture_points(args: &TraceArgs, scenario: &Scenario) -> Result<CapturePoints, Failure> {
    let nodes = match args.pcap_node.as_slice() {
        [] => return Ok(CapturePoints::Senders),
        [all] if all == "all" => (0..scenario.nodes.len()).collect(),
        names => names.iter().map(|name| plan::index(scenario, name)).collect::<Result<_, _>>()?,
    };
    Ok(CapturePoints::Nodes(nodes))
}

/// Creates a file for a trace.
fn create(path: &Path) -> Result<BufWriter<NamedFile>, Failure> {
    let fail = |e| Failure::new(Kind::File, naming(path, &e).to_string());
    let file = File::create(path).map_err(fail)?;
    Ok(BufWriter::new(NamedFile { file, path: path.to_owned() }))
}

/// File whose errors name its path.
struct NamedFile {
    file: File,
    path: PathBuf,
}

impl Write for NamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| naming(&self.path, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| naming(&self.path, &e))
    }
}

/// Returns an error that names the path.
fn naming(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{} cannot be written: {e}", path.display()))
}
