//! Tables for the flows of a lab.

use crate::failure::Failure;
use crate::show::{self, Table};
use ncmesh_lab::Comparison;
use ncmesh_node::api::types::MOSTLY_CODED;
use ncmesh_sim::outcome::{CodingOutcome, FlowOutcome, FlowsOutcome};
use ncmesh_sim::scenario::{Flow, Transport};
use std::collections::BTreeMap;

/// Prints the flows of a lab as a table, and the coding ratios.
pub(crate) fn show(flows: &FlowsOutcome, planned: &[Flow]) -> Result<(), Failure> {
    let columns = [
        "FROM",
        "TO",
        "PROTOCOL",
        "OFFERED",
        "KBIT/S",
        "LOSS",
        "RETRANSMITS",
        "RTT MS",
        "JITTER MS",
        "INNOVATIVE",
    ];
    let mut table = Table::new(columns);
    let mut excess = Vec::new();
    for (flow, planned) in flows.flows.iter().zip(planned) {
        // Packets beyond what the path carries are dropped where they are offered. That says
        // nothing of the mesh.
        let too_much = is_unpaced(planned);
        let beyond = |loss| format!("{} to {} {}", flow.from, flow.to, percent(loss));
        excess.extend(flow.loss.filter(|_| too_much).map(beyond));

        let innovative = 100.0 * flow.innovative as f64 / flow.heard.max(1) as f64;
        let tcp = flow.tcp.as_ref();
        table.row([
            flow.from.clone(),
            flow.to.clone(),
            flow.protocol.clone(),
            show::or_dash(offered_bps(flow).map(|bps| format!("{:.0}", bps / 1e3))),
            format!("{:.0}", flow.throughput_bps / 1e3),
            show::or_dash(flow.loss.filter(|_| !too_much).map(percent)),
            show::or_dash(tcp.map(|tcp| tcp.retransmissions.to_string())),
            milliseconds(tcp.and_then(|tcp| tcp.rtt_s)),
            milliseconds(flow.jitter_s),
            format!("{innovative:.1} %"),
        ]);
    }

    show::line(&table.to_string())?;
    if !excess.is_empty() {
        show::line(&format!("{EXCESS}, no losses of the mesh: {}", excess.join(", ")))?;
    }

    // Coding has a line of its own: it belongs to nodes, not to flows.
    let coding = flows.coding.iter().filter(|(_, coding)| coding.values.coded > 0);
    let ratios = coding.filter_map(|(node, coding)| Some((node.clone(), coding.values.ratio?)));
    show_ratios(&ratios.collect())?;
    let little =
        |coding: &CodingOutcome| coding.values.ratio.is_none_or(|ratio| ratio < MOSTLY_CODED);
    for (node, coding) in flows.coding.iter().filter(|(_, coding)| little(coding)) {
        for why in &coding.stopped {
            show::line(&format!("{node} codes less than it could: {why}"))?;
        }
    }

    Ok(())
}

/// Heading of the share that is dropped at sources that offer the channel's whole rate.
const EXCESS: &str = "offered beyond what the paths carry";

/// Returns whether the source of a flow offers as much as the channel could carry at most.
fn is_unpaced(flow: &Flow) -> bool {
    flow.transport == Transport::Udp && flow.rate_bps.is_none()
}

/// Returns the rate that the source of a UDP flow offered, bit/s, if anything of it arrived.
fn offered_bps(flow: &FlowOutcome) -> Option<f64> {
    let loss = flow.loss.filter(|loss| *loss < 1.0)?;
    Some(flow.throughput_bps / (1.0 - loss))
}

/// Prints the comparison of two schemes, one measure in each row.
pub(crate) fn show_comparison(c: &Comparison, planned: &[Flow]) -> Result<(), Failure> {
    // Changes are relative, except that of the idle round-trip time, which is so small that only
    // the difference says something.
    let against = c.against.to_uppercase();
    let scheme = c.scheme.to_uppercase();
    let mut table = Table::new(["", &against, &scheme, "CHANGE"]);
    let signed = |share: Option<f64>| show::or_dash(share.map(|s| format!("{:+.1} %", 100.0 * s)));
    let kbit_s = c.throughput_bps.map(|bps| format!("{:.0}", bps / 1e3));
    row(&mut table, "throughput, kbit/s", kbit_s, signed(c.throughput_gain));

    // A comparison counts how much less is lost. The column shows the change, so the sign turns.
    let less = c.loss_reduction.map(|reduction| -reduction);
    let name = if planned.iter().all(is_unpaced) { EXCESS } else { "losses" };
    row(&mut table, name, c.loss.map(percent), signed(less));
    row(&mut table, "round-trip time, ms", c.rtt_s.map(milliseconds), signed(c.rtt_increase));

    let more_ms = c.idle_rtt_s[0].zip(c.idle_rtt_s[1]).map(|(a, b)| (b - a) * 1e3);
    let more_ms = show::or_dash(more_ms.map(|ms| format!("{ms:+.2} ms")));
    row(&mut table, "without load, ms", c.idle_rtt_s.map(milliseconds), more_ms);

    show::line(&table.to_string())?;
    show_ratios(&c.coding_ratio)
}

/// Prints the comparison of a scheme with several others, one scheme in each row, the one with the
/// highest throughput first.
pub(crate) fn show_comparisons(all: &[Comparison]) -> Result<(), Failure> {
    let columns = ["SCHEME", "KBIT/S", "LOSS", "RTT MS", "RTT MS WITHOUT LOAD"];
    let row = |scheme: &str, c: &Comparison, which: usize| {
        let bps = c.throughput_bps[which];
        let cells = [
            scheme.to_owned(),
            format!("{:.0}", bps / 1e3),
            percent(c.loss[which]),
            milliseconds(c.rtt_s[which]),
            milliseconds(c.idle_rtt_s[which]),
        ];
        (bps, cells)
    };

    // Each comparison has another scheme beside the same last run, which gets one row.
    let mut rows: Vec<_> = all.iter().map(|c| row(&c.against, c, 0)).collect();
    rows.extend(all.first().map(|c| row(&c.scheme, c, 1)));
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut table = Table::new(columns);
    for (_, cells) in rows {
        table.row(cells);
    }
    show::line(&table.to_string())?;
    all.first().map_or(Ok(()), |c| show_ratios(&c.coding_ratio))
}

/// Adds a row for one measure.
fn row(table: &mut Table, what: &str, [theirs, ours]: [String; 2], change: String) {
    table.row([what.into(), theirs, ours, change]);
}

/// Prints the share of coded transmissions for each node that codes.
fn show_ratios(ratios: &BTreeMap<String, f64>) -> Result<(), Failure> {
    if ratios.is_empty() {
        return Ok(());
    }
    let each = ratios.iter().map(|(node, ratio)| format!("{node} {}", percent(*ratio)));
    show::line(&format!("coded transmissions: {}", each.collect::<Vec<_>>().join(", ")))
}

/// Returns a share in percent.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns a time in ms, or a dash.
fn milliseconds(seconds: Option<f64>) -> String {
    show::or_dash(seconds.map(|s| format!("{:.1}", s * 1e3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_offered_follows_from_what_arrived() {
        let flow = |loss| FlowOutcome { throughput_bps: 1e6, loss, ..FlowOutcome::default() };
        assert_eq!(offered_bps(&flow(Some(0.75))), Some(4e6));
        assert_eq!(offered_bps(&flow(Some(1.0))), None);
        assert_eq!(offered_bps(&flow(None)), None);
    }
}
