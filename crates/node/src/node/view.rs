//! How the node shows itself to people and programs.

use super::inbox::{SOURCE_GONE, is_source_gone};
use super::names::name_of;
use super::{Node, coding, graph, metrics, monitoring, path, ports};
use crate::api::answers::Path;
use crate::api::types::ApiError;
use crate::api::types::{Direction, Flow, Identity, JoinedGroup, Peer, Receiver};
use crate::api::types::{State, Status, Stream, Traffic, Transfer};
use crate::state::to_hex;
use ncmesh_console::schema::{FlowValues, NodeValues, PeerValues, Position, ReceivedValues};
use ncmesh_engine::Background;
use ncmesh_engine::blame::Liar;
use ncmesh_engine::counters::{DropReason, Tally};
use ncmesh_engine::file::{self, ReceiverState, ReceiverStatus, Refusal, Stage, TransferStatus};
use ncmesh_engine::name::harmless_file_name;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{LEAST_FRAME, Metric, Paths};
use ncmesh_engine::tunnel::FlowStatus;
use ncmesh_engines::registry;
use ncmesh_host::console::{received_values, source_values};
use ncmesh_stack::{Stack, control};
use ncmesh_wire::{NodeId, ServiceId, Versions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Hint, and log entry, that frames are written in the name of this node.
pub(super) const IMPERSONATED: &str = "somebody who has this network's key sends frames or \
     announces files in this node's name; this node answers each time; if it was not copied while \
     it ran, give all your nodes a new key";
/// Most damaged entries that hints name.
const MAX_DAMAGED: usize = 8;

impl Node {
    /// `GET /v1/status`.
    #[must_use]
    pub fn status(&self) -> Status {
        let counters = self.stack.counters();
        let others = self.stack.topology().nodes().filter(|node| *node != self.id());
        let transfers = self.stack.transfers();

        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            id: self.id().0,
            name: self.stack.name().into(),
            display_name: self.configuration.display_name.clone(),
            epoch: self.stack.epoch(),
            wire_version: self.stack.shared_version(),
            strangers: self.stack.strangers().map(|(id, version)| (id.0, version)).collect(),
            duplicates: self.stack.duplicates().map(|id| id.0).collect(),
            somebody_sends_as_this_node: self.stack.is_impersonated(),
            liars: self.stack.liars().map(|liar| liar.node.0).collect(),
            identity: self.identity(),
            radio: self.ports.description(),
            mtu: self.configuration.mtu(),
            ports: self.ports.states(&self.stack),
            inbox: self.inbox().cloned(),
            values: NodeValues {
                uptime_s: self.clock.now().as_secs_f64(),
                neighbors: self.stack.inbound().count() as u64,
                nodes: others.count() as u64,
                transfers_open: transfers.iter().filter(|t| !has_ended(t)).count() as u64,
            },
            kept: self.inbox.kept_parts(),
            hooks: self.hooks.counts,
            usage: self.stack.usage(),
            sent: counters.all_sent().map(|((id, kind), tally)| traffic(id, kind, tally)).collect(),
            heard: counters
                .all_heard()
                .map(|((id, kind), tally)| traffic(id, kind, tally))
                .collect(),
            drops: counters.drops().map(|(why, n)| (why.name().into(), n)).collect(),
            tunnel: self.tunnel.as_ref().map(|tunnel| tunnel.status(&self.stack)),
            flows: self.flows(),
            streams: self.streams(),
            coding: coding::coding(&self.stack),
            hints: self.hints(),
        }
    }

    /// Signs that something is wrong, and what to do about it.
    pub(super) fn hints(&self) -> Vec<String> {
        let dropped = |why| self.stack.counters().dropped(why);

        // The ports first: without them nothing else matters.
        let mut hints: Vec<String> = self.ports.hints().cloned().collect();
        hints.extend(ports::mtu_hint(&self.configuration.ports));
        hints.extend(self.stack.too_short_for().map(|(node, longest)| {
            format!(
                "{} sends no frames of more than {longest} bytes, so it passes on neither files \
                 nor long packets of this node; set mtu = {LEAST_FRAME} or more there, or \
                 mtu = {longest} here",
                name_of(&self.stack, node)
            )
        }));

        let unauthentic = dropped(DropReason::Unauthentic);
        if unauthentic > 0 {
            hints.push(format!(
                "{unauthentic} frames were not sealed with this network's key; if they come from \
                 your own nodes, give all the same [node] key"
            ));
        }

        for id in self.stack.duplicates() {
            hints.push(if id == self.id() {
                format!("another node uses id {id} too; give each node its own [node] id")
            } else {
                format!("two nodes use id {id}; give each node its own [node] id")
            });
        }

        hints.extend(self.name_hints());
        if self.stack.is_impersonated() {
            hints.push(IMPERSONATED.into());
        }
        for node in self.stack.identity_conflicts() {
            hints.push(format!(
                "states were told as node {node}'s that its key did not sign: by somebody who has \
                 this network's key, or by the node itself after it lost its key; in that case \
                 remove its line from `pins` in the state directory, and restart"
            ));
        }
        hints.extend(self.stack.liars().map(|liar| liar_hint(&self.stack, liar)));
        // Nodes of other releases are named with the side that is too old.
        for (id, version) in self.stack.strangers() {
            let Versions { oldest, newest } = Versions::OWN;
            let own = match oldest {
                oldest if oldest == newest => newest.to_string(),
                _ => format!("{oldest} to {newest}"),
            };
            let older = if version < oldest { "there" } else { "here" };
            hints.push(format!(
                "node {id} sends frames of version {version}, and this node understands {own}; \
                 run a newer ncmesh {older}"
            ));
        }

        // Files and disks come after the network: each concerns one transfer or one list.
        let waiting = self.files.waiting().chain(self.storage.unread());
        hints.extend(
            waiting.map(|(flow, problem)| format!("{flow} waits and is tried again: {problem}")),
        );
        hints.extend(self.sending.damaged.iter().take(MAX_DAMAGED).map(|path| {
            let path = path.display();
            format!(
                "{path} is damaged: its transfer is not resumed; send the file again, remove it"
            )
        }));

        hints.extend(self.chores.problems().map(|(what, why)| {
            format!(
                "{what} cannot be saved ({why}); free space or look at the rights of the state \
                 directory and the inbox; it is tried again, and a restart until then forgets it"
            )
        }));

        if let Some(tunnel) = &self.tunnel {
            hints.extend(tunnel.device_hint(self.clock.now()));
            hints.extend(tunnel.address_hints(&self.stack));
        }
        hints.extend(self.streams.hints(&self.stack));
        hints.extend(coding::coding(&self.stack).iter().flat_map(coding::hints));
        hints
    }

    /// Names that several nodes tell.
    fn name_hints(&self) -> impl Iterator<Item = String> {
        // By name, so that each name is told once, however many nodes have it.
        let mut named: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
        for (node, state) in self.stack.topology().states() {
            named.entry(&state.name).or_default().push(node);
        }

        let several = named.into_iter().filter(|(_, nodes)| nodes.len() > 1);
        several.map(|(name, nodes)| {
            let ids: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
            // A name means the node that had it first, so that a newcomer gets no files of another.
            let meant = match self.stack.node_named(name) {
                Some(first) => format!("the name means {first}, which had it first"),
                None => "the name means none of them, use ids".into(),
            };
            let ids = ids.join(", ");
            format!("nodes {ids} are named {name:?}: {meant}; give each a name of its own")
        })
    }

    /// `GET /v1/peers`: every other node known, neighbours heard whose link state is still to come,
    /// and ids under which false packets came.
    #[must_use]
    pub fn peers(&self) -> Vec<Peer> {
        let paths = self.stack.topology().paths_from(self.id(), Metric::Unicast);
        let inbound: BTreeMap<NodeId, f64> = self.stack.inbound().collect();
        let known = self.stack.topology().nodes().filter(|node| *node != self.id());
        let blamed = self.stack.liars().map(|liar| liar.node);
        let all: BTreeSet<NodeId> = known.chain(inbound.keys().copied()).chain(blamed).collect();
        all.into_iter().map(|node| self.peer(node, &paths, inbound.get(&node).copied())).collect()
    }

    fn peer(&self, node: NodeId, paths: &Paths, inbound: Option<f64>) -> Peer {
        let topology = self.stack.topology();
        let path = paths.path_to(node);
        let to = topology.delivery(self.id(), node);
        let now = self.clock.now();
        let identity = self.stack.identity_of(node);

        Peer {
            id: node.0,
            name: topology.state(node).map(|state| state.name.clone()),
            position: self.position_of(node),
            neighbor: inbound.is_some(),
            values: PeerValues {
                delivery_to: (to > 0.0).then_some(to),
                delivery_from: inbound,
                etx: paths.etx(node),
                hops: paths.reaches(node).then_some(path.len() as u64),
                last_heard_s: self.noted.last_heard(node).map(|at| now.since(at).as_secs_f64()),
                false_packets: self
                    .stack
                    .liars()
                    .find(|liar| liar.node == node)
                    .map(|liar| liar.packets),
            },
            ports: self.ports.ways_to(node, &self.stack),
            next_hop: path.first().map(|next| self.name_of(*next)),
            wire_versions: self
                .stack
                .versions_of(node)
                .map(|Versions { oldest, newest }| [oldest, newest]),
            fingerprint: identity.map(|known| known.key.fingerprint()),
            expires: identity.and_then(|known| known.certificate.as_ref()).map(|c| c.expires),
            conflict: self.stack.identity_conflicts().any(|other| other == node),
        }
    }

    /// Returns the identity of this node, if it has one.
    fn identity(&self) -> Option<Identity> {
        let own = self.stack.identity_of(self.id())?;
        let certificate = own.certificate.as_ref();
        Some(Identity {
            fingerprint: own.key.fingerprint(),
            serial: certificate.map(|certificate| certificate.serial),
            expires: certificate.map(|certificate| certificate.expires),
            // The node itself is among them.
            known: self.stack.identities().count() as u64 - 1,
            revoked: self.stack.revocations().iter().map(|list| list.serials.len() as u64).sum(),
            conflicts: self.stack.identity_conflicts().map(|node| node.0).collect(),
        })
    }

    /// Returns the flows through this node.
    fn flows(&self) -> Vec<Flow> {
        let flow = |(scheme, flow): (&'static str, FlowStatus)| Flow {
            scheme: scheme.into(),
            source: self.name_of(flow.source),
            destination: self.name_of(flow.destination),
            values: self.flow_values(scheme, &flow),
        };
        self.stack.flows().into_iter().map(flow).collect()
    }

    /// Returns what this node knows of a flow, for the API and for consoles.
    pub(super) fn flow_values(&self, scheme: &str, flow: &FlowStatus) -> FlowValues {
        let ends_here = flow.destination == self.id();
        // Acknowledgments come back to the node at which a flow begins.
        let tunnel = self.tunnel.as_ref().filter(|_| flow.source == self.id());
        let round_trip =
            tunnel.and_then(|tunnel| tunnel.round_trip(scheme, flow, self.clock.now()));
        FlowValues {
            queue: Some(flow.credits),
            heard: Some(flow.heard),
            innovative: Some(flow.innovative),
            delivered: ends_here.then_some(flow.delivered),
            delivered_bytes: ends_here.then_some(flow.delivered_bytes),
            lost: Some(flow.lost),
            rtt_s: round_trip.map(|trip| trip.smoothed.as_secs_f64()),
            min_rtt_s: round_trip.map(|trip| trip.min.as_secs_f64()),
        }
    }

    /// `GET /v1/streams`.
    #[must_use]
    pub fn streams(&self) -> Vec<Stream> {
        self.streams.list(&self.stack)
    }

    /// `GET /v1/streams/received`.
    #[must_use]
    pub fn joined_groups(&self) -> Vec<JoinedGroup> {
        self.streams.joined(&self.stack)
    }

    /// `GET /v1/topology`: the mesh as a NetJSON NetworkGraph.
    #[must_use]
    pub fn topology(&self) -> Value {
        let label = self.configuration.display_name.as_deref();
        let heard = self.stack.inbound().filter(|_| self.ports.are_several());
        let ways = heard.map(|(node, _)| (node, self.ports.ways_to(node, &self.stack)));
        graph::network_graph(self.stack.topology(), self.id(), label, &ways.collect())
    }

    /// `GET /v1/transfers`: parts whose sources are gone, then the others, oldest
    /// first, then files that wait for their turn.
    #[must_use]
    pub fn transfers(&self) -> Vec<Transfer> {
        let mut all = self.stack.transfers();
        all.sort_by_key(|t| (t.started, t.flow));
        let kept = self.inbox.kept_transfers(&self.stack, &all);
        let waiting = self.sending.waiting_transfers(&self.stack);
        kept.chain(all.iter().map(|t| self.transfer(t))).chain(waiting).collect()
    }

    fn transfer(&self, t: &TransferStatus) -> Transfer {
        let (state, reason) = match stage(t.stage) {
            _ if is_source_gone(&self.stack, t) => (State::Lost, Some(SOURCE_GONE.into())),
            shown => shown,
        };

        let end = t.finished.unwrap_or_else(|| self.clock.now());
        // A file that this node sends is in its own record, the path of a received one in the list.
        let sent = self.sending.get(t.flow);
        let allowance = sent.map(|file| file.allowance).unwrap_or_default();
        let sent_from = sent.map(|file| file.path.clone());
        Transfer {
            id: t.flow.to_string(),
            // One that is refused for its name is shown too.
            name: harmless_file_name(&t.name),
            path: sent_from.or_else(|| self.inbox.delivered.path(t.flow).map(Into::into)),
            size: t.size,
            hash: to_hex(&t.hash),
            source: self.name_of(t.flow.source),
            scheme: self.stack.transfer_scheme(t.flow).map(Into::into),
            scheme_reason: sent.and_then(|file| file.scheme_reason.clone()),
            background: allowance.background.map(Background::percent),
            limit_bps: allowance.limit_bps,
            direction: match t.direction {
                file::Direction::Sending => Direction::Sending,
                file::Direction::Receiving => Direction::Receiving,
            },
            state,
            reason,
            ended: has_ended(t),
            values: ReceivedValues {
                seconds: (end - t.started).as_secs_f64(),
                kbit_s: kbit_s(t.bytes, t.started, end),
                ..received_values(t)
            },
            receivers: t.receivers.iter().map(|r| self.receiver(r, t.started, end)).collect(),
            sent: source_values(t),
            forwarders: t.forwarders.iter().map(|node| self.name_of(*node)).collect(),
        }
    }

    fn receiver(&self, r: &ReceiverStatus, started: Instant, end: Instant) -> Receiver {
        let end = r.finished.unwrap_or(end);

        Receiver {
            id: r.node.0,
            name: self.name_of(r.node),
            state: match r.state {
                // It is asked again.
                ReceiverState::Refused(Refusal::Busy) => State::Invited,
                state => state.into(),
            },
            reason: match r.state {
                ReceiverState::Refused(why) => Some(why.reason().into()),
                _ => None,
            },
            values: ReceivedValues {
                bytes: r.bytes,
                seconds: (end - started).as_secs_f64(),
                kbit_s: kbit_s(r.bytes, started, end),
                ..ReceivedValues::default()
            },
        }
    }

    /// Returns where a node says that it is.
    pub(super) fn position_of(&self, node: NodeId) -> Option<Position> {
        let told = self.stack.topology().state(node)?.profile.position?;

        Some(match (told.metres(), told.degrees()) {
            (_, Some([latitude, longitude])) => Position::Earth { latitude, longitude },
            (metres, None) => {
                let [x, y, z] = metres?;
                Position::Plan { x, y, z }
            }
        })
    }

    /// A node's name; its id while its name is unknown.
    pub(super) fn name_of(&self, node: NodeId) -> String {
        name_of(&self.stack, node)
    }

    /// `GET /v1/paths/{node}`: the best path by ETX of unicast, to a node by name or id.
    ///
    /// # Errors
    /// Errors of a receiver of that name: it is unknown, unreachable or this node.
    pub fn path_to(&self, name: &str) -> Result<Path, ApiError> {
        let mut path = path::path_to(&self.stack, self.resolve_name(name)?);
        if let Some(first) = path.hops.first_mut().filter(|_| self.ports.are_several()) {
            let ways = self.ports.ways_to(NodeId(first.id), &self.stack);
            first.port = ways.into_iter().find(|way| way.way).map(|way| way.port);
        }
        Ok(path)
    }

    /// `GET /v1/device`: the node as a NetJSON DeviceMonitoring object.
    #[must_use]
    pub fn device_monitoring(&self) -> Value {
        let uptime = self.clock.now().as_secs_f64() as u64;
        let mtu = self.configuration().mtu();
        monitoring::device(uptime, mtu, &self.ports, self.tunnel.as_ref(), &self.stack)
    }

    /// `GET /metrics`: the counters as OpenMetrics text.
    ///
    /// # Errors
    /// Errors of the encoder.
    pub fn metrics(&self) -> Result<String, fmt::Error> {
        metrics::open_metrics(self)
    }
}

/// Returns the hint, and log entry, that a neighbour sent false packets.
pub(super) fn liar_hint(stack: &Stack, liar: Liar) -> String {
    let Liar { node, packets } = liar;
    format!(
        "{packets} false packets of files came from {} (id {node}) and were left out; it is \
         avoided for 30 s at a time; look at that node, and if it is sound, somebody who has this \
         network's key sends in its name: give all your nodes a new key",
        name_of(stack, node)
    )
}

fn stage(stage: Stage) -> (State, Option<String>) {
    match stage {
        Stage::Open => (State::Active, None),
        Stage::Verifying => (State::Verifying, None),
        Stage::Complete => (State::Complete, None),
        Stage::Withdrawn => (State::Withdrawn, None),
        Stage::Refused(why) => (State::Refused, Some(why.reason().into())),
        Stage::Failed(failure) => (State::Failed, Some(failure.to_string())),
    }
}

fn has_ended(t: &TransferStatus) -> bool {
    !matches!(t.stage, Stage::Open | Stage::Verifying)
}

fn kbit_s(bytes: u64, started: Instant, end: Instant) -> f64 {
    let seconds = (end - started).as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8.0 / 1000.0 / seconds } else { 0.0 }
}

fn traffic(service: ServiceId, kind: u8, tally: Tally) -> Traffic {
    let service = match service {
        control::SERVICE => "control".into(),
        id => registry()
            .entries()
            .find(|e| e.id == id)
            .map_or_else(|| id.0.to_string(), |e| e.name.into()),
    };
    Traffic { service, kind, frames: tally.frames, bytes: tally.bytes }
}
