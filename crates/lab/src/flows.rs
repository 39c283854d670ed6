//! Flows through the tunnels of a lab's daemons.
//!
//! iperf3 generates the load: a client in the network namespace of the source and a server in that
//! of the destination. Counters of the daemons, read before and after, show what the scheme did
//! meanwhile.

use crate::iperf::{Load, LoadError, Measured};
use crate::tunnel::{Tunnel, address_v4};
use crate::{Lab, LabError, POLL_INTERVAL, ping};
use ncmesh_node::api::types::{Coding, Flow as FlowView, Status};
use ncmesh_sim::outcome::{
    CodingOutcome, FlowOutcome, FlowsOutcome, Outcome, Samples, ServiceOutcomes, TcpOutcome,
};
use ncmesh_sim::scenario::{Flow, Transport};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Number of times that flows begin anew because a first datagram was lost. At a loss of a tenth
/// per datagram, one test in a thousand fails nevertheless.
const ATTEMPTS: usize = 4;

/// Data frames of a flow that its destination has heard since it started.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    frames: u64,
    innovative: u64,
}

/// Flows in progress. Dropping this ends them at once.
pub struct RunningFlows {
    /// Number of times that the flows were begun.
    attempt: usize,
    loads: Vec<Load>,
    /// Counters of each flow's destination at the start.
    before: Vec<Heard>,
    /// Coding counters of each node at the start.
    coded_before: BTreeMap<String, Coding>,
    begin: Instant,
    running: JoinSet<(usize, Result<Measured, LoadError>)>,
    /// Interval and values of the samples, if requested.
    sampled: Option<(Duration, Samples)>,
}

impl RunningFlows {
    /// Samples the number of delivered packets with this interval.
    #[must_use]
    pub fn sampled(self, every: Duration) -> Self {
        let delivered = vec![Vec::new(); self.loads.len()];
        let samples = Samples { seconds: Vec::new(), delivered };
        Self { sampled: Some((every, samples)), ..self }
    }
}

impl Lab {
    /// Waits until the links are measured and the ends of every flow can reach each other.
    ///
    /// # Errors
    /// As [`wait_for_routes`](Self::wait_for_routes).
    pub async fn settle_flows(&self) -> Result<(), LabError> {
        for flow in &self.scenario.flows {
            self.wait_for_routes(flow.from, &[flow.to]).await?;
            self.wait_for_routes(flow.to, &[flow.from]).await?;
        }
        Ok(())
    }

    /// Starts the scenario's flows over the tunnel scheme that the lab was started with.
    ///
    /// # Errors
    /// [`LabError::Api`]; [`LabError::Namespaces`] if the kernel does not take a flow's timing.
    pub async fn begin_flows(&self) -> Result<RunningFlows, LabError> {
        for flow in &self.scenario.flows {
            self.tunnel()?.set_timing(flow)?;
        }

        // Counters run since the daemons started, so their values of now are subtracted later.
        let loads = self.loads()?;
        let before = self.heard().await?;
        let coded_before = self.coded().await?;
        let begin = Instant::now();
        let mut running = JoinSet::new();
        for load in loads.clone() {
            running.spawn(async move { (load.number, load.run(begin).await) });
        }
        Ok(RunningFlows { attempt: 1, loads, before, coded_before, begin, running, sampled: None })
    }

    /// Ends all flows and starts them again, because one of them never began. Flows are measured
    /// under each other's load, so all must run at the same time.
    async fn begin_flows_again(&self, flows: RunningFlows) -> Result<RunningFlows, LabError> {
        let attempt = flows.attempt + 1;
        let sampled = flows.sampled;

        // Dropping the futures kills the programs. Wait for that, as their ports must be free.
        let mut running = flows.running;
        running.shutdown().await;
        let again = self.begin_flows().await?;
        let again = RunningFlows { attempt, ..again };
        Ok(match sampled {
            Some((every, _)) => again.sampled(every),
            None => again,
        })
    }

    /// Waits until all flows have ended and returns their result. If the first datagram of one is
    /// lost, all begin again.
    ///
    /// # Errors
    /// [`LabError::Iperf`], [`LabError::Flow`], and those of [`check`](Self::check).
    pub async fn finish_flows(&self, flows: RunningFlows) -> Result<Outcome, LabError> {
        let mut flows = flows;
        let mut measured = vec![Measured::default(); flows.loads.len()];

        // Collect results as flows end. In between, check the daemons and take samples.
        while !flows.running.is_empty() {
            let interval = flows.sampled.as_ref().map_or(POLL_INTERVAL, |(every, _)| *every);
            tokio::select! {
                Some(ended) = flows.running.join_next() => {
                    let (number, result) = ended.map_err(io::Error::other)?;
                    match result {
                        Ok(result) => measured[number] = result,
                        Err(LoadError::Unopened(_)) if flows.attempt < ATTEMPTS => {
                            flows = self.begin_flows_again(flows).await?;
                        }
                        Err(e) => return Err(self.flow_error(number, e)),
                    }
                }
                () = tokio::time::sleep(interval) => {
                    self.check()?;
                    if let Some((_, samples)) = &mut flows.sampled {
                        add_sample(samples, flows.begin.elapsed(), &self.flow_views().await?);
                    }
                }
            }
        }

        let RunningFlows { loads, before, coded_before, begin, sampled, .. } = flows;
        let seconds = begin.elapsed().as_secs_f64();

        // Combine the results of iperf3 with the counters of the daemons: frames of each flow, and
        // coding at each node.
        let heard = before.into_iter().zip(self.heard().await?);
        let each = loads.iter().zip(&measured).zip(heard);
        let flows = each.map(|((load, measured), (before, after))| {
            self.outcome_of(load, measured, before, after)
        });
        let flows = flows.collect();
        let scheme = self.tunnel()?.scheme.clone();
        let coded = self.coded().await?.into_iter();
        let coding = coded.map(|(name, after)| {
            let outcome = since(coded_before.get(&name), &after);
            (name, outcome)
        });

        let coding = coding.collect();
        let samples = sampled.map(|(_, samples)| samples);
        let flows = Some(FlowsOutcome { flows, coding, samples });
        let services = ServiceOutcomes { flows, ..Default::default() };
        self.conclude(&scheme, seconds, services).await
    }

    /// Pings the destination of every flow from its source and keeps the medians for the result.
    /// Without the program `ping` there are no values.
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

    /// Returns the lab's tunnel.
    ///
    /// # Errors
    /// [`LabError::System`] if the lab was started without one.
    fn tunnel(&self) -> Result<&Tunnel, LabError> {
        let missing = || io::Error::other("the lab was started without a tunnel").into();
        self.tunnel.as_ref().ok_or_else(missing)
    }

    /// Returns the load of each flow.
    fn loads(&self) -> Result<Vec<Load>, LabError> {
        // A UDP flow without a rate offers what the channel could carry at most: the gateway drops
        // what the tunnel does not take.
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

    /// Converts a load generator's error into one that names the flow's ends.
    fn flow_error(&self, number: usize, e: LoadError) -> LabError {
        let flow = &self.scenario.flows[number];
        let name = |node: usize| self.scenario.nodes[node].name.clone();
        match e {
            LoadError::Program(e) => LabError::Iperf(e),
            LoadError::Unopened(problem) | LoadError::Failed(problem) => {
                LabError::Flow { from: name(flow.from), to: name(flow.to), problem }
            }
        }
    }

    /// Returns, for each flow, what its destination has heard so far.
    async fn heard(&self) -> Result<Vec<Heard>, LabError> {
        let views = self.flow_views().await?.into_iter();
        let counts = |flow: FlowView| Heard {
            frames: flow.values.heard.unwrap_or(0),
            innovative: flow.values.innovative.unwrap_or(0),
        };
        Ok(views.map(|flow| flow.map(counts).unwrap_or_default()).collect())
    }

    /// Returns the destination's view of each flow, or `None` where it does not know the flow yet.
    async fn flow_views(&self) -> Result<Vec<Option<FlowView>>, LabError> {
        let mut views = Vec::new();
        for flow in &self.scenario.flows {
            let status: Status = self.client(flow.to).read("/v1/status").await?;
            let ends = [flow.from, flow.to].map(|node| self.scenario.nodes[node].name.as_str());
            let own = |f: &FlowView| [f.source.as_str(), f.destination.as_str()] == ends;
            views.push(status.flows.into_iter().find(own));
        }

        Ok(views)
    }

    /// Returns the coding counters of each node since it started, by name. Empty for schemes that
    /// do not code across flows.
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

    /// Computes the result of one flow, with the destination's counters before and after it.
    fn outcome_of(
        &self,
        load: &Load,
        measured: &Measured,
        before: Heard,
        after: Heard,
    ) -> FlowOutcome {
        let name = |node: usize| self.scenario.nodes[node].name.clone();
        let payload = load.payload() as u64;
        let is_udp = load.flow.transport == Transport::Udp;

        // iperf3 counts bytes of payload. All datagrams of a UDP flow have one length, so bytes
        // give packets. Throughput counts whole IP packets, as the simulator does.
        let sent = measured.sent / payload;
        let delivered = measured.bytes / payload;

        // Packets of the warm-up may arrive during the measurement, hence the minimum.
        let loss = 1.0 - delivered.min(sent) as f64 / sent.max(1) as f64;
        let bytes = if is_udp { delivered * load.packet as u64 } else { measured.bytes };
        let tcp = measured.retransmits.map(|again| tcp_outcome(load, measured, again));
        FlowOutcome {
            from: name(load.flow.from),
            to: name(load.flow.to),
            protocol: load.flow.transport.name().into(),
            packet_bytes: load.packet,
            seconds: measured.seconds,
            throughput_bps: bytes as f64 * 8.0 / measured.seconds.max(1e-3),
            delivered,
            loss: is_udp.then_some(loss),
            jitter_s: measured.jitter_s,
            idle_rtt_s: self.idle_rtts.get(load.number).copied().flatten(),
            // The counters of a restarted daemon begin at zero again.
            heard: after.frames.saturating_sub(before.frames),
            innovative: after.innovative.saturating_sub(before.innovative),
            tcp,
            ..FlowOutcome::default()
        }
    }
}

/// Returns the kernel's statistics of a TCP connection that retransmitted `again` segments. The
/// kernel counts no other segments: the rest follows from the bytes.
fn tcp_outcome(load: &Load, measured: &Measured, again: u64) -> TcpOutcome {
    // Segments of full length, as many as the bytes need.
    let payload = load.payload() as u64;
    let fresh = measured.sent.div_ceil(payload);
    TcpOutcome {
        congestion: match &load.flow.transport {
            Transport::Tcp(tcp) => tcp.congestion.clone(),
            Transport::Udp => None,
        },
        segment_bytes: load.payload(),
        bytes: measured.bytes,
        segments: fresh + again,
        retransmissions: again,
        // A segment that is sent again was lost, as a rule.
        arrived: fresh,
        loss: (fresh + again > 0).then(|| again as f64 / (fresh + again) as f64),
        rtt_s: measured.mean_rtt_s,
        min_rtt_s: None,
        finished_s: None,
    }
}

/// Adds a sample: the packets that each destination has delivered so far. `at` is the time since
/// the start of the first flow.
fn add_sample(samples: &mut Samples, at: Duration, flows: &[Option<FlowView>]) {
    samples.seconds.push(at.as_secs_f64());
    for (delivered, flow) in samples.delivered.iter_mut().zip(flows) {
        delivered.push(flow.as_ref().and_then(|flow| flow.values.delivered).unwrap_or(0));
    }
}

/// Returns the coding statistics of a node between two readings.
fn since(before: Option<&Coding>, after: &Coding) -> CodingOutcome {
    let holds = after.holds.iter().map(|hold| hold.hold_s).sum::<f64>();
    let stopped = after.stopped.iter().map(|s| format!("{} {}", s.neighbor, s.reason));
    CodingOutcome {
        values: match before {
            Some(before) => after.values.since(&before.values),
            None => after.values.clone(),
        },
        hold_s: (!after.holds.is_empty()).then(|| holds / after.holds.len() as f64),
        stopped: stopped.collect(),
    }
}
