//! Turns the tables of a scenario file into a checked [`Scenario`].
//!
//! [`scenario`] reads the text twice: as a plain table, which overrides change later, and as the
//! types of `file`, which know the place of each value. It then checks table by table. Checks that
//! belong to the medium or to a protocol stay there.

use std::collections::BTreeMap;
use std::path::Path;

use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_medium::{ChannelConfig, LinkKind, LossMatrix, MediumConfig, RadioId};
use toml::Spanned;

use super::file::{self, File};
use super::medium::Medium;
use super::network::Mesh;
use super::reader::{Original, Reader, TIMES, check_name, find, index_by_name};
use crate::schemes::{Schemes, SchemesError};

use super::{
    Content, Flow, Measure, Node, Processing, Scenario, ScenarioError, Tcp, Traffic, Transport,
};

/// Most random bytes that a transfer can have, since they are generated in memory.
const LARGEST_RANDOM: u64 = 4_000_000_000;

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
    let table = toml::from_str(text).map_err(syntax)?;
    let file: File = toml::from_str(text).map_err(syntax)?;
    let reader = Reader { text, origin, directory };

    // The network and its medium.
    check_name(file.name.as_ref(), "name", &reader.place(&file.name))?;
    let Mesh { nodes, loss, mobility } = reader.network(&file)?;
    let mtu = file.medium.get_ref().mtu;
    let kinds = reader.link_kinds(&file, &nodes)?;
    let network = Network { nodes: &nodes, loss, kinds };
    let medium = reader.medium(&file.medium, network, mtu, file.seed)?;
    if let (Some(_), ChannelConfig::Radio(radio)) = (&mobility, &medium.channel)
        && radio.shadowing_db > 0.0
    {
        let message = "nodes that move have no `shadowing_db`: it holds for a pair of places";
        return Err(ScenarioError::value(reader.place(&file.medium), message));
    }

    // Measurement and traffic.
    let measure = file.measure.map(|file::Measure { seconds, period_s, bytes }| {
        let time = |s: f64| Duration::from_nanos((s * 1e9) as u64);
        Measure { duration: time(seconds), bytes, period: time(period_s) }
    });
    let processing = file.processing.map(|file::Processing { least_s, most_s }| Processing {
        least: Duration::from_secs_f64(least_s),
        most: Duration::from_secs_f64(most_s),
    });
    let traffic =
        file.traffic.as_ref().map(|traffic| reader.traffic(traffic, &nodes)).transpose()?;
    let flows: Result<Vec<_>, _> = file.flow.iter().map(|flow| reader.flow(flow, &nodes)).collect();
    let streams: Result<Vec<_>, _> =
        file.stream.iter().map(|stream| reader.stream(stream, &nodes)).collect();

    let scenario = Scenario {
        flows: flows?,
        streams: streams?,
        name: file.name.into_inner(),
        description: file.description,
        seed: file.seed,
        sealed: file.sealed,
        scheme: file.scheme.as_ref().map(|scheme| scheme.get_ref().clone()),
        nodes,
        mobility,
        measure,
        processing,
        traffic,
        protocol: file.protocol,
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
        for name in traffic.to.as_ref() {
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
            return fail(self.place(&traffic.to), "`to` must name at least one node");
        }

        // A size or a file, not both.
        let content = match (&traffic.size, &traffic.file) {
            (Some(size), None) if size.get_ref().0.0 > LARGEST_RANDOM => {
                let message = "size: allowed is up to 4 GB; for more give a `file`";
                return fail(self.place(size), message);
            }
            (Some(size), None) if size.get_ref().0.0 > 0 => {
                Content::Random { bytes: size.get_ref().0.0 }
            }
            (None, Some(file)) => Content::File(self.directory.join(file)),
            _ => {
                return fail(
                    self.place(&traffic.from),
                    "give `size` (above 0) or `file`, one of them",
                );
            }
        };
        Ok(Traffic { from, to, content })
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

        // An infinite or negative time has no meaning on the virtual clock.
        let times = [flow.start_s, flow.warm_up_s, flow.seconds];
        if times.iter().any(|s| !TIMES.contains(s)) || flow.seconds == 0.0 {
            return fail("`start_s` and `warm_up_s` must be 0 to 1e9, `seconds` above 0 to 1e9");
        }
        if flow.packet == Some(0) || flow.rate.as_ref().is_some_and(|rate| rate.get_ref().0.0 == 0)
        {
            return fail("`packet` and `rate` must be above 0");
        }

        let [start, warm_up, duration] = times.map(|s| Duration::from_nanos((s * 1e9) as u64));
        let rate_bps = flow.rate.as_ref().map(|rate| rate.get_ref().0.0);
        let (packet, transport) = (flow.packet, self.transport(flow)?);
        Ok(Flow { from, to, rate_bps, packet, transport, start, warm_up, duration })
    }

    /// Returns the transport of a flow. Settings of TCP are refused for datagrams.
    fn transport(&self, flow: &file::Flow) -> Result<Transport, ScenarioError> {
        let fail = |message: &str| Err(ScenarioError::value(self.place(&flow.from), message));
        let bytes = |size: &Option<Spanned<file::Size>>| size.as_ref().map(|s| s.get_ref().0.0);
        let (window, size) = (bytes(&flow.window), bytes(&flow.size));

        // A setting that has no effect is usually a forgotten `protocol`, so it is refused.
        if flow.protocol == file::Protocol::Udp {
            let timed = flow.ack_delay_s.is_some() || flow.min_rto_s.is_some();
            if flow.congestion.is_some() || timed || window.is_some() || size.is_some() {
                return fail(
                    "`congestion`, `window`, `ack_delay_s`, `min_rto_s` and `size` need \
                     `protocol = \"tcp\"`",
                );
            }
            return Ok(Transport::Udp);
        }

        // Names of congestion controls are not checked here: the lab's kernel may know others than
        // the simulator.
        if size == Some(0) || window.is_some_and(|window| !WINDOWS.contains(&window)) {
            return fail("of `tcp`: `size` above 0, `window` 4096 to 67108864 bytes");
        }
        if flow.ack_delay_s.is_some_and(|delay_s| !(0.0..=1.0).contains(&delay_s)) {
            return fail("`ack_delay_s` must be 0 to 1");
        }
        if flow.min_rto_s.is_some_and(|least_s| !(0.001..=60.0).contains(&least_s)) {
            return fail("`min_rto_s` must be 0.001 to 60");
        }
        let window = window.and_then(|window| usize::try_from(window).ok());
        let congestion = flow.congestion.clone();
        let ack_delay = flow.ack_delay_s.map(Duration::from_secs_f64);
        let min_rto = flow.min_rto_s.map(Duration::from_secs_f64);
        Ok(Transport::Tcp(Tcp { congestion, window, ack_delay, min_rto, size }))
    }
}

/// Range of the buffers of TCP, bytes.
const WINDOWS: std::ops::RangeInclusive<u64> = 4096..=1 << 26;
