//! The application at a stream's receiver: joins the group and checks every packet.

use super::source::STAMP;
use super::{SAMPLE, Times};
use crate::LabError;
use ncmesh_node::api::client::ApiClient;
use ncmesh_node::api::types::Stream as StreamView;
use ncmesh_node::stream::{Layer, ReceiveStream};
use ncmesh_sim::outcome::{StreamLayerOutcome, StreamReceiverOutcome, StreamSeries};
use ncmesh_sim::scenario::StreamReceiver;
use std::collections::BTreeSet;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Receiver of a stream.
pub(super) struct Receiver {
    pub(super) client: ApiClient,
    pub(super) group: String,
    /// Names of the layers.
    pub(super) names: Vec<String>,
    pub(super) receiver: StreamReceiver,
    /// Length of the packets, bytes.
    pub(super) packet: usize,
    pub(super) start: Instant,
    pub(super) times: Times,
}

/// Counts of a receiver.
#[derive(Default)]
pub(super) struct Received {
    /// Packets by layer during the measurement.
    pub(super) delivered: Vec<u64>,
    seen: BTreeSet<(u8, u64)>,
    delays: Duration,
    by_second: Vec<u64>,
    corrupt: u64,
}

/// A packet that arrived at the port of a layer.
struct Arrival {
    at: Instant,
    layer: usize,
    packet: Vec<u8>,
}

impl Receiver {
    /// Receives from joining to leaving, or to the end of the stream.
    pub(super) async fn run(self) -> Result<Received, LabError> {
        // A receiver that leaves after the end of the stream leaves with it.
        let leaves = self.receiver.leave.map(|leave| self.times.begins + leave);
        let ends = leaves.unwrap_or(self.times.ends).min(self.times.ends);
        sleep_until(self.times.begins + self.receiver.join).await;

        // A port for each layer. They are open before the daemon is asked to write to them.
        let (arrivals, mut arrived) = mpsc::channel(1024);
        let mut readers = JoinSet::new();
        let mut layers = Vec::new();
        for (layer, name) in self.names.iter().enumerate() {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            layers.push(Layer { name: name.clone(), port: socket.local_addr()?.port() });
            readers.spawn(read(socket, layer, arrivals.clone()));
        }

        self.client.put::<ReceiveStream>("/v1/streams/received", &self.request(layers)).await?;

        // Count packets until it is time to leave. The readers end when they are dropped.
        let mut received = Received { delivered: vec![0; self.names.len()], ..Received::default() };
        loop {
            tokio::select! {
                Some(arrival) = arrived.recv() => self.handle_arrival(&mut received, &arrival),
                () = sleep_until(ends) => break,
            }
        }

        let path = format!("/v1/streams/received/{}", self.group);
        self.client.delete::<Vec<StreamView>>(&path).await?;
        Ok(received)
    }

    /// Returns the request that joins the group.
    fn request(&self, layers: Vec<Layer>) -> ReceiveStream {
        let utility = self.receiver.utility.clone();
        ReceiveStream {
            group: self.group.clone(),
            layers,
            rtp: None,
            utility: utility.name,
            weight: utility.weight,
            xi: utility.xi,
            alpha: utility.alpha,
            min_rate_bps: utility.minimum.map(|mbit| (mbit * 1e6).round() as u64),
            penalty: utility.penalty,
        }
    }

    /// Checks and counts a packet.
    fn handle_arrival(&self, received: &mut Received, arrival: &Arrival) {
        // The stamp: layer, number, and time of sending.
        let Arrival { at, layer, packet } = arrival;
        let stamp = |from: usize| {
            packet.get(from..from + 8).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes)
        };
        let (Some(number), Some(sent)) = (stamp(1), stamp(9)) else {
            received.corrupt += 1;
            return;
        };

        // A packet is corrupt if it came from the wrong port, has another length, or came twice.
        let own = usize::from(packet[0]) == *layer && packet.len() == self.packet.max(STAMP);
        if !own || !received.seen.insert((packet[0], number)) {
            received.corrupt += 1;
            return;
        }

        // The time series covers the whole stream, the results only the measurement.
        let second = (*at - self.times.begins).as_nanos() / SAMPLE.as_nanos();
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        if received.by_second.len() <= second {
            received.by_second.resize(second + 1, 0);
        }
        received.by_second[second] += 1;
        if (self.times.counts_from..self.times.ends).contains(at) {
            received.delivered[*layer] += 1;
            received.delays += (*at - self.start).saturating_sub(Duration::from_nanos(sent));
        }
    }
}

impl Received {
    /// Returns the result of the receiver. `layers` are its results by layer.
    pub(super) fn outcome(
        mut self,
        node: String,
        layers: Vec<StreamLayerOutcome>,
        packet_bytes: usize,
        times: Times,
    ) -> StreamReceiverOutcome {
        let all: u64 = self.delivered.iter().sum();
        let whole = ((times.ends - times.begins).as_nanos() / SAMPLE.as_nanos()) as usize;
        self.by_second.resize(whole, 0);
        let bits = packet_bytes as f64 * 8.0;
        StreamReceiverOutcome {
            node,
            rate_bps: layers.iter().map(|layer| layer.rate_bps).sum(),
            layers,
            corrupt: self.corrupt,
            whole_base_s: None,
            mean_delay_s: (all > 0).then(|| self.delays.as_secs_f64() / all as f64),
            series: StreamSeries {
                seconds: (1..=whole).map(|n| n as f64 * SAMPLE.as_secs_f64()).collect(),
                rate_bps: self
                    .by_second
                    .iter()
                    .map(|n| *n as f64 * bits / SAMPLE.as_secs_f64())
                    .collect(),
            },
            problem: None,
        }
    }
}

/// Passes the packets of a layer's port to the receiver until the receiver is gone.
async fn read(socket: UdpSocket, layer: usize, arrivals: mpsc::Sender<Arrival>) -> io::Result<()> {
    let mut buffer = vec![0; 65_535];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let arrival = Arrival { at: Instant::now(), layer, packet: buffer[..length].to_vec() };
        if arrivals.send(arrival).await.is_err() {
            return Ok(());
        }
    }
}
