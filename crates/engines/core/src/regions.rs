//! Coding regions: which flows that meet at this relay are combined (CORE, section 4).
//!
//! Flow f comes from P_f and goes to N_f. Combined with g it reaches N_f as packets of both, and N_f has to know those of g: it
//! overhears P_g, or is P_g. How much it overhears is measured. Of g's M packets, for which P_g transmits M / d(P_g, R)
//! times until the relay has them, it knows M d(P_g, N_f) / d(P_g, R); each packet that it does not know costs a combined
//! one more.

use super::meter::Meter;
use super::rules::{Rules, Xor};
use ncmesh_engine::Context;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

type Key = (NodeId, NodeId);

/// A flow that this node relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    pub flow: Key,
    pub previous: NodeId,
    pub next: NodeId,
}

/// Pairs of flows that are worth combining here.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// By flow, the others, and which share of their packets this flow's next node does not know.
    unknown: BTreeMap<Key, Vec<(Key, f64)>>,
    /// Next nodes for which it does not pay, and what share they overhear.
    declined: BTreeMap<NodeId, f64>,
}

impl Regions {
    /// As links are now.
    pub(super) fn of(passages: &[Passage], rules: &Rules, meter: &Meter, cx: &Context<'_>) -> Self {
        let mut regions = Self::default();
        for (i, one) in passages.iter().enumerate() {
            for other in &passages[i + 1..] {
                regions.consider(one, other, rules, meter, cx);
            }
        }
        regions
    }

    fn consider(
        &mut self,
        one: &Passage,
        other: &Passage,
        rules: &Rules,
        meter: &Meter,
        cx: &Context<'_>,
    ) {
        if !rules.combines || one.next == other.next {
            return;
        }
        let known = [(one, other), (other, one)].map(|(f, g)| overheard(f, g, rules, meter, cx));
        let pays = match rules.xor {
            Xor::WhereDecodable(least) => known[0] * known[1] >= least,
            Xor::WherePaying => {
                let success = |p: &Passage| meter.success(cx.topology, cx.me, cx.me, p.next);
                let cost = [1.0 / success(one), 1.0 / success(other)];
                let combined = f64::max((2.0 - known[0]) * cost[0], (2.0 - known[1]) * cost[1]);
                known[0].min(known[1]) > 0.0 && combined < cost[0] + cost[1]
            }
        };
        for (f, g, known) in [(one, other, known[0]), (other, one, known[1])] {
            if pays {
                self.unknown.entry(f.flow).or_default().push((g.flow, 1.0 - known));
            } else {
                let least = self.declined.entry(f.next).or_insert(known);
                *least = least.min(known);
            }
        }
    }

    /// The flows with which one is combined, and which share of their packets its next node does not know.
    pub(super) fn of_flow(&self, flow: &Key) -> &[(Key, f64)] {
        self.unknown.get(flow).map_or(&[], Vec::as_slice)
    }

    /// That share of `other`, if the two are combined.
    pub(super) fn between(&self, flow: &Key, other: &Key) -> Option<f64> {
        self.of_flow(flow).iter().find(|(key, _)| key == other).map(|(_, unknown)| *unknown)
    }

    /// For whom nothing is combined though flows cross, and why.
    pub(super) fn declined(&self) -> Vec<(NodeId, String)> {
        let why = |known: &f64| {
            format!("knows only {:.0} % of what it would be combined with", 100.0 * known)
        };
        self.declined.iter().map(|(node, known)| (*node, why(known))).collect()
    }
}

/// The share of `g`'s packets that `f`'s next node knows: of all of its generation where packets are coded, of a single
/// packet where they are not.
fn overheard(f: &Passage, g: &Passage, rules: &Rules, meter: &Meter, cx: &Context<'_>) -> f64 {
    if f.next == g.previous || f.next == g.flow.0 {
        return 1.0;
    }
    let direct = meter.delivery(cx.topology, cx.me, g.previous, f.next);
    if rules.coded {
        (direct / meter.success(cx.topology, cx.me, g.previous, cx.me)).min(1.0)
    } else {
        direct
    }
}
