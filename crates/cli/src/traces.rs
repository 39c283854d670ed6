//! Files that record a simulation event by event: captures and event lines.

use crate::failure::{Failure, Kind};
use crate::lab_args::TraceArgs;
use crate::plan;
use ncmesh_console::recording;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{
    Capture, CapturePoints, Console, EventLines, Observer, Schemes, SimulationConfig,
};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Returns the observers that write the requested files.
pub(crate) fn observers(
    args: &TraceArgs,
    scenario: &Scenario,
    config: &SimulationConfig,
    schemes: &Schemes,
) -> Result<Vec<Box<dyn Observer>>, Failure> {
    // Names and paths are checked before a file is created, since that overwrites an old one.
    let points = capture_points(args, scenario)?;
    let mut observers: Vec<Box<dyn Observer>> = Vec::new();
    check_paths([
        ("--pcap", args.pcap.as_deref()),
        ("--events", args.events.as_deref()),
        ("--record", args.record.as_deref()),
    ])?;

    if let Some(pcap) = &args.pcap {
        let capture = Capture::new(create(pcap)?, config, &points);
        observers.push(Box::new(capture.map_err(|e| Failure::new(Kind::File, e.to_string()))?));
    }

    if let Some(events) = &args.events {
        observers.push(Box::new(EventLines::new(create(events)?, config)));
    }
    if let Some(record) = &args.record {
        let file = recording::Writer::new(create(record)?);
        observers.push(Box::new(Console::new(scenario, config, schemes, file)));
    }

    Ok(observers)
}

/// Checks that no two options name the same file.
fn check_paths(options: [(&str, Option<&Path>); 3]) -> Result<(), Failure> {
    let named: Vec<_> = options.iter().filter_map(|(name, path)| Some((name, (*path)?))).collect();
    // Two writers would overwrite each other. Two names of one file, as by a link, are not found
    // out.
    for (at, (other, path)) in named.iter().enumerate() {
        if let Some((name, _)) = named[..at].iter().find(|(_, earlier)| earlier == path) {
            let message = format!("{name} and {other} both name {}", path.display());
            return Err(Failure::new(Kind::Usage, message));
        }
    }

    Ok(())
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

/// Creates a file for a trace or a page.
pub(crate) fn create(path: &Path) -> Result<BufWriter<NamedFile>, Failure> {
    let fail = |e| Failure::new(Kind::File, naming(path, &e).to_string());
    let file = File::create(path).map_err(fail)?;
    Ok(BufWriter::new(NamedFile { file, path: path.to_owned() }))
}

/// File whose errors name its path.
pub(crate) struct NamedFile {
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
