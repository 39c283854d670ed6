//! Where packets enter a flow: the source's queue, and how packets become symbols of generations.

use crate::frame::{GenerationHeader, GenerationId};
use crate::generation::{Generation, unit_vector};
use crate::parameters::Parameters;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::symbol_of;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::RelayMode;
use std::collections::VecDeque;

/// State that only the source of a flow has.
#[derive(Debug)]
pub(crate) struct Ingress {
    /// Packets that wait for a generation.
    queue: VecDeque<Vec<u8>>,
    next_generation: u32,
    /// Length of a symbol, bytes.
    symbol_size: u16,
}

impl Ingress {
    pub(crate) fn new(symbol_size: u16) -> Self {
        Self { queue: VecDeque::new(), next_generation: 0, symbol_size }
    }

    /// Returns whether the queue takes another packet.
    pub(crate) fn has_space(&self, parameters: &Parameters) -> bool {
        self.queue.len() < parameters.queue
    }

    /// Queues a packet.
    pub(crate) fn push(&mut self, packet: Vec<u8>) {
        self.queue.push_back(packet);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of the next generation.
    pub(crate) fn next_generation(&self) -> u32 {
        self.next_generation
    }

    /// Begins the next generation; `None` if a size is out of range.
    pub(crate) fn begin_generation(
        &mut self,
        flow: FlowInstance,
        parameters: &Parameters,
        now: Instant,
    ) -> Option<Generation> {
        let header = GenerationHeader {
            id: GenerationId { flow, number: self.next_generation },
            older_open: 0,
            generation_size: parameters.generation_size,
            count: 0,
            closed: false,
            symbol_size: self.symbol_size,
        };

        self.next_generation = self.next_generation.wrapping_add(1);

        // A source sends combinations, or packets as they are; it is no relay of its own flow.
        let coded = parameters.codes_within_flows;
        let relay = if coded { RelayMode::Core } else { RelayMode::NonRecoding };
        Generation::new(header, !coded, relay, now)
    }

    /// Moves the oldest packet from the queue into an open generation, where it earns `credit`.
    /// Returns `None` if there is none, or it does not fit.
    pub(crate) fn move_packet(
        &mut self,
        generation: &mut Generation,
        parameters: &Parameters,
        credit: f64,
        now: Instant,
    ) -> Option<()> {
        let packet = self.queue.pop_front()?;
        let vector = unit_vector(parameters.generation_size, generation.header.count);
        let symbol = (vector, symbol_of(&packet, usize::from(self.symbol_size)));
        generation.absorb(&symbol, now)?;

        // Section 6.3.1: a coded symbol earns C = x / r, a packet that goes as it is one credit.
        if parameters.codes_within_flows {
            generation.sending.earn(credit, now);
        } else {
            generation.enqueue(symbol, now);
        }

        let header = &mut generation.header;
        header.count += 1;
        header.closed = header.count >= parameters.generation_size;
        Some(())
    }
}
