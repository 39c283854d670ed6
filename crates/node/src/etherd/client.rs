//! The side of a process that is attached to the ether as one of its radios.
//!
//! [`EtherClient::event`] is cancel-safe, to stand in a `select!`. A grant is to be answered at once, as the whole
//! medium waits. To keep the channel busy, ask for the next frame with [`EtherClient::request`] *before* answering
//! the present grant: the request then takes part in the very next backoff.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until, timeout};

use super::datagram::{
    Access, Datagram, MAX_DATAGRAM_BYTES, MAX_FRAME_BYTES, Outcome, Refusal, Token, parse,
};

/// How long to wait for an answer before an attachment is asked for again.
const ATTACH_WAIT: Duration = Duration::from_millis(200);
const ATTACH_TRIES: u32 = 25;
/// A request without a grant is repeated after this: UDP may have lost either. The ether ignores repetitions.
const REQUEST_WAIT: Duration = Duration::from_millis(250);

/// What the ether says to a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtherEvent {
    /// Send now: answer with [`EtherClient::answer`] or [`EtherClient::decline`].
    Grant,
    /// A frame was heard.
    Received {
        /// The index of the radio that sent it.
        from: u32,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// What became of the frame sent last.
    Report {
        /// The outcome.
        outcome: Outcome,
        /// How many times it was sent.
        attempts: u32,
        /// Its time on the air in all attempts, ns.
        airtime_ns: u64,
    },
}

/// Why a radio cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EtherClientError {
    /// The socket.
    #[error("ether at {ether}: {source}")]
    Socket {
        /// The ether's address.
        ether: SocketAddr,
        /// The operating system's reason; connection refused where no ether listens.
        source: std::io::Error,
    },
    /// Nobody answered.
    #[error("ether at {ether}: no answer")]
    Silent {
        /// The ether's address.
        ether: SocketAddr,
    },
    /// The token is not that of the ether's run.
    #[error("ether at {ether}: wrong token")]
    WrongToken {
        /// The ether's address.
        ether: SocketAddr,
    },
    /// The ether has fewer radios.
    #[error("ether at {ether}: no radio {radio}")]
    NoSuchRadio {
        /// The ether's address.
        ether: SocketAddr,
        /// The index asked for.
        radio: u32,
    },
    /// Another process attached as this radio, the ether gave this one up for its silence, or it has ended.
    #[error("ether at {ether}: detached from radio {radio}")]
    Detached {
        /// The ether's address.
        ether: SocketAddr,
        /// This radio's index.
        radio: u32,
    },
    /// An answer without a grant.
    #[error("no grant to answer")]
    NoGrant,
    /// A frame longer than a MAC carries.
    #[error("frame of {bytes} bytes: at most {MAX_FRAME_BYTES} fit")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// An attached radio. Dropped, it detaches.
pub struct EtherClient {
    socket: UdpSocket,
    ether: SocketAddr,
    radio: u32,
    radios: u32,
    /// The serial of the grant not answered yet.
    grant: Option<u64>,
    /// When to repeat the request, while one is open.
    repeat_at: Option<Instant>,
    garbled: u64,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl EtherClient {
    /// Attaches as `radio` to the ether at `ether`, in place of any process that was attached so.
    ///
    /// # Errors
    /// [`EtherClientError::Socket`], [`EtherClientError::WrongToken`], [`EtherClientError::NoSuchRadio`]; [`EtherClientError::Silent`] after 5 s.
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
        // Connected, it hears nobody else, and learns when the ether is gone.
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
        for _ in 0..ATTACH_TRIES {
            air.send(&Datagram::Attach { token, radio }).await?;
            if let Ok(attached) = timeout(ATTACH_WAIT, air.attached()).await {
                air.radios = attached?;
                return Ok(air);
            }
        }
        Err(EtherClientError::Silent { ether })
    }

    /// Waits for the answer to an attachment: the number of radios.
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
                _ => self.garbled += 1,
            }
        }
    }

    /// This radio's index.
    pub fn radio(&self) -> u32 {
        self.radio
    }

    /// How many radios the ether has.
    pub fn radios(&self) -> u32 {
        self.radios
    }

    /// Datagrams that could not be read or made no sense.
    pub fn garbled(&self) -> u64 {
        self.garbled
    }

    /// Asks for the channel, for one frame. Asking twice is asking once.
    ///
    /// # Errors
    /// [`EtherClientError::Socket`].
    pub async fn request(&mut self) -> Result<(), EtherClientError> {
        self.repeat_at = Some(Instant::now() + REQUEST_WAIT);
        self.send(&Datagram::Request).await
    }

    /// Takes the request back. A grant may be under way even so.
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
    /// [`EtherClientError::NoGrant`], [`EtherClientError::Socket`]; with [`EtherClientError::TooLong`] the grant stays open.
    pub async fn answer(&mut self, access: Access, bytes: &[u8]) -> Result<(), EtherClientError> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(EtherClientError::TooLong { bytes: bytes.len() });
        }
        let serial = self.grant.take().ok_or(EtherClientError::NoGrant)?;
        self.send(&Datagram::Frame { serial, access, bytes }).await
    }

    /// Answers the grant with nothing.
    ///
    /// # Errors
    /// [`EtherClientError::NoGrant`], [`EtherClientError::Socket`].
    pub async fn decline(&mut self) -> Result<(), EtherClientError> {
        let serial = self.grant.take().ok_or(EtherClientError::NoGrant)?;
        self.send(&Datagram::Decline { serial }).await
    }

    /// The next event. Cancel-safe.
    ///
    /// # Errors
    /// [`EtherClientError::Detached`], or [`EtherClientError::Socket`] where the ether is gone.
    pub async fn event(&mut self) -> Result<EtherEvent, EtherClientError> {
        loop {
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
                // The answer to an attachment asked for twice.
                Ok(Datagram::Attached { .. }) => {}
                _ => self.garbled += 1,
            }
        }
    }

    async fn receive(&mut self) -> Result<usize, EtherClientError> {
        let received = self.socket.recv(&mut self.incoming).await;
        received.map_err(|source| EtherClientError::Socket { ether: self.ether, source })
    }

    async fn send(&mut self, datagram: &Datagram<'_>) -> Result<(), EtherClientError> {
        datagram.write(&mut self.outgoing);
        let sent = self.socket.send(&self.outgoing).await;
        sent.map(drop).map_err(|source| EtherClientError::Socket { ether: self.ether, source })
    }
}

impl Drop for EtherClient {
    fn drop(&mut self) {
        // Never attached: an ether that refused this one need not hear of it.
        if self.radios == 0 {
            return;
        }
        Datagram::Detach.write(&mut self.outgoing);
        // If it does not go out, the ether will notice the silence.
        let _ = self.socket.try_send(&self.outgoing);
    }
}
