//! Neighbour discovery, and measurement of delivery ratios by broadcast probes.
//!
//! Each node broadcasts numbered probes on a schedule that the probes announce. A receiver knows
//! from the schedule how many were sent, and counts how many arrived. Link state carries that to
//! the others, so that both directions of every link are known everywhere.
//!
//! Source: Pacifier, IV-A; De Couto et al., MobiCom 2003.

mod config;
mod layout;
mod neighbor;
mod schedule;

pub use config::LinkConfig;
pub use layout::LAYOUTS;
use ncmesh_engine::Summary;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant, seconds};
use ncmesh_engine::{Class, Context, Filled, Frame, Offer};
use ncmesh_wire::{NodeId, Reader, ServiceId, Truncated, Writer, frame};
use neighbor::{Neighbor, Probe};
use schedule::Schedule;
use std::collections::BTreeMap;

/// Service byte of probes.
pub const SERVICE: ServiceId = ServiceId(0);
/// Kind of the only frame.
pub const PROBE: u8 = 0;
/// Most neighbours that are kept.
const MAX_NEIGHBORS: usize = 1024;

/// Length of a probe without padding, bytes.
const FIELDS_LEN: usize = 10;

/// Probes sent and heard by one node.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    started: Instant,
    seq: u32,
    next_probe: Instant,
    /// When data was last on the air here.
    busy_at: Option<Instant>,
    neighbors: BTreeMap<NodeId, Neighbor>,
}

impl Link {
    /// Returns a link layer that starts probing at `now`.
    #[must_use]
    pub fn new(config: LinkConfig, now: Instant) -> Self {
        Self {
            config,
            started: now,
            seq: 0,
            next_probe: now,
            busy_at: None,
            neighbors: BTreeMap::new(),
        }
    }

    /// Returns the neighbours heard, with the share of their probes that arrives here.
    pub fn inbound(&self, now: Instant) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        let window = seconds(self.config.probe_window_s);
        self.neighbors
            .iter()
            .filter_map(move |(node, n)| Some((*node, n.delivery(now, self.busy_at, window)?)))
    }

    /// Handles a probe.
    pub fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok((seq, schedule)) = parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let busy_at = self.busy_at;
        let probe = Probe { epoch: frame.epoch, seq, schedule, at: cx.now, busy_at };
        let window = seconds(self.config.probe_window_s);
        let full = self.neighbors.len() >= MAX_NEIGHBORS;
        match self.neighbors.get_mut(&frame.sender) {
            Some(known) if known.epoch() == frame.epoch => known.handle_probe(probe, window),
            None if full => cx.counters.drop(DropReason::Full),
            _ => {
                let listening = cx.now.since(self.started);
                self.neighbors.insert(frame.sender, Neighbor::new(probe, listening));
            }
        }
    }

    /// Notes that a frame of `sender` was heard: it is alive.
    pub fn note_frame(&mut self, sender: NodeId, now: Instant) {
        if let Some(neighbor) = self.neighbors.get_mut(&sender) {
            neighbor.note_alive(now);
        }
    }

    /// Notes that data is on the air, of this node or another. Probes may collide with it.
    pub fn note_traffic(&mut self, now: Instant) {
        self.busy_at = Some(now);
    }

    /// Drops neighbours that fell silent.
    pub fn forget_silent(&mut self, now: Instant) {
        let window = seconds(self.config.probe_window_s);
        self.neighbors.retain(|_, n| !n.is_silent(now, window));
    }

    /// Returns when, later than `after`, a probe falls due.
    #[must_use]
    pub fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        Some(self.next_probe).filter(|t| *t > after)
    }

    /// Returns an offer if a probe is due.
    #[must_use]
    pub fn offer(&self, now: Instant) -> Option<Offer> {
        (now >= self.next_probe).then_some(Offer::of(Class::Control))
    }

    /// Writes the probe that is due, if any.
    pub fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.offer(cx.now)?;
        let schedule = self.config.schedule();
        let body = self.config.probe_size.saturating_sub(frame::OVERHEAD).clamp(FIELDS_LEN, cx.mtu);
        write(self.seq, &schedule, body, out);
        self.next_probe = cx.now + schedule.gap(self.seq).mul_f64(0.9 + 0.2 * unit(cx.rng));
        self.seq = self.seq.wrapping_add(1);
        Some(Filled { kind: PROBE, to: None })
    }
}

/// Appends a probe of `len` bytes.
fn write(seq: u32, schedule: &Schedule, len: usize, out: &mut Vec<u8>) {
    let millis = |period: Duration| u16::try_from(period.as_millis()).unwrap_or(u16::MAX);
    let mut w = Writer::new(out);
    w.u32(seq).u16(schedule.quick).u16(millis(schedule.quick_period));
    w.u16(millis(schedule.period)).reserve(len - FIELDS_LEN);
}

fn parse(body: &[u8]) -> Result<(u32, Schedule), Truncated> {
    let mut r = Reader::new(body);
    let (seq, quick) = (r.u32()?, r.u16()?);
    let mut period = || Ok(Duration::from_millis(u64::from(r.u16()?.max(1))));
    let (quick_period, period) = (period()?, period()?);
    Ok((seq, Schedule { quick, quick_period, period }))
}

/// Summarises a frame of this service for traces.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let well_formed = kind == PROBE && parse(body).is_ok();
    well_formed.then(|| Summary::new("link", "probe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden vector of the wire format.
    #[test]
    fn golden_probe() {
        let ms = Duration::from_millis;
        let schedule = Schedule { quick: 20, quick_period: ms(250), period: ms(1000) };
        let mut out = Vec::new();
        write(5, &schedule, 12, &mut out);
        assert_eq!(out, [0, 0, 0, 5, 0, 20, 0, 250, 3, 232, 0, 0]);
        assert_eq!(parse(&out), Ok((5, schedule)));
        assert_eq!(parse(&out[..10]), Ok((5, schedule)));
        assert_eq!(parse(&out[..9]), Err(Truncated));
        let least = Schedule { quick: 0, quick_period: ms(1), period: ms(1) };
        assert_eq!(parse(&[0; 10]), Ok((0, least)));
    }
}
