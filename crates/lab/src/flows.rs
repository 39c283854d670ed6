//! Flows through the tunnels of a lab's daemons.

use crate::iperf::{Load, LoadError, Measured};
use crate::samples::Samples;
use crate::tunnel::{Tunnel, address_v4};
use crate::{LOOK, Lab, LabError, ping};
use ncmesh_engine::tunnel::coding_ratio;
use ncmesh_node::api::types::{Coding, Flow as FlowView, Status};
use ncmesh_sim::CodingOutcome;
use ncmesh_sim::scenario::{Flow, Transport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What came of the flows of a lab.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabFlows {
    /// The scenario's name.
    pub scenario: String,
    /// The engine.
    pub scheme: String,
    /// Each flow, in the scenario's order.
    pub flows: Vec<LabFlow>,
    /// Data packets all nodes sent since they started.
    pub transmissions: u64,
    /// Of a scheme that codes packets which cross, what each node coded while flows ran, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coding: BTreeMap<String, CodingOutcome>,
    /// Seconds from the start of the first flow to the end of the last.
    pub seconds: f64,
    /// How they got on, if that was to be noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// What came of one flow, while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LabFlow {
    /// Its source.
    pub from: String,
    /// Its destination.
    pub to: String,
    /// `udp` or `tcp`.
    pub protocol: String,
    /// The congestion control that was asked for.
    pub congestion: Option<String>,
    /// Length of its IP packets, bytes; of TCP that of full segments.
    pub packet_bytes: usize,
    /// How long it was measured, s.
    pub seconds: f64,
    /// What arrived in that time, bit/s: of UDP whole IP packets, of TCP its payload.
    pub throughput_bps: f64,
    /// Packets that arrived, of UDP.
    pub delivered: Option<u64>,
    /// Share of the packets offered that did not arrive, of UDP.
    pub loss: Option<f64>,
    /// Mean deviation of the packets' delay (RFC 3550), s, of UDP.
    pub jitter_s: Option<f64>,
    /// Segments that were sent again, of TCP.
    pub retransmits: Option<u64>,
    /// Segments sent, as many full ones as there were bytes, and those that were sent again, of TCP.
    pub segments: Option<u64>,
    /// Mean round-trip time as the sender measured it, s, of TCP.
    pub mean_rtt_s: Option<f64>,
    /// Median round-trip time of pings before any flow began, s, where that was measured.
    pub idle_rtt_s: Option<f64>,
    /// Data frames heard by the destination, from the flow's beginning to the last one's end.
    pub heard: u64,
    /// Of those, the ones that brought something new.
    pub innovative: u64,
}

/// Flows under way. Dropped, they end at once.
pub struct RunningFlows {
    loads: Vec<Load>,
    /// What their destinations had heard of them.
    before: Vec<(u64, u64)>,
    /// What each node had coded.
    coded_before: BTreeMap<String, Coding>,
    begin: Instant,
    running: JoinSet<(usize, Result<Measured, LoadError>)>,
    /// How they got on, noted so often.
    sampled: Option<(Duration, Samples)>,
}

impl RunningFlows {
    /// Notes so often how many packets have arrived.
    #[must_use]
    pub fn sampled(self, every: Duration) -> Self {
        let samples = Samples::of(self.loads.len());
        Self { sampled: Some((every, samples)), ..self }
    }
}

impl Lab {
    /// Waits until the mesh has measured itself and the ends of every flow can reach each other.
    ///
    /// # Errors
    /// As of [`settle`](Self::settle).
    pub async fn settle_flows(&mut self) -> Result<(), LabError> {
        for flow in self.scenario.flows.clone() {
            self.settle(flow.from, &[flow.to]).await?;
            self.settle(flow.to, &[flow.from]).await?;
        }
        Ok(())
    }

    /// Begins to carry the scenario's flows by the tunnel scheme that the lab was started with.
    ///
    /// # Errors
    /// [`LabError::Api`].
    pub async fn begin_flows(&mut self) -> Result<RunningFlows, LabError> {
        let (loads, before) = (self.loads()?, self.heard().await?);
        let coded_before = self.coded().await?;
        let begin = Instant::now();
        let mut running = JoinSet::new();
        for load in loads.clone() {
            running.spawn(async move { (load.number, load.run(begin).await) });
        }
        Ok(RunningFlows { loads, before, coded_before, begin, running, sampled: None })
    }

    /// Carries flows to their end.
    ///
    /// # Errors
    /// [`LabError::Iperf`], [`LabError::Flow`], and those of [`check`](Self::check).
    pub async fn finish_flows(&mut self, flows: RunningFlows) -> Result<LabFlows, LabError> {
        let RunningFlows { loads, before, coded_before, begin, mut running, mut sampled } = flows;
        let look = sampled.as_ref().map_or(LOOK, |(every, _)| *every);
        let mut measured = vec![Measured::default(); loads.len()];
        while !running.is_empty() {
            tokio::select! {
                Some(ended) = running.join_next() => {
                    let (number, result) = ended.map_err(io::Error::other)?;
                    measured[number] = result.map_err(|e| self.blame(number, e))?;
                }
                () = tokio::time::sleep(look) => {
                    self.check()?;
                    if let Some((_, samples)) = &mut sampled {
                        samples.add(begin.elapsed(), &self.seen().await?);
                    }
                }
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let heard = before.into_iter().zip(self.heard().await?);
        let each = loads.iter().zip(&measured).zip(heard);
        let flows = each.map(|((load, measured), heard)| self.outcome_of(load, measured, heard));
        let flows = flows.collect();
        let scheme = self.tunnel()?.scheme.clone();
        let transmissions = self.data_frames_sent(&scheme).await?;
        let coded = self.coded().await?.into_iter();
        let coding = coded.map(|(name, after)| {
            let outcome = since(coded_before.get(&name), &after);
            (name, outcome)
        });
        let coding = coding.collect();
        let scenario = self.scenario.name.clone();
        let samples = sampled.map(|(_, samples)| samples);
        Ok(LabFlows { scenario, scheme, flows, transmissions, coding, seconds, samples })
    }

    /// Pings the destination of every flow from its source, and keeps the medians for the outcome; where there is no
    /// program `ping` there are none.
    ///
    /// # Errors
    /// [`LabError::System`].
    pub async fn measure_idle_rtts(&mut self) -> Result<(), LabError> {
        let mut found = Vec::new();
        for flow in &self.scenario.flows {
            let from = self.tunnel()?.namespace(flow.from);
            found.push(ping::median_rtt_s(&from, address_v4(flow.to)).await?);
        }
        self.idle_rtts = found;
        Ok(())
    }

    fn tunnel(&self) -> Result<&Tunnel, LabError> {
        let missing = || io::Error::other("the lab was started without a tunnel").into();
        self.tunnel.as_ref().ok_or_else(missing)
    }

    /// What each flow's ends are to do.
    fn loads(&self) -> Result<Vec<Load>, LabError> {
        let tunnel = self.tunnel()?;
        let most_bps = self.scenario.medium_config().bit_rate_bps;
        let load = |(number, flow): (usize, &Flow)| Load {
            number,
            to: address_v4(flow.to),
            namespaces: [flow.from, flow.to].map(|node| tunnel.namespace(node)),
            packet: flow.packet.unwrap_or(tunnel.mtu),
            most_bps,
            flow: flow.clone(),
        };
        Ok(self.scenario.flows.iter().enumerate().map(load).collect())
    }

    fn blame(&self, number: usize, e: LoadError) -> LabError {
        let flow = &self.scenario.flows[number];
        let name = |node: usize| self.scenario.nodes[node].name.clone();
        match e {
            LoadError::Program(e) => LabError::Iperf(e),
            LoadError::Failed(problem) => {
                LabError::Flow { from: name(flow.from), to: name(flow.to), problem }
            }
        }
    }

    /// Of each flow the data frames that its destination heard, and the innovative ones of them.
    async fn heard(&self) -> Result<Vec<(u64, u64)>, LabError> {
        let seen = self.seen().await?.into_iter();
        Ok(seen.map(|flow| flow.map_or((0, 0), |flow| (flow.heard, flow.innovative))).collect())
    }

    /// Each flow as its destination sees it, if it has heard of it.
    async fn seen(&self) -> Result<Vec<Option<FlowView>>, LabError> {
        let mut seen = Vec::new();
        for flow in &self.scenario.flows {
            let status: Status = self.client(flow.to).read("/v1/status").await?;
            let ends = [flow.from, flow.to].map(|node| self.scenario.nodes[node].name.as_str());
            let own = |f: &FlowView| [f.source.as_str(), f.destination.as_str()] == ends;
            seen.push(status.flows.into_iter().find(own));
        }
        Ok(seen)
    }

    /// What each node coded by the lab's scheme since it started, by name; nothing of a scheme that does not code.
    async fn coded(&self) -> Result<BTreeMap<String, Coding>, LabError> {
        let scheme = &self.tunnel()?.scheme;
        let mut coded = BTreeMap::new();
        for (number, node) in self.scenario.nodes.iter().enumerate() {
            let status: Status = self.client(number).read("/v1/status").await?;
            let own = status.coding.into_iter().find(|coding| coding.scheme == *scheme);
            coded.extend(own.map(|coding| (node.name.clone(), coding)));
        }
        Ok(coded)
    }

    fn outcome_of(
        &self,
        load: &Load,
        measured: &Measured,
        heard: ((u64, u64), (u64, u64)),
    ) -> LabFlow {
        let name = |node: usize| self.scenario.nodes[node].name.clone();
        let (before, after) = heard;
        let payload = load.payload() as u64;
        let is_udp = load.flow.transport == Transport::Udp;
        let (sent, delivered) = (measured.sent / payload, measured.bytes / payload);
        // Packets sent before it was measured may arrive in that time.
        let loss = 1.0 - delivered.min(sent) as f64 / sent.max(1) as f64;
        let bytes = if is_udp { delivered * load.packet as u64 } else { measured.bytes };
        LabFlow {
            from: name(load.flow.from),
            to: name(load.flow.to),
            protocol: load.flow.transport.name().into(),
            congestion: match &load.flow.transport {
                Transport::Tcp(tcp) => tcp.congestion.clone(),
                Transport::Udp => None,
            },
            packet_bytes: load.packet,
            seconds: measured.seconds,
            throughput_bps: bytes as f64 * 8.0 / measured.seconds.max(1e-3),
            delivered: is_udp.then_some(delivered),
            loss: is_udp.then_some(loss),
            jitter_s: measured.jitter_s,
            retransmits: measured.retransmits,
            segments: measured.retransmits.map(|again| measured.sent.div_ceil(payload) + again),
            mean_rtt_s: measured.mean_rtt_s,
            idle_rtt_s: self.idle_rtts.get(load.number).copied().flatten(),
            // A daemon that was started anew counts from zero.
            heard: after.0.saturating_sub(before.0),
            innovative: after.1.saturating_sub(before.1),
        }
    }
}

/// What a node coded between two looks at it. One that was started anew counts from zero.
fn since(before: Option<&Coding>, after: &Coding) -> CodingOutcome {
    let count = |of: fn(&Coding) -> u64| of(after).saturating_sub(before.map_or(0, of));
    let (sent, coded) = (count(|c| c.sent), count(|c| c.coded));
    let holds = after.holds.iter().map(|hold| hold.hold_s).sum::<f64>();
    let stopped = after.stopped.iter().map(|s| format!("{} {}", s.neighbor, s.reason));
    CodingOutcome {
        sent,
        coded,
        ratio: coding_ratio(coded, sent),
        decoded: count(|c| c.decoded),
        undecodable: count(|c| c.undecodable),
        repeated: count(|c| c.repeated),
        hold_s: (!after.holds.is_empty()).then(|| holds / after.holds.len() as f64),
        stopped: stopped.collect(),
    }
}
