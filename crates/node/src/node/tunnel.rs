//! The node's tunnel: its gateway joined to the stack.

use super::Node;
use crate::api::types::{self, ApiError, ErrorCode, Flow, TunnelChange};
use crate::config::{NodeConfig, TUNNEL_MTU_MIN, TunnelConfig, V6_MTU_MIN, choose};
use ncmesh_console::schema::FlowValues;
use ncmesh_engine::registry::Choice;
use ncmesh_engine::stream::{Deadline, NewStream, StreamError, StreamPacketError, UtilityConfig};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::{FlowStatus, Relaying, is_real_time};
use ncmesh_engines::reason;
use ncmesh_host::gateway::multicast::{GROUP_LAYER, GroupAction};
use ncmesh_host::gateway::{Dropped, Gateway, Leads, RoundTrip, StackMesh};
use ncmesh_stack::{ConfigError, Stack};
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// Most streams that are known here when a host begins to send to another multicast group. Engines
/// keep 32, and the rest is for streams that people begin.
const MAX_KNOWN_STREAMS: usize = 24;

/// Gateway of a node, and what it was made of.
pub(super) struct Tunnel {
    pub(super) config: TunnelConfig,
    scheme: Choice,
    pub(super) mtu: usize,
    pub(super) gateway: Gateway,
    /// Streams that carry multicast of this host, by group.
    group_flows: BTreeMap<String, FlowId>,
    /// The last change of the device.
    device: Option<DeviceNote>,
}

/// Change of the tunnel's device by another program, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It does not work. The text says why.
    Failed(String),
    /// It was changed, as the text says, and is as it was.
    Restored(String),
}

struct DeviceNote {
    state: DeviceState,
    at: Instant,
}

/// Time for which a hint names a change of the device that was undone.
const RESTORED_SHOWN: Duration = Duration::from_secs(60);

impl Tunnel {
    /// The tunnel of this node, if it has one.
    ///
    /// # Errors
    /// The radio's frames are too short for IP, or the MTU that is set is too long for them.
    pub(super) fn new(config: &NodeConfig, stack: &Stack) -> Result<Option<Self>, ConfigError> {
        let Some(tunnel) = config.tunnel.clone() else { return Ok(None) };
        let error = |problem| ConfigError { section: "tunnel".into(), problem };
        let scheme = choose(&tunnel.scheme).map_err(|e| error(e.to_string()))?;
        let mtu = mtu(&tunnel, scheme, stack, config.radio.mtu());
        let mtu = mtu.map_err(error)?;
        let gateway = Gateway::new(tunnel.gateway(mtu));
        let group_flows = BTreeMap::new();
        Ok(Some(Self { config: tunnel, scheme, mtu, gateway, group_flows, device: None }))
    }

    /// Returns the scheme that packets leave by.
    pub(super) fn scheme(&self) -> Choice {
        self.scheme
    }
}

/// Deadline of groups whose first packet is of real-time traffic: a conversation bears no more.
const REAL_TIME_DEADLINE: Deadline = Deadline { ms: 200 };

/// Returns the length of the longest IP packet, bytes.
fn mtu(
    tunnel: &TunnelConfig,
    choice: Choice,
    stack: &Stack,
    frame: usize,
) -> Result<usize, String> {
    let scheme = choice.entry.name;
    let longest = stack.longest_packet(choice.scheme).unwrap_or(0).min(65_535);

    // IP demands a least MTU, and more of IPv6 than of IPv4.
    let mut prefixes = tunnel.announced().into_iter().chain(tunnel.beyond_addresses());
    let has_v6 = prefixes.any(|prefix| prefix.addr().is_ipv6());
    let (family, least) = if has_v6 { ("IPv6", V6_MTU_MIN) } else { ("IPv4", TUNNEL_MTU_MIN) };
    if longest < least {
        let more = frame + least - longest;
        return Err(format!(
            "{family} needs packets of {least} bytes, and {scheme} carries up to {longest} in \
             frames of {frame}: set [radio] mtu = {more} or more"
        ));
    }

    match tunnel.mtu {
        Some(mtu) if mtu > longest => Err(format!(
            "mtu = {mtu}: {scheme} carries up to {longest} in frames of {frame} ([radio] mtu)"
        )),
        Some(mtu) if mtu < least => {
            Err(format!("mtu = {mtu}: {family} needs packets of {least} bytes"))
        }
        set => Ok(set.unwrap_or(longest)),
    }
}

impl Node {
    /// The configuration of the device that belongs to this node's tunnel, and its MTU.
    #[must_use]
    pub fn device(&self) -> Option<(&TunnelConfig, usize)> {
        self.tunnel.as_ref().map(|tunnel| (&tunnel.config, tunnel.mtu))
    }

    /// Changes the scheme that packets leave by and what this node does as a relay, until the
    /// daemon stops.
    ///
    /// # Errors
    /// Returns an error and changes nothing if the change is empty, or if
    /// [`use_scheme`](Self::use_scheme) refuses.
    pub(crate) fn change_tunnel(&mut self, change: &TunnelChange) -> Result<(), ApiError> {
        let TunnelChange { scheme, relay, coding } = change;
        let relaying = Relaying { relay: *relay, coding: *coding };
        // A change of nothing is a mistake of the caller.
        if scheme.is_none() && relaying == Relaying::default() {
            let why = "nothing to change: name a scheme, a relay or whether to code";
            return Err(ApiError::new(ErrorCode::BadRequest, why));
        }

        if let Some(scheme) = scheme {
            self.use_scheme(scheme)?;
        }
        if relaying != Relaying::default() {
            tracing::info!("relays otherwise: {relaying:?}");
            let now = self.clock.now();
            self.stack.at(now, &mut self.storage).relay_as(relaying);
        }

        Ok(())
    }

    /// Sends packets by the tunnel scheme of this name from now on. Packets under way arrive by the
    /// scheme they were sent with.
    ///
    /// # Errors
    /// Returns an error if there is no tunnel here or no such scheme, or if it does not carry
    /// packets as long as the device takes.
    fn use_scheme(&mut self, name: &str) -> Result<(), ApiError> {
        let no_tunnel = "there is no tunnel here; give this node a [tunnel] and start it again";
        let refusal = |why: String| ApiError::new(ErrorCode::BadRequest, why);
        let tunnel = self.tunnel.as_mut().ok_or_else(|| refusal(no_tunnel.into()))?;
        let choice = choose(name).map_err(|e| refusal(e.to_string()))?;
        let Tunnel { config, mtu, .. } = tunnel;
        let scheme = choice.entry.name;
        let longest = self.stack.longest_packet(choice.scheme).unwrap_or(0);

        // The device's MTU stays: the host has told it to its connections.
        if longest < *mtu {
            return Err(refusal(format!(
                "{scheme} carries packets of up to {longest} bytes, and {device} takes {mtu}: set \
                 [tunnel] mtu = {longest} and start the daemon again",
                device = config.device
            )));
        }

        tracing::info!("packets leave by {scheme}, no longer by {}", tunnel.scheme.entry.name);
        tunnel.scheme = choice;
        Ok(())
    }

    /// Takes a packet that the host sends through the tunnel.
    pub fn handle_packet(&mut self, packet: Vec<u8>) {
        self.with_gateway(|gateway, mesh, now| gateway.handle_outbound(packet, mesh, now));
    }

    /// Returns the next packet that the tunnel has for the host.
    pub fn poll_packet(&mut self) -> Option<Vec<u8>> {
        self.tunnel.as_mut()?.gateway.poll_inbound()
    }

    /// Counts the packet polled last, which the host did not take.
    pub fn handle_device_refusal(&mut self) {
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.gateway.handle_device_refusal();
        }
    }

    /// Takes a packet that came through the mesh.
    pub(super) fn arrived(&mut self, from: NodeId, packet: Vec<u8>) {
        if self.tunnel.is_none() {
            let from = self.name_of(from);
            tracing::debug!("{} bytes from {from} dropped: no [tunnel] here", packet.len());
        }
        self.with_gateway(|gateway, mesh, now| gateway.handle_inbound(from, packet, mesh, now));
    }

    /// Passes on packets that wait for the scheme, and does what multicast groups ask for.
    pub(super) fn drain_tunnel(&mut self) {
        // The gateway first: it may have packets for groups, which are sent below.
        self.with_gateway(|gateway, mesh, now| gateway.drain(mesh, now));
        while let Some(action) = self.tunnel.as_mut().and_then(|tunnel| tunnel.gateway.poll_group())
        {
            let refused = self.do_group_action(action).err();
            if let (Some(why), Some(tunnel)) = (refused, &mut self.tunnel) {
                tunnel.gateway.handle_group_refusal(why);
            }
        }
    }

    /// Takes a packet that came by a stream that carries multicast.
    pub(super) fn handle_group_packet(&mut self, from: NodeId, group: &str, packet: Vec<u8>) {
        self.with_gateway(|gateway, mesh, _| {
            gateway.handle_group_packet(from, group, packet, mesh);
        });
    }

    /// Does what a multicast group asks for.
    ///
    /// # Errors
    /// Says why the mesh did not take a packet.
    fn do_group_action(&mut self, action: GroupAction) -> Result<(), Dropped> {
        let Some(tunnel) = &mut self.tunnel else { return Ok(()) };
        let scheme = self.streams.scheme().map_err(|_| Dropped::Multicast)?;
        let begins = match &action {
            GroupAction::Send { group, .. } => !tunnel.group_flows.contains_key(group),
            _ => false,
        };

        // A packet of a new group makes a stream, and the number of streams is bounded.
        if begins && self.stack.streams().len() >= MAX_KNOWN_STREAMS {
            return Err(Dropped::Groups);
        }

        let mut stack = self.stack.at(self.clock.now(), &mut self.storage);
        match action {
            GroupAction::Join(group) => {
                // The gateway asks again when the kernel reports the membership again.
                if stack.join(scheme, &group, UtilityConfig::default()).is_err() {
                    tunnel.gateway.handle_membership_refusal(&group);
                }
                Ok(())
            }
            GroupAction::Leave(group) => {
                stack.leave(scheme, &group);
                Ok(())
            }
            GroupAction::Close(group) => {
                tunnel.group_flows.remove(&group);
                stack.close_stream(scheme, &group);
                Ok(())
            }
            GroupAction::Send { group, packet } => {
                let flow = match tunnel.group_flows.get(&group) {
                    Some(flow) => *flow,
                    None => {
                        let layers = [GROUP_LAYER.to_owned()];
                        let deadline = is_real_time(&packet).then_some(REAL_TIME_DEADLINE);
                        let new = NewStream { group: &group, layers: &layers, deadline };

                        // Not every scheme has deadlines.
                        let opened = match stack.open_stream(scheme, new) {
                            Err(StreamError::NoDeadlines) => {
                                stack.open_stream(scheme, NewStream { deadline: None, ..new })
                            }
                            opened => opened,
                        };

                        let flow = opened.map_err(|_| Dropped::Groups)?;
                        // Kept, so that the next packet of the group costs no stream.
                        tracing::info!("stream {flow} carries multicast to {group}");
                        tunnel.group_flows.insert(group, flow);
                        flow
                    }
                };

                let sent = stack.send_stream_packet(scheme, flow, 0, &packet);
                sent.map_err(|e| match e {
                    StreamPacketError::TooLong { .. } => Dropped::TooLong,
                    StreamPacketError::Burst => Dropped::Full,
                    _ => Dropped::Groups,
                })?;

                tunnel.gateway.handle_group_sent(&packet);
                Ok(())
            }
        }
    }

    /// Returns the gateway for `GET /v1/status`.
    pub(super) fn tunnel_status(&self) -> Option<types::Tunnel> {
        let Tunnel { config, scheme, mtu, gateway, .. } = self.tunnel.as_ref()?;
        let counters = gateway.counters();
        Some(types::Tunnel {
            scheme: scheme.entry.name.into(),
            scheme_reason: reason(*scheme).into(),
            device: config.device.clone(),
            namespace: config.namespace.clone(),
            addresses: config.address.iter().map(ToString::to_string).collect(),
            routes: gateway.routes().map(|leads| self.route(leads)).collect(),
            groups: gateway.groups().map(|group| group.to_string()).collect(),
            mtu: *mtu,
            waiting: gateway.waiting(),
            packets_out: counters.outbound.packets,
            bytes_out: counters.outbound.bytes,
            packets_in: counters.inbound.packets,
            bytes_in: counters.inbound.bytes,
            drops: counters.drops.iter().map(|(why, n)| (why.name().into(), *n)).collect(),
            icmp_sent: counters.icmp_sent,
            mss_clamped: counters.clamped,
            ecn_marked: counters.marked,
        })
    }

    fn route(&self, leads: Leads) -> types::TunnelRoute {
        let names = leads.announced_by.into_iter().map(|node| self.name_of(node));
        types::TunnelRoute {
            prefix: leads.prefix.to_string(),
            node: leads.node.map(|node| self.name_of(node)),
            announced_by: names.collect(),
        }
    }

    /// Notes what happened to the tunnel's device.
    pub fn note_device(&mut self, state: DeviceState) {
        let at = self.clock.now();
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.device = Some(DeviceNote { state, at });
        }
    }

    /// Returns a hint about the tunnel's device, if another program changed it.
    pub(super) fn device_hint(&self) -> Option<String> {
        let tunnel = self.tunnel.as_ref()?;
        let DeviceNote { state, at } = tunnel.device.as_ref()?;
        match state {
            DeviceState::Failed(why) => Some(format!("the tunnel carries nothing: {why}")),
            DeviceState::Restored(_) if self.clock.now().since(*at) >= RESTORED_SHOWN => None,
            DeviceState::Restored(changes) => {
                let device = &tunnel.config.device;
                Some(format!(
                    "another program changed {device} ({changes}), and it was restored; tell \
                     network managers to leave {device} alone"
                ))
            }
        }
    }

    /// Returns hints about addresses that several nodes announce. A network may have several
    /// gateways, but an address belongs to one node.
    pub(super) fn address_hints(&self) -> impl Iterator<Item = String> + '_ {
        let leads = self.tunnel.iter().flat_map(|tunnel| tunnel.gateway.routes());
        let twice = leads.filter(|leads| {
            let is_address = leads.prefix.prefix_len() == leads.prefix.max_prefix_len();
            is_address && leads.announced_by.len() > 1
        });

        twice.map(|leads| {
            let types::TunnelRoute { announced_by, .. } = self.route(leads.clone());
            let address = leads.prefix.addr();
            let nodes = announced_by.join(", ");
            format!(
                "{address} belongs to several nodes ({nodes}); give each its own [tunnel] address"
            )
        })
    }

    /// Returns the flows through this node for `GET /v1/status`.
    pub(super) fn flows(&self) -> Vec<Flow> {
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
        let round_trip = self.round_trip(scheme, flow);
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

    /// Returns the latest round trip of a flow that begins here and goes by the tunnel's scheme.
    fn round_trip(&self, scheme: &str, flow: &FlowStatus) -> Option<RoundTrip> {
        let is_own =
            |tunnel: &&Tunnel| flow.source == self.id() && scheme == tunnel.scheme.entry.name;
        let tunnel = self.tunnel.as_ref().filter(is_own)?;
        tunnel.gateway.round_trip(flow.destination, self.clock.now())
    }

    fn with_gateway(&mut self, call: impl FnOnce(&mut Gateway, &mut StackMesh<'_>, Instant)) {
        let Some(tunnel) = &mut self.tunnel else { return };
        let now = self.clock.now();
        let stack = &mut self.stack;
        let storage = &mut self.storage;
        let scheme = Some(tunnel.scheme.scheme);
        let mut mesh = StackMesh { stack, storage, scheme, now };
        call(&mut tunnel.gateway, &mut mesh, now);
    }
}
