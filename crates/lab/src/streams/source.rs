//! The application at a stream's source: sends packets of each layer at its rate.

use super::Times;
use crate::LabError;
use ncmesh_node::api::client::{ApiClient, ClientError};
use ncmesh_node::api::types::{ErrorCode, Stream as StreamView};
use ncmesh_node::stream::{Layer, SendStream};
use ncmesh_sim::scenario::Stream;
use std::io;
use std::net::{Ipv4Addr, UdpSocket as StdSocket};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

/// Length of the stamp that each packet begins with, bytes: layer (1), number (8), and nanoseconds
/// since the start of all streams (8).
pub(super) const STAMP: usize = 17;
/// Number of attempts to find free ports.
const TRIES: u32 = 10;
/// Packets that are due within this time go together, because timers are no finer.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// Source of a stream.
pub(super) struct StreamSource {
    pub(super) client: ApiClient,
    pub(super) stream: Stream,
    /// Length of the packets, bytes.
    pub(super) packet: usize,
    pub(super) start: Instant,
    pub(super) times: Times,
}

/// Counts of a source.
#[derive(Default)]
pub(super) struct Sent {
    /// Packets by layer during the measurement.
    pub(super) counted: Vec<u64>,
}

impl StreamSource {
    /// Sends the stream from its start to its end.
    pub(super) async fn run(self) -> Result<Sent, LabError> {
        sleep_until(self.times.begins).await;
        let ports = self.open().await?;
        let sent = self.send(&ports).await?;
        let path = format!("/v1/streams/sent/{}", self.stream.group);
        self.client.delete::<Vec<StreamView>>(&path).await?;
        Ok(sent)
    }

    /// Registers the stream on free ports. Tries again if another program takes one first.
    async fn open(&self) -> Result<Vec<u16>, LabError> {
        let mut tries = TRIES;
        loop {
            let ports = free_ports(self.stream.layers.len())?;
            let layers = self.stream.layers.iter().zip(&ports);
            let layers =
                layers.map(|(layer, port)| Layer { name: layer.name.clone(), port: *port });
            let request = SendStream {
                group: self.stream.group.clone(),
                layers: layers.collect(),
                rtp: Vec::new(),
                sdp: None,
                deadline_ms: self.stream.deadline.map(|deadline| deadline.ms),
            };

            tries -= 1;
            match self.client.put::<SendStream>("/v1/streams/sent", &request).await {
                Ok(_) => return Ok(ports),
                Err(ClientError::Refused(e)) if e.code == ErrorCode::Port && tries > 0 => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Sends packets to the layers' ports until the end of the stream.
    async fn send(&self, ports: &[u16]) -> io::Result<Sent> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;

        // Each layer is a clock of its own, with a fixed interval between packets.
        let bits = self.packet.max(STAMP) as f64 * 8.0;
        let every = |bps: u64| Duration::from_secs_f64(bits / bps as f64);
        let every: Vec<Duration> = self.stream.layers.iter().map(|l| every(l.rate_bps)).collect();
        let mut next = vec![self.times.begins; every.len()];
        let mut numbers = vec![0u64; every.len()];
        let mut counted = vec![0; every.len()];
        let mut packet = vec![0; self.packet.max(STAMP)];

        loop {
            // Wait for the layer that is due first. A source that is late sends without waiting,
            // until it has caught up.
            let due = next.iter().min().copied().unwrap_or(self.times.ends);
            let now = Instant::now();
            if due.max(now) >= self.times.ends {
                return Ok(Sent { counted });
            }
            if due > now {
                sleep_until(due.max(now + TIMER_RESOLUTION).min(self.times.ends)).await;
                continue;
            }

            // Stamp and send one packet of the layer that is due first.
            let layer = next.iter().position(|at| *at == due).unwrap_or(0);
            next[layer] += every[layer];
            packet[0] = layer as u8;
            packet[1..9].copy_from_slice(&numbers[layer].to_be_bytes());
            let nanoseconds = (now - self.start).as_nanos() as u64;
            packet[9..STAMP].copy_from_slice(&nanoseconds.to_be_bytes());

            // A packet that the kernel refuses is lost on its way to the daemon.
            let _ = socket.try_send_to(&packet, (Ipv4Addr::LOCALHOST, ports[layer]).into());
            numbers[layer] += 1;
            counted[layer] += u64::from(now >= self.times.counts_from);
        }
    }
}

/// Returns `n` ports that are free now.
fn free_ports(n: usize) -> io::Result<Vec<u16>> {
    // All are open at the same time, so that no port comes twice.
    let sockets: Vec<StdSocket> =
        (0..n).map(|_| StdSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    sockets.iter().map(|socket| Ok(socket.local_addr()?.port())).collect()
}
