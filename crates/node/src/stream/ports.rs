//! UDP ports on the loopback interface: datagrams that come in are read for the daemon's loop, and
//! packets of joined groups are sent out.
//!
//! A source may offer ten times what the mesh takes. Then waking up for each datagram would cost
//! more than all that is done with it, so they are read in batches, with pauses between.

use ncmesh_host::streams::{IngressPacket, Layer};
use ncmesh_wire::FlowId;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket as StdSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Datagrams read at once.
const BATCH: usize = 32;
/// Batches that wait for the daemon's loop; beyond these the kernel holds some, and drops.
const WAITING: usize = 8;
/// A wait for datagrams that is shorter than this is a short one.
const SHORT: Duration = Duration::from_micros(250);
/// Short waits in a row after which a port is read with pauses.
const HURRY: u32 = 8;
/// Pause in which datagrams gather.
const PAUSE: Duration = Duration::from_millis(1);
/// Datagrams that must have gathered for another pause to be worth it.
const WORTH_IT: usize = 2;
/// Buffer of each port in the kernel, bytes: a burst of a video's key frame.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The longest datagram, bytes.
const LONGEST: usize = 65_535;

/// Where datagrams come out for the daemon's loop, in batches.
pub type IngressPackets = mpsc::Receiver<Vec<IngressPacket>>;

/// The ports of all streams.
#[derive(Debug)]
pub struct Ports {
    ingress: mpsc::Sender<Vec<IngressPacket>>,
    /// By group, the tasks that read its ports.
    readers: BTreeMap<String, Vec<Reader>>,
    /// Packets are sent out from here, once a group was joined.
    socket: Option<UdpSocket>,
    /// Packets that the host did not take.
    pub refused: u64,
}

/// Task that reads a port until it is dropped.
#[derive(Debug)]
struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A port that is open for a layer.
#[derive(Debug)]
pub struct Port(UdpSocket);

impl Ports {
    /// Returns no ports, and where datagrams will come out.
    #[must_use]
    pub fn new() -> (Self, IngressPackets) {
        let (ingress, out) = mpsc::channel(WAITING);
        (Self { ingress, readers: BTreeMap::new(), socket: None, refused: 0 }, out)
    }

    /// Opens the ports of `layers`. Needs a tokio runtime.
    ///
    /// # Errors
    /// Returns the layer whose port cannot be opened, and why.
    pub fn open(layers: &[Layer]) -> Result<Vec<Port>, (Layer, io::Error)> {
        let open = |layer: &Layer| {
            let bound = bind(layer.port).map(Port);
            bound.map_err(|e| (layer.clone(), e))
        };
        layers.iter().map(open).collect()
    }

    /// Reads `ports`, one for each layer of the stream `flow` to `group`.
    pub fn read(&mut self, group: &str, flow: FlowId, ports: Vec<Port>) {
        let readers = ports.into_iter().enumerate().map(|(layer, Port(socket))| {
            let ingress = self.ingress.clone();
            Reader(tokio::spawn(async move {
                if let Err(e) = read(socket, flow, layer, ingress).await {
                    tracing::error!("layer {layer} of stream {flow} is not read any more: {e}");
                }
            }))
        });

        self.readers.insert(group.to_owned(), readers.collect());
    }

    /// Stops reading the ports of a group.
    pub fn stop_reading(&mut self, group: &str) {
        self.readers.remove(group);
    }

    /// Opens the socket that packets are sent out from, if it is not open. Needs a tokio runtime.
    ///
    /// # Errors
    /// Returns what the kernel says if it gives none.
    pub fn open_egress(&mut self) -> io::Result<()> {
        if self.socket.is_none() {
            self.socket = Some(bind(0)?);
        }
        Ok(())
    }

    /// Sends a packet to whoever listens on a local port.
    pub fn play(&mut self, port: u16, packet: &[u8]) {
        let Some(socket) = &self.socket else { return };
        // Nobody may listen yet; the kernel says so at a later packet.
        self.refused += u64::from(socket.try_send_to(packet, loopback(port)).is_err());
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn bind(port: u16) -> io::Result<UdpSocket> {
    let socket = StdSocket::bind(loopback(port))?;
    socket.set_nonblocking(true)?;
    SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER)?;
    UdpSocket::from_std(socket)
}

/// Reads the port of a layer until nobody takes what comes there.
async fn read(
    mut socket: UdpSocket,
    flow: FlowId,
    layer: usize,
    ingress: mpsc::Sender<Vec<IngressPacket>>,
) -> io::Result<()> {
    // The buffers are allocated once, since a datagram may come every few microseconds.
    let mut buffers = vec![0; BATCH * LONGEST];
    let mut in_a_row = 0;
    loop {
        let begin = Instant::now();

        // An error shows when it is read.
        let _ = socket.readable().await;

        in_a_row = if begin.elapsed() < SHORT { in_a_row + 1 } else { 0 };
        let from_port = |buffers: &mut [u8]| receive_watched(&socket, buffers);
        // The loop does not take packets any more: the stream was closed, or the daemon ends.
        if hand_on(from_port, &mut buffers, flow, layer, &ingress).await.is_none() {
            return Ok(());
        }

        if in_a_row < HURRY {
            continue;
        }

        // While a port is watched, each datagram wakes the daemon.
        let port = socket.into_std()?;
        let mut gathered = WORTH_IT;
        // Until few come again.
        while gathered >= WORTH_IT {
            tokio::time::sleep(PAUSE).await;
            let from_port = |buffers: &mut [u8]| receive(&port, buffers).unwrap_or_default();
            match hand_on(from_port, &mut buffers, flow, layer, &ingress).await {
                None => return Ok(()),
                Some(count) => gathered = count,
            }
        }

        socket = UdpSocket::from_std(port)?;
        in_a_row = 0;
    }
}

/// Hands on all that waits at the port of a layer. Returns how many datagrams those were; `None` if
/// nobody takes them any more.
async fn hand_on(
    mut receive: impl FnMut(&mut [u8]) -> Vec<usize>,
    buffers: &mut [u8],
    flow: FlowId,
    layer: usize,
    ingress: &mpsc::Sender<Vec<IngressPacket>>,
) -> Option<usize> {
    let mut count = 0;
    loop {
        let lengths = receive(buffers);
        let received = lengths.len();
        if received > 0 {
            let datagrams = buffers.chunks(LONGEST).zip(lengths);
            let packet = |(buffer, length): (&[u8], usize)| buffer[..length].to_vec();
            let packets = datagrams.map(packet).map(|packet| IngressPacket { flow, layer, packet });
            // Waits while the daemon is busy, so that the kernel's queue fills and drops, not this
            // memory.
            ingress.send(packets.collect()).await.ok()?;
        }

        count += received;
        // Less than a whole batch: the port is empty.
        if received < BATCH {
            return Some(count);
        }
    }
}

/// Receives as [`receive`] does, from a port that the runtime watches. A batch that is not full has
/// emptied the port, and the runtime is told so here: it would find out only by another call.
fn receive_watched(socket: &UdpSocket, buffers: &mut [u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let _ = socket.try_io(Interest::READABLE, || {
        lengths = receive(socket, buffers)?;
        if lengths.len() < BATCH { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    lengths
}

/// Receives the datagrams that wait at a port, as many as there are `buffers` of [`LONGEST`]
/// bytes. Returns their lengths. An error is an ICMP answer, or that nothing came.
fn receive(port: &impl AsRawFd, buffers: &mut [u8]) -> io::Result<Vec<usize>> {
    let mut places: Vec<[IoSliceMut<'_>; 1]> =
        buffers.chunks_mut(LONGEST).map(|place| [IoSliceMut::new(place)]).collect();
    let mut headers = MultiHeaders::<()>::preallocate(places.len(), None);
    let flags = MsgFlags::MSG_DONTWAIT;
    let received = recvmmsg(port.as_raw_fd(), &mut headers, &mut places, flags, None)?;
    Ok(received.map(|datagram| datagram.bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    /// More than fit into a batch wait before the port is read, and others come meanwhile.
    #[tokio::test]
    async fn whatever_comes_is_handed_on_in_order_however_fast() {
        let (mut ports, mut out) = Ports::new();
        let layer = Layer { name: "base".into(), port: 0 };
        let opened = Ports::open(&[layer]).unwrap();
        let address = opened[0].0.local_addr().unwrap();
        let host = StdSocket::bind(loopback(0)).unwrap();
        let send = |number: u16| {
            host.send_to(&number.to_be_bytes(), address).unwrap();
        };
        (0..100).for_each(send);
        let flow = FlowId { source: NodeId(1), serial: 1 };
        ports.read("lecture", flow, opened);

        let mut arrived = Vec::new();
        let mut sent = 100;
        while arrived.len() < 1000 {
            let batch = tokio::time::timeout(Duration::from_secs(10), out.recv()).await;
            arrived.extend(batch.unwrap().unwrap().into_iter().map(|packet| packet.packet));
            // As many as came are sent anew, so that a hundred wait at any time.
            let next = (arrived.len() as u16 + 100).min(1000);
            (sent..next).for_each(send);
            sent = next;
        }
        let numbers = arrived.iter().map(|packet| u16::from_be_bytes([packet[0], packet[1]]));
        assert!(numbers.eq(0..1000));
    }
}
