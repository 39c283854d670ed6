//! What `lab` and `simulate` are to do: a scenario, changed by the command line, and how its outcome is shown.

use crate::args::RunArgs;
use crate::failure::{Failure, Kind};
use crate::show::{self, Table};
use ncmesh_sim::TransferOutcome;
use ncmesh_sim::scenario::{Content, Scenario, ScenarioError, Traffic};

/// The scenario as the command line changes it, with traffic.
pub(crate) fn scenario(args: &RunArgs) -> Result<Scenario, Failure> {
    let mut scenario = Scenario::load(&args.scenario)?;
    for assignment in &args.set {
        scenario.set(assignment)?;
    }
    scenario.traffic = Some(traffic(args, &scenario)?);
    Ok(scenario)
}

fn traffic(args: &RunArgs, scenario: &Scenario) -> Result<Traffic, Failure> {
    let planned = scenario.traffic.as_ref();
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
    Ok(Traffic { from, to, content })
}

fn index(scenario: &Scenario, name: &str) -> Result<usize, Failure> {
    scenario.node_index(name).ok_or_else(|| {
        let mut names: Vec<&str> = scenario.nodes.iter().map(|n| n.name.as_str()).collect();
        let all = names.len();
        names.truncate(30);
        let more = if all > names.len() { ", ..." } else { "" };
        let message = format!("there is no node `{name}`; there are {}{more}", names.join(", "));
        Failure::new(Kind::Receiver, message)
    })
}

/// The receivers as a table, and the run in a line.
pub(crate) fn show_outcome(outcome: &TransferOutcome) -> Result<(), Failure> {
    let mut table = Table::new(["RECEIVER", "BYTES", "SECONDS", "KBIT/S", "VERIFIED"]);
    for r in &outcome.receivers {
        table.row([
            r.node.clone(),
            r.bytes.to_string(),
            show::or_dash(r.seconds.map(|s| format!("{s:.1}"))),
            show::or_dash(r.throughput_bps.map(|bps| format!("{:.0}", bps / 1e3))),
            if r.verified { "yes" } else { "NO" }.into(),
        ]);
    }
    show::line(&table.to_string())?;
    show::line(&format!(
        "{} bytes by {} in {:.1} s; data transmissions: {}; source redundancy: {:.2}; forwarders: {}{}{}",
        outcome.bytes,
        outcome.scheme,
        outcome.seconds,
        outcome.transmissions,
        outcome.source_redundancy,
        outcome.forwarders.len(),
        if outcome.forwarders.is_empty() { "" } else { " " },
        outcome.forwarders.join(" "),
    ))
}

/// Whether all receivers have it.
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
