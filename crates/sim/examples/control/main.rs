//! Measures what a random mesh spends on measuring links and on routing, and what it gets for it.
//!
//!     cargo run --release -p ncmesh-sim --example control -- --nodes 100 --seconds 60 --json
//!
//! | option | meaning | default |
//! | --- | --- | --- |
//! | `--nodes N` | nodes that run from the start | 50 |
//! | `--density D` | radios per square kilometre | 50 |
//! | `--seconds S` | virtual seconds of the measurement | 60 |
//! | `--seed S` | seed of everything | 1 |
//! | `--scenario FILE` | takes nodes and links from a scenario | |
//! | `--load KIND` | `file`: 3 MB to a far node, repeatedly; `flows`: 8 flows of 80 kbit/s | idle |
//! | `--events N` | afterwards N nodes die, N fade and N new ones appear, in turn | 0 |
//! | `--set KEY=VALUE` | changes the scenario, such as `protocol.link.hello_s=2` | |
//! | `--mesh` | prints only positions, links and which radios sense each other | |
//! | `--json` | prints JSON in place of a summary | |
//!
//! The radios are those of `scenarios/mesh.toml` at 11 Mbit/s: 802.11b with the long preamble and
//! DCF, two-ray path loss, Rayleigh fading, 250 m range, 460 m sensing range, reception at an SINR
//! of 10 dB. Nodes know nothing in advance. With events the radios become links of the same losses,
//! because only links can fade while the simulation runs.
//!
//! Truth is `MediumConfig::expected_loss` of frames of the MTU, which knows no interference. A path
//! costs the sum of 1/(d_f d_r) of its links. Nodes are asked for their paths as engines are, by
//! `Topology::paths_from`, at the end and during events. The time that questions take does not
//! count as time of the simulation. In meshes of more than 1,000 nodes, 1,000 are asked which nodes
//! they know, and paths are not judged: each node that is asked for one makes a graph of the mesh.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

mod air;
mod events;
mod graph;
mod load;
mod mesh;
mod routes;
mod statistics;

use air::Air;
use graph::Graph;
use load::Load;
use mesh::{Draw, Mesh};
use ncmesh_engine::time::{Duration, seconds};
use ncmesh_sim::Simulation;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

pub(crate) type Error = Box<dyn std::error::Error>;

/// How often it is checked whether all nodes know all others.
const CHECK: Duration = Duration::from_millis(500);
/// Length of the intervals that are reported.
const WINDOW: Duration = Duration::from_secs(10);
/// Time after which standard error hears how far the simulation is.
const PROGRESS: Duration = Duration::from_secs(30);

/// Measurement.
struct Options {
    draw: Draw,
    scenario: Option<PathBuf>,
    seconds: f64,
    load: Option<String>,
    events: usize,
    is_mesh: bool,
    is_json: bool,
}

/// A measurement under way.
pub(crate) struct Run {
    pub(crate) simulation: Simulation,
    pub(crate) mesh: Mesh,
    load: Load,
    /// Time that the simulation took on the wall clock.
    wall: Duration,
}

impl Run {
    /// Advances the virtual clock.
    pub(crate) fn advance(&mut self, time: Duration) {
        let until = self.simulation.now() + time;
        let begun = std::time::Instant::now();
        self.load.run_until(&mut self.simulation, until);
        self.wall += begun.elapsed();
    }
}

fn main() -> Result<(), Error> {
    let options = options(std::env::args().skip(1))?;
    let report = if options.is_mesh { mesh(&options, 0)?.to_json() } else { measure(&options)? };
    let text = if options.is_mesh || options.is_json {
        serde_json::to_string(&report)?
    } else {
        summary(&report)
    };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, Error> {
    let draw = Draw { nodes: 50, density: 50.0, seed: 1, settings: Vec::new() };
    let mut options = Options {
        draw,
        scenario: None,
        seconds: 60.0,
        load: None,
        events: 0,
        is_mesh: false,
        is_json: false,
    };
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
        match option.as_str() {
            "--nodes" => options.draw.nodes = value()?.parse()?,
            "--density" => options.draw.density = value()?.parse()?,
            "--seconds" => options.seconds = value()?.parse()?,
            "--seed" => options.draw.seed = value()?.parse()?,
            "--scenario" => options.scenario = Some(value()?.into()),
            "--load" => options.load = Some(value()?),
            "--events" => options.events = value()?.parse()?,
            "--set" => options.draw.settings.push(value()?),
            "--mesh" => options.is_mesh = true,
            "--json" => options.is_json = true,
            _ => return Err(format!("{option}: see crates/sim/examples/control/main.rs").into()),
        }
    }
    if options.draw.nodes < 2 || options.draw.density <= 0.0 {
        return Err("needs 2 nodes or more, and a density above 0".into());
    }
    Ok(options)
}

/// Loads the mesh of the scenario. Without a scenario, draws a mesh with `spares` more nodes.
fn mesh(options: &Options, spares: usize) -> Result<Mesh, Error> {
    let draw = &options.draw;
    match &options.scenario {
        Some(path) => Mesh::load(path, &draw.settings),
        None => Mesh::draw(&Draw { nodes: draw.nodes + spares, ..draw.clone() }),
    }
}

/// Runs one mesh and returns everything measured.
fn measure(options: &Options) -> Result<Value, Error> {
    let Options { draw, events, .. } = options;
    let mut mesh = mesh(options, *events)?;
    if *events > 0 && options.scenario.is_none() {
        mesh.use_links();
    }
    let nodes = mesh.loss.radios();
    let mut simulation = Simulation::new(mesh.config.clone())?;
    let air = Rc::new(RefCell::new(Air::new(&mesh.config)));
    simulation.observe(Box::new(Rc::clone(&air)));

    // The nodes that appear later are switched off before anything is sent.
    let mut running = vec![true; nodes];
    let spares = spares(&mesh, &mut running, *events)?;
    spares.iter().for_each(|&spare| simulation.switch_off(spare));
    let graph = Graph::new(&mesh.loss, &running);
    let load = match options.load.as_deref() {
        None => Load::Idle,
        Some("file") => Load::file(&graph, &running, draw.seed),
        Some("flows") => Load::flows(&running, draw.seed),
        Some(other) => return Err(format!("--load {other}: file or flows").into()),
    };
    let mut run = Run { simulation, mesh, load, wall: Duration::ZERO };

    let (windows, complete_s) = windows(&mut run, &air, options);
    let speed = run.wall.as_secs_f64() / options.seconds;
    let mut report = json!({
        "nodes": nodes - events,
        "density": draw.density,
        "seed": draw.seed,
        "seconds": options.seconds,
        "settings": draw.settings,
        "medium": match &options.scenario {
            Some(path) => json!(path),
            None => run.mesh.parameters(),
        },
        "windows": windows,
        "complete_s": complete_s,
        "paths": (nodes <= routes::MOST_ASKED)
            .then(|| routes::quality(&run.simulation, &graph, draw.seed)),
        "wall_s_per_s": speed,
    });
    if *events > 0 {
        report["events"] = events::run(&mut run, &spares, draw.seed)?;
    }
    report["load"] = run.load.report(&run.simulation);
    report["peak_mib"] = json!(peak_mib()?);
    Ok(report)
}

/// Chooses the last nodes that the others do not need for their connection, and marks them as not
/// running.
fn spares(mesh: &Mesh, running: &mut [bool], count: usize) -> Result<Vec<usize>, Error> {
    let mut spares = Vec::new();
    for node in (0..running.len()).rev() {
        if spares.len() < count && Graph::new(&mesh.loss, running).is_spare(node, running) {
            running[node] = false;
            spares.push(node);
        }
    }
    if spares.len() < count {
        return Err("too few nodes that the others can do without".into());
    }
    Ok(spares)
}

/// Runs for the time of the measurement. Returns the report on each window, and when all nodes
/// first had paths to all others.
fn windows(run: &mut Run, air: &RefCell<Air>, options: &Options) -> (Vec<Value>, Option<f64>) {
    let mut reports = Vec::new();
    let mut complete_s = None;
    // A node that had no path to some other is asked first the next time.
    let mut incomplete = Some(0);
    let end = run.simulation.now() + seconds(options.seconds);
    let mut told = std::time::Instant::now();
    while run.simulation.now() < end {
        let from = run.simulation.now();
        let wall = run.wall;
        let to = end.min(from + WINDOW);
        while run.simulation.now() < to {
            run.advance(CHECK.min(to.since(run.simulation.now())));
            incomplete = incomplete.and_then(|node| routes::incomplete(&run.simulation, node));
            if complete_s.is_none() && incomplete.is_none() {
                complete_s = Some(run.simulation.now().as_secs_f64());
            }
            if told.elapsed() >= PROGRESS {
                told = std::time::Instant::now();
                let virtual_s = run.simulation.now().as_secs_f64();
                let wall_s = run.wall.as_secs_f64();
                eprintln!("{virtual_s} s simulated in {wall_s:.0} s");
            }
        }
        let length = to.since(from).as_secs_f64();
        let mut report =
            air.borrow_mut().report(&run.mesh, length, &routes::running(&run.simulation));
        report["from_s"] = json!(from.as_secs_f64());
        report["to_s"] = json!(to.as_secs_f64());
        report["reach"] = json!(routes::reach(&run.simulation));
        report["wall_s_per_s"] = json!((run.wall - wall).as_secs_f64() / length);
        reports.push(report);
    }
    (reports, complete_s)
}

/// Returns the most memory that this process ever used.
fn peak_mib() -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmHWM")?;
    Ok(kib.trim().parse::<u64>()? / 1_024)
}

/// Returns the figures that matter most, as text.
fn summary(report: &Value) -> String {
    let figure = |value: &Value| value.as_f64().map_or("-".to_owned(), |x| format!("{x:.4}"));
    let mut lines = vec![
        "seconds      control B/s per node   control airtime around: mean, p95, max   reach".into(),
    ];
    for window in report["windows"].as_array().into_iter().flatten() {
        let around = &window["control_airtime"];
        let times = (figure(&window["from_s"]), figure(&window["to_s"]));
        lines.push(format!(
            "{}-{}   {}   {} {} {}   {}",
            times.0,
            times.1,
            figure(&window["control_bytes_per_node_s"]),
            figure(&around["mean"]),
            figure(&around["p95"]),
            figure(&around["max"]),
            figure(&window["reach"]),
        ));
    }
    lines.push(format!("all nodes know all others after {} s", figure(&report["complete_s"])));
    for name in ["paths", "events", "load"] {
        lines.push(format!("{name}: {}", report[name]));
    }
    lines.push(format!(
        "{} s for a virtual second, {} MiB",
        figure(&report["wall_s_per_s"]),
        report["peak_mib"]
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_mesh_is_measured() {
        let arguments = "--nodes 10 --seconds 8 --events 1 --load flows".split(' ');
        let report = measure(&options(arguments.map(str::to_owned)).unwrap()).unwrap();
        let window = &report["windows"][0];
        assert!(report["complete_s"].as_f64().is_some_and(|s| s <= 8.0), "{report}");
        assert_eq!((&report["paths"]["unreachable"], &window["reach"]), (&json!(0), &json!(1.0)));
        assert!(report["paths"]["mean"].as_f64().is_some_and(|etx| etx >= 1.0));
        assert_eq!(report["events"]["appears"]["nodes"], 10);

        // The control traffic of ten nodes hardly fills the channel.
        let bytes = window["control_bytes_per_node_s"].as_f64().unwrap_or_default();
        let airtime = window["control_airtime"]["mean"].as_f64().unwrap_or_default();
        assert!(bytes > 0.0 && airtime > 0.0 && airtime < 1.0, "{window}");
    }

    #[test]
    fn sparse_meshes_are_connected_too() {
        let draw = Draw { nodes: 60, density: 10.0, seed: 3, settings: Vec::new() };
        let mesh = Mesh::draw(&draw).unwrap();
        let graph = Graph::new(&mesh.loss, &[true; 60]);
        assert!(graph.component(0, None).into_iter().all(|reached| reached));
        assert_eq!(mesh.positions, Mesh::draw(&draw).unwrap().positions);
    }
}
