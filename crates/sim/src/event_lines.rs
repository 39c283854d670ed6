//! Events as JSON lines, one object for each event. The schema is in `docs/reference/traces.md`.
//!
//! [`EventLines`] opens each frame when it is sent and summarises its contents. Every reception of
//! the frame is written with the same summary.

use crate::host::Observation;
use crate::observe::{Event, Observer, What};
use crate::simulation::SimulationConfig;
use ncmesh_engine::Summary;
use ncmesh_engines::registry;
use ncmesh_medium::{Power, TxResult};
use ncmesh_stack::summary::summarise;
use ncmesh_wire::{Cipher, FlowId, Header, NodeId, Salt};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// Observer that writes every event while the simulation runs. It keeps one frame and a summary for
/// each port in memory.
pub struct EventLines<W: Write> {
    out: W,
    names: Vec<String>,
    /// Name of each channel, if there are several.
    channels: Vec<Option<String>>,
    cipher: Cipher,
    scratch: Vec<u8>,
    /// Contents of each node's latest frame on each channel, for the nodes that hear it.
    latest: Vec<Vec<Option<Content>>>,
}

/// Header fields and summary of an ncmesh frame.
#[derive(Clone, Copy)]
struct Content {
    salt: Salt,
    counter: u32,
    /// Summary of the body; `None` if the body is malformed.
    summary: Option<Summary>,
}

/// The JSON object of an event. Fields that do not apply are omitted.
#[derive(Default, Serialize)]
struct Line<'a> {
    time_ns: u64,
    node: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    power_dbm: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    airtime_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<Cow<'a, str>>,
}

impl<W: Write> EventLines<W> {
    /// Returns an observer of the simulation that `config` describes. It writes to `out`.
    #[must_use]
    pub fn new(out: W, config: &SimulationConfig) -> Self {
        let names = config.names.clone();
        let cipher = config.cipher();
        let channels = 0..=config.channels.len();
        let channels: Vec<Option<String>> =
            channels.map(|channel| config.channel_name(channel).map(str::to_owned)).collect();
        let latest = vec![vec![None; names.len()]; channels.len()];
        Self { out, names, channels, cipher, scratch: Vec::new(), latest }
    }

    /// Opens a frame and returns its contents; `None` if it is not an ncmesh frame of this mesh.
    fn read(&mut self, frame: &[u8]) -> Option<Content> {
        let opened = self.cipher.open(frame, &mut self.scratch).ok()?;
        let Header { salt, counter, .. } = opened.header;
        let summary =
            summarise(registry(), opened.header.sender, opened.service, opened.kind, opened.body);
        Some(Content { salt, counter, summary })
    }

    /// Returns the JSON object of an event; `None` for those that have no line.
    fn line<'a>(&'a self, event: &Event<'_>) -> Option<Line<'a>> {
        // Fields that all kinds have come first. A frame is opened once, when it is sent, and its
        // receptions use the same contents.
        let name = |id: NodeId| name(&self.names, id);
        let node = self.names[event.node].as_str();
        let base = Line { time_ns: event.at.as_nanos(), node, ..Line::default() };
        Some(match event.what {
            What::Sent { channel, to, frame } => {
                let base = self.with_frame(base, channel, event.node, frame);
                Line { kind: "sent", to: to.map(name), ..base }
            }
            What::Heard { channel, from, frame, power } => {
                let base = self.with_frame(base, channel, from, frame);
                Line { kind: "heard", power_dbm: power.map(Power::dbm), ..base }
            }
            What::Reported { channel, result, attempts, airtime_ns } => Line {
                kind: "reported",
                result: Some(result_name(result)),
                attempts: Some(attempts),
                airtime_ns: Some(airtime_ns),
                channel: self.channels[channel].as_deref(),
                ..base
            },
            What::Happened(observation) => {
                let (kind, flow, receiver) = parts(observation);
                Line { kind, flow: Some(flow.to_string()), receiver: receiver.map(name), ..base }
            }
            What::Offered(_) | What::Arrived(_) => return None,
        })
    }

    /// Adds the contents of the latest frame of `sender` on a channel to a line.
    fn with_frame<'a>(
        &'a self,
        line: Line<'a>,
        channel: usize,
        sender: usize,
        frame: &[u8],
    ) -> Line<'a> {
        let content = self.latest[channel][sender];
        let summary = content.and_then(|content| content.summary);
        Line {
            channel: self.channels[channel].as_deref(),
            sender: Some(&self.names[sender]),
            length: Some(frame.len()),
            salt: content.map(|content| content.salt.to_string()),
            counter: content.map(|content| content.counter),
            service: summary.map(|summary| summary.service),
            r#type: summary.map(|summary| summary.kind),
            flow: summary.and_then(|summary| summary.flow).map(|flow| flow.to_string()),
            generation: summary.and_then(|summary| summary.generation),
            ..line
        }
    }
}

impl<W: Write> Observer for EventLines<W> {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Sent { channel, frame, .. } = event.what {
            self.latest[channel][event.node] = self.read(frame);
        }
        let Some(line) = self.line(event) else { return Ok(()) };
        let text = serde_json::to_vec(&line)?;
        self.out.write_all(&text)?;
        self.out.write_all(b"\n")
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the name of a node. An id without a node, which only a forged frame can have brought
/// into the mesh, is written as a number.
fn name(names: &[String], id: NodeId) -> Cow<'_, str> {
    let known = usize::from(id.0).checked_sub(1).and_then(|node| names.get(node));
    known.map_or_else(|| id.to_string().into(), |name| name.as_str().into())
}

/// Returns the kind, the flow and, where there is one, the receiver of an observation.
fn parts(observation: &Observation) -> (&'static str, FlowId, Option<NodeId>) {
    match *observation {
        Observation::Delivered(flow) => ("delivered", flow, None),
        Observation::ReceiverDone(flow, receiver) => ("receiver_done", flow, Some(receiver)),
        Observation::SendEnded(flow) => ("send_ended", flow, None),
        Observation::SendFailed(flow) => ("send_failed", flow, None),
        Observation::Withdrawn(flow) => ("withdrawn", flow, None),
    }
}

/// Returns the name of a transmission's result.
fn result_name(result: TxResult) -> &'static str {
    match result {
        TxResult::Sent => "sent",
        TxResult::Acked => "acked",
        TxResult::Failed => "failed",
    }
}
