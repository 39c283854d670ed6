//! What tunnels and streams carry through a node: how it stands, and the commands on it.

use super::{Stack, service_of};
use crate::file::storage::Storage;
use crate::multirate::UtilityConfig;
use crate::registry::REGISTRY;
use crate::service::{Cx, Service};
use crate::stream::{NotTaken, StreamError, StreamService, StreamStatus};
use crate::time::Instant;
use crate::tunnel::{CodingStatus, FlowStatus, Refused, Relaying, TunnelService};
use ncmesh_wire::{FlowId, NodeId, frame};

impl Stack {
    // ---- getters

    /// How every flow of tunnels stands here, with the name of its scheme.
    #[must_use]
    pub fn flows(&self) -> Vec<(&'static str, FlowStatus)> {
        let flows = |(name, tunnel): (_, &dyn TunnelService)| {
            tunnel.flows().into_iter().map(move |flow| (name, flow))
        };
        self.named()
            .filter_map(|(name, s)| Some((name, s.as_tunnel_ref()?)))
            .flat_map(flows)
            .collect()
    }

    /// What tunnels code of packets that cross here, with the name of the scheme.
    #[must_use]
    pub fn coding(&self) -> Vec<(&'static str, CodingStatus)> {
        let coding =
            |(name, s): (_, &dyn Service)| Some((name, s.as_tunnel_ref()?.coding(self.now)?));
        self.named().filter_map(coding).collect()
    }

    /// Whether the tunnel `scheme` would take a packet for `to` now. `None` if there is no such tunnel.
    #[must_use]
    pub fn has_room(&self, scheme: &str, to: NodeId) -> Option<bool> {
        Some(self.services[service_of(scheme)?].as_tunnel_ref()?.has_room(to))
    }

    /// Whether the tunnel `scheme` wants a packet for `to` now. `None` if there is no such tunnel.
    #[must_use]
    pub fn wants_packet(&self, scheme: &str, to: NodeId) -> Option<bool> {
        Some(self.services[service_of(scheme)?].as_tunnel_ref()?.wants_packet(to))
    }

    /// The longest packet that the tunnel `scheme` carries, bytes. `None` if there is no such tunnel.
    #[must_use]
    pub fn longest_packet(&self, scheme: &str) -> Option<usize> {
        let tunnel = self.services[service_of(scheme)?].as_tunnel_ref()?;
        Some(tunnel.longest(self.mtu - frame::OVERHEAD))
    }

    /// How every stream stands here, with the name of its scheme.
    #[must_use]
    pub fn streams(&self) -> Vec<(&'static str, StreamStatus)> {
        let streams = |(name, service): (_, &dyn StreamService)| {
            service.streams().into_iter().map(move |stream| (name, stream))
        };
        self.named()
            .filter_map(|(name, s)| Some((name, s.as_stream_ref()?)))
            .flat_map(streams)
            .collect()
    }

    /// The groups that this node joined by any scheme, whether or not anybody sends to them.
    #[must_use]
    pub fn stream_groups(&self) -> Vec<String> {
        let services = self.services.iter().filter_map(|service| service.as_stream_ref());
        services.flat_map(StreamService::groups).collect()
    }

    /// The longest packet of a stream that `scheme` carries, bytes. `None` if it carries no streams.
    #[must_use]
    pub fn longest_stream_packet(&self, scheme: &str) -> Option<usize> {
        let service = self.services[service_of(scheme)?].as_stream_ref()?;
        Some(service.longest(self.mtu - frame::OVERHEAD))
    }

    // ---- commands

    /// Offers a packet for `to` to the tunnel `scheme`.
    ///
    /// # Errors
    /// [`Refused`]; `None` if there is no such tunnel.
    pub fn send_packet(
        &mut self,
        scheme: &str,
        to: NodeId,
        packet: &[u8],
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<Result<(), Refused>> {
        self.now = now;
        self.with_service(service_of(scheme)?, storage, |service, cx| {
            Some(service.as_tunnel()?.handle_packet(cx, to, packet))
        })
    }

    /// This node relays so from now on, of every tunnel that leaves a choice; what is `None` stays.
    pub fn relay_as(&mut self, change: Relaying, storage: &mut dyn Storage, now: Instant) {
        self.now = now;
        for i in 0..self.services.len() {
            self.with_service(i, storage, |service, cx| {
                if let Some(tunnel) = service.as_tunnel() {
                    tunnel.relay_as(cx, change);
                }
            });
        }
    }

    /// Begins a stream to `group` by `scheme`, its layers named, the base first.
    ///
    /// # Errors
    /// [`StreamError`]; `None` if the scheme carries no streams.
    pub fn open_stream(
        &mut self,
        scheme: &str,
        (group, layers): (&str, &[String]),
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<Result<FlowId, StreamError>> {
        self.with_stream(scheme, storage, now, |stream, cx| stream.open(cx, group, layers))
    }

    /// Ends the stream that this node sends to `group` by `scheme`. Says whether there was one.
    pub fn close_stream(
        &mut self,
        scheme: &str,
        group: &str,
        storage: &mut dyn Storage,
        now: Instant,
    ) -> bool {
        let closed = self.with_stream(scheme, storage, now, |stream, cx| stream.close(cx, group));
        closed.unwrap_or(false)
    }

    /// Offers a packet of a stream's layer, 0 being the base.
    ///
    /// # Errors
    /// [`NotTaken`]; `None` if the scheme carries no streams.
    pub fn send_stream_packet(
        &mut self,
        scheme: &str,
        (flow, layer): (FlowId, usize),
        packet: &[u8],
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<Result<(), NotTaken>> {
        self.with_stream(scheme, storage, now, |stream, cx| stream.send(cx, flow, layer, packet))
    }

    /// Joins `group` by `scheme`, at the rate that suits `utility`.
    ///
    /// # Errors
    /// [`StreamError`]; `None` if the scheme carries no streams.
    pub fn join(
        &mut self,
        scheme: &str,
        (group, utility): (&str, UtilityConfig),
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<Result<(), StreamError>> {
        self.with_stream(scheme, storage, now, |stream, cx| stream.join(cx, group, utility))
    }

    /// Leaves `group`. Says whether this node had joined.
    pub fn leave(
        &mut self,
        scheme: &str,
        group: &str,
        storage: &mut dyn Storage,
        now: Instant,
    ) -> bool {
        let left = self.with_stream(scheme, storage, now, |stream, cx| stream.leave(cx, group));
        left.unwrap_or(false)
    }

    // ---- inside

    /// The services with the names of their schemes.
    fn named(&self) -> impl Iterator<Item = (&'static str, &dyn Service)> {
        REGISTRY.iter().zip(&self.services).map(|(entry, service)| (entry.name, service.as_ref()))
    }

    fn with_stream<R>(
        &mut self,
        scheme: &str,
        storage: &mut dyn Storage,
        now: Instant,
        call: impl FnOnce(&mut dyn StreamService, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        self.now = now;
        self.with_service(service_of(scheme)?, storage, |service, cx| {
            Some(call(service.as_stream()?, cx))
        })
    }
}
