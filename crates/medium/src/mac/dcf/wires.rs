//! Links that are not as the others: rates of their own, and cables.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Dcf, Event, Phase};
use crate::config::LinkKind;
use crate::mac::Turn;
use crate::{Access, Output, RadioId, TxResult};

const NS_PER_S: u128 = 1_000_000_000;

impl Dcf {
    /// The rate at which a frame of `radio` is sent through the air, bit/s.
    pub(super) fn rate_bps(&self, radio: usize, access: Access) -> u64 {
        match self.link(radio, access) {
            Some(LinkKind::Air { bit_rate_bps }) => bit_rate_bps,
            _ => self.bit_rate_bps,
        }
    }

    /// The rate of the cable that a frame of `radio` goes by, if it does.
    pub(super) fn wire(&self, radio: usize, access: Access) -> Option<u64> {
        match self.link(radio, access) {
            Some(LinkKind::Wire { bit_rate_bps }) => Some(bit_rate_bps),
            _ => None,
        }
    }

    fn link(&self, radio: usize, access: Access) -> Option<LinkKind> {
        match access {
            Access::Unicast(to) => self.links.get(&(RadioId(radio), to)).copied(),
            Access::Broadcast => None,
        }
    }

    /// The frame of `radio` goes by cable.
    pub(super) fn send_by_wire(&mut self, now_ns: u64, radio: usize, bit_rate_bps: u64) {
        self.attempts += 1;
        let station = &mut self.stations[radio];
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };
        let bits = (outgoing.frame.len() + self.mac_overhead_bytes) as u128 * 8;
        let airtime_ns = (bits * NS_PER_S).div_ceil(u128::from(bit_rate_bps.max(1))) as u64;
        outgoing.attempts = 1;
        outgoing.attempt = self.attempts;
        outgoing.airtime_ns = airtime_ns;
        station.phase = Phase::Sending;
        let end = Event::WireEnd { radio, attempt: self.attempts };
        self.events.push(Reverse((now_ns + airtime_ns, end)));
    }

    /// What `radio` sent by cable is through, if it was not switched off meanwhile.
    pub(super) fn end_wire(&mut self, turn: &mut Turn<'_>, radio: usize, attempt: u64) {
        let outgoing = self.stations[radio].outgoing.as_ref();
        let Some(outgoing) = outgoing.filter(|outgoing| outgoing.attempt == attempt) else {
            return;
        };
        let Access::Unicast(to) = outgoing.access else {
            return;
        };
        let frame = Arc::clone(&outgoing.frame);
        let result = if turn.air.is_up(to.0) {
            deliver(turn, radio, to, &frame);
            TxResult::Acked
        } else {
            TxResult::Failed
        };
        self.finish(turn, radio, result);
    }

    /// What `radio` has broadcast goes by its cables too.
    pub(super) fn broadcast_by_wire(&self, turn: &mut Turn<'_>, radio: usize, frame: &Arc<[u8]>) {
        let links = self.links.range((RadioId(radio), RadioId(0))..);
        let own = links.take_while(|((from, _), _)| from.0 == radio);
        for ((_, to), _) in own.filter(|(_, kind)| matches!(kind, LinkKind::Wire { .. })) {
            if turn.air.is_up(to.0) {
                deliver(turn, radio, *to, frame);
            }
        }
    }
}

fn deliver(turn: &mut Turn<'_>, from: usize, to: RadioId, frame: &Arc<[u8]>) {
    turn.air.statistics.radios[to.0].deliveries += 1;
    turn.outputs.push_back(Output::Deliver {
        to,
        from: RadioId(from),
        frame: Arc::clone(frame),
        power: None,
        at_ns: turn.now_ns,
    });
}
