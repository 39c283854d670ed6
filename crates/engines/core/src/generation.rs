//! One generation of a flow at one node: its packets, and what is yet to be done for it.
//!
//! ```text
//!            feedback "next generation"          previous hop is told
//!   Open ----------------------------> Decoded ----------------------> Released
//! ```
//!
//! While it is `Open`, packets of it are received and sent. It is `Decoded` when the next hop
//! reports that the destination has it. A relay may keep it in that stage for a while, to
//! synchronise it with the generation that it was combined with (section 6.1).
//!
//! The coder is the toolkit's. Stages, counts and answers are this engine's own: CORE releases a
//! generation when the destination's answer has come back hop by hop, while `cascade` and `braid`
//! go by the rank that each next hop tells.

use crate::combined::{CombinedGenerations, Packet};
use crate::copy_filter::CopyFilter;
use crate::frame::{FeedbackFrame, GenerationHeader, Request, UNKNOWN};
use crate::parameters::Parameters;
use crate::sending::Sending;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::Coder;
use ncmesh_engine::tunnel::RelayMode;
use rand_core::RngCore;
use std::collections::VecDeque;

/// Most packets that are queued to be forwarded as they came.
const MAX_QUEUED: usize = 512;

/// Stage of a generation, see the diagram above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The destination lacks packets, as far as known here.
    Open,
    /// The next hop reported that the destination has it.
    Decoded {
        /// When it did.
        at: Instant,
    },
    /// The previous hop was told so.
    Released,
}

/// Part of a generation that a node has, and that it is to send.
#[derive(Debug)]
pub(crate) struct Generation {
    /// As last heard. The source may have added packets since.
    pub header: GenerationHeader,
    pub stage: Stage,
    pub sending: Sending,
    /// Combined packets of it that could not be taken apart yet.
    pub combined: CombinedGenerations,
    /// Answer of the next hop, for a relay that leaves requests to the source.
    pub forwarded_feedback: Option<FeedbackFrame>,
    pub count_filter: CopyFilter,
    pub feedback_filter: CopyFilter,
    pub begun_at: Instant,
    /// When an innovative packet last came.
    pub innovative_at: Instant,
    /// How this node relays it. Fixed at its beginning, so that no node waits for an answer that
    /// another kind of relay would have given.
    relay: RelayMode,
    coder: Coder,
    /// Packets to be forwarded as they came.
    queue: VecDeque<Packet>,
}

impl Generation {
    /// Returns a generation without packets; `None` if a size is out of range. `decodes` says
    /// whether single packets are taken out of it here.
    pub(crate) fn new(
        header: GenerationHeader,
        decodes: bool,
        relay: RelayMode,
        now: Instant,
    ) -> Option<Self> {
        Some(Self {
            coder: Coder::new(header.generation_size, usize::from(header.symbol_size), decodes)?,
            header,
            stage: Stage::Open,
            sending: Sending::new(now),
            combined: CombinedGenerations::default(),
            forwarded_feedback: None,
            count_filter: CopyFilter::default(),
            feedback_filter: CopyFilter::default(),
            begun_at: now,
            innovative_at: now,
            relay,
            queue: VecDeque::new(),
        })
    }

    // ---- receiving

    /// Takes over what a frame says of the generation. Returns whether it has the same shape.
    pub(crate) fn update_header(&mut self, header: &GenerationHeader) -> bool {
        // Coding vectors and payloads of another shape cannot belong to the same generation.
        let known = &mut self.header;
        if (known.generation_size, known.symbol_size)
            != (header.generation_size, header.symbol_size)
        {
            return false;
        }

        // Frames may overtake each other, so the count only grows.
        known.count = known.count.max(header.count);
        known.closed |= header.closed;
        known.older_open = header.older_open;
        true
    }

    /// Takes in a packet. Returns whether it was innovative, or `None` if it has another shape.
    pub(crate) fn absorb(&mut self, (vector, payload): &Packet, now: Instant) -> Option<bool> {
        let innovative = self.coder.absorb(vector, payload)?;
        if innovative {
            self.innovative_at = now;
        }
        Some(innovative)
    }

    // ---- state

    /// Returns the number of innovative packets received.
    pub(crate) fn rank(&self) -> usize {
        self.coder.rank()
    }

    /// Returns the packets received.
    pub(crate) fn coder(&self) -> &Coder {
        &self.coder
    }

    /// Returns whether packets are received and sent.
    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Returns whether all its packets are here and the source adds no more.
    pub(crate) fn has_full_rank(&self) -> bool {
        self.header.closed && self.rank() >= usize::from(self.header.count)
    }

    /// Returns whether packets are forwarded as they came (non-recoding relay, section 4).
    pub(crate) fn forwards_verbatim(&self) -> bool {
        self.relay == RelayMode::NonRecoding
    }

    /// Returns whether this node, as a relay, stops the previous hop and answers requests itself
    /// (CORE relay, section 4).
    pub(crate) fn answers_requests(&self) -> bool {
        self.relay == RelayMode::Core
    }

    /// Returns the packet at this position, if it is decoded.
    pub(crate) fn packet(&mut self, position: u8) -> Option<Vec<u8>> {
        self.coder.packet(position)
    }

    // ---- sending

    /// Queues a packet to be forwarded as it is, which is worth one credit. Returns whether there
    /// was room for it.
    pub(crate) fn enqueue(&mut self, packet: Packet, now: Instant) -> bool {
        if self.queue.len() >= MAX_QUEUED {
            return false;
        }
        self.queue.push_back(packet);
        self.sending.earn(1.0, now);
        true
    }

    /// Queues packets again, by their numbers, as far as this node knows them.
    pub(crate) fn enqueue_again(&mut self, numbers: &[u8], now: Instant) {
        for number in numbers {
            if let Some(symbol) = self.coder.symbol(*number).map(<[u8]>::to_vec) {
                let vector = unit_vector(self.header.generation_size, *number);
                self.enqueue((vector, symbol), now);
            }
        }
    }

    /// Returns whether it has packets to send, with or without credit.
    pub(crate) fn has_packets(&self) -> bool {
        if self.forwards_verbatim() { !self.queue.is_empty() } else { self.rank() > 0 }
    }

    /// Returns whether it has packets to send, and credit for one. A queued packet is a credit.
    pub(crate) fn has_credit(&self) -> bool {
        self.has_packets() && (self.forwards_verbatim() || self.sending.credits.has_credit())
    }

    /// Returns how many packets are to be sent yet, as far as known.
    pub(crate) fn backlog(&self) -> u64 {
        if self.forwards_verbatim() {
            self.queue.len() as u64
        } else {
            self.sending.credits.alone() as u64
        }
    }

    /// Takes the packet that goes on the air now.
    pub(crate) fn next_packet(&mut self, rng: &mut impl RngCore) -> Option<Packet> {
        if self.forwards_verbatim() { self.queue.pop_front() } else { self.coder.combine(rng) }
    }

    // ---- feedback

    /// Returns the feedback for the previous hop on a generation that is open. A relay that does
    /// not answer requests itself repeats what the next hop said; that is `None` if it said nothing
    /// yet.
    pub(crate) fn feedback(
        &mut self,
        parameters: &Parameters,
        is_destination: bool,
    ) -> Option<FeedbackFrame> {
        if !is_destination && !self.answers_requests() {
            return self.forwarded_feedback.clone();
        }

        let request = match self.has_full_rank() {
            true if is_destination => Request::NextGeneration,
            true => Request::Stop,
            false => Request::More,
        };

        // Where packets go as they are, only exactly the missing ones help (NACK, table 3).
        let by_number = request == Request::More && !parameters.codes_within_flows;
        let most = if by_number { parameters.max_missing } else { 0 };
        let missing = usize::from(self.header.count).saturating_sub(self.rank()) as u8;

        // Combined packets first have to tell what is unknown of the other generation.
        let unknown = self.combined.unknown().map_or(UNKNOWN, |unknown| unknown as u8);
        Some(FeedbackFrame {
            id: self.header.id,
            to: self.header.id.flow.source,
            number: 0,
            request,
            missing_alone: missing,
            missing_combined: missing.saturating_add(unknown),
            progress: (self.rank() as u16).saturating_add(self.sending.polling.progress()),
            missing_numbers: self.missing_numbers(most),
            links: Vec::new(),
        })
    }

    /// Returns the numbers of the first packets that are missing, at most `most`.
    fn missing_numbers(&mut self, most: u8) -> Vec<u8> {
        let coder = &mut self.coder;
        let missing = (0..self.header.count).filter(|number| coder.symbol(*number).is_none());
        missing.take(usize::from(most)).collect()
    }
}

/// Returns the coding vector of a packet that is not combined with others.
pub(crate) fn unit_vector(generation_size: u8, position: u8) -> Vec<u8> {
    let mut vector = vec![0; usize::from(generation_size)];
    vector[usize::from(position)] = 1;
    vector
}
