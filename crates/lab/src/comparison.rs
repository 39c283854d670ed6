//! Comparison of two schemes over one scenario.
//!
//! The measures are those of Huang, Ghaderi, Towsley and Gong (SECON 2008), section V-A: throughput
//! gain, loss reduction and round-trip time increase. Each is a share of the value that the other
//! scheme reached.

use ncmesh_sim::outcome::{CodingOutcome, FlowOutcome, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;

/// Measures of one scheme relative to another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the scheme it is compared with.
    pub against: String,
    /// Sum over all flows, bit/s: `[against, scheme]`.
    pub throughput_bps: [f64; 2],
    /// Eq. (16), as a share. Absent if the other scheme carried nothing.
    pub throughput_gain: Option<f64>,
    /// Share of lost data over all flows, `[against, scheme]`: retransmitted segments of TCP, lost
    /// packets of UDP.
    pub loss: [f64; 2],
    /// Eq. (17), as a share. Absent if the other scheme lost nothing.
    pub loss_reduction: Option<f64>,
    /// Round-trip time of TCP under load, mean over the flows, s: `[against, scheme]`.
    pub rtt_s: [Option<f64>; 2],
    /// Eq. (18), as a share.
    pub rtt_increase: Option<f64>,
    /// Round-trip time before any load, mean over the flows, s: `[against, scheme]`.
    pub idle_rtt_s: [Option<f64>; 2],
    /// Coded transmissions as a share of all transmissions of the scheme, for each node that codes.
    pub coding_ratio: BTreeMap<String, f64>,
}

impl Comparison {
    /// Compares the run `ours` with the run `theirs`. Returns `None` if one of them had no flows.
    #[must_use]
    pub fn of(ours: &Outcome, theirs: &Outcome) -> Option<Self> {
        // Every pair has the other scheme first, so that a change is from the first to the second.
        let both = [theirs.flows()?, ours.flows()?];
        let throughput_bps = both.map(|run| run.flows.iter().map(|f| f.throughput_bps).sum());
        let loss = both.map(|run| loss(&run.flows));
        let rtt_s = both.map(|run| mean(run.flows.iter().filter_map(|f| f.tcp.as_ref()?.rtt_s)));
        let rtts = rtt_s[0].zip(rtt_s[1]);
        let ratio = |(node, coding): (&String, &CodingOutcome)| {
            Some((node.clone(), coding.values.ratio.filter(|_| coding.values.coded > 0)?))
        };
        Some(Self {
            scheme: ours.scheme.clone(),
            against: theirs.scheme.clone(),
            throughput_bps,
            throughput_gain: change(throughput_bps[0], throughput_bps[1]),
            loss,
            loss_reduction: change(loss[0], loss[1]).map(|change| -change),
            rtt_s,
            rtt_increase: rtts.and_then(|(theirs, ours)| change(theirs, ours)),
            idle_rtt_s: both.map(|run| mean(run.flows.iter().filter_map(|f| f.idle_rtt_s))),
            coding_ratio: both[1].coding.iter().filter_map(ratio).collect(),
        })
    }
}

/// Returns the relative change from `from` to `to`, as a share of `from`.
fn change(from: f64, to: f64) -> Option<f64> {
    (from > 0.0).then(|| to / from - 1.0)
}

/// Returns the mean of values; `None` without any.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the share of retransmitted TCP segments over all flows. Without TCP, the mean loss of
/// the flows.
fn loss(flows: &[FlowOutcome]) -> f64 {
    // Over all flows together, so that a flow with many segments weighs more.
    let tcp = || flows.iter().filter_map(|f| f.tcp.as_ref());
    let segments = tcp().map(|tcp| tcp.segments).sum::<u64>() as f64;
    let again = tcp().map(|tcp| tcp.retransmissions).sum::<u64>() as f64;
    if segments > 0.0 {
        again / segments
    } else {
        mean(flows.iter().filter_map(|f| f.loss)).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

    use super::*;
    use ncmesh_sim::outcome::{FlowsOutcome, ServiceOutcomes, TcpOutcome};

    fn run(scheme: &str, throughput_bps: f64, retransmissions: u64, rtt_s: f64) -> Outcome {
        let tcp = TcpOutcome {
            segments: 1000,
            retransmissions,
            rtt_s: Some(rtt_s),
            ..TcpOutcome::default()
        };
        let flow = FlowOutcome {
            throughput_bps,
            idle_rtt_s: Some(rtt_s / 10.0),
            tcp: Some(tcp),
            ..FlowOutcome::default()
        };
        let coding = |sent, coded| {
            let ratio = Some(coded as f64 / sent as f64);
            let mut outcome = CodingOutcome::default();
            outcome.values.sent = sent;
            outcome.values.coded = coded;
            outcome.values.ratio = ratio;
            outcome
        };
        let flows = Some(FlowsOutcome {
            flows: vec![flow.clone(), flow],
            coding: [("alice".into(), coding(10, 0)), ("relay".into(), coding(10, 4))].into(),
            samples: None,
        });
        let services = ServiceOutcomes { flows, ..ServiceOutcomes::default() };
        Outcome::new("hub", scheme, 1.0, BTreeMap::new(), services)
    }

    #[test]
    fn changes_are_shares_of_what_was_without() {
        let ours = run("xor", 150e3, 5, 0.06);
        let comparison = Comparison::of(&ours, &run("forward", 100e3, 20, 0.05)).unwrap();
        assert_eq!(comparison.throughput_bps, [200e3, 300e3]);
        assert_eq!(
            (comparison.throughput_gain, comparison.loss_reduction),
            (Some(0.5), Some(0.75))
        );
        assert_eq!(comparison.loss, [0.02, 0.005]);
        assert!((comparison.rtt_increase.unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(comparison.coding_ratio, [("relay".to_owned(), 0.4)].into());
        let nothing = Comparison::of(&ours, &run("forward", 0.0, 0, 0.05)).unwrap();
        assert_eq!((nothing.throughput_gain, nothing.loss_reduction), (None, None));
    }
}
