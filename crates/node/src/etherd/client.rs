//! Client of the channel emulator: a process attached as one of its radios.
//!
//! [`EtherClient::event`] is cancel-safe, so that it can be used in a `select!`. Answer a grant at
//! once, because the whole medium waits. To keep the channel busy, call [`EtherClient::request`]
//! for the next frame *before* answering the present grant: the request then takes part in the very
//! next backoff.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until, timeout};

use super::datagram::{
    Access, Datagram, MAX_DATAGRAM_BYTES, MAX_FRAME_BYTES, Outcome, Refusal, Token, parse,
};

/// Timeout after which an attachment is requested again.
const ATTACH_WAIT: Duration = Duration::from_millis(200);
const ATTACH_TRIES: u32 = 25;
/// Timeout after which a request without a grant is repeated, because UDP may have lost either. The
/// emulator ignores repetitions.
const REQUEST_WAIT: Duration = Duration::from_millis(250);

/// Event of a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtherEvent {
    /// The channel is granted: call [`EtherClient::answer`] or [`EtherClient::decline`].
    Grant,
    /// A frame was heard.
    Received {
        /// Index of the radio that sent it.
        from: u32,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Report about the last frame sent.
    Report {
        /// The outcome.
        outcome: Outcome,
        /// Number of transmission attempts.
        attempts: u32,
        /// Airtime of all attempts, ns.
        airtime_ns: u64,
    },
}

/// Reason why a radio cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum EtherClientError {
    /// The socket failed.
    #[error("ether at {ether}: {source}")]
    Socket {
        /// The emulator's address.
        ether: SocketAddr,
        /// The operating system's error: connection refused if no emulator listens.
        source: std::io::Error,
    },
    /// The emulator did not answer.
    #[error("ether at {ether}: no answer")]
    Silent {
        /// The emulator's address.
        ether: SocketAddr,
    },
    /// The token is not that of the emulator's run.
    #[error("ether at {ether}: wrong token")]
    WrongToken {
        /// The emulator's address.
        ether: SocketAddr,
    },
    /// The emulator has fewer radios.
    #[error("ether at {ether}: no radio {radio}")]
    NoSuchRadio {
        /// The emulator's address.
        ether: SocketAddr,
        /// The requested index.
        radio: u32,
    },
    /// The radio was detached: another process attached as this radio, the emulator gave this one
    /// up for not answering, or the run ended.
    #[error("ether at {ether}: detached from radio {radio}")]
    Detached {
        /// The emulator's address.
        ether: SocketAddr,
        /// This radio's index.
        radio: u32,
    },
    /// There is no grant to answer.
    #[error("no grant to answer")]
    NoGrant,
    /// The frame is longer than a MAC carries.
    #[error("frame of {bytes} bytes: at most {MAX_FRAME_BYTES} fit")]
    TooLong {
        /// Its length, bytes.
        bytes: usize,
    },
}

/// Attached radio. Dropping it detaches.
pub struct EtherClient {
    socket: UdpSocket,
    ether: SocketAddr,
    radio: u32,
    radios: u32,
    /// Serial of the open grant.
    grant: Option<u64>,
    /// Time to repeat the request, while one is open.
    repeat_at: Option<Instant>,
    garbled: u64,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl EtherClient {
    /// Attaches as `radio` to the emulator at `ether`. Replaces any process attached as that radio.
    ///
    /// # Errors
    /// [`EtherClientError::Socket`], [`EtherClientError::WrongToken`],
    /// [`EtherClientError::NoSuchRadio`], or [`EtherClientError::Silent`] after 5 s.
    pub async fn attach(
        ether: SocketAddr,
        token: Token,
        radio: u32,
    ) -> Result<Self, EtherClientError> {
        let fail = |source| EtherClientError::Socket { ether, source };
        let any: SocketAddr = match ether {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };

        let socket = UdpSocket::bind(any).await.map_err(fail)?;

        // A connected socket receives from the emulator only, and reports when it is gone.
        socket.connect(ether).await.map_err(fail)?;
        let mut air = Self {
            socket,
            ether,
            radio,
            radios: 0,
            grant: None,
            repeat_at: None,
            garbled: 0,
            incoming: vec![0; MAX_DATAGRAM_BYTES],
            outgoing: Vec::new(),
        };

        // The emulator may not listen yet, and UDP may lose the request or the answer.
        for _ in 0..ATTACH_TRIES {
            air.send(&Datagram::Attach { token, radio }).await?;
            if let Ok(attached) = timeout(ATTACH_WAIT, air.attached()).await {
                air.radios = attached?;
                return Ok(air);
            }
        }

        Err(EtherClientError::Silent { ether })
    }

    /// Waits for the answer to an attachment. Returns the number of radios.
    async fn attached(&mut self) -> Result<u32, EtherClientError> {
        loop {
            let length = self.receive().await?;
            match parse(&self.incoming[..length]) {
                Ok(Datagram::Attached { radio, radios }) if radio == self.radio => {
                    return Ok(radios);
                }
                Ok(Datagram::Refused { reason: Refusal::WrongToken }) => {
                    return Err(EtherClientError::WrongToken { ether: self.ether });
                }
                Ok(Datagram::Refused { reason: Refusal::NoSuchRadio }) => {
                    return Err(EtherClientError::NoSuchRadio {
                        ether: self.ether,
                        radio: self.radio,
                    });
                }

                // Datagrams of an earlier attachment may still arrive.
                _ => self.garbled += 1,
            }
        }
    }

    /// Returns the index of this radio.
    pub fn radio(&self) -> u32 {
        self.radio
    }

    /// Returns the number of radios of the emulator.
    pub fn radios(&self) -> u32 {
        self.radios
    }

    /// Returns the number of malformed datagrams received.
    pub fn garbled(&self) -> u64 {
        self.garbled
    }

    /// Requests the channel for one frame. Repeated requests have no further effect.
    ///
    /// # Errors
    /// [`EtherClientError::Socket`].
    pub async fn request(&mut self) -> Result<(), EtherClientError> {
        self.repeat_at = Some(Instant::now() + REQUEST_WAIT);
        self.send(&Datagram::Request).await
    }

    /// Withdraws the request. A grant may still arrive if it was sent before.
    ///
    /// # Errors
    /// [`EtherClientError::Socket`].
    pub async fn withdraw(&mut self) -> Result<(), EtherClientError> {
        self.repeat_at = None;
        self.send(&Datagram::Withdraw).await
    }

    /// Answers the grant with a frame of at most [`MAX_FRAME_BYTES`].
    ///
    /// # Errors
    /// [`EtherClientError::NoGrant`], [`EtherClientError::Socket`], or
    /// [`EtherClientError::TooLong`], after which the grant stays open.
    pub async fn answer(&mut self, access: Access, bytes: &[u8]) -> Result<(), EtherClientError> {
        // The length is checked before the grant is used up, so that the caller can still answer.
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(EtherClientError::TooLong { bytes: bytes.len() });
        }
        let serial = self.grant.take().ok_or(EtherClientError::NoGrant)?;
        self.send(&Datagram::Frame { serial, access, bytes }).await
    }

    /// Declines the grant.
    ///
    /// # Errors
    /// [`EtherClientError::NoGrant`], [`EtherClientError::Socket`].
    pub async fn decline(&mut self) -> Result<(), EtherClientError> {
        let serial = self.grant.take().ok_or(EtherClientError::NoGrant)?;
        self.send(&Datagram::Decline { serial }).await
    }

    /// Waits for the next event. Cancel-safe.
    ///
    /// # Errors
    /// [`EtherClientError::Detached`], or [`EtherClientError::Socket`] if the emulator is gone.
    pub async fn event(&mut self) -> Result<EtherEvent, EtherClientError> {
        loop {
            // While a request is open it is repeated at intervals. Either branch may be cancelled:
            // `recv` takes a datagram only if it completes, and `repeat_at` keeps the time.
            let length = match self.repeat_at {
                None => self.receive().await?,
                Some(at) => tokio::select! {
                    length = self.receive() => length?,
                    () = sleep_until(at) => {
                        self.request().await?;
                        continue;
                    }
                },
            };

            match parse(&self.incoming[..length]) {
                // The emulator has the request, so it is not repeated any more.
                Ok(Datagram::Grant { serial }) => {
                    self.grant = Some(serial);
                    self.repeat_at = None;
                    return Ok(EtherEvent::Grant);
                }
                Ok(Datagram::Deliver { from, bytes }) => {
                    return Ok(EtherEvent::Received { from, bytes: bytes.to_vec() });
                }
                Ok(Datagram::Report { outcome, attempts, airtime_ns }) => {
                    return Ok(EtherEvent::Report { outcome, attempts, airtime_ns });
                }
                Ok(Datagram::Detached) => {
                    return Err(EtherClientError::Detached {
                        ether: self.ether,
                        radio: self.radio,
                    });
                }

                // Answer to a repeated attachment.
                Ok(Datagram::Attached { .. }) => {}
                _ => self.garbled += 1,
            }
        }
    }

    /// Receives a datagram into the buffer and returns its length.
    async fn receive(&mut self) -> Result<usize, EtherClientError> {
        let received = self.socket.recv(&mut self.incoming).await;
        received.map_err(|source| EtherClientError::Socket { ether: self.ether, source })
    }

    /// Sends a datagram to the emulator.
    async fn send(&mut self, datagram: &Datagram<'_>) -> Result<(), EtherClientError> {
        datagram.write(&mut self.outgoing);
        let sent = self.socket.send(&self.outgoing).await;
        sent.map(drop).map_err(|source| EtherClientError::Socket { ether: self.ether, source })
    }
}

impl Drop for EtherClient {
    fn drop(&mut self) {
        // A radio that was never attached has nothing to detach.
        if self.radios == 0 {
            return;
        }
        Datagram::Detach.write(&mut self.outgoing);
        // If the datagram is lost, the emulator detaches the radio after its timeouts.
        let _ = self.socket.try_send(&self.outgoing);
    }
}
