//! Turns the tables of a scenario file into a checked [`Scenario`].
//!
//! [`scenario`] reads the text twice: as a plain table, which overrides change later, and as the
//! types of `file`, which know the place of each value. It then checks table by table. Checks that
//! belong to the medium or to a protocol stay there.

use std::collections::BTreeMap;
use std::path::Path;

use ncmesh_engine::Background;
use ncmesh_engine::file::Allowance;
use ncmesh_engine::path::expand;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::settings::parse;
use ncmesh_engine::time::Duration;
use ncmesh_medium::{ChannelConfig, LinkKind, LossMatrix, MediumConfig, RadioId};
use toml::Spanned;

use super::file::{self, File};
use super::medium::Medium;
use super::network::Mesh;
use super::quantity::Size;
use super::reader::{Original, Reader, check_name, find, index_by_name};
use crate::schemes::{Schemes, SchemesError};

use super::{
    Content, Flow, Measure, Node, Processing, Scenario, ScenarioError, Tcp, Traffic, Transport,
};

/// Nodes of a scenario and the links between them.
struct Network<'a> {
    nodes: &'a [Node],
    /// Loss of each link over the air.
    loss: LossMatrix,
    /// Cables, and links with a rate of their own.
    kinds: BTreeMap<(RadioId, RadioId), LinkKind>,
}

/// Reads and checks a whole scenario.
pub(super) fn scenario(
    text: &str,
    origin: &str,
    directory: &Path,
) -> Result<Scenario, ScenarioError> {
    // Errors of the parser have a place in the text, which becomes the line of the error.
    let syntax = |error| ScenarioError::toml(origin, text, &error);
    let table = parse(text).map_err(syntax)?;
    let file: File = parse(text).map_err(syntax)?;
    let reader = Reader { text, origin, directory };

    // The network and its medium.
    check_name(file.name.as_ref(), "name", &reader.place(&file.name))?;
    let Mesh { nodes, loss, mobility, notes } = reader.network(&file)?;
    let mtu = file.medium.table().mtu;
    let kinds = reader.link_kinds(&file, &nodes)?;

    let network = Network { nodes: &nodes, loss, kinds };
    let medium = reader.medium(&file.medium.0, network, mtu, file.seed)?;

    if let (Some(_), ChannelConfig::Radio(radio)) = (&mobility, &medium.channel)
        && radio.shadowing_db > 0.0
    {
        let message = "nodes that move have no `shadowing_db`: it holds for a pair of places";
        return Err(ScenarioError::value(reader.place(&file.medium.0), message));
    }

    // Measurement and traffic.
    let measure = file.measure.map(|table| {
        let file::Measure { seconds, period_s, bytes } = *table.table();
        let time = |s: f64| Duration::from_nanos((s * 1e9) as u64);
        Measure { duration: time(seconds), bytes, period: time(period_s) }
    });
    let processing = file.processing.map(|table| Processing {
        least: Duration::from_secs_f64(table.table().least_s),
        most: Duration::from_secs_f64(table.table().most_s),
    });

    let traffic: Result<Vec<_>, _> =
        file.traffic.0.iter().map(|traffic| reader.traffic(traffic, &nodes)).collect();
    let flows: Result<Vec<_>, _> =
        file.flow.0.iter().map(|flow| reader.flow(flow, &nodes)).collect();
    let streams: Result<Vec<_>, _> =
        file.stream.0.iter().map(|stream| reader.stream(stream, &nodes)).collect();

    let scenario = Scenario {
        flows: flows?,
        streams: streams?,
        name: file.name.into_inner(),
        description: file.description,
        seed: file.seed,
        sealed: file.sealed,
        trust: file.trust,
        scheme: file.scheme.as_ref().map(|scheme| scheme.get_ref().clone()),
        nodes,
        mobility,
        notes,
        measure,
        processing,
        traffic: traffic?,
        protocol: file.protocol.0,
        mtu,
        medium,
        source: Original { table, origin: origin.to_owned(), directory: directory.to_owned() },
    };

    // A scheme's name is checked with its place in the file, before anything asks for it.
    if let Some(scheme) = &file.scheme {
        let wrong = |e: SchemesError| ScenarioError::value(reader.place(scheme), e.to_string());
        let usual = scenario.services().first().copied().unwrap_or(ServiceKind::File);
        Schemes::read(scheme.get_ref(), usual).map_err(wrong)?;
    }

    Ok(scenario)
}

impl Reader<'_> {
    /// Returns the settings of the medium over a network.
    fn medium(
        &self,
        spanned: &Spanned<Medium>,
        network: Network<'_>,
        mtu: usize,
        seed: u64,
    ) -> Result<MediumConfig, ScenarioError> {
        let Network { nodes, loss, kinds } = network;
        let fail = |message| ScenarioError::value(self.place(spanned), message);
        let mut config = spanned.as_ref().config(loss, nodes, mtu, seed).map_err(fail)?;
        config.links = kinds;
        config.validate().map_err(|error| fail(error.to_string()))?;
        Ok(config)
    }

    /// Returns the checked file transfer.
    fn traffic(&self, traffic: &file::Traffic, nodes: &[Node]) -> Result<Traffic, ScenarioError> {
        let index = index_by_name(nodes, self.origin)?;
        let fail = |place, message: &str| Err(ScenarioError::value(place, message));
        let from = find(&index, traffic.from.as_ref(), &self.place(&traffic.from))?;

        // Each receiver must be another node.
        let mut to = Vec::new();
        for name in &traffic.to.0 {
            let receiver = find(&index, name.as_ref(), &self.place(name))?;
            if receiver == from || to.contains(&receiver) {
                return fail(
                    self.place(name),
                    "a receiver must not be the source, nor listed twice",
                );
            }
            to.push(receiver);
        }
        if to.is_empty() {
            return fail(self.place(&traffic.from), "`to` must name at least one node");
        }

        // A size or a file, not both.
        let content = match (traffic.size, &traffic.file) {
            (Some(Size(bytes)), None) => Content::Random { bytes },
            (None, Some(file)) => match expand(file) {
                Ok(file) => Content::File(self.directory.join(file)),
                Err(problem) => return fail(self.place(&traffic.from), &problem),
            },
            _ => return fail(self.place(&traffic.from), "give `size` or `file`, one of them"),
        };

        let allowance = Allowance {
            background: traffic.background.and_then(Background::of),
            limit_bps: traffic.limit.map(|limit| limit.0),
        };
        Ok(Traffic { from, to, content, allowance })
    }
}

impl Reader<'_> {
    /// Returns the checked flow.
    fn flow(&self, flow: &file::Flow, nodes: &[Node]) -> Result<Flow, ScenarioError> {
        let index = index_by_name(nodes, self.origin)?;
        let fail = |message: &str| Err(ScenarioError::value(self.place(&flow.from), message));
        let from = find(&index, flow.from.as_ref(), &self.place(&flow.from))?;
        let to = find(&index, flow.to.as_ref(), &self.place(&flow.to))?;
        if from == to {
            return fail("`to` must not be the source");
        }

        let time = |s: f64| Duration::from_nanos((s * 1e9) as u64);
        Ok(Flow {
            from,
            to,
            rate_bps: flow.rate.map(|rate| rate.0),
            packet: flow.packet,
            dscp: flow.dscp,
            transport: self.transport(flow)?,
            start: time(flow.start_s),
            warm_up: time(flow.warm_up_s),
            duration: time(flow.seconds),
        })
    }

    /// Returns the transport of a flow. Settings of TCP are refused for datagrams.
    fn transport(&self, flow: &file::Flow) -> Result<Transport, ScenarioError> {
        // A setting that has no effect is usually a forgotten `protocol`, so it is refused.
        if flow.protocol == file::Protocol::Udp {
            let timed = flow.ack_delay_s.is_some() || flow.min_rto_s.is_some();
            let sized = flow.window.is_some() || flow.size.is_some();
            if flow.congestion.is_some() || timed || sized {
                let message = "`congestion`, `window`, `ack_delay_s`, `min_rto_s` and `size` need \
                               `protocol = \"tcp\"`";
                return Err(ScenarioError::value(self.place(&flow.from), message));
            }
            return Ok(Transport::Udp);
        }
        Ok(Transport::Tcp(Tcp {
            congestion: flow.congestion.clone(),
            window: flow.window.and_then(|window| usize::try_from(window.0).ok()),
            ack_delay: flow.ack_delay_s.map(Duration::from_secs_f64),
            min_rto: flow.min_rto_s.map(Duration::from_secs_f64),
            size: flow.size.map(|size| size.0),
        }))
    }
}
