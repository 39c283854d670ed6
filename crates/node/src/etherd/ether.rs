//! The ether without its socket: datagrams and wall time in, datagrams out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ncmesh_medium::{Access as MacAccess, Medium, MediumError, Output, RadioId, TxResult};

use super::clients::Clients;
use super::datagram::{Access, Datagram, Outcome, Refusal, Token, parse};
use super::lag::LagMeter;
use super::{EtherConfig, EtherStatistics, Faults};

/// Grants that a radio may let expire in a row before it is taken for dead.
const SILENCES: u32 = 3;

/// Where datagrams go.
pub(super) type Send<'a> = &'a mut dyn FnMut(SocketAddr, &[u8]);

/// A grant that its radio has not answered yet.
#[derive(Debug)]
struct Pending {
    serial: u64,
    expires_ns: u64,
}

/// The medium, who is attached, and what is owed. All times in ns of wall time since the start; medium time
/// runs along with it, behind by the lag.
pub(super) struct Ether {
    medium: Medium,
    token: Token,
    grant_limit_ns: u64,
    clients: Clients,
    /// By radio.
    pending: BTreeMap<usize, Pending>,
    serial: u64,
    lag: LagMeter,
    faults: Faults,
    /// The datagram being written, kept so as to reuse its memory.
    scratch: Vec<u8>,
}

impl Ether {
    /// An ether with nobody attached: all radios are off.
    pub(super) fn new(mut medium: Medium, config: &EtherConfig) -> Result<Self, MediumError> {
        for radio in 0..medium.radios() {
            medium.set_up(RadioId(radio), false)?;
        }
        Ok(Self {
            clients: Clients::new(medium.radios()),
            medium,
            token: config.token,
            grant_limit_ns: u64::try_from(config.grant_limit.as_nanos()).unwrap_or(u64::MAX),
            pending: BTreeMap::new(),
            serial: 0,
            lag: LagMeter::new(config.lag_limit, config.lag_patience),
            faults: Faults::default(),
            scratch: Vec::new(),
        })
    }

    /// Counters up to now.
    pub(super) fn statistics(&self, wall_ns: u64) -> EtherStatistics {
        EtherStatistics {
            medium: self.medium.statistics().clone(),
            medium_ns: self.medium.now_ns(),
            wall_ns,
            lag_max_ns: self.lag.max_ns(),
            lag_mean_ns: self.lag.mean_ns(),
            attached: self.clients.attached(),
            faults: self.faults,
        }
    }

    /// Counts a datagram that the socket would not take.
    pub(super) fn count_unsent(&mut self, datagrams: u64) {
        self.faults.unsent += datagrams;
    }

    /// Whether the medium has been too far behind for too long.
    pub(super) fn lags_too_much(&self) -> bool {
        self.lag.is_too_much()
    }

    /// Changes a link's loss.
    pub(super) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        self.medium.set_loss(from, to, loss)
    }

    /// Kills a radio or revives it; its process stays attached.
    pub(super) fn set_up(&mut self, radio: RadioId, up: bool) -> Result<(), MediumError> {
        let radios = self.medium.radios();
        if radio.0 >= radios {
            return Err(MediumError::UnknownRadio { radio, radios });
        }
        self.clients.set_killed(radio.0, !up);
        self.switch(radio.0)
    }

    /// Puts a radio in the state its seat says. Off, its grant is void.
    fn switch(&mut self, radio: usize) -> Result<(), MediumError> {
        let live = self.clients.is_live(radio);
        if !live {
            self.pending.remove(&radio);
        }
        self.medium.set_up(RadioId(radio), live)
    }

    fn leave(&mut self, radio: usize) {
        self.clients.detach(radio);
        // The radio exists: it had a seat.
        let _ = self.switch(radio);
    }

    /// Tells all processes that it is over.
    pub(super) fn dismiss_all(&mut self, send: Send<'_>) {
        for radio in 0..self.medium.radios() {
            if let Some(address) = self.clients.address_of(radio) {
                self.leave(radio);
                self.send(send, address, &Datagram::Detached);
            }
        }
    }

    fn send(&mut self, send: Send<'_>, to: SocketAddr, datagram: &Datagram<'_>) {
        datagram.write(&mut self.scratch);
        send(to, &self.scratch);
    }

    /// A datagram came in.
    pub(super) fn handle_datagram(
        &mut self,
        wall_ns: u64,
        from: SocketAddr,
        bytes: &[u8],
        send: Send<'_>,
    ) {
        let Ok(datagram) = parse(bytes) else {
            self.faults.garbled += 1;
            return;
        };
        if let Datagram::Attach { token, radio } = datagram {
            return self.handle_attach(from, token, radio, send);
        }
        let Some(radio) = self.clients.radio_of(from) else {
            self.faults.strangers += 1;
            return;
        };
        match datagram {
            Datagram::Detach => self.leave(radio),
            Datagram::Request | Datagram::Withdraw | Datagram::Decline { .. } => {
                // The radio exists, and a grant is open where one is declined: nothing to refuse.
                let _ = self.handle_wish(wall_ns, radio, &datagram);
            }
            Datagram::Frame { serial, access, bytes } => {
                if !self.handle_frame(wall_ns, radio, serial, access, bytes) {
                    // Every frame has its report, so that no sender waits for one.
                    let (outcome, attempts, airtime_ns) = (Outcome::Failed, 0, 0);
                    self.send(send, from, &Datagram::Report { outcome, attempts, airtime_ns });
                }
            }
            _ => self.faults.garbled += 1,
        }
    }

    fn handle_wish(
        &mut self,
        wall_ns: u64,
        radio: usize,
        wish: &Datagram<'_>,
    ) -> Result<(), MediumError> {
        let id = RadioId(radio);
        match *wish {
            Datagram::Request if self.medium.is_up(id) => self.medium.request(wall_ns, id),
            Datagram::Withdraw => self.medium.withdraw(wall_ns, id),
            Datagram::Decline { serial } if self.take_pending(radio, serial) => {
                self.medium.decline(wall_ns, id)
            }
            _ => Ok(()),
        }
    }

    fn handle_attach(&mut self, from: SocketAddr, token: Token, radio: u32, send: Send<'_>) {
        let index = radio as usize;
        let refusal = if token != self.token {
            Some(Refusal::WrongToken)
        } else {
            (index >= self.medium.radios()).then_some(Refusal::NoSuchRadio)
        };
        if let Some(reason) = refusal {
            self.faults.refused += 1;
            return self.send(send, from, &Datagram::Refused { reason });
        }
        // Asked again, as when our answer was lost, a process keeps its seat.
        if self.clients.radio_of(from) != Some(index) {
            if let Some(other) = self.clients.radio_of(from) {
                self.leave(other);
            }
            if let Some(before) = self.clients.address_of(index) {
                self.leave(index);
                self.send(send, before, &Datagram::Detached);
            }
            self.clients.attach(index, from);
            let _ = self.switch(index);
        }
        let radios = self.medium.radios() as u32;
        self.send(send, from, &Datagram::Attached { radio, radios });
    }

    /// Whether the frame answers an open grant, and goes out.
    fn handle_frame(
        &mut self,
        wall_ns: u64,
        radio: usize,
        serial: u64,
        access: Access,
        bytes: &[u8],
    ) -> bool {
        if !self.take_pending(radio, serial) {
            return false;
        }
        let access = match access {
            Access::Broadcast => MacAccess::Broadcast,
            Access::Unicast(to) => MacAccess::Unicast(RadioId(to as usize)),
        };
        let supplied = self.medium.supply(wall_ns, RadioId(radio), access, bytes.into());
        self.faults.bad_frames += u64::from(supplied.is_err());
        supplied.is_ok()
    }

    /// Whether `serial` is the grant that `radio` owes an answer to; it no longer does then.
    fn take_pending(&mut self, radio: usize, serial: u64) -> bool {
        self.clients.answered(radio);
        let owed = self.pending.get(&radio).is_some_and(|pending| pending.serial == serial);
        if owed {
            self.pending.remove(&radio);
        } else {
            self.faults.late_answers += 1;
        }
        owed
    }

    /// When [`advance`](Self::advance) is next due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let expiry = self.pending.values().map(|pending| pending.expires_ns).min();
        expiry.into_iter().chain(self.medium.poll_timeout()).min()
    }

    /// Lets the medium catch up with the wall clock, as far as open grants allow.
    pub(super) fn advance(&mut self, wall_ns: u64, send: Send<'_>) {
        self.expire(wall_ns, send);
        while let Some(due_ns) = self.medium.poll_timeout().filter(|&due_ns| due_ns <= wall_ns) {
            self.lag.sample(wall_ns, due_ns);
            self.medium.handle_timeout(due_ns);
            self.drain(wall_ns, send);
        }
        if self.pending.is_empty() {
            self.medium.handle_timeout(wall_ns);
            self.lag.caught_up();
        } else {
            self.lag.sample(wall_ns, self.medium.now_ns());
        }
    }

    /// Declines for those who have not answered in time, and gives up those who never do.
    fn expire(&mut self, wall_ns: u64, send: Send<'_>) {
        let late = |(&radio, pending): (&usize, &Pending)| {
            (pending.expires_ns <= wall_ns).then_some(radio)
        };
        let late: Vec<usize> = self.pending.iter().filter_map(late).collect();
        for radio in late {
            self.pending.remove(&radio);
            self.faults.expired_grants += 1;
            // Granted and not answered, so there is something to decline.
            let _ = self.medium.decline(wall_ns, RadioId(radio));
            if self.clients.missed(radio) >= SILENCES
                && let Some(address) = self.clients.address_of(radio)
            {
                self.faults.given_up += 1;
                self.leave(radio);
                self.send(send, address, &Datagram::Detached);
            }
        }
    }

    fn drain(&mut self, wall_ns: u64, send: Send<'_>) {
        // All hearers of a frame get the same datagram: it is written once.
        let mut written: Option<Arc<[u8]>> = None;
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Deliver { to, from, frame, .. } => {
                    if !written.as_ref().is_some_and(|last| Arc::ptr_eq(last, &frame)) {
                        Datagram::Deliver { from: from.0 as u32, bytes: &frame }
                            .write(&mut self.scratch);
                        written = Some(frame);
                    }
                    if let Some(address) = self.clients.address_of(to.0) {
                        send(address, &self.scratch);
                    }
                }
                Output::Grant { radio, .. } => {
                    written = None;
                    self.grant(wall_ns, radio.0, send);
                }
                Output::Report { radio, result, attempts, airtime_ns, .. } => {
                    written = None;
                    let outcome = outcome(result);
                    if let Some(address) = self.clients.address_of(radio.0) {
                        self.send(
                            send,
                            address,
                            &Datagram::Report { outcome, attempts, airtime_ns },
                        );
                    }
                }
            }
        }
    }

    fn grant(&mut self, wall_ns: u64, radio: usize, send: Send<'_>) {
        self.serial += 1;
        let serial = self.serial;
        let expires_ns = wall_ns.saturating_add(self.grant_limit_ns);
        self.pending.insert(radio, Pending { serial, expires_ns });
        if let Some(address) = self.clients.address_of(radio) {
            self.send(send, address, &Datagram::Grant { serial });
        }
    }
}

fn outcome(result: TxResult) -> Outcome {
    match result {
        TxResult::Sent => Outcome::Sent,
        TxResult::Acked => Outcome::Acked,
        TxResult::Failed => Outcome::Failed,
    }
}
