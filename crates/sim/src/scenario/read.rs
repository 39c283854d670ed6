//! Turns the tables of a scenario file into a checked [`Scenario`].
//!
//! [`scenario`] reads the text twice: as a plain table, which overrides change later, and as the
//! types of `file`, which know the place of each value. It then checks table by table. Checks that
//! belong to the medium or to a protocol stay there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ncmesh_engine::Background;
use ncmesh_engine::file::Allowance;
use ncmesh_engine::path::expand;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::settings::parse;
use ncmesh_engine::time::Duration;
use ncmesh_medium::{ChannelConfig, LinkKind, LossMatrix, MediumConfig, RadioId};
use toml::Spanned;

use super::error::Place;
use super::file::{self, File};
use super::medium::ChannelTable;
use super::network::Mesh;
use super::quantity::Size;
use super::reader::{Original, Reader, check_name, find, index_by_name};
use crate::schemes::{Schemes, SchemesError};

use super::{
    Channel, Content, FIRST_CHANNEL, Flow, Measure, Node, Processing, Scenario, ScenarioError, Tcp,
    Traffic, Transport,
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
    let kinds = reader.link_kinds(&file, None, &nodes)?;

    let has_links = |node: usize| {
        let over_air = loss.links().any(|link| [link.from.0, link.to.0].contains(&node));
        over_air || kinds.keys().any(|(from, to)| [from.0, to.0].contains(&node))
    };
    let without: BTreeSet<usize> = (0..nodes.len()).filter(|node| !has_links(*node)).collect();
    let network = Network { nodes: &nodes, loss, kinds };
    let medium = reader.medium(&file, None, network)?;
    let channels = reader.channels(&file, &nodes)?;
    let is_elsewhere = |node: &usize| channels.iter().any(|other| other.nodes.contains(node));
    let absent = without.into_iter().filter(is_elsewhere).collect();

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
        absent,
        channels,
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
        file: &File,
        channel: Option<&Spanned<ChannelTable>>,
        network: Network<'_>,
    ) -> Result<MediumConfig, ScenarioError> {
        let Network { nodes, loss, kinds } = network;
        let spanned = &file.medium.0;
        let place = || channel.map_or_else(|| self.place(spanned), |own| self.place(own));
        let fail = |message| ScenarioError::value(place(), message);
        let table = spanned.as_ref();
        let own = channel.map(Spanned::get_ref);
        let config = table.config(own, loss, nodes, table.mtu, file.seed);
        let mut config = config.map_err(fail)?;
        config.links = kinds;
        config.validate().map_err(|error| fail(error.to_string()))?;
        Ok(config)
    }

    /// Returns the further channels. A node is on each that it has a link on.
    fn channels(&self, file: &File, nodes: &[Node]) -> Result<Vec<Channel>, ScenarioError> {
        let mut named: BTreeMap<&str, Place> = BTreeMap::new();
        let mut channels = Vec::new();
        for table in &file.channel.0 {
            let name = &table.as_ref().name;
            let place = self.place(name);
            check_name(name.as_ref(), "channel", &place)?;
            if let Some(first) = named.insert(name.as_ref(), place.clone()) {
                let message =
                    format!("two channels are named `{}`, the first at {first}", name.as_ref());
                return Err(ScenarioError::value(place, message));
            }
            if name.as_ref() == FIRST_CHANNEL {
                let message = format!("the channel of [medium] is called `{FIRST_CHANNEL}`");
                return Err(ScenarioError::value(place, message));
            }
            if file.medium.table().is_slotted() {
                let message = "further channels need `mac = \"dcf\"` of [medium]";
                return Err(ScenarioError::value(place, message));
            }

            let mut loss = LossMatrix::new(nodes.len());
            self.set_links(file, Some(name.as_ref()), nodes, &mut loss)?;
            let kinds = self.link_kinds(file, Some(name.as_ref()), nodes)?;
            let over_air = loss.links().flat_map(|link| [link.from.0, link.to.0]);
            let of_kinds = kinds.keys().flat_map(|(from, to)| [from.0, to.0]);
            let on_it: BTreeSet<usize> = over_air.chain(of_kinds).collect();
            if on_it.is_empty() {
                let message = format!("no `[[link]]` has `channel = \"{}\"`", name.as_ref());
                return Err(ScenarioError::value(place, message));
            }

            // Each channel draws from a stream of its own.
            let mut medium = self.medium(file, Some(table), Network { nodes, loss, kinds })?;
            medium.seed = file.seed.wrapping_add((channels.len() as u64 + 1) << 32);
            channels.push(Channel { name: name.as_ref().clone(), medium, nodes: on_it });
        }

        // A name that no channel has is a typing error.
        let links = file.link.0.iter().filter_map(|link| link.as_ref().channel.as_ref());
        if let Some(unknown) =
            links.clone().find(|name| !named.contains_key(name.as_ref().as_str()))
        {
            let message = format!("no `[[channel]]` is named `{}`", unknown.as_ref());
            return Err(ScenarioError::value(self.place(unknown), message));
        }
        match &file.measure {
            Some(measure) if !channels.is_empty() => {
                let message = "on several channels nodes measure their links themselves";
                Err(ScenarioError::value(self.place(&measure.0), message))
            }
            _ => Ok(channels),
        }
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
