//! Plan of a run of `lab` or `simulate`: the scenario as changed by the command line, and the
//! tables for its result.

use crate::client::absolute;
use crate::failure::{Failure, Kind};
use crate::lab_args::RunArgs;
use crate::show::{self, Form, Table};
use ncmesh_engine::file::check_file_name;
use ncmesh_engine::registry::{AUTO, ServiceKind};
use ncmesh_engine::text;
use ncmesh_engine::wording::did_you_mean;
use ncmesh_node::config::line_of_problem;
use ncmesh_sim::outcome::{
    FlowsOutcome, Outcome, ServiceOutcomes, SharingOutcome, StreamLayerOutcome, StreamsOutcome,
    TransferOutcome,
};
use ncmesh_sim::scenario::{Content, Place, Scenario, ScenarioError, Traffic};
use ncmesh_sim::{RunError, Schemes, Simulation, SimulationConfig, SimulationError};
use ncmesh_stack::ConfigError;
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

/// Returns the scenario with the command line's changes and traffic, and the schemes of its run.
///
/// Finds as many mistakes as possible here, before anything starts.
pub(crate) fn scenario(args: &RunArgs) -> Result<(Scenario, Schemes), Failure> {
    let mut scenario = Scenario::load(&args.scenario)?;
    // Overrides apply in the order of the command line: of two for one setting the last holds.
    for assignment in &args.set {
        scenario.set(assignment)?;
    }
    for note in &scenario.notes {
        show::note(note);
    }

    check_protocols(args, &scenario)?;

    // The schemes decide what of the traffic is carried. With `auto` there is a file, too, if the
    // command line names one.
    let named = (args.scheme != AUTO).then(|| Schemes::read(&args.scheme, ServiceKind::File));
    let named = named.and_then(Result::ok);
    let is_file = named
        .as_ref()
        .map_or_else(|| sends_file(args), |schemes| schemes.of(ServiceKind::File).is_some());
    if is_file {
        scenario.traffic = traffic(args, &scenario)?;
        for Traffic { content, .. } in &scenario.traffic {
            if let Content::File(file) = content {
                check_file(file)?;
            }
        }
    } else if named.is_some() {
        check_no_file(args)?;
    }

    // Only now is the traffic complete: a file may come from the command line alone.
    let schemes = ncmesh_sim::check_traffic(&scenario, &args.scheme)?;
    if schemes.of(ServiceKind::File).is_none() {
        check_no_file(args)?;
    }
    Ok((scenario, schemes))
}

/// Returns whether the command line names a file, its source or its receivers.
fn sends_file(args: &RunArgs) -> bool {
    args.send.is_some() || args.from.is_some() || !args.to.is_empty()
}

/// Refuses options for files with schemes that carry none.
fn check_no_file(args: &RunArgs) -> Result<(), Failure> {
    if !sends_file(args) {
        return Ok(());
    }
    let message = "--send, --from and --to are for files: flows and streams stand in the scenario, \
                   in [[flow]] and [[stream]]";
    Err(Failure::new(Kind::Usage, message))
}

/// Checks the settings that only the engines understand. A wrong one is reported with the override
/// that set it, or else with its line in the file.
fn check_protocols(args: &RunArgs, scenario: &Scenario) -> Result<(), Failure> {
    // A scenario does not know its protocols' settings, so building a simulation is the check.
    let Err(wrong) = simulation(scenario) else { return Ok(()) };
    let SimulationError::Config(ConfigError { section, problem }) = &wrong else {
        return Err(RunError::from(wrong).into());
    };
    let section = format!("protocol.{section}");
    let message = format!("[{section}] {problem}");
    let is_wrong = |scenario: &Scenario| simulation(scenario).is_err_and(|e| e == wrong);

    // Find the place of the mistake: the file alone, or the first override that brings it in.
    let mut changed = Scenario::load(&args.scenario)?;
    if is_wrong(&changed) {
        let file = args.scenario.display().to_string();
        let line =
            line_of_problem(&text::read(&args.scenario).unwrap_or_default(), &section, problem);
        return Err(ScenarioError::Value { place: Place { file, line }, message }.into());
    }

    for assignment in &args.set {
        changed.set(assignment)?;
        if is_wrong(&changed) {
            let assignment = assignment.clone();
            return Err(ScenarioError::Override { assignment, message }.into());
        }
    }

    Err(Failure::new(Kind::Config, message))
}

/// Builds a simulation of a scenario, which checks the settings of all protocols.
fn simulation(scenario: &Scenario) -> Result<Simulation, SimulationError> {
    SimulationConfig::from_scenario(scenario).and_then(Simulation::new)
}

/// Checks that a file can be sent.
fn check_file(file: &Path) -> Result<(), Failure> {
    let path = absolute(file)?;
    let shown = path.display();
    let fail = |problem: String| Failure::new(Kind::File, problem);
    let unreadable = |e| fail(format!("{shown} cannot be read: {e}"));

    // Check the type first: opening a pipe would wait for its writer.
    if !std::fs::metadata(&path).map_err(unreadable)?.is_file() {
        return Err(fail(format!("{shown} is not a regular file")));
    }
    File::open(&path).map_err(unreadable)?;

    // Receivers refuse names that could leave their inbox, and would do so only after the mesh has
    // measured its links.
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    check_file_name(name).map_err(|problem| {
        fail(format!("receivers would refuse the name {name:?}: {problem}; rename it"))
    })
}

/// Combines the scenario's file traffic with that of the command line, which takes precedence.
fn traffic(args: &RunArgs, scenario: &Scenario) -> Result<Vec<Traffic>, Failure> {
    let planned = match scenario.traffic.as_slice() {
        several @ [_, _, ..] if !sends_file(args) => return Ok(several.to_vec()),
        // With several files it would be open which of them the options are for.
        [_, _, ..] => {
            let message = "--send, --from and --to are for one file, and the scenario has several";
            return Err(Failure::new(Kind::Usage, message));
        }
        one => one.first(),
    };

    // Whatever neither of them gives is an error that names the option.
    let missing = |what: &str, option: &str| {
        let file = args.scenario.display();
        Failure::new(Kind::Usage, format!("{file} names no {what}; say {option}"))
    };

    let from = match (&args.from, planned) {
        (Some(name), _) => index(scenario, name)?,
        (None, Some(planned)) => planned.from,
        (None, None) => return Err(missing("source", "--from NODE")),
    };

    let to = match (args.to.as_slice(), planned) {
        ([], Some(planned)) => planned.to.clone(),
        ([], None) => return Err(missing("receivers", "--to NODES")),
        ([all], _) if all == "all" => (0..scenario.nodes.len()).filter(|i| *i != from).collect(),
        (names, _) => names.iter().map(|name| index(scenario, name)).collect::<Result<_, _>>()?,
    };

    // The scenario's own receivers are checked when it is read, but its source may be replaced.
    if to.contains(&from) {
        let name = &scenario.nodes[from].name;
        return Err(Failure::new(Kind::Usage, format!("{name} is both source and receiver")));
    }

    if let Some(twice) = to.iter().enumerate().find(|(i, node)| to[..*i].contains(node)) {
        let name = &scenario.nodes[*twice.1].name;
        return Err(Failure::new(Kind::Usage, format!("--to names {name} twice")));
    }

    let content = match (&args.send, planned) {
        (Some(file), _) => Content::File(file.clone()),
        (None, Some(planned)) => planned.content.clone(),
        (None, None) => return Err(missing("file", "--send FILE")),
    };

    let allowance = planned.map(|planned| planned.allowance).unwrap_or_default();
    Ok(vec![Traffic { from, to, content, allowance }])
}

/// Returns the index of the node with this name.
pub(crate) fn index(scenario: &Scenario, name: &str) -> Result<usize, Failure> {
    scenario.node_index(name).ok_or_else(|| {
        // The name is probably misspelled, so the error shows the existing ones. Large meshes have
        // too many for one line.
        let mut names: Vec<&str> = scenario.nodes.iter().map(|n| n.name.as_str()).collect();
        let all = names.len();
        names.truncate(30);
        let more = if all > names.len() { ", ..." } else { "" };
        let all = scenario.nodes.iter().map(|node| node.name.as_str());
        let question = did_you_mean(name, all);
        let message =
            format!("there is no node `{name}`; there are {}{more}{question}", names.join(", "));
        Failure::new(Kind::Receiver, message)
    })
}

/// The last line of JSON of a run.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum End<'a, T> {
    Result(&'a T),
}

/// Prints a result as JSON, in the form that the command line asks for.
pub(crate) fn show_json(form: Form, result: &impl Serialize) -> Result<(), Failure> {
    match form {
        Form::JsonLines => show::json_line(&End::Result(result)).map(drop),
        Form::Json | Form::Text => show::json(result),
    }
}

/// Prints the result as tables and lines.
pub(crate) fn show_outcome(outcome: &Outcome) -> Result<(), Failure> {
    show_services(outcome, show_flows)
}

/// Prints the result of each service, flows by `show_flows`, and a line about the run.
pub(crate) fn show_services(
    outcome: &Outcome,
    show_flows: impl FnOnce(&FlowsOutcome) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let ServiceOutcomes { transfer, flows, streams } = &outcome.services;
    transfer.as_ref().map_or(Ok(()), |transfer| show_transfer(outcome, transfer))?;
    flows.as_ref().map_or(Ok(()), show_flows)?;
    streams.as_ref().map_or(Ok(()), show_streams)?;
    // A line about the run would repeat the one about the transfer.
    if is_transfer_alone(outcome) {
        return Ok(());
    }

    let Outcome { scheme, seconds, transmissions, .. } = outcome;
    show::line(&format!("{seconds:.1} s by {scheme}; data transmissions: {transmissions}"))?;
    outcome.sharing.as_ref().map_or(Ok(()), show_sharing)
}

/// Prints how services shared the channel.
fn show_sharing(sharing: &SharingOutcome) -> Result<(), Failure> {
    let share = |(service, share): (&String, &f64)| format!("{service} {:.0} %", 100.0 * share);
    let each: Vec<String> = sharing.airtime.iter().map(share).collect();
    let SharingOutcome { seconds, fairness, .. } = sharing;
    let each = each.join(", ");
    show::line(&format!("airtime in {seconds:.1} s: {each}; Jain's index {fairness:.2}"))
}

/// Returns whether the run carried a file and nothing beside it.
fn is_transfer_alone(outcome: &Outcome) -> bool {
    outcome.flows().is_none() && outcome.streams().is_none()
}

/// Prints the receivers of streams as a table, and their problems.
fn show_streams(outcome: &StreamsOutcome) -> Result<(), Failure> {
    let mut table = Table::new(["GROUP", "RECEIVER", "KBIT/S", "LAYERS", "DELAY MS"]);
    let mut problems = Vec::new();
    for stream in &outcome.streams {
        for receiver in &stream.receivers {
            let layer = |l: &StreamLayerOutcome| format!("{} {:.1} %", l.name, 100.0 * l.share);
            table.row([
                stream.group.clone(),
                receiver.node.clone(),
                format!("{:.0}", receiver.rate_bps / 1e3),
                receiver.layers.iter().map(layer).collect::<Vec<_>>().join(", "),
                show::or_dash(receiver.mean_delay_s.map(|s| format!("{:.0}", s * 1e3))),
            ]);

            let problem = receiver.problem.as_ref();
            let text = |problem| format!("{} of {}: {problem}", receiver.node, stream.group);
            problems.extend(problem.map(text));
        }
    }

    show::line(&table.to_string())?;
    problems.iter().try_for_each(|problem| show::line(problem))
}

/// Prints the flows as a table.
fn show_flows(outcome: &FlowsOutcome) -> Result<(), Failure> {
    let columns = ["FROM", "TO", "KBIT/S", "PACKETS", "REFUSED", "DELAY MS", "INNOVATIVE"];
    let mut table = Table::new(columns);
    for flow in &outcome.flows {
        let innovative = 100.0 * flow.innovative as f64 / flow.heard.max(1) as f64;
        table.row([
            flow.from.clone(),
            flow.to.clone(),
            format!("{:.0}", flow.throughput_bps / 1e3),
            flow.delivered.to_string(),
            show::or_dash(flow.refused.map(|packets| packets.to_string())),
            show::or_dash(flow.mean_delay_s.map(|s| format!("{:.1}", s * 1e3))),
            format!("{innovative:.1} %"),
        ]);
    }

    show::line(&table.to_string())
}

/// Prints the receivers as a table, and a line about the run.
fn show_transfer(outcome: &Outcome, transfer: &TransferOutcome) -> Result<(), Failure> {
    let several = transfer.receivers.iter().any(|receiver| receiver.file > 0);
    let mut table = Table::new(["RECEIVER", "BYTES", "SECONDS", "KBIT/S", "VERIFIED"]);
    for r in &transfer.receivers {
        table.row([
            if several { format!("{}, file {}", r.node, r.file + 1) } else { r.node.clone() },
            r.bytes.to_string(),
            show::or_dash(r.seconds.map(|s| format!("{s:.1}"))),
            show::or_dash(r.throughput_bps.map(|bps| format!("{:.0}", bps / 1e3))),
            if r.verified { "yes" } else { "NO" }.into(),
        ]);
    }

    show::line(&table.to_string())?;
    let [sent, bytes] = match several {
        false => ["the source sent", "the file's bytes"],
        true => ["the sources sent", "the files' bytes"],
    };

    // Not every scheme lists forwarders.
    let forwarders = match transfer.forwarders.as_slice() {
        [] => String::new(),
        listed => format!("; forwarders: {} {}", listed.len(), listed.join(" ")),
    };

    // Beside other services, scheme, time and transmissions belong to all of them.
    let Outcome { scheme, seconds, transmissions, .. } = outcome;
    let run = match is_transfer_alone(outcome) {
        true => format!(" by {scheme} in {seconds:.1} s; data transmissions: {transmissions}"),
        false => String::new(),
    };

    show::line(&format!(
        "{} bytes{run}; {sent} {:.2} times {bytes} (source redundancy){forwarders}",
        transfer.bytes, transfer.source_redundancy,
    ))
}

/// Succeeds if all receivers have the file.
pub(crate) fn verdict(outcome: &TransferOutcome) -> Result<(), Failure> {
    let verified = outcome.receivers.iter().filter(|r| r.verified).count();
    let all = outcome.receivers.len();
    if verified == all {
        return Ok(());
    }
    let message = format!("{verified} of {all} receivers have the file, verified");
    Err(Failure::new(Kind::Incomplete, message))
}

impl From<ScenarioError> for Failure {
    fn from(e: ScenarioError) -> Self {
        Self::new(Kind::Config, e.to_string())
    }
}
