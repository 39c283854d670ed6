//! The engine at one node, shared by CORE and its baseline.
//!
//! | file | content |
//! | --- | --- |
//! | `receive` | data frames: packets of one flow and combined ones, for this node and for others |
//! | `feedback` | count and feedback frames |
//! | `transmit` | what is sent, and when |
//! | `upkeep` | what falls due with time, and what follows from any change |

mod feedback;
mod receive;
mod transmit;
mod upkeep;

use crate::config::CoreConfig;
use crate::feedback_queue::FeedbackQueue;
use crate::flow::{Flow, FlowKey, Role};
use crate::flow_table::FlowTable;
use crate::frame::{COUNT, DataFrame, FEEDBACK, GenerationId, RELAYED, RelayedFeedback};
use crate::generation::Generation;
use crate::link_meter::LinkMeter;
use crate::overheard::Overheard;
use crate::parameters::Parameters;
use crate::regions::CodingRegions;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::{PREFIX, generation_with_room};
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::hop::passing::{Passing, outcome, way};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::{CodingStatus, DATA, FlowStatus, PacketError, Relaying, check_packet};
use ncmesh_engine::{
    Class, Context, Engine, Filled, Frame, Offer, TunnelEngine, TxReport, TxResult,
};
use ncmesh_wire::{NodeId, ServiceId};

/// Result of handling a frame: why it is dropped, if it is.
type Handled = Result<(), DropReason>;

/// Ways of feedback are shortest by the ETX of unicast, which it goes by.
const FEEDBACK_METRIC: Metric = Metric::Answered;

/// Names feedback that is passed on: its generation, who says so, and who is answered.
type PassingKey = (GenerationId, NodeId, NodeId);

/// CORE, or its baseline, at one node.
pub struct Core {
    pub(crate) id: ServiceId,
    parameters: Parameters,
    pub(crate) flows: FlowTable,
    pub(crate) overheard: Overheard,
    meter: LinkMeter,
    regions: CodingRegions,
    /// Whether something changed that `regions` depends on.
    regions_outdated: bool,
    feedback: FeedbackQueue,
    /// Feedback of other nodes that this one passes on, and what the MAC has of it.
    passing: Passing<PassingKey, RelayedFeedback>,
    passing_on_air: Option<PassingKey>,
    /// Number of this node's last poll or feedback.
    last_number: u16,
    /// Serial of this node's last data frame.
    last_serial: u16,
    /// Flows that began here.
    flows_begun: u32,
    /// Whether the MAC contends for the channel and does not know who receives a broadcast, as that
    /// of Wi-Fi. A slotted one knows.
    contends: bool,
    /// Version of the topology that next hops were taken from.
    topology_version: u64,
    flow_counters: FlowCounters,
    coding_status: CodingStatus,
}

impl Core {
    /// Returns CORE with these settings.
    #[must_use]
    pub fn new(config: &CoreConfig) -> Self {
        Self::with_parameters(crate::ID, config.parameters())
    }

    pub(crate) fn with_parameters(id: ServiceId, parameters: Parameters) -> Self {
        Self {
            id,
            parameters,
            flows: FlowTable::default(),
            overheard: Overheard::default(),
            meter: LinkMeter::default(),
            regions: CodingRegions::default(),
            regions_outdated: false,
            feedback: FeedbackQueue::default(),
            passing: Passing::default(),
            passing_on_air: None,
            last_number: 0,
            last_serial: 0,
            flows_begun: 0,
            contends: false,
            topology_version: 0,
            flow_counters: FlowCounters::default(),
            coding_status: CodingStatus::default(),
        }
    }

    /// Returns the longest symbol of this node's own flows, bytes. Frames have room for two coding
    /// vectors beside it, as a relay may add another flow's.
    fn symbol_size(&self, mtu: usize) -> usize {
        let overhead = DataFrame::overhead(self.parameters.generation_size);
        mtu.saturating_sub(overhead).min(usize::from(u16::MAX))
    }

    /// Queues feedback on a generation for the previous hop. `again` says that the previous hop
    /// polled before and heard no answer.
    fn queue_feedback(&mut self, id: GenerationId, again: bool, cx: &mut Context<'_>) {
        let number = self.next_number();
        if !self.feedback.push(id, number, again) {
            cx.counters.drop(DropReason::Full);
        }
    }

    fn next_number(&mut self) -> u16 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }
}

impl Engine for Core {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.id
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let handled = match frame.kind {
            DATA => self.handle_data(cx, frame),
            COUNT => self.handle_count(cx, frame),
            FEEDBACK => self.handle_feedback(cx, frame),
            RELAYED => self.handle_relayed(cx, frame),
            _ => Err(DropReason::Malformed),
        };

        if let Err(reason) = handled {
            cx.counters.drop(reason);
        }

        // A dropped frame may have changed measured links or finished generations, too.
        self.update(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.update(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.next_timeout(after)
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let has_feedback = !self.feedback.is_empty() || self.passing.due(now).is_some();
        if has_feedback || self.due_poll(now).is_some() {
            return Some(Offer::of(Class::Control));
        }
        self.choose(now).map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // Reports from now on concern the frame that is filled here.
        self.feedback.clear_on_air();
        self.passing_on_air = None;

        // A frame may turn out to be impossible after a part of it was written.
        let begin = out.len();
        let filled = self
            .fill_feedback(cx, out)
            .or_else(|| self.fill_relayed(cx, out))
            .or_else(|| self.fill_count(cx, out))
            .or_else(|| self.fill_data(cx, out));
        if filled.is_none() {
            out.truncate(begin);
        }
        filled
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        self.contends = report.heard_by.is_none();
        if let Some(key) = self.passing_on_air.take() {
            let next_hop = way(cx.topology, cx.me, key.2, FEEDBACK_METRIC);
            let result = outcome(cx.topology, cx.me, next_hop, report.result);
            self.passing.handle_tx_result(key, result, cx.now);
        }

        let failed = report.result == TxResult::Failed;
        self.feedback.handle_report(failed, self.parameters.max_polls);
    }
}

impl TunnelEngine for Core {
    fn longest(&self, mtu: usize) -> usize {
        self.symbol_size(mtu).saturating_sub(PREFIX)
    }

    fn make_room(&mut self, mtu: usize, packet: usize) {
        let generation = &mut self.parameters.generation_size;
        *generation = generation_with_room(*generation, mtu, packet, DataFrame::overhead);
    }

    fn can_send(&self, to: NodeId) -> bool {
        // Only the flow that begins here has a queue for this destination.
        let ingress = self.flows.iter().find_map(|flow| match &flow.role {
            Role::Source(ingress) if flow.instance.destination == to => Some(ingress),
            _ => None,
        });
        ingress.is_none_or(|ingress| ingress.has_space(&self.parameters))
    }

    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        check_packet(cx.me, to, packet, self.longest(cx.mtu))?;
        if !self.can_send(to) {
            return Err(PacketError::Full);
        }

        // The first packet begins the flow. Its symbols keep the length that fits frames now.
        let key: FlowKey = (cx.me, to);
        if self.flows.between(&key).is_none() {
            let next_hop = cx.topology.next_hop(cx.me, to, Metric::Broadcast);
            let next_hop = next_hop.ok_or(PacketError::NoPath(to))?;
            self.flows_begun += 1;
            let instance = FlowInstance::new(cx, to, self.flows_begun);
            let symbol_size = self.symbol_size(cx.mtu) as u16;
            self.flows.insert(Flow::outgoing(instance, symbol_size, next_hop, cx.now));
            self.flow_counters.begin(cx.me, to);
        }

        // The queue empties into generations in `update`, as far as the window allows.
        if let Some(flow) = self.flows.between_mut(&key) {
            flow.last_sent = cx.now;
            if let Role::Source(ingress) = &mut flow.role {
                ingress.push(packet.to_vec());
            }
        }

        self.update(cx);
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.flow_counters.statuses(|source, destination| {
            let Some(flow) = self.flows.between(&(source, destination)) else { return 0 };
            let queued = match &flow.role {
                Role::Source(ingress) => ingress.len() as u64,
                Role::Relay | Role::Destination(_) => 0,
            };

            queued + flow.generations.values().map(Generation::backlog).sum::<u64>()
        })
    }

    fn coding(&self, _: Instant) -> Option<CodingStatus> {
        let relay = self.parameters.codes_within_flows.then_some(self.parameters.relay);
        let relaying = Relaying { relay, coding: Some(self.parameters.combines_flows) };
        let stopped = self.regions.declined();
        Some(CodingStatus { stopped, relaying, ..self.coding_status.clone() })
    }

    fn relay_as(&mut self, cx: &mut Context<'_>, change: Relaying) {
        // The baseline knows one kind of relay only.
        let parameters = &mut self.parameters;
        if parameters.codes_within_flows {
            parameters.relay = change.relay.unwrap_or(parameters.relay);
        }
        parameters.combines_flows = change.coding.unwrap_or(parameters.combines_flows);
        self.regions_outdated = true;
        self.update(cx);
    }
}
