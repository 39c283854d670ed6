//! The node's tunnel: its gateway joined to the stack.

use super::Moment;
use super::names::name_of;
use crate::api::types::{self, ApiError, ErrorCode};
use crate::config::{NodeConfig, TUNNEL_MTU_MIN, TunnelConfig, V6_LEAST, choose};
use ncmesh_engine::registry::{Choice, Scheme};
use ncmesh_engine::stream::{Deadline, NewStream, StreamError, StreamPacketError, UtilityConfig};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::{FlowStatus, is_real_time};
use ncmesh_engines::reason;
use ncmesh_host::gateway::multicast::{GROUP_LAYER, GroupAction};
use ncmesh_host::gateway::{Dropped, Gateway, LONGEST_HALF, Leads, RoundTrip};
use ncmesh_stack::{ConfigError, Stack};
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// Most streams that are known here when a host begins to send to another multicast group. Engines
/// keep 32, and the rest is for streams that people begin.
const MAX_KNOWN_STREAMS: usize = 24;

/// Gateway of a node, and what it was made of.
pub struct Tunnel {
    pub(super) config: TunnelConfig,
    scheme: Choice,
    pub(super) mtu: usize,
    /// Longest packet that the scheme carries as a whole, bytes.
    pub(super) whole: usize,
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
        let whole = longest_packet(scheme, stack);
        let mtu = mtu(&tunnel, scheme, whole, config.mtu()).map_err(error)?;
        let gateway = Gateway::new(tunnel.gateway(mtu, whole));
        let group_flows = BTreeMap::new();
        Ok(Some(Self { config: tunnel, scheme, mtu, whole, gateway, group_flows, device: None }))
    }

    /// Returns the scheme that packets leave by.
    pub(super) fn scheme(&self) -> Choice {
        self.scheme
    }

    /// Returns the configuration of the device that belongs to the tunnel, and its MTU.
    pub(super) fn device(&self) -> (&TunnelConfig, usize) {
        (&self.config, self.mtu)
    }

    /// Sends packets by the tunnel scheme of this name from now on. Packets under way arrive by the
    /// scheme they were sent with.
    ///
    /// # Errors
    /// Returns an error if there is no such scheme, or if it does not carry packets as long as the
    /// device takes.
    pub(super) fn use_scheme(&mut self, name: &str, stack: &Stack) -> Result<(), ApiError> {
        let refusal = |why: String| ApiError::new(ErrorCode::BadRequest, why);
        let choice = choose(name).map_err(|e| refusal(e.to_string()))?;
        let Self { config, mtu, .. } = &*self;
        let scheme = choice.entry.name;
        let whole = longest_packet(choice, stack);
        let longest = longest_of_host(config, whole);

        // The device's MTU stays: the host has told it to its connections.
        if longest < *mtu {
            return Err(refusal(format!(
                "{scheme} carries packets of up to {longest} bytes, and {device} takes {mtu}: set \
                 [tunnel] mtu = {longest} and start the daemon again",
                device = config.device
            )));
        }

        tracing::info!("packets leave by {scheme}, no longer by {}", self.scheme.entry.name);
        self.gateway.adjust(self.config.gateway(self.mtu, whole));
        self.whole = whole;
        self.scheme = choice;
        Ok(())
    }

    /// Takes a packet that the host sends through the tunnel.
    pub fn handle_packet(&mut self, packet: Vec<u8>, moment: &mut Moment<'_>) {
        let now = moment.now;
        self.gateway.handle_outbound(packet, &mut moment.mesh(Some(self.scheme.scheme)), now);
    }

    /// Returns the next packet that the tunnel has for the host.
    pub fn poll_packet(&mut self) -> Option<Vec<u8>> {
        self.gateway.poll_inbound()
    }

    /// Counts the packet polled last, which the host did not take.
    pub fn handle_device_refusal(&mut self) {
        self.gateway.handle_device_refusal();
    }

    /// Takes a packet that came through the mesh.
    pub(super) fn arrived(&mut self, from: NodeId, packet: Vec<u8>, moment: &mut Moment<'_>) {
        let now = moment.now;
        let mesh = moment.mesh(Some(self.scheme.scheme));
        self.gateway.handle_inbound(from, packet, &mesh, now);
    }

    /// Passes on packets that wait for the scheme, and does what multicast groups ask for: streams
    /// of the scheme `streams` carry their packets.
    pub(super) fn drain(&mut self, streams: Option<Scheme>, moment: &mut Moment<'_>) {
        // The gateway first: it may have packets for groups, which are sent below.
        let now = moment.now;
        self.gateway.drain(&mut moment.mesh(Some(self.scheme.scheme)), now);
        while let Some(action) = self.gateway.poll_group() {
            let scheme = streams.ok_or(Dropped::Multicast);
            let done = scheme.and_then(|scheme| self.do_group_action(action, scheme, moment));
            if let Err(why) = done {
                self.gateway.handle_group_refusal(why);
            }
        }
    }

    /// Takes a packet that came by a stream that carries multicast.
    pub(super) fn handle_group_packet(
        &mut self,
        from: NodeId,
        group: &str,
        packet: Vec<u8>,
        moment: &mut Moment<'_>,
    ) {
        let mesh = moment.mesh(Some(self.scheme.scheme));
        self.gateway.handle_group_packet(from, group, packet, &mesh);
    }

    /// Does what a multicast group asks for.
    ///
    /// # Errors
    /// Says why the mesh did not take a packet.
    fn do_group_action(
        &mut self,
        action: GroupAction,
        scheme: Scheme,
        moment: &mut Moment<'_>,
    ) -> Result<(), Dropped> {
        let begins = match &action {
            GroupAction::Send { group, .. } => !self.group_flows.contains_key(group),
            _ => false,
        };

        // A packet of a new group makes a stream, and the number of streams is bounded.
        if begins && moment.stack.streams().len() >= MAX_KNOWN_STREAMS {
            return Err(Dropped::Groups);
        }

        let mut stack = moment.active();
        match action {
            GroupAction::Join(group) => {
                // The gateway asks again when the kernel reports the membership again.
                if stack.join(scheme, &group, UtilityConfig::default()).is_err() {
                    self.gateway.handle_membership_refusal(&group);
                }
                Ok(())
            }
            GroupAction::Leave(group) => {
                stack.leave(scheme, &group);
                Ok(())
            }
            GroupAction::Close(group) => {
                self.group_flows.remove(&group);
                stack.close_stream(scheme, &group);
                Ok(())
            }
            GroupAction::Send { group, packet } => {
                let flow = match self.group_flows.get(&group) {
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
                        self.group_flows.insert(group, flow);
                        flow
                    }
                };

                let sent = stack.send_stream_packet(scheme, flow, 0, &packet);
                sent.map_err(|e| match e {
                    StreamPacketError::TooLong { .. } => Dropped::TooLong,
                    StreamPacketError::Burst => Dropped::Full,
                    _ => Dropped::Groups,
                })?;

                self.gateway.handle_group_sent(&packet);
                Ok(())
            }
        }
    }

    /// Returns the gateway for `GET /v1/status`.
    pub(super) fn status(&self, stack: &Stack) -> types::Tunnel {
        let Self { config, scheme, mtu, gateway, .. } = self;
        let counters = gateway.counters();

        types::Tunnel {
            scheme: scheme.entry.name.into(),
            scheme_reason: reason(*scheme).into(),
            device: config.device.clone(),
            namespace: config.namespace.clone(),
            addresses: config.address.iter().map(ToString::to_string).collect(),
            routes: gateway.routes().map(|leads| route(stack, leads)).collect(),
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
        }
    }

    /// Notes what happened to the tunnel's device.
    pub(super) fn note_device(&mut self, state: DeviceState, at: Instant) {
        self.device = Some(DeviceNote { state, at });
    }

    /// Returns a hint about the tunnel's device, if another program changed it.
    pub(super) fn device_hint(&self, now: Instant) -> Option<String> {
        let DeviceNote { state, at } = self.device.as_ref()?;
        match state {
            DeviceState::Failed(why) => Some(format!("the tunnel carries nothing: {why}")),
            DeviceState::Restored(_) if now.since(*at) >= RESTORED_SHOWN => None,
            DeviceState::Restored(changes) => {
                let device = &self.config.device;
                Some(format!(
                    "another program changed {device} ({changes}), and it was restored; tell \
                     network managers to leave {device} alone"
                ))
            }
        }
    }

    /// Returns hints about addresses that several nodes announce. A network may have several
    /// gateways, but an address belongs to one node.
    pub(super) fn address_hints(&self, stack: &Stack) -> impl Iterator<Item = String> {
        let twice = self.gateway.routes().filter(|leads| {
            let is_address = leads.prefix.prefix_len() == leads.prefix.max_prefix_len();
            is_address && leads.announced_by.len() > 1
        });

        twice.map(|leads| {
            let address = leads.prefix.addr();
            let nodes = route(stack, leads).announced_by.join(", ");
            format!(
                "{address} belongs to several nodes ({nodes}); give each its own [tunnel] address"
            )
        })
    }

    /// Returns the latest round trip of a flow from this node, if it goes by the tunnel's scheme.
    pub(super) fn round_trip(
        &self,
        scheme: &str,
        flow: &FlowStatus,
        now: Instant,
    ) -> Option<RoundTrip> {
        let is_own = scheme == self.scheme.entry.name;
        is_own.then(|| self.gateway.round_trip(flow.destination, now))?
    }
}

fn route(stack: &Stack, leads: Leads) -> types::TunnelRoute {
    let name = |node| name_of(stack, node);
    types::TunnelRoute {
        prefix: leads.prefix.to_string(),
        node: leads.node.map(name),
        announced_by: leads.announced_by.into_iter().map(name).collect(),
    }
}

/// Deadline of groups whose first packet is of real-time traffic: a conversation bears no more.
const REAL_TIME_DEADLINE: Deadline = Deadline { ms: 200 };

/// Returns the longest packet that a scheme carries as a whole, bytes.
fn longest_packet(choice: Choice, stack: &Stack) -> usize {
    stack.longest_packet(choice.scheme).unwrap_or(0).min(65_535)
}

/// Returns the longest packet that the host may send, where a scheme carries `whole` bytes at once.
/// A longer one that IPv6 demands of every link goes in halves.
fn longest_of_host(tunnel: &TunnelConfig, whole: usize) -> usize {
    match has_v6(tunnel) && whole >= LONGEST_HALF {
        true => whole.max(V6_LEAST),
        false => whole,
    }
}

fn has_v6(tunnel: &TunnelConfig) -> bool {
    let mut prefixes = tunnel.announced().into_iter().chain(tunnel.beyond_addresses());
    prefixes.any(|prefix| prefix.addr().is_ipv6())
}

/// Returns the length of the longest IP packet, bytes.
fn mtu(tunnel: &TunnelConfig, choice: Choice, whole: usize, frame: usize) -> Result<usize, String> {
    let scheme = choice.entry.name;
    let longest = longest_of_host(tunnel, whole);

    // IP demands a least MTU, and more of IPv6 than of IPv4.
    let (family, least, demanded) = match has_v6(tunnel) {
        true => ("IPv6", V6_LEAST, LONGEST_HALF),
        false => ("IPv4", TUNNEL_MTU_MIN, TUNNEL_MTU_MIN),
    };
    if longest < least {
        let more = frame + demanded - whole;
        return Err(format!(
            "{family} needs packets of {demanded} bytes, and {scheme} carries up to {whole} in \
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
