//! Socket, timer and control of the emulator.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use ncmesh_medium::{MediumConfig, RadioId};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};

use super::datagram::MAX_DATAGRAM_BYTES;
use super::ether::Send;
use super::{Ether, EtherConfig, EtherError, EtherStatistics, Medium, MediumError};
use crate::alarm::Alarm;

/// Largest number of datagrams read in a row before the time is checked.
const BATCH: usize = 256;
/// Capacity of the queue of commands.
const COMMANDS: usize = 64;

/// Command of an [`EtherControl`] to the running emulator.
enum Command {
    SetLoss {
        from: RadioId,
        to: RadioId,
        loss: f64,
        done: oneshot::Sender<Result<(), MediumError>>,
    },
    SetUp {
        radio: RadioId,
        up: bool,
        done: oneshot::Sender<Result<(), MediumError>>,
    },
    Statistics {
        done: oneshot::Sender<EtherStatistics>,
    },
    Stop,
}

/// Reason why a command had no effect.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The emulator has ended.
    #[error("the ether has ended")]
    Ended,
    /// The medium refused the command.
    #[error(transparent)]
    Medium(#[from] MediumError),
}

/// Handle that controls a running emulator. Cheap to clone.
#[derive(Clone)]
pub struct EtherControl {
    commands: mpsc::Sender<Command>,
}

impl EtherControl {
    /// Changes the loss of a directed link, 0 to 1.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn set_loss(
        &self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), ControlError> {
        Ok(self.ask(|done| Command::SetLoss { from, to, loss, done }).await??)
    }

    /// Switches a radio off or on. Its process stays attached and may be replaced meanwhile.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn set_up(&self, radio: RadioId, up: bool) -> Result<(), ControlError> {
        Ok(self.ask(|done| Command::SetUp { radio, up, done }).await??)
    }

    /// Returns the counters up to now.
    ///
    /// # Errors
    /// [`ControlError::Ended`].
    pub async fn statistics(&self) -> Result<EtherStatistics, ControlError> {
        self.ask(|done| Command::Statistics { done }).await
    }

    /// Ends the emulator, if it has not ended yet.
    pub async fn stop(&self) {
        // If the emulator has ended already, there is nothing to do.
        let _ = self.commands.send(Command::Stop).await;
    }

    /// Sends a command and waits for its answer.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, ControlError> {
        let (done, answer) = oneshot::channel();
        self.commands.send(command(done)).await.map_err(|_| ControlError::Ended)?;
        answer.await.map_err(|_| ControlError::Ended)
    }
}

/// Emulator with a bound socket, not yet running.
pub struct Etherd {
    ether: Ether,
    config: EtherConfig,
    address: SocketAddr,
    socket: UdpSocket,
    /// The same socket, for sending without waiting, which loopback never requires.
    sender: std::net::UdpSocket,
    control: EtherControl,
    commands: mpsc::Receiver<Command>,
}

impl Etherd {
    /// Binds the socket. All radios are off until processes attach. Call it within a tokio runtime.
    ///
    /// # Errors
    /// [`EtherError::Medium`], [`EtherError::Socket`].
    pub fn bind(medium: MediumConfig, config: EtherConfig) -> Result<Self, EtherError> {
        // Settings are checked before the socket is opened, so that an invalid medium is reported
        // as such.
        let ether = Ether::new(Medium::new(medium)?, &config)?;
        let open = || {
            let sender = std::net::UdpSocket::bind(config.bind)?;
            sender.set_nonblocking(true)?;
            let socket = UdpSocket::from_std(sender.try_clone()?)?;
            Ok((sender.local_addr()?, socket, sender))
        };

        let fail = |source| EtherError::Socket { address: config.bind, source };
        let (address, socket, sender) = open().map_err(fail)?;
        // Bounded: a lab that sends commands faster than they are done waits.
        let (control, commands) = mpsc::channel(COMMANDS);
        let control = EtherControl { commands: control };
        Ok(Self { ether, config, address, socket, sender, control, commands })
    }

    /// Returns the address that processes attach to.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle that controls the emulator.
    pub fn control(&self) -> EtherControl {
        self.control.clone()
    }

    /// Runs until `shutdown` completes or the control stops it, tells all processes, and returns
    /// the counters.
    ///
    /// # Errors
    /// [`EtherError::Lag`] if the machine cannot keep up, [`EtherError::Socket`],
    /// [`EtherError::Timer`].
    pub async fn run(
        mut self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<EtherStatistics, EtherError> {
        let start = Instant::now();
        // Processes are told however the run ends. Otherwise they would wait for grants.
        let ended = self.serve(start, shutdown).await;
        self.with_sender(|ether, send| ether.dismiss_all(send));
        ended.map(|()| self.ether.statistics(wall_ns(start)))
    }

    /// Handles commands, datagrams and events of the medium until the emulator is stopped.
    async fn serve(
        &mut self,
        start: Instant,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), EtherError> {
        let mut shutdown = pin!(shutdown);
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        let mut alarm = Alarm::new().map_err(|source| EtherError::Timer { source })?;
        loop {
            // Wait for the next event of the medium, a datagram, or a command.
            let wake_at = self.ether.next_ns().map(|ns| start + Duration::from_nanos(ns));
            let command = tokio::select! {
                () = &mut shutdown => Some(Command::Stop),
                command = self.commands.recv() => command,
                _ = self.socket.readable() => None,
                () = alarm.wait_until(wake_at) => None,
            };

            // A command is done at the time it is taken, before the medium goes on.
            if let Some(command) = command
                && !self.execute(command, wall_ns(start))
            {
                return Ok(());
            }

            // Datagrams come before the events of this moment: a frame that has arrived meanwhile
            // may be the answer for which the medium waits.
            self.receive(start, &mut buffer)?;
            self.advance(wall_ns(start))?;
        }
    }

    /// Executes a command. Returns false to stop.
    fn execute(&mut self, command: Command, wall_ns: u64) -> bool {
        // Sending an answer fails only if its recipient is gone and does not need it any more.
        match command {
            Command::SetLoss { from, to, loss, done } => {
                drop(done.send(self.ether.set_loss(from, to, loss)));
            }
            Command::SetUp { radio, up, done } => drop(done.send(self.ether.set_up(radio, up))),
            Command::Statistics { done } => drop(done.send(self.ether.statistics(wall_ns))),
            Command::Stop => return false,
        }

        true
    }

    /// Runs `work` with a function that sends at once, and counts what the socket does not accept.
    fn with_sender(&mut self, work: impl FnOnce(&mut Ether, Send<'_>)) {
        let mut unsent = 0;
        work(&mut self.ether, &mut |to, bytes| {
            unsent += u64::from(self.sender.send_to(bytes, to).is_err());
        });
        self.ether.count_unsent(unsent);
    }

    /// Handles the datagrams that wait in the socket.
    fn receive(&mut self, start: Instant, buffer: &mut [u8]) -> Result<(), EtherError> {
        // Bounded, so that a flood of datagrams cannot keep the medium from its events.
        for _ in 0..BATCH {
            match self.socket.try_recv_from(buffer) {
                Ok((length, from)) => {
                    let datagram = &buffer[..length];
                    self.with_sender(|ether, send| {
                        ether.handle_datagram(wall_ns(start), from, datagram, send);
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The error reports a process that died. Its datagrams are lost.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
                    ) => {}
                Err(source) => {
                    return Err(EtherError::Socket { address: self.address, source });
                }
            }
        }

        Ok(())
    }

    /// Advances the medium to the wall clock.
    ///
    /// # Errors
    /// [`EtherError::Lag`] if it has been too far behind for too long.
    fn advance(&mut self, wall_ns: u64) -> Result<(), EtherError> {
        self.with_sender(|ether, send| ether.advance(wall_ns, send));
        if self.ether.lags_too_much() {
            let max_ms = self.ether.statistics(wall_ns).lag_max_ns / 1_000_000;
            return Err(EtherError::Lag { limit_ms: self.config.lag_limit.as_millis(), max_ms });
        }
        Ok(())
    }
}

/// Returns the wall time since the start, ns.
fn wall_ns(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
