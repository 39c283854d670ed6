//! Coding regions: which of the flows that cross at this relay are combined (CORE, section 4).
//!
//! Flow f comes from its previous hop P_f and goes to its next hop N_f. Combined with flow g, it
//! reaches N_f in packets of both flows, and N_f needs to know g's packets to take its own out: it
//! overhears P_g, or is P_g itself.
//!
//! How much it overhears is measured. Until the relay R has all M packets of g's generation, P_g
//! transmits M / d(P_g, R) times. Of these N_f hears M d(P_g, N_f) / d(P_g, R), where d is the
//! delivery of a link. Each packet that N_f does not know costs it one more combined packet. So a
//! combined generation takes (1 + u) / r transmissions for each packet, where u is the unknown
//! share and r the success ratio from R to N_f. The flows are combined if the worse of the two
//! takes fewer transmissions than both flows apart.

use crate::flow::FlowKey;
use crate::link_meter::LinkMeter;
use crate::parameters::{PairingRule, Parameters};
use ncmesh_engine::Context;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// A flow that this node relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelayedFlow {
    pub key: FlowKey,
    pub previous_hop: NodeId,
    pub next_hop: NodeId,
}

/// A flow that another one is combined with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Partner {
    pub key: FlowKey,
    /// Share of the partner's packets that the other flow's next hop does not know.
    pub unknown: f64,
}

/// Pairs of flows that are combined at this relay.
#[derive(Debug, Default)]
pub(crate) struct CodingRegions {
    partners: BTreeMap<FlowKey, Vec<Partner>>,
    /// Next hops for which combining does not pay, with the share that they overhear.
    declined: BTreeMap<NodeId, f64>,
}

impl CodingRegions {
    /// Decides for each pair of flows, by links as they are now.
    pub(crate) fn new(
        flows: &[RelayedFlow],
        parameters: &Parameters,
        meter: &LinkMeter,
        cx: &Context<'_>,
    ) -> Self {
        let mut regions = Self::default();
        for (i, one) in flows.iter().enumerate() {
            for other in &flows[i + 1..] {
                regions.decide(one, other, parameters, meter, cx);
            }
        }
        regions
    }

    fn decide(
        &mut self,
        one: &RelayedFlow,
        other: &RelayedFlow,
        parameters: &Parameters,
        meter: &LinkMeter,
        cx: &Context<'_>,
    ) {
        // One next hop would need both packets of the frame, and gain nothing.
        if !parameters.combines_flows || one.next_hop == other.next_hop {
            return;
        }

        let known =
            [(one, other), (other, one)].map(|(f, g)| known_share(f, g, parameters, meter, cx));
        let pays = match parameters.pairing {
            PairingRule::Decodable(least) => known[0] * known[1] >= least,
            PairingRule::FewerTransmissions => {
                // Transmissions for each packet: of the flows apart, and of both combined.
                let success =
                    |flow: &RelayedFlow| meter.success(cx.topology, cx.me, cx.me, flow.next_hop);
                let apart = [1.0 / success(one), 1.0 / success(other)];
                let combined = f64::max((2.0 - known[0]) * apart[0], (2.0 - known[1]) * apart[1]);
                known[0].min(known[1]) > 0.0 && combined < apart[0] + apart[1]
            }
        };

        for (f, g, known) in [(one, other, known[0]), (other, one, known[1])] {
            if pays {
                let partner = Partner { key: g.key, unknown: 1.0 - known };
                self.partners.entry(f.key).or_default().push(partner);
            } else {
                let least = self.declined.entry(f.next_hop).or_insert(known);
                *least = least.min(known);
            }
        }
    }

    /// Returns the flows that this one is combined with.
    pub(crate) fn partners(&self, flow: &FlowKey) -> &[Partner] {
        self.partners.get(flow).map_or(&[], Vec::as_slice)
    }

    /// Returns which share of `other`'s packets the next hop of `flow` does not know; `None` if the
    /// two are not combined.
    pub(crate) fn unknown(&self, flow: &FlowKey, other: &FlowKey) -> Option<f64> {
        let partner = self.partners(flow).iter().find(|partner| partner.key == *other);
        partner.map(|partner| partner.unknown)
    }

    /// Returns the next hops for which nothing is combined though flows cross, and the reason in
    /// words.
    pub(crate) fn declined(&self) -> Vec<(NodeId, String)> {
        let reason = |known: &f64| {
            format!("knows only {:.0} % of what it would be combined with", 100.0 * known)
        };
        self.declined.iter().map(|(node, known)| (*node, reason(known))).collect()
    }
}

/// Returns the share of `g`'s packets that `f`'s next hop knows: of its whole generation where
/// packets are coded, or the probability of knowing one packet where they are not.
fn known_share(
    f: &RelayedFlow,
    g: &RelayedFlow,
    parameters: &Parameters,
    meter: &LinkMeter,
    cx: &Context<'_>,
) -> f64 {
    // A node knows what it has sent or forwarded itself.
    if f.next_hop == g.previous_hop || f.next_hop == g.key.0 {
        return 1.0;
    }
    let overheard = meter.delivery(cx.topology, cx.me, g.previous_hop, f.next_hop);
    if parameters.codes_within_flows {
        // While the relay collects the generation, every transmission is another chance to
        // overhear.
        (overheard / meter.success(cx.topology, cx.me, g.previous_hop, cx.me)).min(1.0)
    } else {
        overheard
    }
}
