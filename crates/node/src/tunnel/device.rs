//! The TUN device: made, addressed, routed, and gone with the daemon.
//!
//! A device may be put into another network namespace than the daemon's: it is made by a thread
//! that enters it. The radio then stays where it is, as WireGuard's socket does.

use crate::config::TunnelConfig;
use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc;
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
    #[error("the device {0} is gone ({1}): was it or its namespace removed?")]
    Gone(String, io::Error),
}

/// A TUN device for packets of IPv4 and IPv6.
pub struct Device {
    name: String,
    tun: AsyncDevice,
    /// Its upkeep ends with it.
    _alive: Arc<()>,
}

/// Change of a device by another program, and its outcome.
#[derive(Debug)]
pub enum Upkeep {
    /// The device was changed, as the lines say, and is as it was.
    Restored(Vec<String>),
    /// It cannot be restored for now.
    Failed(DeviceError),
}

/// Time between two looks at a device.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

impl Device {
    /// Makes the device, with its addresses and routes, up, for packets of up to `mtu` bytes. Looks
    /// after it from then on: a device that another program takes down, renames, or takes addresses
    /// or routes from, is restored, and `upkeep` told.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn open(
        config: &TunnelConfig,
        mtu: usize,
        upkeep: mpsc::UnboundedSender<Upkeep>,
    ) -> Result<Self, DeviceError> {
        let name = config.device.clone();
        let own = config.clone();
        let failed = |e| DeviceError::Failed(name.clone(), e);

        // A thread of its own, for it may enter another namespace.
        let made = std::thread::spawn(move || make(&own, mtu)).join();
        let made = made.map_err(|_| failed(io::Error::other("its thread panicked")))?;
        let Made { device, index } = made?;
        let tun = AsyncDevice::new(device).map_err(failed)?;
        let alive = Arc::new(());
        let look = Look { config: config.clone(), index, mtu, alive: Arc::downgrade(&alive) };
        std::thread::spawn(move || look.run(&upkeep));
        Ok(Self { name, tun, _alive: alive })
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

/// A device that was made, and its index in its namespace.
struct Made {
    device: SyncDevice,
    index: u32,
}

fn make(config: &TunnelConfig, mtu: usize) -> Result<Made, DeviceError> {
    // Only this thread enters the namespace, so the radio stays where it is.
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

    // Made down, so that the kernel sends nothing before there are addresses and routes.
    let builder = DeviceBuilder::new().name(&config.device).enable(false);
    let device = builder.build_sync().map_err(failed)?;
    let index = device.if_index().map_err(failed)?;
    // The thread has no runtime of its own yet; netlink is asynchronous.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(set_up(config, index, mtu))?;

    Ok(Made { device, index })
}

/// Looks after a device, on a thread of its own: it may be in another namespace.
struct Look {
    config: TunnelConfig,
    index: u32,
    mtu: usize,
    alive: Weak<()>,
}

impl Look {
    /// Looks again and again while there is the device.
    fn run(self, upkeep: &mpsc::UnboundedSender<Upkeep>) {
        let entered = self.config.namespace.as_deref().map_or(Ok(()), enter);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (Ok(()), Ok(runtime)) = (entered, runtime) else { return };
        // The device may be gone for long, so the daemon hears only of changes.
        let mut was_well = true;
        // The daemon holds the other half: when it drops the device, this thread ends.
        while self.alive.strong_count() > 0 {
            match runtime.block_on(self.restore()) {
                Ok(changes) if changes.is_empty() && was_well => {}
                Ok(changes) => {
                    was_well = true;
                    let _ = upkeep.send(Upkeep::Restored(changes));
                }
                Err(e) => {
                    was_well = false;
                    let _ = upkeep.send(Upkeep::Failed(e));
                }
            }

            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Brings the device back to what the configuration says. Returns what had changed, a line
    /// each.
    async fn restore(&self) -> Result<Vec<String>, DeviceError> {
        let name = &self.config.device;
        let failed = |e| DeviceError::Failed(name.clone(), e);
        let (connection, handle, _) = rtnetlink::new_connection().map_err(failed)?;
        let driven = tokio::spawn(connection);
        // By index: a renamed device is still this daemon's.
        let found = handle.link().get().match_index(self.index).execute();
        let link = std::pin::pin!(found).try_next().await;
        let gone = |e| DeviceError::Gone(name.clone(), e);
        let link = link.map_err(|e| gone(reason(e)))?;
        let link = link.ok_or_else(|| gone(io::Error::from(ErrorKind::NotFound)))?;
        let mut changes = Vec::new();

        // A device that is up keeps its name on older kernels.
        let shown = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(shown) => Some(shown),
            _ => None,
        });

        let of = || LinkUnspec::new_with_index(self.index);
        let mut is_up = link.header.flags.contains(LinkFlags::Up);
        if let Some(other) = shown.filter(|shown| *shown != name) {
            changes.push(format!("it was renamed to {other}"));
            // The device must be down for its name to change, and up again afterwards.
            let renamed = async {
                handle.link().set(of().down().build()).execute().await?;
                handle.link().set(of().name(name.clone()).build()).execute().await
            };

            renamed.await.map_err(|e| failed(reason(e)))?;
            is_up = false;
        } else if !is_up {
            changes.push("it was down".into());
        }

        if !is_up {
            // The MTU is set as well, since the same tool may have changed both.
            let up = of().mtu(u32::try_from(self.mtu).unwrap_or(u32::MAX)).up();
            handle.link().set(up.build()).execute().await.map_err(|e| failed(reason(e)))?;
        }

        // The kernel says which are there by refusing them.
        for own in &self.config.address {
            let added = handle.address().add(self.index, own.addr(), own.prefix_len()).execute();
            match added.await.map_err(reason) {
                Ok(()) => changes.push(format!("the address {own} was gone")),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(DeviceError::Address(*own, e)),
            }
        }

        for prefix in self.config.beyond_addresses() {
            match add_route(&handle, self.index, prefix).await {
                Ok(()) => changes.push(format!("the route to {prefix} was gone")),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(DeviceError::Route(prefix, e)),
            }
        }

        // The connection would otherwise live as long as the runtime.
        driven.abort();
        Ok(changes)
    }
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
    // A short queue: packets wait in the mesh, where they can still be coded.
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
