//! How the source fills data packets: begins a turn, reads and checks its batch, codes.

use super::FileSource;
use super::state::CloseReason;
use super::turn::{BatchTurn, Sending, TurnPacket};
use crate::multicast::arq::Arq;
use crate::multicast::frame::{self, DataHeader, Piggyback, append_coding};
use crate::multicast::routing::Forwarding;
use crate::multicast::scheme::{Scheme, Switching};
use ncmesh_code::{Encoder, draw};
use ncmesh_engine::counters::Payload;
use ncmesh_engine::file::{SendFailure, merkle};
use ncmesh_engine::storage::StorageError;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::{Context, Event, Filled};
use rand_core::RngCore;

/// Most batches that are kept ready to code: those that children are about to finish, and those
/// that others are on already.
const MAX_ENCODERS: usize = 8;
/// Pauses between attempts to read a file that cannot be read for now.
const REREAD_PAUSES: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };

/// Why a batch cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadError {
    /// It cannot be read for now.
    Later,
    /// The file cannot be sent any more.
    Failed(SendFailure),
}

impl FileSource {
    /// Appends a data packet. Begins a turn if none is under way. Returns `None` if there is
    /// nothing to send after all.
    pub(in crate::multicast) fn fill(
        &mut self,
        cx: &mut Context<'_>,
        piggyback: Option<Piggyback>,
        scheme: &dyn Scheme,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        if self.turn.is_none() {
            self.begin_turn(cx, scheme)?;
        }
        let turn = self.turn.as_mut()?;
        let encoder = self.encoder.as_ref()?;
        let packet = turn.next_packet(cx.now)?;
        let plan = &turn.assignment.plan;
        self.rate_limiter.note_filled(plan);

        // The header lists the forwarders, so that they need no state of their own.
        let shape = encoder.shape();
        let header = DataHeader {
            flow: self.manifest.flow,
            turn: self.turn_id,
            batch: turn.assignment.batch,
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
        self.packets_sent += 1;
        self.sent_at = cx.now;
        if scheme.switching() == Switching::RoundRobin && turn.is_used_up() {
            self.turn = None;
        }
        Some(Filled { kind: frame::DATA, to })
    }

    /// Begins a turn on the next batch. Returns `None` if there is none, or it cannot be read.
    fn begin_turn(&mut self, cx: &mut Context<'_>, scheme: &dyn Scheme) -> Option<()> {
        let assignment = self.next_assignment(cx, scheme)?;
        let batch = assignment.batch;
        if let Err(e) = self.load(batch, cx) {
            self.handle_load_error(e, cx);
            return None;
        }

        let packets = self.manifest.geometry.packets(batch);
        let is_first_turn = self.sent_once.insert(batch);
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
        self.last_batch = Some(batch);
        self.forwarders.extend(assignment.plan.routing.forwarders());
        self.turn = Some(BatchTurn::new(assignment, packets, sending, cx.now));
        Some(())
    }

    /// Appends coding vector and payload of a packet of `batch`: the one of this index as it is, or
    /// a random combination. Returns `None` if the batch cannot be read.
    pub(in crate::multicast) fn encode(
        &mut self,
        cx: &mut Context<'_>,
        batch: u32,
        systematic: Option<u8>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        if !self.encoders.contains_key(&batch) {
            // The encoder that is used anew is that of the lowest batch, which is done first.
            if self.encoders.len() >= MAX_ENCODERS {
                self.encoder = self.encoders.pop_first().map(|(_, encoder)| encoder);
            }
            if let Err(e) = self.load(batch, cx) {
                self.handle_load_error(e, cx);
                return None;
            }
            self.encoders.insert(batch, self.encoder.take()?);
        }
        write_packet(self.encoders.get(&batch)?, systematic, cx.rng, out)?;
        self.packets_sent += 1;
        self.sent_at = cx.now;
        Some(())
    }

    /// Ends the transfer, or reads again later what may be readable then.
    fn handle_load_error(&mut self, e: LoadError, cx: &mut Context<'_>) {
        match e {
            LoadError::Later => {
                self.reread_at = cx.now + REREAD_PAUSES.pause(self.read_failures);
                self.read_failures = self.read_failures.saturating_add(1);
            }
            LoadError::Failed(failure) => {
                self.close(CloseReason::Failed(failure), cx.now);
                cx.events.push_back(Event::SendFailed(self.manifest.flow, failure));
            }
        }
    }

    /// Reads a batch into the encoder. Fails if it is not what was announced: receivers would find
    /// it forged, again and again.
    fn load(&mut self, batch: u32, cx: &mut Context<'_>) -> Result<(), LoadError> {
        let g = self.manifest.geometry;
        self.scratch.resize(g.data_len(batch), 0);
        cx.storage.read(self.manifest.flow, g.offset(batch), &mut self.scratch).map_err(
            |e| match e {
                StorageError::Busy => LoadError::Later,
                _ => LoadError::Failed(SendFailure::Unreadable),
            },
        )?;
        self.read_failures = 0;
        if self.tree.leaf(batch) != Some(&merkle::leaf(&self.scratch)) {
            return Err(LoadError::Failed(SendFailure::Changed));
        }

        // The batch proves itself: its branch of the hash tree travels with it.
        self.tree.write_branch(batch, &mut self.scratch);
        let shape = g.shape(batch);
        if self.encoder.as_ref().is_none_or(|encoder| encoder.shape() != shape) {
            self.encoder = Some(Encoder::new(shape));
        }
        let unreadable = LoadError::Failed(SendFailure::Unreadable);
        let encoder = self.encoder.as_mut().ok_or(unreadable)?;
        encoder.load(&self.scratch).map_err(|_| LoadError::Failed(SendFailure::Changed))
    }
}

/// Appends coding vector and payload: the packet of this index as it is, or a fresh combination of
/// all.
fn write_packet(
    encoder: &Encoder,
    index: Option<u8>,
    rng: &mut impl RngCore,
    out: &mut Vec<u8>,
) -> Option<()> {
    if let Some(index) = index {
        let symbol = encoder.symbol(usize::from(index))?;
        out.push(index);
        out.extend_from_slice(symbol);
        return Some(());
    }
    let (coefficients, payload) = append_coding(encoder.shape(), out);
    draw(encoder.shape().field(), rng, coefficients);
    encoder.encode(coefficients, payload).ok()
}
