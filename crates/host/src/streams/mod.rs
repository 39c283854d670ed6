//! Streams of a host: what its ports are connected to.
//!
//! A *port* is where packets of one layer enter or leave the host: a UDP port of the loopback
//! interface in the daemon, the receiver itself in the simulator. [`Streams`] connects ports to the
//! stack: packets that enter go to their stream's layer, packets that arrive leave by the port that
//! the host named for their layer, and by none if it named none. It also finds out what is wrong
//! with a stream, in words for people. Opening sockets is the driver's.

mod request;
pub mod rtp;
#[cfg(test)]
mod tests;

pub use request::{Input, Layer, ReceiveStream, SendStream, StreamSection, check_layers};

use ncmesh_engine::registry::Scheme;
use ncmesh_engine::stream::{StreamError, StreamPacketError, StreamStatus, UtilityConfig};
use ncmesh_stack::Active;
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};

/// Where the layers of a joined group leave the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Egress<P> {
    /// All layers by one port.
    Every(P),
    /// Each layer by its own port. One that is not listed goes nowhere.
    Layers(BTreeMap<String, P>),
}

/// A packet that enters the host by a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPacket {
    /// The stream.
    pub flow: FlowId,
    /// Its layer, 0 being the base.
    pub layer: usize,
    /// The packet.
    pub packet: Vec<u8>,
}

/// Reason why a host does not get the rate that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name for programs.
    pub code: &'static str,
    /// The same for people.
    pub text: String,
}

/// Streams that a host sends and receives by one scheme. `P` is a port that packets leave by.
#[derive(Clone, Debug)]
pub struct Streams<P> {
    /// By group, where its packets leave.
    egress: BTreeMap<String, Egress<P>>,
    /// Longest packet that did not fit a frame, bytes; 0 if all did.
    longest_dropped: usize,
}

impl<P> Default for Streams<P> {
    fn default() -> Self {
        Self { egress: BTreeMap::new(), longest_dropped: 0 }
    }
}

impl<P> Streams<P> {
    // ---- getters

    /// Returns the port that a packet of a layer leaves by.
    #[must_use]
    pub fn port(&self, group: &str, layer: &str) -> Option<&P> {
        match self.egress.get(group)? {
            Egress::Every(port) => Some(port),
            Egress::Layers(ports) => ports.get(layer),
        }
    }

    /// Returns the layers of a group that the host named, with their ports.
    pub fn ports(&self, group: &str) -> impl Iterator<Item = (&str, &P)> {
        let ports = match self.egress.get(group) {
            Some(Egress::Layers(ports)) => Some(ports),
            _ => None,
        };
        ports.into_iter().flatten().map(|(layer, port)| (layer.as_str(), port))
    }

    // ---- commands

    /// Joins a group, whose packets leave by `egress`.
    ///
    /// # Errors
    /// [`StreamError`] if the scheme refuses; nothing is joined then.
    pub fn join(
        &mut self,
        stack: &mut Active<'_>,
        scheme: Scheme,
        group: &str,
        utility: UtilityConfig,
        egress: Egress<P>,
    ) -> Result<(), StreamError> {
        stack.join(scheme, group, utility)?;
        self.egress.insert(group.to_owned(), egress);
        Ok(())
    }

    /// Leaves a group. Returns whether the host was in it.
    pub fn leave(&mut self, stack: &mut Active<'_>, scheme: Scheme, group: &str) -> bool {
        self.egress.remove(group);
        stack.leave(scheme, group)
    }

    /// Sends a packet that entered by a port.
    ///
    /// # Errors
    /// [`StreamPacketError`] says why the scheme did not take it.
    pub fn send(
        &mut self,
        stack: &mut Active<'_>,
        scheme: Scheme,
        ingress: &IngressPacket,
    ) -> Result<(), StreamPacketError> {
        let IngressPacket { flow, layer, packet } = ingress;
        let sent = stack.send_stream_packet(scheme, *flow, *layer, packet);
        if let Err(StreamPacketError::TooLong { bytes, .. }) = sent {
            self.longest_dropped = self.longest_dropped.max(bytes);
        }
        sent
    }

    // ---- what is wrong

    /// Returns what keeps this host from what it asks of a stream.
    #[must_use]
    pub fn problem(&self, status: &StreamStatus) -> Option<Problem> {
        let receiving = status.receiving.as_ref()?;
        if let Some(trouble) = receiving.problem {
            return Some(Problem { code: trouble.name(), text: trouble.to_string() });
        }
        let is_unknown = |(name, _): &(&str, &P)| status.layers.iter().all(|layer| layer != name);
        let (unknown, _) = self.ports(&status.group).find(is_unknown)?;
        let layers = status.layers.join(", ");
        let text = format!("it has no layer {unknown}: its layers are {layers}");
        Some(Problem { code: "no_such_layer", text })
    }

    /// Returns advice about the streams known here, each with the name of its scheme, and the
    /// groups joined. `longest` is the longest packet that the scheme of new streams carries,
    /// `name_of` names a stream's source.
    pub fn hints(
        &self,
        streams: &[(&str, StreamStatus)],
        groups: &[String],
        longest: Option<usize>,
        name_of: impl Fn(&StreamStatus) -> String,
    ) -> Vec<String> {
        // The limit is worth a hint only if a packet was dropped for it.
        let longest = longest.filter(|_| self.longest_dropped > 0);
        let mut hints: Vec<String> =
            longest.into_iter().map(|longest| too_long(self.longest_dropped, longest)).collect();
        for group in groups {
            if streams.iter().all(|(_, status)| status.group != *group) {
                hints.push(nobody_sends(group, streams));
            }
        }

        // Then what each stream known here has to complain about.
        for (scheme, status) in streams {
            let stream = format!("stream {} to group {}", status.flow, status.group);
            let refused = status.sending.as_ref().map_or(0, |sending| sending.refused);
            hints.extend((refused > 0).then(|| bursts(&stream, refused, scheme)));
            let problem = self.problem(status);
            let from = name_of(status);
            hints.extend(problem.map(|problem| format!("{stream} from {from}: {}", problem.text)));
        }
        hints
    }
}

/// Returns advice about datagrams at the ports of RTP that are none.
#[must_use]
pub fn not_rtp(group: &str, refused: u64) -> String {
    format!(
        "stream to group {group}: {refused} datagrams at its ports were no RTP and were dropped; \
         let the encoder send RTP (ffmpeg: -f rtp), or send them with --layer"
    )
}

/// Returns advice about packets of a group that a player was not given.
#[must_use]
pub fn not_played(group: &str, refused: u64) -> String {
    format!(
        "group {group}: {refused} packets were not played, for they are of another source than the \
         one that is heard, or no RTP; a group that is played as RTP has one source"
    )
}

/// Returns advice about packets that are longer than frames carry.
#[must_use]
pub fn too_long(bytes: usize, longest: usize) -> String {
    format!(
        "packets of a stream are up to {bytes} bytes long, and frames here carry {longest}: those \
         that do not fit are dropped. Make the encoder's packets shorter (ffmpeg: \
         rtp://...?pkt_size={longest}), or [radio] mtu larger"
    )
}

fn nobody_sends(group: &str, streams: &[(&str, StreamStatus)]) -> String {
    let others: BTreeSet<&str> = streams.iter().map(|(_, status)| &status.group[..]).collect();
    let known = match others.len() {
        0 => "to none at all".to_owned(),
        _ => format!("to {}", others.into_iter().collect::<Vec<_>>().join(", ")),
    };
    format!(
        "group {group}: nobody whom this node hears of sends to it (streams known here are {known})"
    )
}

fn bursts(stream: &str, refused: u64, scheme: &str) -> String {
    // Only this scheme limits what enters in a slot.
    let settings = match scheme {
        "multirate" => "raise [multirate] a_max, and on all nodes v with it, or ",
        _ => "",
    };
    format!(
        "{stream}: {refused} packets were refused, as more came than may enter and wait; \
         {settings}let the encoder send less"
    )
}
