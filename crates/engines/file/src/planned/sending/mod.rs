//! A file that this node sends, in turns: each is on one generation, for the receivers that lack it
//! (Pacifier, III).
//!
//! | module | contents |
//! | --- | --- |
//! | `schedule` | which generation, for whom, by which plan |
//! | `turn` | what to send within a turn |
//! | `rate_limit` | how fast |

mod rate_limit;
mod schedule;
mod turn;

use super::arq::Arq;
use super::frame::{Data, DataHeader, Piggyback, Report, TurnId};
use super::routing::Forwarding;
use super::scheme::{Scheme, Switching};
use ncmesh_code::Encoder;
use ncmesh_engine::counters::Payload;
use ncmesh_engine::file::{GenerationSet, Manifest};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Context, Filled, TxResult};
use ncmesh_transfer::FileSource;
use ncmesh_transfer::frame::{Ack, DATA, write_packet};
use ncmesh_transfer::source::Quorum;
use ncmesh_wire::NodeId;
use rate_limit::RateLimiter;
use std::collections::BTreeSet;
use turn::{GenerationTurn, Sending, TurnPacket};

/// Most generations after the first missing one that are sent from. Fewer if the bits of an
/// acknowledgment do not reach so far.
const WINDOW: usize = 8192;

/// The turns of a file that this node sends.
#[derive(Debug)]
pub(super) struct Turns {
    /// When a data packet was last sent.
    pub sent_at: Instant,
    /// Every node that was a forwarder in some plan.
    pub forwarders: BTreeSet<NodeId>,
    /// This node.
    me: NodeId,
    /// The turn under way.
    turn: Option<GenerationTurn>,
    /// Its name, or that of the turn before.
    turn_id: TurnId,
    /// Generations that had a turn.
    sent_once: GenerationSet,
    /// Generation of the last turn.
    last_generation: Option<u32>,
    /// Generations from the first missing one on that may have a turn.
    window: u32,
    rate_limiter: RateLimiter,
    /// The generation of the turn, ready to code.
    encoder: Option<Encoder>,
}

impl Turns {
    pub(super) fn new(manifest: &Manifest, cx: &Context<'_>) -> Self {
        // Forwarders tell the source's starts apart by 16 bits made of its epoch.
        let epoch = cx.epoch;
        let incarnation = (epoch ^ epoch >> 16 ^ epoch >> 32 ^ epoch >> 48) as u16;

        // A receiver can acknowledge only as many generations as an acknowledgment has bits for.
        let ack_bits = cx.mtu.saturating_sub(Ack::HEADER) * 8;
        Self {
            sent_at: cx.now,
            forwarders: BTreeSet::new(),
            me: cx.me,
            turn: None,
            turn_id: TurnId { incarnation, number: 0 },
            sent_once: GenerationSet::none(manifest.geometry.generations()),
            last_generation: None,
            window: WINDOW.min(ack_bits).max(1) as u32,
            rate_limiter: RateLimiter::new(cx.now),
            encoder: None,
        }
    }

    /// Ends the turn under way, because the transfer is closed.
    pub(super) fn end(&mut self) {
        self.turn = None;
        self.encoder = None;
    }

    /// Handles a data packet of this transfer that was overheard.
    pub(super) fn handle_data(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        self.rate_limiter.handle_overheard(sender, now);
        if let Some(turn) = &mut self.turn {
            turn.handle_data(sender, data, now);
        }
    }

    /// Handles a child's report. Returns whether it is on the turn under way.
    pub(super) fn handle_report(&mut self, from: NodeId, report: &Report, now: Instant) -> bool {
        let is_current = report.turn == self.turn_id;
        let Some(turn) = self.turn.as_mut().filter(|_| is_current) else { return false };
        turn.handle_report(from, report, now);
        true
    }

    /// Handles the MAC's report on the data packet filled last; `packet_time` is the mean airtime
    /// of one (T_p).
    pub(super) fn handle_tx_result(
        &mut self,
        scheme: &dyn Scheme,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Some(turn) = &mut self.turn {
            turn.handle_tx_result(result, packet_time, now);
        }

        // A scheme that lets its next hop pass each packet on keeps silent meanwhile.
        if let Some(wait) = scheme.child_wait() {
            self.rate_limiter.wait_for_child(wait, packet_time, now);
        }
    }

    /// Keeps the turn moving while somebody lacks its generation.
    pub(super) fn poll_if_stalled(&mut self, now: Instant) {
        let Some(turn) = &mut self.turn else { return };
        turn.poll_if_stalled(now);
        if turn.is_stuck(now) {
            // A higher number makes forwarders drop what they hold of the generation.
            self.turn_id = self.turn_id.next();
            turn.restart(self.me, now);
        }
    }

    /// Returns whether a data packet can be sent.
    pub(super) fn is_ready(&self, source: &FileSource, now: Instant) -> bool {
        let has_packet = self.turn.as_ref().is_none_or(|turn| turn.next_packet(now).is_some());
        now >= self.rate_limiter.hold_until()
            && source.may_send(Quorum::All, now)
            && has_packet
            && self.next_generation(source).is_some()
    }

    /// Returns the first time later than `after` at which it may send.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let held = Some(self.rate_limiter.hold_until()).filter(|at| *at > after);
        let turn = self.turn.as_ref().and_then(|turn| turn.poll_timeout(after));
        [held, turn].into_iter().flatten().min()
    }

    /// Appends a data packet. Begins a turn if none is under way. Returns `None` if there is
    /// nothing to send after all.
    pub(super) fn fill(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut FileSource,
        piggyback: Option<Piggyback>,
        scheme: &dyn Scheme,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        if self.turn.is_none() {
            self.begin_turn(cx, source, scheme)?;
        }

        let turn = self.turn.as_mut()?;
        let encoder = self.encoder.as_ref()?;
        let packet = turn.next_packet(cx.now)?;
        let plan = &turn.assignment.plan;
        self.rate_limiter.note_filled(plan);

        // The header lists the forwarders, so that they need no state of their own.
        let shape = encoder.shape();
        let header = DataHeader {
            flow: source.manifest.flow,
            turn: self.turn_id,
            generation: turn.assignment.generation,
            packets: shape.generation_size() as u8,
            routing: plan.routing.clone(),
            revision: turn.revision,
            poll: if let TurnPacket::Systematic(next) = packet { next.poll } else { None },
            piggyback,
        };

        header.write(packet != TurnPacket::Combination, out);

        let index = match packet {
            TurnPacket::Systematic(next) => Some(next.packet),
            TurnPacket::Combination => None,
        };

        write_packet(encoder, index, cx.rng, out)?;

        let is_native = matches!(packet, TurnPacket::Systematic(_));
        cx.counters.note_filled(if is_native { Payload::Native } else { Payload::Coded });
        let to = turn.note_sent(packet);
        source.packets_sent += 1;
        self.sent_at = cx.now;

        if scheme.switching() == Switching::RoundRobin && turn.is_used_up() {
            self.turn = None;
        }
        Some(Filled { kind: DATA, to })
    }

    /// Begins a turn on the next generation. Returns `None` if there is none, or it cannot be read.
    fn begin_turn(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut FileSource,
        scheme: &dyn Scheme,
    ) -> Option<()> {
        let assignment = self.next_assignment(cx, source, scheme)?;
        let generation = assignment.generation;
        self.encoder = Some(source.encoder(cx, generation, self.encoder.take())?);

        let packets = source.manifest.geometry.packets(generation);
        let is_first_turn = self.sent_once.insert(generation);
        let sending = match scheme.forwarding() {
            Forwarding::HopByHop(cast) => {
                let arq = Arq::new(assignment.plan.routing.children(cx.me), packets, cx.now);
                Sending::HopByHop { cast, arq, on_air: None }
            }

            // Packets as they are spare receivers the decoding, and are as innovative as any in the
            // first turn. In later turns a random combination is more likely to be.
            Forwarding::Ordered | Forwarding::Belts => {
                Sending::Coded { next_systematic: if is_first_turn { 0 } else { packets } }
            }
        };

        self.turn_id = self.turn_id.next();
        self.last_generation = Some(generation);
        self.forwarders.extend(assignment.plan.routing.forwarders());
        self.turn = Some(GenerationTurn::new(assignment, packets, sending, cx.now));
        Some(())
    }
}
