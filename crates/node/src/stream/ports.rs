//! UDP on the loopback interface: what comes in is for the engine, what comes of the engine goes out.

use super::Layer;
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

/// A datagram that came in by a port.
#[derive(Debug)]
pub struct Inlet {
    /// The stream.
    pub flow: FlowId,
    /// Its layer, 0 being the base.
    pub layer: usize,
    /// What came.
    pub packet: Vec<u8>,
}

/// Where datagrams come out for the daemon's loop.
pub type Inlets = mpsc::Receiver<Inlet>;

/// The ports of all streams.
#[derive(Debug)]
pub struct Ports {
    inlets: mpsc::Sender<Inlet>,
    /// By group, who reads its ports.
    readers: BTreeMap<String, Vec<Reader>>,
    /// By group and layer, where packets are played out to.
    players: BTreeMap<String, BTreeMap<String, SocketAddr>>,
    /// Packets are played out from here, once there is one.
    socket: Option<UdpSocket>,
    /// Packets that the host did not take.
    pub refused: u64,
}

/// Reads a port until it is dropped.
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
    /// No ports, and where datagrams will come out.
    #[must_use]
    pub fn new() -> (Self, Inlets) {
        let (inlets, out) = mpsc::channel(WAITING);
        let (readers, players) = (BTreeMap::new(), BTreeMap::new());
        (Self { inlets, readers, players, socket: None, refused: 0 }, out)
    }

    /// Opens the ports of `layers`. Needs a tokio runtime.
    ///
    /// # Errors
    /// The layer whose port cannot be opened, and why.
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
            Reader(tokio::spawn(read(socket, flow, layer, self.inlets.clone())))
        });
        self.readers.insert(group.to_owned(), readers.collect());
    }

    /// Reads the ports of a group no more.
    pub fn stop_reading(&mut self, group: &str) {
        self.readers.remove(group);
    }

    /// Plays the layers of `group` out from now on. Needs a tokio runtime.
    ///
    /// # Errors
    /// There is no socket to be had.
    pub fn play_to(&mut self, group: &str, layers: &[Layer]) -> io::Result<()> {
        if self.socket.is_none() {
            self.socket = Some(bind(0)?);
        }
        let to = |layer: &Layer| (layer.name.clone(), loopback(layer.port));
        self.players.insert(group.to_owned(), layers.iter().map(to).collect());
        Ok(())
    }

    /// Plays a group out no more.
    pub fn stop_playing(&mut self, group: &str) {
        self.players.remove(group);
    }

    /// Hands a packet to whoever listens on its layer's port.
    pub fn play(&mut self, group: &str, layer: &str, packet: &[u8]) {
        let to = self.players.get(group).and_then(|layers| layers.get(layer));
        let (Some(to), Some(socket)) = (to, &self.socket) else { return };
        // Nobody may listen yet; the kernel says so at a later packet.
        self.refused += u64::from(socket.try_send_to(packet, *to).is_err());
    }

    /// The names of a group's layers that are played out.
    pub fn layers(&self, group: &str) -> impl Iterator<Item = &str> {
        self.players.get(group).into_iter().flatten().map(|(name, _)| name.as_str())
    }

    /// The ports of a group's layers that are played out, for people.
    pub fn playing(&self, group: &str) -> impl Iterator<Item = String> {
        let layers = self.players.get(group).into_iter().flatten();
        layers.map(|(name, to)| format!("{name}=udp:{}", to.port()))
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

async fn read(socket: UdpSocket, flow: FlowId, layer: usize, inlets: mpsc::Sender<Inlet>) {
    let mut buffer = vec![0; LONGEST];
    loop {
        // An error is an ICMP answer: nothing came.
        let Ok(length) = socket.recv(&mut buffer).await else { continue };
        let inlet = Inlet { flow, layer, packet: buffer[..length].to_vec() };
        if inlets.send(inlet).await.is_err() {
            return;
        }
    }
}
