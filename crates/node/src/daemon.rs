//! The loop that drives a node.
//!
//! It waits for one of these at a time: an event of a radio, a deadline of the stack, a call
//! through the [`Handle`], a packet of the tunnel device or of a stream, or a
//! signal.

mod radios;

use crate::alarm::Alarm;
use crate::api::{self, ApiSocket};
use crate::config::{NodeConfig, TunnelConfig};
use crate::error::NodeError;
use crate::identity::trust;
use crate::node::{Command, DeviceState, FleetStart, Handle, Node, Parts, Start};
use crate::radio::Radio;
use crate::radio::air::AirRadio;
use crate::radio::port::Port;
use crate::state::StateDir;
use crate::store::reception::check_inbox;
use crate::stream::{IngressPackets, Ports};
use crate::tunnel::device::{Device, DeviceError, Upkeep};
#[cfg(feature = "web")]
use crate::web;
use ncmesh_wire::Salt;
use radios::Radios;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use sd_notify::NotifyState;
use std::future::pending;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::Level;

/// Interval of housekeeping.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two attempts to make a device again.
const DEVICE_INTERVAL: Duration = Duration::from_secs(1);
/// Largest number of packets read at once, so that other events have their turn.
const BURST: usize = 32;
/// Length of the longest IP packet, bytes.
const LONGEST_PACKET: usize = 65_535;

/// Runs a daemon until SIGINT or SIGTERM. SIGHUP lets it read its configuration again.
///
/// Calls `set_log` when `[node] log` changes after the start.
///
/// # Errors
/// [`NodeError`]: why the daemon cannot start, or had to stop.
pub fn run(config: &NodeConfig, set_log: impl Fn(Level) + 'static) -> Result<(), NodeError> {
    // The network's key is in memory and must not get into core dumps.
    protect_memory();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        // In a lab all ports are radios of the emulator.
        if config.ports.iter().any(|port| port.port().is_none()) {
            serve::<AirRadio>(config, set_log).await
        } else {
            serve::<Port>(config, set_log).await
        }
    });

    // Let writes on other threads finish, but not for long.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

/// Keeps the network's key out of core dumps, and from other programs of the same user.
fn protect_memory() {
    if let Err(e) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!("the network's key may get into core dumps: {e}");
    }
}

async fn serve<R: Radio>(
    config: &NodeConfig,
    set_log: impl Fn(Level) + 'static,
) -> Result<(), NodeError> {
    // Mistakes in the configuration are found first, before anything is sent.
    #[cfg(not(feature = "web"))]
    if config.web.is_some() {
        return Err(config.blame("web", "this program was built without the console").into());
    }
    let state = StateDir::open(&config.state_dir)?;
    let trust = trust(config, &state).map_err(|e| config.blame("trust", &e.to_string()))?;
    if let Some(inbox) = &config.inbox {
        check_inbox(inbox).map_err(|e| NodeError::Inbox(inbox.clone(), e))?;
    }
    let fleet = FleetStart::read(config.fleet.as_ref(), &state)
        .map_err(|problem| config.blame("fleet", &problem))?;

    // From here on the radios hear frames. They wait in the kernel until the loop runs.
    let mut radios = Radios::<R>::open(config).await?;
    let (handle, calls) = Handle::new();
    let (ports, ingress) = Ports::new();

    // A salt and an epoch of its own for each start: nonces must not repeat, and news must win.
    let parts = Parts {
        start: Start {
            salt: random_salt()?,
            epoch: state.next_epoch()?,
            seed: getrandom::u64().map_err(io::Error::from)?,
        },
        trust,
        fleet,
        delivered: state.delivered()?,
        handle: handle.clone(),
        ports,
        set_log: Box::new(set_log),
        state,
    };

    // The radios are open and their MTU known, so the node can refuse schemes that do not fit.
    let mut node = Node::new(config, parts).map_err(|e| config.blame(&e.section, &e.problem))?;
    radios.tell(&mut node);
    node.with_streams(|streams, moment| streams.begin(&config.stream, moment))
        .map_err(|problem| config.blame("stream", &problem))?;

    let mut tunnel = TunnelDevice::default();
    if let Some((config, mtu)) = node.device() {
        tunnel.open(config, mtu)?;
    }

    // Commands are answered from here on, and transfers of an earlier start go on.
    let socket = ApiSocket::bind(&config.api_socket, config.api_group)?;
    #[cfg(feature = "web")]
    let hub = web::hub(handle.clone(), config.web.is_some());
    #[cfg(feature = "web")]
    socket.serve(handle.clone(), web::messages(hub.clone()));
    #[cfg(not(feature = "web"))]
    socket.serve(handle.clone(), axum::Router::new());
    #[cfg(feature = "web")]
    if let Some(web) = &config.web {
        web::serve(config, web, handle.clone(), hub).await?;
    }
    tokio::spawn(api::resume(handle.clone()));

    tracing::info!("{} is up: id {}, {}", config.name, config.id, radios.describe());

    // The supervisor is told last: services that depend on this one may call the API at once.
    let mesh = Loop::new(node, handle, radios, tunnel, calls, ingress)?;
    tell_supervisor(NotifyState::Ready);
    let result = mesh.run().await;
    tell_supervisor(NotifyState::Stopping);
    result
}

/// Tells systemd, or who else started this daemon with `NOTIFY_SOCKET` set, what it does now.
fn tell_supervisor(state: NotifyState<'_>) {
    if let Err(e) = sd_notify::notify(&[state]) {
        tracing::warn!("NOTIFY_SOCKET cannot be told: {e}");
    }
}

/// Draws the salt of this start. Nonces differ from those of all other starts only by it.
fn random_salt() -> io::Result<Salt> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt)?;
    Ok(Salt(salt))
}

/// The tunnel's device, if there is one.
#[derive(Default)]
struct TunnelDevice {
    device: Option<Device>,
    /// News of this device.
    upkeep: Option<mpsc::UnboundedReceiver<Upkeep>>,
}

impl TunnelDevice {
    fn open(&mut self, config: &TunnelConfig, mtu: usize) -> Result<(), DeviceError> {
        let (reports, upkeep) = mpsc::unbounded_channel();
        self.device = Some(Device::open(config, mtu, reports)?);
        self.upkeep = Some(upkeep);
        Ok(())
    }
}

struct Loop<R> {
    node: Node,
    handle: Handle,
    radios: Radios<R>,
    tunnel: TunnelDevice,
    calls: mpsc::UnboundedReceiver<Command>,
    ingress: IngressPackets,
    alarm: Alarm,
    tidy: Interval,
    /// Attempts to make the tunnel's device again, and to open radios.
    retry: Interval,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// The last packet read from the tunnel device.
    packet: Vec<u8>,
}

impl<R: Radio> Loop<R> {
    fn new(
        node: Node,
        handle: Handle,
        radios: Radios<R>,
        tunnel: TunnelDevice,
        calls: mpsc::UnboundedReceiver<Command>,
        ingress: IngressPackets,
    ) -> io::Result<Self> {
        let mut tidy = interval(HOUSEKEEPING_INTERVAL);

        // After a suspended machine wakes up, one tick is enough.
        tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);

        let mut retry = interval(DEVICE_INTERVAL);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);

        Ok(Self {
            node,
            handle,
            radios,
            tunnel,
            calls,
            ingress,
            alarm: Alarm::new()?,
            tidy,
            retry,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            packet: vec![0; LONGEST_PACKET],
        })
    }

    async fn run(mut self) -> Result<(), NodeError> {
        while self.step().await? {
            self.node.handle_events();
            self.deliver();
        }
        tracing::info!("stopped");
        Ok(())
    }

    /// Waits for one event and handles it. Returns whether to continue.
    async fn step(&mut self) -> Result<bool, NodeError> {
        // Whatever the last event was, it may have given the node something to send.
        self.radios.request(&self.node).await.map_err(NodeError::Radio)?;

        let timeout = self.node.poll_timeout();
        tokio::select! {
            event = self.radios.event() => {
                let (place, event) = event.map_err(NodeError::Radio)?;
                let handled = self.radios.handle_event(place, event, &mut self.node).await;
                handled.map_err(NodeError::Radio)?;
            }
            () = self.alarm.wait_until(timeout) => self.node.handle_timeout(),
            read = read(self.tunnel.device.as_ref(), &mut self.packet) => {
                if let Err(gone) = read.and_then(|length| self.handle_packets(length)) {
                    self.lose_device(&gone);
                }
            }
            upkeep = news(self.tunnel.upkeep.as_mut()) => self.handle_upkeep(upkeep),
            _ = self.retry.tick() => {
                self.look_after_device();
                self.radios.open_closed(&mut self.node).await;
                self.radios.look_at_carriers(&mut self.node);
            }
            Some(packets) = self.ingress.recv() => {
                // A port hands on what it has in batches.
                self.node.with_streams(|streams, moment| {
                    packets.into_iter().for_each(|packet| streams.handle_ingress(packet, moment));
                });
            }
            // Calls of the API run between two events, so that a handler never sees half a step.
            Some(call) = self.calls.recv() => {
                call(&mut self.node);
                // The API changed settings that the radios alone can apply.
                self.radios.change(&mut self.node).await;
            }
            // Slow chores, none of which the next frame depends on.
            _ = self.tidy.tick() => {
                self.node.tidy();
            }
            _ = self.interrupt.recv() => return Ok(false),
            _ = self.terminate.recv() => return Ok(false),
            // Another task reads the file, so that a slow disk holds up no frames.
            _ = self.hangup.recv() => drop(tokio::spawn(reload(self.handle.clone()))),
        }

        Ok(true)
    }

    /// Handles a packet from the tunnel device, and more of them if there are any.
    fn handle_packets(&mut self, length: usize) -> Result<(), DeviceError> {
        let Some(device) = &self.tunnel.device else { return Ok(()) };
        let mut take = |packet: &[u8]| {
            self.node.with_tunnel(|tunnel, moment| tunnel.handle_packet(packet.to_vec(), moment));
        };

        take(&self.packet[..length]);
        // Bounded, so that a host that sends without pause leaves the radio its turn.
        for _ in 1..BURST {
            let Some(length) = device.try_receive(&mut self.packet)? else { break };
            take(&self.packet[..length]);
        }

        Ok(())
    }

    /// Writes received tunnel packets to the device.
    fn deliver(&mut self) {
        let device = self.tunnel.device.as_ref();
        self.node.with_tunnel(|tunnel, _| {
            // The queue is emptied without a device too, or it would fill and stay full.
            while let Some(packet) = tunnel.poll_packet() {
                if !device.is_some_and(|device| device.send(&packet)) {
                    tunnel.handle_device_refusal();
                }
            }
        });
    }

    /// Notes that the tunnel's device is gone. It is made again soon.
    fn lose_device(&mut self, why: &DeviceError) {
        tracing::warn!("{why}; it is made again");
        self.tunnel = TunnelDevice::default();
        self.node.note_device(DeviceState::Failed(format!("{why}; the daemon makes it again")));
    }

    /// Makes the tunnel's device again if it is gone.
    fn look_after_device(&mut self) {
        // The kernel wakes who waits for a packet before it lets go of the device.
        if let Some(Err(gone)) = self.tunnel.device.as_ref().map(Device::check) {
            return self.lose_device(&gone);
        }
        if self.tunnel.device.is_some() {
            return;
        }
        let Some((config, mtu)) = self.node.device() else { return };
        match self.tunnel.open(config, mtu) {
            Ok(()) => self.note_restored("it was removed"),
            Err(e) => self.node.note_device(DeviceState::Failed(e.to_string())),
        }
    }

    fn note_restored(&mut self, changes: &str) {
        tracing::warn!("the tunnel's device was changed by another program ({changes}); restored");
        self.node.note_device(DeviceState::Restored(changes.to_owned()));
    }

    /// Notes what was done to the tunnel's device.
    fn handle_upkeep(&mut self, upkeep: Upkeep) {
        match upkeep {
            Upkeep::Restored(changes) if changes.is_empty() => {
                self.note_restored("it could not be restored before");
            }
            Upkeep::Restored(changes) => self.note_restored(&changes.join(", ")),
            // It is in another namespace, where this node does not reach it.
            Upkeep::Failed(gone @ DeviceError::Gone(..)) => self.lose_device(&gone),
            Upkeep::Failed(e) => self.node.note_device(DeviceState::Failed(e.to_string())),
        }
    }
}

/// Reads the configuration again, for whoever sent a signal and gets no answer.
async fn reload(handle: Handle) {
    // The changes are logged there.
    if let Err(e) = api::reload(&handle).await {
        tracing::error!("SIGHUP: {e}");
    }
}

/// Waits for news of the tunnel's device. Waits forever without one.
async fn news(upkeep: Option<&mut mpsc::UnboundedReceiver<Upkeep>>) -> Upkeep {
    let news = match upkeep {
        Some(upkeep) => upkeep.recv().await,
        None => None,
    };

    match news {
        Some(news) => news,
        None => pending().await,
    }
}

/// Reads a packet from the tunnel device. Waits forever without one.
async fn read(device: Option<&Device>, packet: &mut [u8]) -> Result<usize, DeviceError> {
    match device {
        Some(device) => device.receive(packet).await,
        None => pending().await,
    }
}
