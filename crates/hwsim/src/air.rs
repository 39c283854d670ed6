//! The program without socket and clock: the kernel's messages and the time in, messages out.

use std::collections::BTreeMap;
use std::sync::Arc;

use ncmesh_medium::{Access, Medium, MediumConfig, MediumError, Output, RadioId, TxResult};
use serde::Serialize;

use crate::message::{Address, End, Received, Sent};
use crate::queue::Queue;
use crate::rate::{bits_per_second, number_for_receiver};

/// Length of the check sequence, the only part of a frame that the kernel leaves out, bytes.
const CHECK_SEQUENCE: usize = 4;
/// First byte of the address of a radio; that of its interface has the second one.
const RADIO: u8 = 0x42;
const INTERFACE: u8 = 0x02;
/// Strength of every frame of a scenario without positions, dBm.
const SIGNAL_DBM: i32 = -50;
/// Most addresses of interfaces that are remembered for each radio.
const MOST_ADDRESSES: usize = 8;

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that are no frame of a radio.
    pub garbled: u64,
    /// Frames of radios that the scenario lacks.
    pub strangers: u64,
    /// Frames for which a radio had no room.
    pub no_room: u64,
    /// Frames that were sent.
    pub frames: u64,
    /// Frames that wanted an acknowledgment and got none.
    pub failed: u64,
    /// Attempts to send them.
    pub attempts: u64,
    /// Time on the air of all attempts, without acknowledgments, ns.
    pub airtime_ns: u64,
}

/// The channel of some radios. All times are since the start, ns.
pub struct Air {
    medium: Medium,
    family: u16,
    radios: Vec<Radio>,
    /// Radios by the addresses of their interfaces.
    interfaces: BTreeMap<Address, RadioId>,
    counts: Counts,
}

#[derive(Default)]
struct Radio {
    queue: Queue,
    /// The frame that is being sent, from its grant to its report.
    in_flight: Option<Sent>,
    /// Number of addresses that are remembered for it.
    addresses: usize,
}

impl Air {
    /// Creates the channel: radio *i* of the kernel's module is radio *i* of the medium.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn new(mut config: MediumConfig, family: u16) -> Result<Self, MediumError> {
        // The kernel's frames have their MAC headers already, and it drops what is for others.
        config.mac_overhead_bytes = CHECK_SEQUENCE;
        config.overhear_unicast = false;

        let medium = Medium::new(config)?;
        let radios = (0..medium.radios()).map(|_| Radio::default()).collect();
        Ok(Self { medium, family, radios, interfaces: BTreeMap::new(), counts: Counts::default() })
    }

    /// Returns the counters up to now.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.medium.poll_timeout()
    }

    /// Takes a message of the kernel. Adds those for it to `answers`.
    pub fn handle_message(&mut self, now_ns: u64, message: &[u8], answers: &mut Vec<Vec<u8>>) {
        // Events from before come first, so that the frame is not sent in the past of the medium.
        self.handle_timeout(now_ns, answers);

        let Some(sent) = Sent::parse(message) else {
            self.counts.garbled += 1;
            return;
        };

        let Some(radio) = self.radio(sent.radio) else {
            self.counts.strangers += 1;
            return;
        };

        self.learn(radio, &sent.frame);

        // The kernel waits for a report of each frame, of one without room, too.
        if let Err(refused) = self.radios[radio.0].queue.push(sent) {
            self.counts.no_room += 1;
            let end = End { is_acked: false, attempts: 0, signal_dbm: SIGNAL_DBM };
            answers.push(refused.status(self.family, end));
            return;
        }

        self.request(now_ns, radio);
        self.act(answers);
    }

    /// Handles all that is due.
    pub fn handle_timeout(&mut self, now_ns: u64, answers: &mut Vec<Vec<u8>>) {
        // The medium stops at each grant, which is answered at once: the frames are here.
        while self.medium.poll_timeout().is_some_and(|due_ns| due_ns <= now_ns) {
            self.medium.handle_timeout(now_ns);
            self.act(answers);
        }
    }

    /// Does what the medium says.
    fn act(&mut self, answers: &mut Vec<Vec<u8>>) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Grant { radio, at_ns } => self.supply(at_ns, radio),
                Output::Deliver { to, from, frame, power, .. } => {
                    // Only the frame that is on the air has a rate to tell.
                    let Some(sent) = self.radios[from.0].in_flight.as_ref() else { continue };
                    let strength = power.map(|power| power.dbm() as i32);

                    let received = Received {
                        radio: address(to),
                        frame: &frame,
                        rate: number_for_receiver(sent.rates[0]),
                        signal_dbm: strength.unwrap_or(SIGNAL_DBM),
                        frequency_mhz: sent.frequency_mhz,
                    };
                    answers.push(received.message(self.family));
                }
                Output::Report { radio, result, attempts, airtime_ns, at_ns, .. } => {
                    self.counts.frames += 1;
                    self.counts.attempts += u64::from(attempts);
                    self.counts.airtime_ns += airtime_ns;
                    self.counts.failed += u64::from(result == TxResult::Failed);

                    if let Some(sent) = self.radios[radio.0].in_flight.take() {
                        let is_acked = result == TxResult::Acked;
                        let end = End { is_acked, attempts, signal_dbm: SIGNAL_DBM };
                        answers.push(sent.status(self.family, end));
                    }

                    // The next one may wait already.
                    self.request(at_ns, radio);
                }
            }
        }
    }

    /// Requests the channel if a frame waits.
    fn request(&mut self, now_ns: u64, radio: RadioId) {
        let own = &self.radios[radio.0];
        if own.in_flight.is_none() && !own.queue.is_empty() {
            // Cannot fail: the radio exists.
            let _ = self.medium.request(now_ns, radio);
        }
    }

    /// Answers a grant with the next frame.
    fn supply(&mut self, at_ns: u64, radio: RadioId) {
        let Some(sent) = self.radios[radio.0].queue.pop() else {
            let _ = self.medium.decline(at_ns, radio);
            return;
        };

        // The first rate of the kernel's list is used for all attempts.
        if let Some(bps) = bits_per_second(sent.rates[0], sent.frequency_mhz) {
            let _ = self.medium.set_rate(radio, bps);
        }

        let access = self.access(radio, &sent);
        let frame: Arc<[u8]> = sent.frame.as_slice().into();

        // A frame that is too long is lost, and the kernel's driver has a limit below that.
        if self.medium.supply(at_ns, radio, access, frame).is_ok() {
            self.radios[radio.0].in_flight = Some(sent);
        }
    }

    /// Returns how a frame is sent.
    fn access(&self, from: RadioId, sent: &Sent) -> Access {
        // The first address of a frame is its receiver's; the lowest bit says that it is a group.
        // Nobody acknowledges a frame to a station that is not here: it goes out once.
        let to = sent.frame.get(4..10).and_then(|to| to.first_chunk::<6>());
        match to.filter(|to| to[0] & 1 == 0 && !sent.is_unacknowledged()) {
            Some(to) => match self.interface(*to).filter(|to| *to != from) {
                Some(to) => Access::Unicast(to),
                None => Access::Broadcast,
            },
            None => Access::Broadcast,
        }
    }

    /// Remembers the address under which a radio sends.
    fn learn(&mut self, radio: RadioId, frame: &[u8]) {
        let Some(own) = frame.get(10..16).and_then(|own| own.first_chunk::<6>()) else { return };

        // A radio whose address changes all the time fills no memory.
        let addresses = &mut self.radios[radio.0].addresses;
        if self.interfaces.contains_key(own) || *addresses >= MOST_ADDRESSES {
            return;
        }

        *addresses += 1;
        self.interfaces.insert(*own, radio);
    }

    /// Returns the radio with this address.
    fn radio(&self, address: Address) -> Option<RadioId> {
        match address {
            [RADIO, 0, 0, high, low, 0] => {
                let radio = usize::from(u16::from_be_bytes([high, low]));
                (radio < self.radios.len()).then_some(RadioId(radio))
            }
            _ => None,
        }
    }

    /// Returns the radio of the interface with this address.
    fn interface(&self, address: Address) -> Option<RadioId> {
        let known = self.interfaces.get(&address).copied();

        // Before it has sent, an interface has the address that the module gave it.
        let [first, rest @ ..] = address;
        let [a, b, c, d, e] = rest;
        known.or_else(|| self.radio([RADIO, a, b, c, d, e]).filter(|_| first == INTERFACE))
    }
}

/// Returns the address of a radio.
fn address(radio: RadioId) -> Address {
    let [high, low] = u16::try_from(radio.0).unwrap_or(u16::MAX).to_be_bytes();
    [RADIO, 0, 0, high, low, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::{Written, sent};
    use ncmesh_medium::LossMatrix;
    use ncmesh_node::generic_netlink::{attribute, body};

    const MS: u64 = 1_000_000;

    /// Returns a row of three radios without losses, whose ends do not hear each other.
    fn row() -> Air {
        let mut loss = LossMatrix::new(3);
        for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            loss.set(RadioId(from), RadioId(to), 0.0).unwrap();
        }
        Air::new(MediumConfig::dot11b(loss, 2_000_000), 30).unwrap()
    }

    /// Returns a data frame of 1,000 bytes from one interface to another, or to all.
    fn frame(from: u8, to: Option<u8>) -> Vec<u8> {
        let mut frame = vec![0; 1_000];
        frame[0] = 0x08;
        frame[4..10].copy_from_slice(&to.map_or([0xFF; 6], |to| [INTERFACE, 0, 0, 0, to, 0]));
        frame[10..16].copy_from_slice(&[INTERFACE, 0, 0, 0, from, 0]);
        frame
    }

    /// Hands a frame of radio `from` to the medium.
    fn send(air: &mut Air, now_ns: u64, from: u8, to: Option<u8>, cookie: u64) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        let message = sent(&Written { radio: from, frame: &frame(from, to), cookie, flags: 1 });
        air.handle_message(now_ns, &message, &mut answers);
        answers
    }

    /// Lets time pass until nothing is due. Returns who received a frame, and the cookies of frames
    /// that ended with whether they were acknowledged.
    fn settle(air: &mut Air) -> (Vec<u8>, Vec<(u64, bool)>) {
        let mut answers = Vec::new();
        while let Some(due_ns) = air.next_ns() {
            air.handle_timeout(due_ns, &mut answers);
        }
        let mut received = Vec::new();
        let mut ended = Vec::new();
        for answer in &answers {
            if let Some(radio) = attribute(body(answer), 1) {
                received.push(radio[4]);
            } else {
                let cookie = attribute(body(answer), 8).unwrap().first_chunk().copied().unwrap();
                let flags = attribute(body(answer), 4).unwrap().first_chunk().copied().unwrap();
                ended.push((u64::from_ne_bytes(cookie), u32::from_ne_bytes(flags) & 4 != 0));
            }
        }
        (received, ended)
    }

    #[test]
    fn a_broadcast_reaches_all_in_range_and_a_unicast_one_who_acknowledges() {
        let mut air = row();
        assert!(send(&mut air, 0, 1, None, 7).is_empty());
        assert_eq!(settle(&mut air), (vec![0, 2], vec![(7, false)]));
        send(&mut air, 100 * MS, 1, Some(2), 8);
        assert_eq!(settle(&mut air), (vec![2], vec![(8, true)]));
        // Nobody is there who could acknowledge, so it is repeated to the limit.
        send(&mut air, 200 * MS, 0, Some(2), 9);
        assert_eq!(settle(&mut air), (vec![], vec![(9, false)]));
        let counts = air.counts();
        assert_eq!((counts.frames, counts.failed, counts.attempts), (3, 1, 9));
    }

    #[test]
    fn frames_of_a_radio_go_one_after_the_other_and_each_is_reported() {
        let mut air = row();
        for cookie in 0..20 {
            send(&mut air, 0, 0, Some(1), cookie);
        }
        let (received, ended) = settle(&mut air);
        assert_eq!(received, [1; 20]);
        assert_eq!(ended, (0..20).map(|cookie| (cookie, true)).collect::<Vec<_>>());
    }

    #[test]
    fn the_kernel_gets_back_a_frame_for_which_there_is_no_room() {
        let mut air = row();
        let refused = (0..300).filter(|cookie| !send(&mut air, 0, 0, None, *cookie).is_empty());
        let refused = refused.count() as u64;
        let no_room = air.counts().no_room;
        assert!(refused >= no_room && no_room > 0);
        let (received, ended) = settle(&mut air);
        assert_eq!(received.len() as u64 + no_room, 300);
        assert_eq!(ended.len(), received.len());
    }

    #[test]
    fn strangers_and_garbage_are_counted() {
        let mut air = row();
        send(&mut air, 0, 9, None, 1);
        air.handle_message(0, &[0; 7], &mut Vec::new());
        air.handle_message(0, &[], &mut Vec::new());
        // Frames too short for any address.
        for length in 0..24 {
            let bytes = vec![0x08; length];
            let message = sent(&Written { radio: 0, frame: &bytes, cookie: 2, flags: 1 });
            air.handle_message(0, &message, &mut Vec::new());
        }
        settle(&mut air);
        let counts = air.counts();
        assert_eq!((counts.strangers, counts.garbled, counts.frames), (1, 2, 24));
    }

    #[test]
    fn an_interface_is_known_by_the_address_under_which_it_sends() {
        let mut air = row();
        let own = [2, 0xAA, 0, 0, 0, 1];
        let mut named = frame(2, None);
        named[10..16].copy_from_slice(&own);
        let message = sent(&Written { radio: 2, frame: &named, cookie: 1, flags: 1 });
        air.handle_message(0, &message, &mut Vec::new());
        settle(&mut air);

        let mut to_it = frame(1, None);
        to_it[4..10].copy_from_slice(&own);
        let message = sent(&Written { radio: 1, frame: &to_it, cookie: 2, flags: 1 });
        air.handle_message(0, &message, &mut Vec::new());
        assert_eq!(settle(&mut air), (vec![2], vec![(2, true)]));
    }
}
