//! Flows of packets through tunnels.
//!
//! The gateways tell each packet that a host offers and each that arrives. A packet is recognised
//! by its hash, so that its delay is known whatever the scheme did to it meanwhile.

use crate::experiment::addresses;
use crate::host::Host;
use crate::observe::Snapshot;
use crate::scenario::Scenario;
use crate::simulation::node_id;
use ncmesh_console::schema::{Count, EventKind, FlowState, delay, share};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Time after which a packet that has not arrived is taken for lost.
const LOST: Duration = Duration::from_secs(20);

/// Looks over which the share of coded frames is taken: a second.
const LOOKS: usize = 10;

/// Flows of a run, in the scenario's order.
pub(super) struct Flows {
    scheme: &'static str,
    flows: Vec<Flow>,
    /// Place of each flow by the addresses of its hosts, source and destination.
    places: BTreeMap<[Ipv4Addr; 2], usize>,
    /// When packets on their way were offered, by hash, and the same in the order of time.
    on_way: BTreeMap<u64, Instant>,
    order: VecDeque<(Instant, u64)>,
    /// Data frames sent and coded by all nodes, at the latest looks.
    coded: VecDeque<(u64, u64)>,
    /// Reasons that nodes gave for coding nothing for a neighbour.
    stopped: BTreeSet<(usize, String)>,
    names: Vec<String>,
}

/// A flow.
struct Flow {
    from: usize,
    to: usize,
    state: FlowState,
    /// Sum of the delays of the packets that arrived since the last look, and their number.
    delays: (Duration, u32),
    /// Packet that was offered last.
    latest: Vec<u8>,
}

impl Flows {
    pub(super) fn new(scenario: &Scenario, scheme: &'static str) -> Self {
        let flows = scenario.flows.iter().map(|flow| Flow {
            from: flow.from,
            to: flow.to,
            state: FlowState {
                scheme: scheme.to_owned(),
                offered: Some(Count(0)),
                delivered: Some(Count(0)),
                bits: Some(Count(0)),
                ..FlowState::default()
            },
            delays: (Duration::ZERO, 0),
            latest: Vec::new(),
        });
        let flows: Vec<Flow> = flows.collect();
        Self {
            scheme,
            places: (0..flows.len()).map(|flow| (addresses(flow as u32), flow)).collect(),
            flows,
            on_way: BTreeMap::new(),
            order: VecDeque::new(),
            coded: VecDeque::new(),
            stopped: BTreeSet::new(),
            names: scenario.nodes.iter().map(|node| node.name.clone()).collect(),
        }
    }

    /// Notes a packet that a host passes to its gateway.
    pub(super) fn offered(&mut self, packet: &[u8], at: Instant) {
        let Some(flow) = self.flow_of(packet) else { return };
        let flow = &mut self.flows[flow];
        add(&mut flow.state.offered, 1);
        packet.clone_into(&mut flow.latest);
        let hash = hash(packet);
        self.on_way.insert(hash, at);
        self.order.push_back((at, hash));
    }

    /// Notes a packet that a gateway handed to its host.
    pub(super) fn arrived(&mut self, packet: &[u8], at: Instant) {
        let Some(flow) = self.flow_of(packet) else { return };
        let offered = self.on_way.remove(&hash(packet));
        let flow = &mut self.flows[flow];
        add(&mut flow.state.delivered, 1);
        add(&mut flow.state.bits, packet.len() as u64 * 8);
        if let Some(offered) = offered {
            flow.delays.0 += at.since(offered);
            flow.delays.1 += 1;
        }
    }

    /// Returns the flow that a packet belongs to, by its addresses (RFC 791, 3.1). Packets of TCP
    /// in the other direction belong to none.
    fn flow_of(&self, packet: &[u8]) -> Option<usize> {
        let address = |at: usize| {
            let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(bytes))
        };
        self.places.get(&[address(12)?, address(16)?]).copied()
    }

    /// Returns the state of all flows.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot<'_>,
        events: &mut Vec<(usize, EventKind)>,
    ) -> Vec<FlowState> {
        // A packet under way for so long counts as lost. Otherwise each loss would stay listed.
        let is_lost = |at: Instant| snapshot.at.since(at) > LOST;
        while let Some((at, hash)) = self.order.front().copied().filter(|(at, _)| is_lost(*at)) {
            self.order.pop_front();
            if self.on_way.get(&hash) == Some(&at) {
                self.on_way.remove(&hash);
            }
        }

        let (coded_share, why) = self.look_at_coding(snapshot, events);
        for flow in &mut self.flows {
            let (sum, packets) = std::mem::take(&mut flow.delays);
            if packets > 0 {
                let mean = sum.as_secs_f64() / f64::from(packets);
                flow.state.delay_s = Some(delay(mean));
            }
            flow.state.queue = Some(waiting(&snapshot.hosts[flow.from], self.scheme, flow));
            flow.state.coded_share = coded_share;
            why.clone_into(&mut flow.state.why);
        }

        self.flows.iter().map(|flow| flow.state.clone()).collect()
    }

    /// Returns the share of coded frames in the latest second, and why packets are not coded. Notes
    /// neighbours for which a node stopped to code.
    fn look_at_coding(
        &mut self,
        snapshot: &Snapshot<'_>,
        events: &mut Vec<(usize, EventKind)>,
    ) -> (Option<f64>, String) {
        let mut now = (0, 0);
        let mut codes = false;
        let mut reasons = BTreeSet::new();
        let mut stopped = BTreeSet::new();

        // Neighbours may share a reason, and a hint is due only for a neighbour that is new to it.
        for (node, host) in snapshot.hosts.iter().enumerate() {
            let statuses = host.stack().map(Stack::coding).into_iter().flatten();
            for (_, status) in statuses.filter(|(scheme, _)| *scheme == self.scheme) {
                codes = true;
                now.0 += status.sent;
                now.1 += status.coded;
                let name = &self.names[node];
                reasons.extend(status.why_not.iter().map(|why| format!("{name}: {why}")));
                let other = |id: NodeId| self.names.get(usize::from(id.0.saturating_sub(1)));
                stopped.extend(status.stopped.iter().map(|(neighbour, why)| {
                    let other = other(*neighbour).map_or("a neighbour", String::as_str);
                    (node, format!("codes nothing for {other}, which {why}"))
                }));
            }
        }

        for (node, text) in stopped.difference(&self.stopped) {
            events.push((*node, EventKind::Hint { text: text.clone() }));
        }
        self.stopped = stopped;

        // Counters fall when a node is started again; then there is no share for a second.
        self.coded.push_back(now);
        if self.coded.len() > LOOKS + 1 {
            self.coded.pop_front();
        }
        let (sent, coded) = self.coded.front().copied().unwrap_or_default();
        let sent = now.0.checked_sub(sent).filter(|sent| codes && *sent > 0);
        let coded = now.1.checked_sub(coded);
        let latest = sent.zip(coded).map(|(sent, coded)| share(coded as f64 / sent as f64));
        let why = if latest.is_some_and(|share| share > 0.0) { BTreeSet::new() } else { reasons };
        (latest, why.into_iter().collect::<Vec<_>>().join("; "))
    }
}

/// Returns how many packets of a flow wait at its source: in the gateway and in the scheme.
fn waiting(host: &Host, scheme: &str, flow: &Flow) -> u64 {
    let gateway = host.gateway.as_ref().map_or(0, |g| g.waiting_like(&flow.latest) as u64);
    let source = node_id(flow.from);
    let destination = node_id(flow.to);
    let flows = host.stack().map(Stack::flows).into_iter().flatten();
    let own = flows.filter(|(name, status)| {
        *name == scheme && status.source == source && status.destination == destination
    });
    let queued: u64 = own.map(|(_, status)| status.credits).sum();
    gateway + queued
}

/// Adds to a counter of what happened so far.
fn add(counter: &mut Option<Count>, more: u64) {
    counter.get_or_insert_default().0 += more;
}

/// Returns a hash of a packet.
fn hash(packet: &[u8]) -> u64 {
    let hash = blake3::hash(packet);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_be_bytes(first)
}
