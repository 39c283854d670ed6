//! The node's part in streams: its ports joined to the stack.

use super::Node;
use crate::api::types::{
    ApiError, ErrorCode, JoinedGroup, Problem, Stream, StreamQueue, StreamReceiving, StreamSending,
};
use crate::stream::{Inlet, Layer, Ports, ReceiveStream, SendStream, StreamSection, check_layers};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::stream::{self, LAYERS, StreamPacketError, StreamStatus};
use ncmesh_engines::REGISTRY;
use std::collections::BTreeSet;
use std::io;

/// The streams' ports, and what came in by them in vain.
pub(super) struct Streams {
    pub(super) ports: Ports,
    /// The longest packet that did not fit a frame, bytes; 0 if all did.
    pub(super) too_long: usize,
}

/// The scheme that carries streams.
fn scheme() -> &'static str {
    REGISTRY.of(ServiceKind::Stream).next().map_or("", |entry| entry.name)
}

fn bad(problem: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, problem)
}

impl Node {
    /// Begins what the configuration says. Needs a tokio runtime.
    ///
    /// # Errors
    /// One line that says what cannot be.
    pub fn begin_streams(&mut self, section: &StreamSection) -> Result<(), String> {
        for request in &section.send {
            self.send_stream(request).map_err(|e| format!("send: {}", e.error))?;
        }
        for request in &section.receive {
            self.receive_stream(request).map_err(|e| format!("receive: {}", e.error))?;
        }
        Ok(())
    }

    /// Takes layers from local ports and sends them to a group. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`], [`ErrorCode::Port`].
    pub fn send_stream(&mut self, request: &SendStream) -> Result<(), ApiError> {
        check_layers(&request.layers).map_err(bad)?;
        let ports = Ports::open(&request.layers).map_err(|(layer, e)| port_error(&layer, &e))?;
        let names: Vec<String> = request.layers.iter().map(|layer| layer.name.clone()).collect();
        let mut stack = self.stack.at(self.clock.now(), &mut self.storage);
        let opened = stack.open_stream(scheme(), &request.group, &names);
        let flow = opened.map_err(|e| bad(e.to_string()))?;
        self.streams.ports.read(&request.group, flow, ports);
        tracing::info!("stream {flow} to group {}: {}", request.group, names.join(", "));
        Ok(())
    }

    /// Joins a group and plays it out to local ports. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`], [`ErrorCode::Port`].
    pub fn receive_stream(&mut self, request: &ReceiveStream) -> Result<(), ApiError> {
        check_layers(&request.layers).map_err(bad)?;
        let mut stack = self.stack.at(self.clock.now(), &mut self.storage);
        let joined = stack.join(scheme(), &request.group, request.utility());
        joined.map_err(|e| bad(e.to_string()))?;
        let playing = self.streams.ports.play_to(&request.group, &request.layers);
        playing.map_err(|e| ApiError::new(ErrorCode::Port, format!("no UDP socket: {e}")))?;
        tracing::info!("joined group {}", request.group);
        Ok(())
    }

    /// Ends the stream that this node sends to a group.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`].
    pub fn stop_sending(&mut self, group: &str) -> Result<(), ApiError> {
        self.streams.ports.stop_reading(group);
        let now = self.clock.now();
        if self.stack.at(now, &mut self.storage).close_stream(scheme(), group) {
            tracing::info!("stream to group {group} ended");
            return Ok(());
        }
        Err(no_such_group(group))
    }

    /// Leaves a group.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`].
    pub fn stop_receiving(&mut self, group: &str) -> Result<(), ApiError> {
        self.streams.ports.stop_playing(group);
        if self.stack.at(self.clock.now(), &mut self.storage).leave(scheme(), group) {
            tracing::info!("left group {group}");
            return Ok(());
        }
        Err(no_such_group(group))
    }

    /// A datagram came in by a port.
    pub fn handle_inlet(&mut self, inlet: &Inlet) {
        let mut stack = self.stack.at(self.clock.now(), &mut self.storage);
        let sent = stack.send_stream_packet(scheme(), inlet.flow, inlet.layer, &inlet.packet);
        if let Err(StreamPacketError::TooLong { bytes, longest }) = sent {
            if self.streams.too_long == 0 {
                tracing::warn!("{}", too_long(bytes, longest));
            }
            self.streams.too_long = self.streams.too_long.max(bytes);
        }
    }

    /// What is wrong with streams.
    pub(super) fn stream_hints(&self) -> Vec<String> {
        let bytes = self.streams.too_long;
        let longest = self.stack.longest_stream_packet(scheme()).filter(|_| bytes > 0);
        let mut hints: Vec<String> =
            longest.into_iter().map(|longest| too_long(bytes, longest)).collect();
        let streams = self.stack.streams();
        for group in self.stack.stream_groups() {
            if streams.iter().all(|(_, status)| status.group != group) {
                hints.push(nobody_sends(&group, &streams));
            }
        }
        for (_, status) in &streams {
            let refused = status.sending.as_ref().map_or(0, |sending| sending.refused);
            let problem = self.problem(status);
            let of = format!("stream {} to group {}", status.flow, status.group);
            hints.extend((refused > 0).then(|| bursts(&of, refused)));
            let from = self.name_of(status.flow.source);
            hints.extend(problem.map(|problem| format!("{of} from {from}: {}", problem.text)));
        }
        hints
    }

    /// `GET /v1/streams/received`.
    #[must_use]
    pub fn joined_groups(&self) -> Vec<JoinedGroup> {
        let streams = self.stack.streams();
        let joined = |group: String| {
            let own = streams.iter().filter(|(_, status)| status.group == group);
            let playing = self.streams.ports.playing(&group).collect();
            let streams = own.map(|(_, status)| status.flow.to_string()).collect();
            JoinedGroup { streams, playing, group }
        };
        self.stack.stream_groups().into_iter().map(joined).collect()
    }

    /// A packet of a stream arrived.
    pub(super) fn play(&mut self, group: &str, layer: &str, packet: &[u8]) {
        self.streams.ports.play(group, layer, packet);
    }

    /// `GET /v1/streams`.
    #[must_use]
    pub fn streams(&self) -> Vec<Stream> {
        self.stack
            .streams()
            .into_iter()
            .map(|(scheme, status)| self.stream(scheme, status))
            .collect()
    }

    /// What keeps this node from what it asks of a stream.
    fn problem(&self, status: &StreamStatus) -> Option<Problem> {
        let receiving = status.receiving.as_ref()?;
        let problem = |code: &str, text| Problem { code: code.into(), text };
        if let Some(trouble) = receiving.trouble {
            return Some(problem(trouble.name(), trouble.to_string()));
        }
        let mut wanted = self.streams.ports.layers(&status.group);
        let unknown = wanted.find(|name| status.layers.iter().all(|layer| layer != name))?;
        let layers = status.layers.join(", ");
        Some(problem(
            "no_such_layer",
            format!("it has no layer {unknown}: its layers are {layers}"),
        ))
    }

    fn stream(&self, scheme: &str, status: StreamStatus) -> Stream {
        let n = status.layers.len();
        let packets = |all: [u64; LAYERS]| all[..n].to_vec();
        let queue = |queue: stream::StreamQueue| StreamQueue {
            to: self.name_of(queue.to),
            receivers: queue.receivers,
            held: queue.held[..n].to_vec(),
            place_holders: queue.place_holders,
            drop_queue: queue.drop_queue,
            downstream: queue.downstream,
            weight: queue.weight,
            rate: queue.rate,
            sent: packets(queue.sent),
            dropped: packets(queue.dropped),
            lost: queue.lost,
        };
        let sending = |sending: stream::Sending| StreamSending {
            packets: packets(sending.packets),
            waiting: sending.waiting,
            refused: sending.refused,
        };
        let problem = self.problem(&status);
        let receiving = |receiving: stream::Receiving| StreamReceiving {
            packets: packets(receiving.packets),
            bytes: packets(receiving.bytes),
            z: receiving.z,
            pressure: receiving.pressure,
            min_rate_bps: receiving.minimum_bps,
            rate_bps: receiving.rates_bps.map(|(rate, _)| rate),
            offered_bps: receiving.rates_bps.map(|(_, offered)| offered),
            playing: self.streams.ports.playing(&status.group).collect(),
            problem: problem.clone(),
        };
        Stream {
            id: status.flow.to_string(),
            scheme: scheme.into(),
            source: self.name_of(status.flow.source),
            receivers: status.receivers,
            parent: status.parent.map(|parent| self.name_of(parent)),
            sending: status.sending.map(sending),
            receiving: status.receiving.map(receiving),
            queues: status.queues.into_iter().map(queue).collect(),
            group: status.group,
            layers: status.layers,
        }
    }
}

fn too_long(bytes: usize, longest: usize) -> String {
    format!(
        "packets of a stream are up to {bytes} bytes long, and frames here carry {longest}: those that do not fit are dropped. Make the encoder's packets shorter (ffmpeg: rtp://...?pkt_size={longest}), or [radio] mtu larger"
    )
}

fn nobody_sends(group: &str, streams: &[(&str, StreamStatus)]) -> String {
    let others: BTreeSet<&str> = streams.iter().map(|(_, s)| s.group.as_str()).collect();
    let known = match others.len() {
        0 => "to none at all".to_owned(),
        _ => format!("to {}", others.into_iter().collect::<Vec<_>>().join(", ")),
    };
    format!(
        "group {group}: nobody whom this node hears of sends to it (streams known here are {known})"
    )
}

fn bursts(of: &str, refused: u64) -> String {
    format!(
        "{of}: {refused} packets were refused, as more came than may enter and wait; raise [multirate] a_max, and on all nodes v with it, or let the encoder send less"
    )
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

fn no_such_group(group: &str) -> ApiError {
    let problem =
        format!("this node has no part in group {group:?}; `ncmesh stream list` shows them");
    ApiError::new(ErrorCode::NotFound, problem)
}
