//! Observer that tells a run to a console, in the messages of [`ncmesh_console`].
//!
//! Every [`TICK_S`] of the virtual clock the observer looks at all nodes and at the medium, and
//! makes a [`Key`] of what it sees. The sampler turns it into a tick. What happens between two
//! looks, such as a delivery, is an event. The parts:
//!
//! | module | tells |
//! | --- | --- |
//! | `mesh` | nodes, links and neighbours |
//! | `transfers` | files, at their source and at each receiver |
//! | `flows` | packets through tunnels |
//! | `streams` | live streams |
//!
//! Looking changes nothing, so a run that is told is the same run.

mod flows;
mod mesh;
mod streams;
mod transfers;

use crate::host::Observation;
use crate::observe::{Event, Observer, Snapshot, What};
use crate::scenario::{self, Scenario};
use crate::schemes::Schemes;
use crate::simulation::{SimulationConfig, node_id};
use flows::Flows;
use mesh::Mesh;
use ncmesh_console::schema::{
    self, EventKind, KEY_S, Key, Link, Message, Meta, Node, SCHEMA, Source, Stage, TICK_S,
};
use ncmesh_console::{Sampler, Sink};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::{Duration, Instant};
use std::io;
use streams::Streams;
use transfers::Transfers;

/// Time between two looks.
const TICK: Duration = Duration::from_millis(100);

/// Observer that tells a run to a console, message by message.
pub struct Console<S> {
    sink: S,
    sampler: Sampler,
    meta: Meta,
    next: Instant,
    mesh: Mesh,
    is_moving: bool,
    transfers: Transfers,
    flows: Flows,
    streams: Streams,
    /// Events since the last look.
    events: Vec<schema::Event>,
}

impl<S: Sink> Console<S> {
    /// Returns an observer of the run of `scenario` with `config` and `schemes`. It tells `sink`.
    #[must_use]
    pub fn new(scenario: &Scenario, config: &SimulationConfig, schemes: &Schemes, sink: S) -> Self {
        let meta = meta(scenario, config, schemes);
        Self {
            mesh: Mesh::new(&meta, config),
            is_moving: config.mobility.is_some(),
            transfers: Transfers::new(),
            flows: Flows::new(scenario, scheme_of(schemes, ServiceKind::Tunnel)),
            streams: Streams::new(scenario),
            sink,
            sampler: Sampler::new(),
            meta,
            next: Instant::default(),
            events: Vec::new(),
        }
    }

    /// Tells an event that is not part of a look.
    fn note(&mut self, at: Instant, node: Option<usize>, what: EventKind) {
        let node = node.map(|node| node_id(node).0);
        self.events.push(schema::Event { time_s: seconds(at), node, what });
    }
}

impl<S: Sink> Observer for Console<S> {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event.what {
            What::Sent { .. } | What::Heard { .. } | What::Reported { .. } => {}
            What::Offered(packet) => self.flows.offered(packet, event.at),
            What::Arrived(packet) => self.flows.arrived(packet, event.at),
            What::Happened(observation) => {
                if let Some(what) = kind_of(&self.transfers, observation) {
                    self.note(event.at, Some(event.node), what);
                }
            }
        }
        Ok(())
    }

    fn next_look(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn look(&mut self, snapshot: Snapshot<'_>) -> io::Result<()> {
        // The last look of a run may come at the same instant as the one before.
        let at = snapshot.at;
        let last = self.sampler.state().map(|state| state.time_s);
        self.next = at + TICK;
        if last == Some(seconds(at)) {
            return Ok(());
        }

        let mut changes = Vec::new();
        let (nodes, links) = self.mesh.look(&snapshot, &mut self.meta, &mut changes);
        let transfers = self.transfers.look(&snapshot, &mut self.meta, &mut changes);
        let state = Key {
            time_s: seconds(at),
            nodes,
            links,
            transfers,
            flows: self.flows.look(&snapshot, &mut changes),
            streams: self.streams.look(&snapshot),
            // Roll-outs are led by daemons alone.
            rollouts: Vec::new(),
            places: self.is_moving.then(|| mesh::places(&snapshot)),
        };

        // Events go out before the state that shows their effects.
        for (node, what) in changes {
            self.note(at, Some(node), what);
        }

        let sink = &mut self.sink;
        let events = self.events.drain(..);
        self.sampler.sample(&self.meta, state, events, |message| sink.tell(&message))
    }

    fn finish(&mut self) -> io::Result<()> {
        let time_s = self.sampler.state().map_or(0.0, |state| state.time_s);
        let end = schema::Event { time_s, node: None, what: EventKind::End };
        self.sink.tell(&Message::Event(end))?;
        self.sink.finish()
    }
}

/// Returns a time as messages have it.
fn seconds(at: Instant) -> f64 {
    schema::seconds(at.as_secs_f64())
}

/// Returns what there is in a scenario. Transfers come when they begin.
fn meta(scenario: &Scenario, config: &SimulationConfig, schemes: &Schemes) -> Meta {
    let loss = scenario.loss();
    let channels = scenario.link_channels();
    let links = loss.links().map(|link| Link {
        from: node_id(link.from.0).0,
        to: node_id(link.to.0).0,
        // Losses of nodes that move are true at the start only.
        loss: config.mobility.is_none().then(|| (link.loss * 1e4).round() / 1e4),
        ports: channels.get(&(link.from.0, link.to.0)).cloned().unwrap_or_default(),
    });

    let nodes = scenario.nodes.iter().enumerate().map(|(i, node)| Node {
        id: node_id(i).0,
        name: node.name.clone(),
        position: node.position.map(|scenario::Position { x, y, z }| schema::Position::Plan {
            x,
            y,
            z,
        }),
    });

    let flows = scenario.flows.iter().map(|flow| schema::Flow {
        from: node_id(flow.from).0,
        to: node_id(flow.to).0,
        protocol: Some(flow.transport.name().to_owned()),
        rate_bps: flow.rate_bps.map(|rate| rate as f64),
        packet_bytes: flow.packet.and_then(|bytes| u32::try_from(bytes).ok()),
    });
    let streams = scenario.streams.iter().map(|stream| schema::Stream {
        group: stream.group.clone(),
        scheme: scheme_of(schemes, ServiceKind::Stream).to_owned(),
        from: node_id(stream.from).0,
        layers: stream.layers.iter().map(layer).collect(),
        to: stream.receivers.iter().map(|receiver| node_id(receiver.node).0).collect(),
    });

    Meta {
        schema: SCHEMA,
        source: Source::Simulation,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: Some(scenario.name.clone()),
        seed: Some(scenario.seed.into()),
        schemes: schemes.entries().map(|entry| entry.name.to_owned()).collect(),
        bit_rate_bps: Some(config.medium.bit_rate_bps as f64),
        tick_s: TICK_S,
        key_s: KEY_S,
        observer: None,
        nodes: nodes.collect(),
        links: links.collect(),
        transfers: Vec::new(),
        flows: flows.collect(),
        streams: streams.collect(),
        rollouts: Vec::new(),
    }
}

/// Returns the scheme of a service. Traffic that the run leaves out has the name of another.
fn scheme_of(schemes: &Schemes, service: ServiceKind) -> &'static str {
    schemes.of(service).or_else(|| schemes.entries().next()).map_or("", |entry| entry.name)
}

/// Returns a layer of a stream.
fn layer(layer: &scenario::Layer) -> schema::Layer {
    schema::Layer { name: layer.name.clone(), rate_bps: Some(layer.rate_bps as f64) }
}

/// Returns the event of an observation, if its transfer is known.
fn kind_of(transfers: &Transfers, observation: &Observation) -> Option<EventKind> {
    let stage = |flow, stage| Some(EventKind::Transfer { transfer: transfers.place(flow)?, stage });
    match *observation {
        Observation::Delivered(flow) | Observation::SendEnded(flow) => stage(flow, Stage::Complete),
        Observation::SendFailed(flow) => stage(flow, Stage::Failed),
        Observation::Withdrawn(flow) => stage(flow, Stage::Withdrawn),
        Observation::ReceiverDone(flow, node) => {
            Some(EventKind::ReceiverDone { transfer: transfers.place(flow)?, receiver: node.0 })
        }
    }
}
