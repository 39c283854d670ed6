//! The TUN device: made, addressed, routed, and gone with the daemon.
//!
//! A device may be put into another network namespace than the daemon's: it is made by a thread
//! that enters it. The radio then stays where it is, as WireGuard's socket does.

use crate::config::TunnelConfig;
use ipnet::IpNet;
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::AsFd;
use tun_rs::{AsyncDevice, DeviceBuilder, SyncDevice};

/// Packets that the kernel keeps for the daemon. They add to the queues of the tunnel and to the
/// delay under load.
const TX_QUEUE: u32 = 64;
/// Where `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";

/// Why there is no device, or none any more. Each shows as one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel offers none.
    #[error(
        "the kernel offers no TUN devices (/dev/net/tun: {0}); load its module with `modprobe \
         tun`, in a container give it the device (--device /dev/net/tun), or leave [tunnel] out"
    )]
    NoTun(io::Error),
    /// No rights.
    #[error(
        "a tunnel needs the right to make network devices ({0}); run as root, or give the program \
         the right with `setcap cap_net_admin+ep $(command -v ncmesh)` (with [tunnel] namespace: \
         cap_sys_admin too)"
    )]
    NoRights(io::Error),
    /// Another program has a device of that name.
    #[error(
        "the device {0} is in use; stop the program that made it, or set another [tunnel] device"
    )]
    InUse(String),
    /// There is no such namespace.
    #[error(
        "no network namespace {0:?} ({1}); make it with `ip netns add {0}`, or leave [tunnel] \
         namespace out"
    )]
    Namespace(String, io::Error),
    /// An address cannot be given to the device.
    #[error("the address {0} cannot be given to the device: {1}")]
    Address(IpNet, io::Error),
    /// There is such a route already, or it cannot be.
    #[error(
        "the route to {0} cannot be made: {1}; remove what is there (`ip route`), or the one in \
         [tunnel] routes or accept"
    )]
    Route(IpNet, io::Error),
    /// Anything else.
    #[error("the device {0} cannot be made: {1}")]
    Failed(String, io::Error),
    /// It was there, and is not now.
    #[error(
        "the device {0} is gone ({1}): was it or its namespace removed? start the daemon again"
    )]
    Gone(String, io::Error),
}

/// A TUN device for packets of IPv4 and IPv6.
pub struct Device {
    name: String,
    tun: AsyncDevice,
}

impl Device {
    /// Makes the device, with its addresses and routes, up, for packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn open(config: &TunnelConfig, mtu: usize) -> Result<Self, DeviceError> {
        let name = config.device.clone();
        let own = config.clone();
        let failed = |e| DeviceError::Failed(name.clone(), e);
        // A thread of its own, for it may enter another namespace.
        let made = std::thread::spawn(move || make(&own, mtu)).join();
        let made = made.map_err(|_| failed(io::Error::other("its thread panicked")))?;
        let tun = AsyncDevice::new(made?).map_err(failed)?;
        Ok(Self { name, tun })
    }

    /// Waits for a packet of the host's and says how long it is. Nothing is lost where this is
    /// given up.
    ///
    /// # Errors
    /// [`DeviceError::Gone`].
    pub async fn receive(&self, packet: &mut [u8]) -> Result<usize, DeviceError> {
        self.tun.recv(packet).await.map_err(|e| self.gone(e))
    }

    /// The next packet of the host's, if there is one.
    ///
    /// # Errors
    /// [`DeviceError::Gone`].
    pub fn try_receive(&self, packet: &mut [u8]) -> Result<Option<usize>, DeviceError> {
        match self.tun.try_recv(packet) {
            Ok(length) => Ok(Some(length)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(self.gone(e)),
        }
    }

    /// Whether it is still there. To be asked now and then: the kernel wakes who waits for a packet
    /// before it lets go of the device, and who looks in between finds neither a packet nor an
    /// error, and is not woken again.
    ///
    /// # Errors
    /// [`DeviceError::Gone`].
    pub fn check(&self) -> Result<(), DeviceError> {
        self.tun.name().map(drop).map_err(|e| self.gone(e))
    }

    /// Hands the host a packet. Says whether it took it: while the device is down it does not.
    pub fn send(&self, packet: &[u8]) -> bool {
        self.tun.try_send(packet).is_ok()
    }

    fn gone(&self, e: io::Error) -> DeviceError {
        DeviceError::Gone(self.name.clone(), e)
    }
}

fn make(config: &TunnelConfig, mtu: usize) -> Result<SyncDevice, DeviceError> {
    if let Some(namespace) = &config.namespace {
        enter(namespace)?;
    }
    let failed = |e: io::Error| match e.kind() {
        ErrorKind::PermissionDenied => DeviceError::NoRights(e),
        ErrorKind::ResourceBusy => DeviceError::InUse(config.device.clone()),
        _ => DeviceError::Failed(config.device.clone(), e),
    };
    // Asked before the device is: what opens it does not say what was missing.
    if let Err(e) = File::options().read(true).write(true).open("/dev/net/tun") {
        let missing = !matches!(e.kind(), ErrorKind::PermissionDenied);
        return Err(if missing { DeviceError::NoTun(e) } else { DeviceError::NoRights(e) });
    }
    let builder = DeviceBuilder::new().name(&config.device).enable(false);
    let device = builder.build_sync().map_err(failed)?;
    let index = device.if_index().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(set_up(config, index, mtu))?;
    Ok(device)
}

/// Moves this thread into a network namespace.
fn enter(namespace: &str) -> Result<(), DeviceError> {
    let named = |e| DeviceError::Namespace(namespace.to_owned(), e);
    let place = File::open(format!("{NAMESPACES}/{namespace}")).map_err(named)?;
    move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| {
        match io::Error::from(e) {
            e if e.kind() == ErrorKind::PermissionDenied => DeviceError::NoRights(e),
            e => named(e),
        }
    })
}

async fn set_up(config: &TunnelConfig, index: u32, mtu: usize) -> Result<(), DeviceError> {
    let failed = |e| DeviceError::Failed(config.device.clone(), e);
    let (connection, handle, _) = rtnetlink::new_connection().map_err(failed)?;
    let driven = tokio::spawn(connection);
    let link = LinkUnspec::new_with_index(index);
    let link = link.mtu(u32::try_from(mtu).unwrap_or(u32::MAX)).txqueuelen(TX_QUEUE).up();
    handle.link().set(link.build()).execute().await.map_err(|e| failed(reason(e)))?;
    for own in &config.address {
        let added = handle.address().add(index, own.addr(), own.prefix_len()).execute().await;
        added.map_err(|e| DeviceError::Address(*own, reason(e)))?;
    }
    // Addresses within the prefixes lead there already.
    for prefix in config.beyond_addresses() {
        add_route(&handle, index, prefix).await.map_err(|e| DeviceError::Route(prefix, e))?;
    }
    driven.abort();
    Ok(())
}

async fn add_route(handle: &Handle, index: u32, prefix: IpNet) -> io::Result<()> {
    let route = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(prefix.addr(), prefix.prefix_len())
        .map_err(io::Error::other)?
        .output_interface(index);
    let scope = if prefix.addr().is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
    handle.route().add(route.scope(scope).build()).execute().await.map_err(reason)
}

/// The operating system's reason.
fn reason(e: rtnetlink::Error) -> io::Error {
    match e {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        e => io::Error::other(e),
    }
}
