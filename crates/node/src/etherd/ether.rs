//! The emulator without its socket: datagrams and wall time in, datagrams out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ncmesh_medium::{Access as MacAccess, Medium, MediumError, Output, RadioId, TxResult};

use super::clients::Clients;
use super::datagram::{Access, Datagram, Outcome, Refusal, Token, parse};
use super::lag::LagMeter;
use super::{EtherConfig, EtherStatistics, Faults};

/// Number of expired grants in a row after which a radio is taken for dead.
const MAX_EXPIRED_GRANTS: u32 = 3;

/// Function that sends a datagram to an address.
pub(super) type Send<'a> = &'a mut dyn FnMut(SocketAddr, &[u8]);

/// Grant that its radio has not answered yet.
#[derive(Debug)]
struct Pending {
    serial: u64,
    expires_ns: u64,
}

/// The medium, its processes and open grants.
///
/// All times are wall time since the start, ns. Medium time runs along with it, behind by the lag.
pub(super) struct Ether {
    medium: Medium,
    token: Token,
    grant_limit_ns: u64,
    clients: Clients,
    /// Open grants, by radio.
    pending: BTreeMap<usize, Pending>,
    /// Radios that spoke while a grant was open, and whether each wants the channel. The medium
    /// stands still at the grant's instant then; in real time, the frame has begun already. A
    /// request passed on at once would find a free channel and collide with that frame.
    waiting: BTreeMap<usize, bool>,
    /// Number of the latest grant.
    serial: u64,
    lag: LagMeter,
    faults: Faults,
    /// Buffer of the datagram being written, kept to reuse its memory.
    scratch: Vec<u8>,
}

impl Ether {
    /// Returns an emulator without processes: all radios are off.
    pub(super) fn new(mut medium: Medium, config: &EtherConfig) -> Result<Self, MediumError> {
        // A radio is switched on by the process that attaches to it.
        for radio in 0..medium.radios() {
            medium.set_up(RadioId(radio), false)?;
        }
        Ok(Self {
            clients: Clients::new(medium.radios()),
            medium,
            token: config.token,
            grant_limit_ns: u64::try_from(config.grant_limit.as_nanos()).unwrap_or(u64::MAX),
            pending: BTreeMap::new(),
            waiting: BTreeMap::new(),
            serial: 0,
            lag: LagMeter::new(config.lag_limit, config.lag_timeout),
            faults: Faults::default(),
            scratch: Vec::new(),
        })
    }

    /// Returns the counters up to now.
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

    /// Counts datagrams that the socket did not accept.
    pub(super) fn count_unsent(&mut self, datagrams: u64) {
        self.faults.unsent += datagrams;
    }

    /// Returns whether the medium was too far behind for too long.
    pub(super) fn lags_too_much(&self) -> bool {
        self.lag.is_too_much()
    }

    /// Changes the loss of a link.
    pub(super) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        self.medium.set_loss(from, to, loss)
    }

    /// Switches a radio off or on. Its process stays attached.
    pub(super) fn set_up(&mut self, radio: RadioId, up: bool) -> Result<(), MediumError> {
        let radios = self.medium.radios();
        if radio.0 >= radios {
            return Err(MediumError::UnknownRadio { radio, radios });
        }
        self.clients.set_killed(radio.0, !up);
        self.switch(radio.0)
    }

    /// Switches the medium's radio on if it has a process and the lab wants it on, otherwise off.
    /// Switching it off voids its grant.
    fn switch(&mut self, radio: usize) -> Result<(), MediumError> {
        let live = self.clients.is_live(radio);
        if !live {
            self.pending.remove(&radio);
            self.waiting.remove(&radio);
        }
        self.medium.set_up(RadioId(radio), live)
    }

    /// Detaches the process of a radio and switches the radio off.
    fn detach(&mut self, radio: usize) {
        self.clients.detach(radio);
        // The index is valid: it comes from the table.
        let _ = self.switch(radio);
    }

    /// Tells all processes that the run has ended.
    pub(super) fn dismiss_all(&mut self, send: Send<'_>) {
        for radio in 0..self.medium.radios() {
            if let Some(address) = self.clients.address_of(radio) {
                self.detach(radio);
                self.send(send, address, &Datagram::Detached);
            }
        }
    }

    /// Writes a datagram and sends it.
    fn send(&mut self, send: Send<'_>, to: SocketAddr, datagram: &Datagram<'_>) {
        datagram.write(&mut self.scratch);
        send(to, &self.scratch);
    }

    /// Handles a received datagram.
    pub(super) fn handle_datagram(
        &mut self,
        wall_ns: u64,
        from: SocketAddr,
        bytes: &[u8],
        send: Send<'_>,
    ) {
        // Any process of this machine may send here, so what cannot be read is counted and dropped.
        let Ok(datagram) = parse(bytes) else {
            self.faults.garbled += 1;
            return;
        };

        // Any process may ask to be attached, if it knows the token. All other datagrams are
        // accepted from attached processes only, whose address identifies their radio.
        if let Datagram::Attach { token, radio } = datagram {
            return self.handle_attach(from, token, radio, send);
        }
        let Some(radio) = self.clients.radio_of(from) else {
            self.faults.strangers += 1;

            // A radio that was detached while its process stood still may have missed the word. It
            // repeats its request until it is told; otherwise it would be deaf and never know.
            if datagram == Datagram::Request {
                self.send(send, from, &Datagram::Detached);
            }
            return;
        };

        // The calls of the medium cannot fail, except `supply`: the radio exists, and only an open
        // grant is declined.
        let id = RadioId(radio);
        match datagram {
            Datagram::Detach => self.detach(radio),

            // Requests of a radio that the lab has switched off are ignored.
            Datagram::Request if !self.medium.is_up(id) => {}
            Datagram::Request => self.handle_wish(wall_ns, id, true),
            Datagram::Withdraw => self.handle_wish(wall_ns, id, false),

            Datagram::Decline { serial } => {
                if self.take_pending(radio, serial) {
                    let _ = self.medium.decline(wall_ns, id);
                }
            }

            // A frame is sent if it answers an open grant and the medium accepts it. Otherwise its
            // failure is reported, so that the sender does not wait for a report.
            Datagram::Frame { serial, access, bytes } => {
                let access = match access {
                    Access::Broadcast => MacAccess::Broadcast,
                    Access::Unicast(to) => MacAccess::Unicast(RadioId(to as usize)),
                };

                let mut is_sent = false;
                if self.take_pending(radio, serial) {
                    is_sent = self.medium.supply(wall_ns, id, access, bytes.into()).is_ok();
                    self.faults.bad_frames += u64::from(!is_sent);
                }

                if !is_sent {
                    let outcome = Outcome::Failed;
                    let attempts = 0;
                    let airtime_ns = 0;
                    self.send(send, from, &Datagram::Report { outcome, attempts, airtime_ns });
                }
            }

            // Kinds that only the emulator sends.
            _ => self.faults.garbled += 1,
        }
    }

    /// Passes on whether a radio wants the channel, once no grant is open.
    fn handle_wish(&mut self, wall_ns: u64, radio: RadioId, wants: bool) {
        if self.pending.is_empty() {
            self.waiting.remove(&radio.0);
            self.pass_on(wall_ns, radio, wants);
        } else {
            self.waiting.insert(radio.0, wants);
        }
    }

    /// Passes on to the medium whether a radio wants the channel.
    fn pass_on(&mut self, wall_ns: u64, radio: RadioId, wants: bool) {
        // Neither call fails: the radio exists.
        let _ = match wants {
            true => self.medium.request(wall_ns, radio),
            false => self.medium.withdraw(wall_ns, radio),
        };
    }

    /// Attaches a process as a radio, or refuses it.
    fn handle_attach(&mut self, from: SocketAddr, token: Token, radio: u32, send: Send<'_>) {
        let index = radio as usize;
        // Without the token any process on the machine could take a radio's place.
        let refusal = if token != self.token {
            Some(Refusal::WrongToken)
        } else {
            (index >= self.medium.radios()).then_some(Refusal::NoSuchRadio)
        };
        if let Some(reason) = refusal {
            self.faults.refused += 1;
            return self.send(send, from, &Datagram::Refused { reason });
        }

        // A process that asks again because the answer was lost keeps its radio and its requests.
        // Otherwise it leaves its former radio, and replaces the radio's former process: a daemon
        // that was restarted must not wait until the old one has timed out.
        if self.clients.radio_of(from) != Some(index) {
            if let Some(other) = self.clients.radio_of(from) {
                self.detach(other);
            }
            if let Some(before) = self.clients.address_of(index) {
                self.detach(index);
                self.send(send, before, &Datagram::Detached);
            }

            self.clients.attach(index, from);
            // Cannot fail: the radio exists.
            let _ = self.switch(index);
        }

        let radios = self.medium.radios() as u32;
        self.send(send, from, &Datagram::Attached { radio, radios });
    }

    /// Closes the grant of `radio` if its serial is `serial`. Returns whether it was open.
    fn take_pending(&mut self, radio: usize, serial: u64) -> bool {
        // Even a late answer shows that the process is alive. The serial keeps it from answering
        // the next grant.
        self.clients.note_answer(radio);
        let is_open = self.pending.get(&radio).is_some_and(|pending| pending.serial == serial);
        if is_open {
            self.pending.remove(&radio);
        } else {
            self.faults.late_answers += 1;
        }
        is_open
    }

    /// Returns the time at which [`advance`](Self::advance) is due next.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let expiry = self.pending.values().map(|pending| pending.expires_ns).min();
        expiry.into_iter().chain(self.medium.poll_timeout()).min()
    }

    /// Advances the medium to the wall clock, as far as open grants allow.
    pub(super) fn advance(&mut self, wall_ns: u64, send: Send<'_>) {
        // Late grants first, since the medium waits for them.
        self.expire(wall_ns, send);

        // Whoever spoke while the medium stood still speaks now.
        if self.pending.is_empty() {
            for (radio, wants) in core::mem::take(&mut self.waiting) {
                self.pass_on(wall_ns, RadioId(radio), wants);
            }
        }

        // Event by event, since each may cause a grant, and the medium then waits for its answer.
        while let Some(due_ns) = self.medium.poll_timeout().filter(|&due_ns| due_ns <= wall_ns) {
            self.lag.sample(wall_ns, due_ns);
            self.medium.handle_timeout(due_ns);
            self.drain(wall_ns, send);
        }

        // Without open grants the medium catches up with the clock. With one it stands still at the
        // grant's instant, and that counts as lag.
        if self.pending.is_empty() {
            self.medium.handle_timeout(wall_ns);
            self.lag.caught_up();
        } else {
            self.lag.sample(wall_ns, self.medium.now_ns());
        }
    }

    /// Declines grants that were not answered in time. Detaches radios that repeatedly do not
    /// answer.
    fn expire(&mut self, wall_ns: u64, send: Send<'_>) {
        let late = |(&radio, pending): (&usize, &Pending)| {
            (pending.expires_ns <= wall_ns).then_some(radio)
        };
        let late: Vec<usize> = self.pending.iter().filter_map(late).collect();
        for radio in late {
            self.pending.remove(&radio);
            self.faults.expired_grants += 1;

            // Cannot fail: the grant is open.
            let _ = self.medium.decline(wall_ns, RadioId(radio));

            // A process that hangs would cost the whole medium a grant's limit again and again.
            if self.clients.note_expiry(radio) >= MAX_EXPIRED_GRANTS
                && let Some(address) = self.clients.address_of(radio)
            {
                self.faults.given_up += 1;
                self.detach(radio);
                self.send(send, address, &Datagram::Detached);
            }
        }
    }

    /// Sends the medium's outputs to the processes of the radios.
    fn drain(&mut self, wall_ns: u64, send: Send<'_>) {
        // All receivers of a frame get the same datagram, which is written once. `written` is the
        // frame that the buffer holds.
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

    /// Passes a grant on to the radio's process, which must answer in time.
    fn grant(&mut self, wall_ns: u64, radio: usize, send: Send<'_>) {
        // A number for each grant, so that a late answer to an earlier one is recognised.
        self.serial += 1;
        let serial = self.serial;
        let expires_ns = wall_ns.saturating_add(self.grant_limit_ns);
        self.pending.insert(radio, Pending { serial, expires_ns });
        // A process that has just gone does not answer; the grant expires.
        if let Some(address) = self.clients.address_of(radio) {
            self.send(send, address, &Datagram::Grant { serial });
        }
    }
}

/// Returns the outcome that a report states for a result of the MAC.
fn outcome(result: TxResult) -> Outcome {
    match result {
        TxResult::Sent => Outcome::Sent,
        TxResult::Acked => Outcome::Acked,
        TxResult::Failed => Outcome::Failed,
    }
}
