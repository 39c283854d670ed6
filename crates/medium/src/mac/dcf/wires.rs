//! Links with a rate of their own, and cables.
//!
//! A frame over a cable follows the same grants and reports as a frame over the air, but it reaches
//! only the other end, always, after its duration at the cable's rate. A broadcast goes over the
//! air and is copied to all cables of its sender.

use std::cmp::Reverse;
use std::sync::Arc;

use super::station::State;
use super::{Dcf, Event};
use crate::config::LinkKind;
use crate::mac::interface::Context;
use crate::types::{Access, Output, RadioId, TxResult};

const NS_PER_S: u128 = 1_000_000_000;

impl Dcf {
    /// Returns the rate at which `radio` sends a frame over the air, bit/s.
    pub(super) fn rate_bps(&self, radio: usize, access: Access) -> u64 {
        match self.link(radio, access) {
            Some(LinkKind::Air { bit_rate_bps }) => bit_rate_bps,
            _ => self.stations[radio].bit_rate_bps,
        }
    }

    /// Returns the rate of the cable that a frame of `radio` uses, bit/s, or `None` if it goes over
    /// the air.
    pub(super) fn wire_rate_bps(&self, radio: usize, access: Access) -> Option<u64> {
        match self.link(radio, access) {
            Some(LinkKind::Wire { bit_rate_bps }) => Some(bit_rate_bps),
            _ => None,
        }
    }

    /// Returns the airtime of a CTS or ACK for a frame of `radio`, ns.
    pub(super) fn response_ns(&self, radio: usize) -> u64 {
        self.phy.ack_airtime_ns(self.stations[radio].bit_rate_bps)
    }

    /// Returns the kind of the link that a unicast frame uses, if it has settings of its own.
    fn link(&self, radio: usize, access: Access) -> Option<LinkKind> {
        match access {
            Access::Unicast(to) => self.links.get(&(RadioId(radio), to)).copied(),
            Access::Broadcast => None,
        }
    }

    /// Sends the frame of `radio` over its cable.
    pub(super) fn send_by_wire(&mut self, now_ns: u64, radio: usize, bit_rate_bps: u64) {
        // One attempt always suffices. It is numbered like others, so that the end of a frame is
        // ignored if its sender was switched off meanwhile.
        self.attempts += 1;
        let station = &mut self.stations[radio];
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };

        // Rounded up: no frame ends before its last bit.
        let bits = (outgoing.frame.len() + self.mac_overhead_bytes) as u128 * 8;
        let airtime_ns = (bits * NS_PER_S).div_ceil(u128::from(bit_rate_bps.max(1))) as u64;
        outgoing.attempts = 1;
        outgoing.attempt = self.attempts;
        outgoing.airtime_ns = airtime_ns;
        station.state = State::Transmitting;

        let end = Event::WireEnd { radio, attempt: self.attempts };
        self.events.push(Reverse((now_ns + airtime_ns, end)));
    }

    /// Handles the arrival of a frame at the end of a cable.
    pub(super) fn handle_wire_end(
        &mut self,
        context: &mut Context<'_>,
        radio: usize,
        attempt: u64,
    ) {
        // A sender that was switched off has forgotten the frame.
        let outgoing = self.stations[radio].outgoing.as_ref();
        let Some(outgoing) = outgoing.filter(|outgoing| outgoing.attempt == attempt) else {
            return;
        };
        let Access::Unicast(to) = outgoing.access else {
            return;
        };

        // The other end answers as a MAC does: it acknowledges unless it is switched off.
        let frame = Arc::clone(&outgoing.frame);
        let result = if context.air.is_up(to.0) {
            deliver(context, radio, to, &frame);
            TxResult::Acked
        } else {
            TxResult::Failed
        };
        self.finish(context, radio, result);
    }

    /// Delivers a broadcast of `radio` over its cables.
    pub(super) fn broadcast_by_wire(
        &self,
        context: &mut Context<'_>,
        radio: usize,
        frame: &Arc<[u8]>,
    ) {
        // The copies arrive when the frame ends on the air, whatever the cable's rate.
        let links = self.links.range((RadioId(radio), RadioId(0))..);
        let own = links.take_while(|((from, _), _)| from.0 == radio);
        for ((_, to), _) in own.filter(|(_, kind)| matches!(kind, LinkKind::Wire { .. })) {
            if context.air.is_up(to.0) {
                deliver(context, radio, *to, frame);
            }
        }
    }
}

/// Delivers a frame over a cable.
fn deliver(context: &mut Context<'_>, from: usize, to: RadioId, frame: &Arc<[u8]>) {
    context.air.statistics.radios[to.0].deliveries += 1;
    context.outputs.push_back(Output::Deliver {
        to,
        from: RadioId(from),
        frame: Arc::clone(frame),
        power: None,
        at_ns: context.now_ns,
    });
}
