//! `ncmesh demo`: what coding gains, in the browser.
//!
//! The page asks for a demonstration with a loss and a seed. The simulator runs it twice, without
//! and with coding, and the page shows the two runs side by side.

use crate::failure::Failure;
use crate::lab_args::DemoArgs;
use crate::web::{Background, Memory};
use ncmesh_console::recording::Writer;
use ncmesh_engine::time::Duration;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Console, Observer, SimulationConfig, Step, check_traffic};
use ncmesh_web::{DemoError, DemoRequest, Recording, Site};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Longest time that a demonstration may take of the mesh's clock, besides settling.
const LONGEST: Duration = Duration::from_secs(120);

/// Most loss that can be asked for. With more, nodes find no neighbours.
const MOST_LOSS: f64 = 0.6;

/// A demonstration: a built-in scenario, the schemes without and with coding.
struct Demo {
    name: &'static str,
    schemes: [&'static str; 2],
    /// Length of its flows, s, if it has flows: shorter than the scenario's, so that a slider can
    /// be moved.
    seconds: Option<i64>,
}

const DEMOS: [Demo; 3] = [
    Demo { name: "cross", schemes: ["forward", "core_nc"], seconds: Some(10) },
    Demo { name: "building", schemes: ["tree_flood", "cascade"], seconds: None },
    Demo { name: "hub", schemes: ["forward", "braid"], seconds: Some(10) },
];

/// Runs the command. Returns when the user interrupts it.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let background = Background::start(Site::demo(Arc::new(demonstrate)), &args.listen)?;
    background.announce();
    if !args.no_browser {
        open(&background.url());
    }
    background.wait()
}

/// Opens the page in the user's browser, where there is one. Otherwise the user has the address.
fn open(url: &str) {
    let mut browser = Command::new("xdg-open");
    browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = browser.spawn();
}

/// Runs a demonstration without and with coding.
fn demonstrate(request: &DemoRequest) -> Result<[Recording; 2], DemoError> {
    let demo = DEMOS.iter().find(|demo| demo.name == request.demonstration);
    let names = || DEMOS.map(|demo| demo.name).join(", ");
    let unknown = || DemoError::Request(format!("there are the demonstrations {}", names()));
    let demo = demo.ok_or_else(unknown)?;

    // The two runs differ by their schemes alone.
    let scenario = scenario(demo, request)?;
    let one = |scheme| simulate(&scenario, scheme);
    let [first, second] = demo.schemes;
    Ok([one(first)?, one(second)?])
}

/// Returns the scenario of a demonstration with the loss and the seed that were asked for.
fn scenario(demo: &Demo, request: &DemoRequest) -> Result<Scenario, DemoError> {
    let wrong = |e: String| DemoError::Request(e);
    let shipped = Scenario::load(Path::new(demo.name)).map_err(|e| wrong(e.to_string()))?;

    // The page can ask for any loss, but runs are made from the scenario that ships: only its
    // numbers change.
    let mut table = shipped.table().clone();
    table.insert("seed".to_owned(), toml::Value::from(i64::from(request.seed)));

    if let Some(loss) = request.loss {
        if !(0.0..=MOST_LOSS).contains(&loss) {
            return Err(wrong(format!("loss {loss}: allowed are 0 to {MOST_LOSS}")));
        }

        let links = table.get_mut("link").and_then(toml::Value::as_array_mut);
        let links = links.ok_or_else(|| wrong(format!("{} has links of its own", demo.name)))?;
        for link in links.iter_mut().filter_map(toml::Value::as_table_mut) {
            // The page has one slider for both directions. A loss of its own on the way back would
            // outlast it.
            link.insert("loss".to_owned(), toml::Value::from(loss));
            link.remove("loss_back");
        }
    }

    if let Some(flows) = table.get_mut("flow").and_then(toml::Value::as_array_mut) {
        for flow in flows.iter_mut().filter_map(toml::Value::as_table_mut) {
            flow.extend(demo.seconds.map(|s| ("seconds".to_owned(), toml::Value::from(s))));
        }
    }

    shipped.with_table(&table).map_err(|e| wrong(e.to_string()))
}

/// Runs a scenario by a scheme and returns the recording.
fn simulate(scenario: &Scenario, scheme: &'static str) -> Result<Recording, DemoError> {
    let failed = |e: &dyn std::fmt::Display| DemoError::Run(e.to_string());
    let config = SimulationConfig::from_scenario(scenario).map_err(|e| failed(&e))?;
    let recorded = Memory::default();
    let schemes = check_traffic(scenario, scheme).map_err(|e| failed(&e))?;
    let console = Console::new(scenario, &config, &schemes, Writer::new(recorded.clone()));
    let observers = vec![Box::new(console) as Box<dyn Observer>];

    // A page that has been closed does not end the run, so only its length bounds it.
    let go_on = |_: &Step<'_>| ControlFlow::Continue(());
    ncmesh_sim::run(scenario, config, scheme, LONGEST, observers, go_on).map_err(|e| failed(&e))?;
    Ok(Recording { name: scheme.to_owned(), bytes: recorded.take().into() })
}
