//! UDP ports on the loopback interface: datagrams that come in are read for the daemon's loop, and
//! packets of joined groups are sent out.

use super::Layer;
use ncmesh_host::streams::IngressPacket;
use ncmesh_wire::FlowId;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket as StdSocket};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Datagrams that wait for the daemon's loop; beyond these the kernel holds some, and drops.
const WAITING: usize = 256;
/// What the kernel holds of each port, bytes: a burst of a video's key frame.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The longest datagram, bytes.
const LONGEST: usize = 65_535;

/// Where datagrams come out for the daemon's loop.
pub type IngressPackets = mpsc::Receiver<IngressPacket>;

/// The ports of all streams.
#[derive(Debug)]
pub struct Ports {
    ingress: mpsc::Sender<IngressPacket>,
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
            Reader(tokio::spawn(read(socket, flow, layer, self.ingress.clone())))
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

async fn read(socket: UdpSocket, flow: FlowId, layer: usize, ingress: mpsc::Sender<IngressPacket>) {
    let mut buffer = vec![0; LONGEST];
    loop {
        // An error is an ICMP answer: nothing came.
        let Ok(length) = socket.recv(&mut buffer).await else { continue };
        let packet = IngressPacket { flow, layer, packet: buffer[..length].to_vec() };
        if ingress.send(packet).await.is_err() {
            return;
        }
    }
}
