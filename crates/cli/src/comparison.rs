//! Comparison of schemes: of file transfers by their times and transmissions, of flows by their
//! throughput.

use crate::commands::flows;
use crate::failure::{Failure, Kind};
use crate::plan;
use crate::show::{self, Form, Table};
use ncmesh_console::schema::SourceValues;
use ncmesh_engine::registry::{Entry, ServiceKind};
use ncmesh_engines::registry;
use ncmesh_lab::Comparison;
use ncmesh_sim::Schemes;
use ncmesh_sim::outcome::{Outcome, TransferOutcome};
use ncmesh_sim::scenario::Flow;
use serde::Serialize;

/// Stands for all other schemes of the service.
const ALL: &str = "all";

/// Returns the schemes to compare a run with, in the order in which they are named.
pub(crate) fn others(schemes: &Schemes, names: &[String]) -> Result<Vec<&'static Entry>, Failure> {
    let wrong = |message: String| Failure::new(Kind::Usage, message);
    // Figures of several services at once cannot be compared, so the run must have one scheme.
    let scheme = match schemes.only() {
        Some(scheme) => scheme,
        None if names.is_empty() => return Ok(Vec::new()),
        None => {
            let message = format!("--compare is for one service; name one scheme, not {schemes}");
            return Err(wrong(message));
        }
    };

    let service = scheme.service();
    if service == ServiceKind::Stream && !names.is_empty() {
        let message = format!("--compare is for files and flows; {} carries neither", scheme.name);
        return Err(wrong(message));
    }

    if let [all] = names
        && all == ALL
    {
        return Ok(registry().of(service).filter(|entry| entry.name != scheme.name).collect());
    }

    let chosen = names.iter().map(|name| {
        let entry = registry().choose(service, name).map_err(|e| wrong(e.to_string()))?.entry;
        if entry.name == scheme.name {
            return Err(wrong(format!("--compare {name}: that is the scheme itself")));
        }
        Ok(entry)
    });

    chosen.collect()
}

/// Prints how schemes compare. `world` says where the runs took place, `planned` are the scenario's
/// flows.
pub(crate) fn show(
    compared: &Compared,
    world: &str,
    planned: &[Flow],
    form: Form,
) -> Result<(), Failure> {
    if form != Form::Text {
        return plan::show_json(form, compared);
    }
    match &compared.comparison {
        Measured::File(all) => show_files(all, world)?,
        Measured::Flows(all) => match &all[..] {
            [] => {}
            [one] => flows::show_comparison(one, planned)?,
            several => flows::show_comparisons(several)?,
        },
    }

    let lines = compared.left_out.iter();
    lines
        .map(|left| format!("left out: {}: {}", left.scheme, left.reason))
        .try_for_each(|line| show::line(&line))
}

/// Returns how many packets a file is cut into, from the packets that its source has sent and the
/// redundancy that they are of; `None` while it has sent none.
pub(crate) fn packets(sent: &SourceValues) -> Option<f64> {
    let redundancy = sent.source_redundancy.filter(|redundancy| *redundancy > 0.0)?;
    Some(sent.packets? as f64 / redundancy)
}

/// A run, and the number of packets that its outcome does not have.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    /// Packets that the file is cut into, if it is a file and its source has sent some.
    pub(crate) packets: Option<f64>,
}

/// Runs of several schemes over one scenario, and how they compare.
#[derive(Serialize)]
pub(crate) struct Compared {
    comparison: Measured,
    runs: Vec<Outcome>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
}

/// A scheme that could not run, such as one that cannot carry packets of the scenario's length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    scheme: String,
    reason: String,
}

impl LeftOut {
    /// Returns the failure of a scheme, if the others can go on without it.
    pub(crate) fn of(scheme: &str, failure: Failure) -> Result<Self, Failure> {
        // These failures are about the scheme and the scenario. Others, such as a full disk, would
        // meet the next run as well.
        match failure.kind() {
            Kind::Config | Kind::Usage | Kind::Receiver => {
                Ok(Self { scheme: scheme.to_owned(), reason: failure.message().to_owned() })
            }
            _ => Err(failure),
        }
    }
}

/// Figures that are compared: times of a file, or throughput of flows.
#[derive(Serialize)]
#[serde(untagged)]
enum Measured {
    File(Vec<Measures>),
    Flows(Vec<Comparison>),
}

/// Time and transmissions of a file transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Measures {
    scheme: String,
    /// Time until the last receiver had the file, s. Null if one never had.
    last_s: Option<f64>,
    /// Mean time until a receiver had the file, s. Null if one never had.
    mean_s: Option<f64>,
    /// Data packets that all nodes sent, for each packet of the file.
    transmissions_per_packet: Option<f64>,
}

impl Compared {
    /// Compares the last run with those before it.
    pub(crate) fn of(runs: Vec<Run>, left_out: Vec<LeftOut>) -> Self {
        let measures = |run: &Run| Some(Measures::of(run, run.outcome.transfer()?));
        let files: Option<Vec<Measures>> = runs.iter().map(measures).collect();

        // Times of files stand on their own. Flows are compared in pairs, each run with the last.
        let comparison = match (files, runs.split_last()) {
            (Some(files), _) => Measured::File(files),
            (None, Some((ours, others))) => {
                let with = |other: &Run| Comparison::of(&ours.outcome, &other.outcome);
                Measured::Flows(others.iter().filter_map(with).collect())
            }
            (None, None) => Measured::Flows(Vec::new()),
        };

        Self { comparison, runs: runs.into_iter().map(|run| run.outcome).collect(), left_out }
    }
}

/// Prints a table of files, the fastest scheme first, and a line of how the last run compares with
/// the best of the others.
fn show_files(all: &[Measures], world: &str) -> Result<(), Failure> {
    let seconds = |s: Option<f64>| show::or_dash(s.map(|s| format!("{s:.1}")));

    // A scheme that did not finish has no time and comes last.
    let mut sorted: Vec<&Measures> = all.iter().collect();
    sorted.sort_by(|a, b| a.order().total_cmp(&b.order()));
    let mut table =
        Table::new(["SCHEME", "LAST RECEIVER, S", "MEAN, S", "TRANSMISSIONS PER PACKET"]);
    for m in sorted {
        let per_packet = m.transmissions_per_packet.map(|t| format!("{t:.2}"));
        let last = seconds(m.last_s);
        let mean = seconds(m.mean_s);
        table.row([m.scheme.clone(), last, mean, show::or_dash(per_packet)]);
    }

    show::line(&table.to_string())?;
    with_best_other(all, world).map_or(Ok(()), |line| show::line(&line))
}

impl Measures {
    fn of(run: &Run, transfer: &TransferOutcome) -> Self {
        // A receiver that never had the file has no time, and then there is neither a last nor a
        // mean one.
        let times: Option<Vec<f64>> = transfer.receivers.iter().map(|r| r.seconds).collect();
        let times = times.filter(|times| !times.is_empty());
        let mean = |times: &Vec<f64>| times.iter().sum::<f64>() / times.len() as f64;
        Self {
            scheme: run.outcome.scheme.clone(),
            last_s: times.as_ref().map(|times| times.iter().copied().fold(0.0, f64::max)),
            mean_s: times.as_ref().map(mean),
            transmissions_per_packet: run.packets.map(|n| run.outcome.transmissions as f64 / n),
        }
    }

    /// Returns the time to sort by. Incomplete transfers come last.
    fn order(&self) -> f64 {
        self.last_s.unwrap_or(f64::INFINITY)
    }
}

/// Returns how the last of several transfers compares with the best of the others.
fn with_best_other(all: &[Measures], world: &str) -> Option<String> {
    let (ours, others) = all.split_last()?;
    let best = others.iter().min_by(|a, b| a.order().total_cmp(&b.order()))?;

    // A run that is incomplete has no time, so a ratio would say nothing.
    let (Some(own), Some(other)) = (ours.last_s, best.last_s) else { return None };
    let (times, than) =
        if own <= other { (other / own, "as fast as") } else { (own / other, "as slow as") };
    Some(format!(
        "{world}: {} takes {own:.1} s, {times:.2} times {than} {}, the best of the others \
         ({other:.1} s)",
        ours.scheme, best.scheme
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures(scheme: &str, last_s: Option<f64>) -> Measures {
        let mean_s = last_s.map(|s| s / 2.0);
        Measures { scheme: scheme.into(), last_s, mean_s, transmissions_per_packet: None }
    }

    #[test]
    fn the_last_run_is_compared_with_the_best_of_the_others() {
        let [slow, fast] = [measures("more", Some(40.0)), measures("pacifier", Some(30.0))];
        let never = measures("tree_flood", None);
        let all = [slow, never.clone(), fast, measures("cascade", Some(20.0))];
        let says = with_best_other(&all, "simulated").unwrap();
        assert!(says.contains("cascade takes 20.0 s, 1.50 times as fast as pacifier"), "{says}");
        let says = with_best_other(&[all[3].clone(), all[0].clone()], "simulated").unwrap();
        assert!(says.contains("more takes 40.0 s, 2.00 times as slow as cascade"), "{says}");
        assert_eq!(with_best_other(&[never, all[0].clone()], "simulated"), None);
    }

    #[test]
    fn all_others_are_those_of_the_service() {
        let read = |text: &str| Schemes::read(text, ServiceKind::File).unwrap();
        let cascade = read("cascade");
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            others(&cascade, &names).map(|all| all.iter().map(|e| e.name).collect::<Vec<_>>())
        };
        assert_eq!(named(&["all"]).unwrap(), ["pacifier", "more", "etx_unicast", "tree_flood"]);
        assert_eq!(named(&["more", "pacifier"]).unwrap(), ["more", "pacifier"]);
        assert!(named(&["cascade"]).is_err());
        assert!(named(&["xor"]).is_err());
        let several = read("file=cascade,tunnel=braid");
        assert!(others(&several, &["all".to_owned()]).is_err());
        assert!(others(&several, &[]).unwrap().is_empty());
    }
}
