//! Streams of the daemon: sockets joined to [`ncmesh_host::streams`], and views for the API.

use super::Moment;
use super::names::name_of;
use crate::api::types::{
    ApiError, ErrorCode, JoinedGroup, Problem, Stream, StreamQueue, StreamReceiving,
};
use crate::stream::rtp::{self, PortPacket, RtpStreams};
use crate::stream::{Input, Layer, Ports, ReceiveStream, SendStream, StreamSection};
use ncmesh_engine::registry::{AUTO, Scheme, ServiceKind};
use ncmesh_engine::stream::{self, NewStream, StreamError, StreamPacketError, StreamStatus};
use ncmesh_engine::time::Instant;
use ncmesh_engines::registry;
use ncmesh_host::console::{queue_values, receiving_values, sending_values};
use ncmesh_host::gateway::multicast::is_group_name;
use ncmesh_host::streams::rtp::RtpSender;
use ncmesh_host::streams::{Egress, IngressPacket, too_long};
use ncmesh_stack::Stack;
use ncmesh_wire::{FlowId, NodeId};
use std::io;

/// Streams of this node, and their sockets.
pub struct Streams {
    ports: Ports,
    /// Streams that the ports are connected to; packets leave by UDP ports.
    host: ncmesh_host::streams::Streams<u16>,
    /// Streams of RTP among them.
    rtp: RtpStreams,
    /// It was said that packets are too long.
    warned: bool,
    /// The scheme that carries them; `None` if this program was built without one.
    scheme: Option<Scheme>,
}

impl Streams {
    /// Returns no streams. The default scheme carries those that begin.
    pub(super) fn new(ports: Ports) -> Self {
        let choice = registry().choose(ServiceKind::Stream, AUTO);
        let scheme = choice.ok().map(|choice| choice.scheme);
        Self { ports, host: Default::default(), rtp: Default::default(), warned: false, scheme }
    }

    /// Returns the scheme that carries streams.
    ///
    /// # Errors
    /// [`StreamError`] if this program was built without one.
    pub(super) fn scheme(&self) -> Result<Scheme, StreamError> {
        self.scheme.ok_or(StreamError::UnknownScheme)
    }

    /// Begins the streams of the configuration. Needs a tokio runtime.
    ///
    /// # Errors
    /// Returns one line that says what cannot be.
    pub fn begin(
        &mut self,
        section: &StreamSection,
        moment: &mut Moment<'_>,
    ) -> Result<(), String> {
        if section.scheme != AUTO {
            let choice = registry().choose(ServiceKind::Stream, &section.scheme);
            let choice = choice.map_err(|unknown| format!("scheme: {unknown}"))?;
            self.scheme = Some(choice.scheme);
        }

        for request in &section.send {
            self.send(request, moment).map_err(|e| format!("send: {}", e.error))?;
        }
        for request in &section.receive {
            self.receive(request, moment).map_err(|e| format!("receive: {}", e.error))?;
        }
        Ok(())
    }

    /// Takes layers from local ports and sends them to a group. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`], [`ErrorCode::Port`].
    pub(crate) fn send(
        &mut self,
        request: &SendStream,
        moment: &mut Moment<'_>,
    ) -> Result<(), ApiError> {
        let rtp = match request.input().map_err(bad)? {
            Input::Layers(_) => None,
            Input::Rtp(tracks) => Some(tracks),
        };

        let deadline = request.deadline().map_err(bad)?;
        let inputs = rtp.as_deref().map_or_else(|| request.layers.clone(), rtp::ports);
        // Another program may have a port. Then no stream is opened.
        let ports = Ports::open(&inputs).map_err(|(layer, e)| port_error(&layer, &e))?;
        let sender = rtp.map(|tracks| RtpSender::new(tracks, moment.now));
        let names: Vec<String> = match &sender {
            Some(sender) => sender.layers().iter().map(|name| (*name).to_owned()).collect(),
            None => request.layers.iter().map(|layer| layer.name.clone()).collect(),
        };

        let scheme = self.scheme();
        let new = NewStream { group: &request.group, layers: &names, deadline };
        let opened = scheme.and_then(|scheme| moment.active().open_stream(scheme, new));
        let flow = opened.map_err(|e| bad(e.to_string()))?;

        self.ports.read(&request.group, flow, ports);
        if let Some(sender) = sender {
            self.rtp.send(flow, &request.group, sender);
        }
        tracing::info!("stream {flow} to group {}: {}", request.group, names.join(", "));
        Ok(())
    }

    /// Joins a group and plays it out to local ports. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`], [`ErrorCode::Port`].
    pub(crate) fn receive(
        &mut self,
        request: &ReceiveStream,
        moment: &mut Moment<'_>,
    ) -> Result<(), ApiError> {
        let layers = request.output().map_err(bad)?;
        let ports = layers.into_iter().map(|layer| (layer.name, layer.port));
        let egress = Egress::Layers(ports.collect());
        let scheme = self.scheme();

        let host = &mut self.host;
        let joined = scheme.and_then(|scheme| {
            host.join(&mut moment.active(), scheme, &request.group, request.utility(), egress)
        });
        joined.map_err(|e| bad(e.to_string()))?;

        // The socket is opened for the first group, and used for all.
        let opened = self.ports.open_egress();
        opened.map_err(|e| ApiError::new(ErrorCode::Port, format!("no UDP socket: {e}")))?;
        match request.rtp {
            Some(port) => self.rtp.join(&request.group, port),
            None => self.rtp.leave(&request.group),
        }

        tracing::info!("joined group {}", request.group);
        Ok(())
    }

    /// Ends the stream that this node sends to a group.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`].
    pub(crate) fn stop_sending(
        &mut self,
        group: &str,
        moment: &mut Moment<'_>,
    ) -> Result<(), ApiError> {
        check_user_group(group)?;
        // The ports are closed first, so that no datagram comes for a stream that is gone.
        self.ports.stop_reading(group);
        self.rtp.stop_sending(group);

        let mut stack = moment.active();
        if self.scheme().is_ok_and(|scheme| stack.close_stream(scheme, group)) {
            tracing::info!("stream to group {group} ended");
            return Ok(());
        }

        Err(no_such_group(group))
    }

    /// Leaves a group.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`].
    pub(crate) fn stop_receiving(
        &mut self,
        group: &str,
        moment: &mut Moment<'_>,
    ) -> Result<(), ApiError> {
        check_user_group(group)?;
        self.rtp.leave(group);

        let mut stack = moment.active();
        if self.scheme().is_ok_and(|scheme| self.host.leave(&mut stack, scheme, group)) {
            tracing::info!("left group {group}");
            return Ok(());
        }

        Err(no_such_group(group))
    }

    /// Takes a datagram that came in by a port.
    pub fn handle_ingress(&mut self, ingress: IngressPacket, moment: &mut Moment<'_>) {
        let Ok(scheme) = self.scheme() else { return };
        for packet in self.rtp.handle_ingress(ingress, moment.now) {
            let sent = self.host.send(&mut moment.active(), scheme, &packet);
            // Once: a source sends hundreds of packets each second.
            if let Err(StreamPacketError::TooLong { bytes, longest }) = sent
                && !self.warned
            {
                tracing::warn!("{}", too_long(bytes, longest));
                self.warned = true;
            }
        }
    }

    /// Returns what is wrong with streams.
    pub(super) fn hints(&self, stack: &Stack) -> Vec<String> {
        let streams = stack.streams();
        let scheme = self.scheme().ok();
        let longest = scheme.and_then(|scheme| stack.longest_stream_packet(scheme));
        let source = |status: &StreamStatus| name_of(stack, status.flow.source);
        let joined = joined_by_users(stack);
        let mut hints = self.host.hints(&streams, &joined, longest, source);
        hints.extend(self.rtp.hints());
        hints
    }

    /// Returns the layers of a group that are played out, and their ports, for people.
    fn playing(&self, group: &str) -> Vec<String> {
        let ports = self.host.ports(group);
        ports.map(|(name, port)| format!("{name}=udp:{port}")).collect()
    }

    /// Returns the groups that this node joined, for `GET /v1/streams/received`.
    pub(super) fn joined(&self, stack: &Stack) -> Vec<JoinedGroup> {
        let streams = stack.streams();
        let joined = |group: String| {
            let own = streams.iter().filter(|(_, status)| status.group == group);
            let playing = self.playing(&group);
            let streams = own.map(|(_, status)| status.flow.to_string()).collect();
            let sdp = self.rtp.sdp(&group);
            JoinedGroup { streams, playing, sdp, group }
        };

        joined_by_users(stack).into_iter().map(joined).collect()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is next to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.rtp.poll_timeout()
    }

    /// Plays out what has waited long enough for packets before it.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.rtp.handle_timeout(now);
        self.play_rtp();
    }

    /// Plays out a packet that arrived.
    pub(super) fn play(
        &mut self,
        flow: FlowId,
        group: &str,
        layer: &str,
        packet: &[u8],
        now: Instant,
    ) {
        if self.rtp.handle_packet(flow, group, layer, packet, now) {
            self.play_rtp();
        } else if let Some(port) = self.host.port(group, layer) {
            self.ports.play(*port, packet);
        }
    }

    /// Plays out RTP that need not wait for packets before it any longer.
    fn play_rtp(&mut self) {
        while let Some(PortPacket { port, packet }) = self.rtp.poll() {
            self.ports.play(port, &packet);
        }
    }

    /// Returns the streams that this node knows, for `GET /v1/streams`.
    pub(super) fn list(&self, stack: &Stack) -> Vec<Stream> {
        let streams = stack.streams().into_iter();
        streams.map(|(scheme, status)| self.stream(stack, scheme, status)).collect()
    }

    /// Returns what keeps this node from what it asks of a stream.
    pub(super) fn problem(&self, status: &StreamStatus) -> Option<Problem> {
        let problem = self.host.problem(status)?;
        Some(Problem { code: problem.code.into(), text: problem.text })
    }

    fn stream(&self, stack: &Stack, scheme: &str, status: StreamStatus) -> Stream {
        let n = status.layers.len();
        let name = |node: NodeId| name_of(stack, node);
        let queue = |queue: stream::StreamQueue| StreamQueue {
            to: name(queue.to),
            values: queue_values(&queue, n),
        };

        let problem = self.problem(&status);
        let receiving = |receiving: stream::Receiving| StreamReceiving {
            values: receiving_values(&receiving, n),
            playing: self.playing(&status.group),
            problem: problem.clone(),
        };

        Stream {
            id: status.flow.to_string(),
            scheme: scheme.into(),
            source: name(status.flow.source),
            receivers: status.receivers,
            parent: status.parent.map(name),
            sending: status.sending.map(|sending| sending_values(&sending, n)),
            receiving: status.receiving.map(receiving),
            queues: status.queues.into_iter().map(queue).collect(),
            group: status.group,
            layers: status.layers,
        }
    }
}

fn bad(problem: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, problem)
}

/// Returns the groups that were joined, but for those that the tunnel joined for multicast.
fn joined_by_users(stack: &Stack) -> Vec<String> {
    let groups = stack.stream_groups().into_iter();
    groups.filter(|group| !is_group_name(group)).collect()
}

fn port_error(layer: &Layer, e: &io::Error) -> ApiError {
    let problem = if e.kind() == io::ErrorKind::AddrInUse {
        "is in use by another program, or by another stream".to_owned()
    } else {
        format!("cannot be opened: {e}")
    };
    let Layer { name, port } = layer;
    ApiError::new(ErrorCode::Port, format!("layer {name}: UDP port {port} of 127.0.0.1 {problem}"))
}

/// Refuses to end what programs of the host do by IP multicast.
fn check_user_group(group: &str) -> Result<(), ApiError> {
    if !is_group_name(group) {
        return Ok(());
    }
    let why = "carries IP multicast, which ends with the programs that use it";
    Err(bad(format!("group {group:?} {why}")))
}

fn no_such_group(group: &str) -> ApiError {
    let problem =
        format!("this node has no part in group {group:?}; `ncmesh stream list` shows them");
    ApiError::new(ErrorCode::NotFound, problem)
}
