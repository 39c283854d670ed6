//! Messages of `mac80211_hwsim`: frames that radios send, and what became of them.
//!
//! Numbers are those of the kernel's `mac80211_hwsim.h`. Nothing is believed about lengths: a
//! message that lacks something is `None`.

use ncmesh_node::generic_netlink::{Attribute, Header, attribute, body, command, number, request};
use rtnetlink::packet_core::NLM_F_REQUEST;

/// Name of the family.
pub const FAMILY: &str = "MAC80211_HWSIM";

/// Commands: a program wants all frames; a frame; what became of one.
const REGISTER: u8 = 1;
const FRAME: u8 = 2;
const TX_INFO_FRAME: u8 = 3;
/// Attributes.
const RECEIVER: u16 = 1;
const TRANSMITTER: u16 = 2;
const BYTES: u16 = 3;
const FLAGS: u16 = 4;
const RX_RATE: u16 = 5;
const SIGNAL: u16 = 6;
const TX_INFO: u16 = 7;
const COOKIE: u16 = 8;
const FREQUENCY: u16 = 19;
const TX_INFO_FLAGS: u16 = 21;
/// Bits of the flags: nobody is to acknowledge the frame; it was acknowledged.
const NO_ACK: u32 = 2;
const ACKED: u32 = 4;
/// Number of rates that the kernel names for a frame.
const RATES: usize = 4;

/// Address of a radio or station.
pub type Address = [u8; 6];

/// Rate that rate control chose for some attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Its number in the table of the band, or of its MCS. Negative if there is none.
    pub index: i8,
    /// Number of attempts.
    pub count: u8,
    /// Bits that say of which kind the number is.
    pub flags: u16,
}

/// Frame that a radio sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Address of the radio, not of its interface.
    pub radio: Address,
    /// The frame from its MAC header on, without check sequence.
    pub frame: Vec<u8>,
    /// Flags of the kernel.
    pub flags: u32,
    /// Rates in the order of attempts.
    pub rates: [Rate; RATES],
    /// Number by which the kernel knows the frame.
    pub cookie: u64,
    /// Frequency of the channel, MHz. Old kernels do not tell it.
    pub frequency_mhz: Option<u32>,
}

impl Sent {
    /// Returns the frame of a message; `None` if it is another message.
    pub fn parse(message: &[u8]) -> Option<Self> {
        if command(message) != Some(FRAME) {
            return None;
        }

        // A message without one of its parts is no frame.
        let body = body(message);
        let rates = attribute(body, TX_INFO)?;
        let kinds = attribute(body, TX_INFO_FLAGS).unwrap_or_default();
        Some(Self {
            radio: *attribute(body, TRANSMITTER)?.first_chunk()?,
            frame: attribute(body, BYTES)?.to_vec(),
            flags: number(body, FLAGS)?,
            rates: core::array::from_fn(|at| rate(rates, kinds, at)),
            cookie: u64::from_ne_bytes(*attribute(body, COOKIE)?.first_chunk()?),
            frequency_mhz: number(body, FREQUENCY),
        })
    }

    /// Returns whether nobody is to acknowledge the frame.
    pub fn is_unacknowledged(&self) -> bool {
        self.flags & NO_ACK != 0
    }

    /// Returns the message that tells the kernel what became of the frame. It keeps each frame
    /// until then, also those about which it does not ask.
    pub fn status(&self, family: u16, end: End) -> Vec<u8> {
        let flags = if end.is_acked { self.flags | ACKED } else { self.flags };

        // The attempts are shared out over the rates in their order; a rate that was not used ends
        // the list.
        let mut left = end.attempts;
        let mut tried = Vec::with_capacity(2 * RATES);
        for (at, rate) in self.rates.iter().enumerate() {
            let is_last = self.rates.get(at + 1).is_none_or(|next| next.index < 0);
            let count = if is_last { left } else { left.min(rate.count.into()) };
            left -= count;
            let index = if count == 0 { -1 } else { rate.index };
            tried.extend([index.cast_unsigned(), u8::try_from(count).unwrap_or(u8::MAX)]);
        }

        let header = Header { kind: family, flags: NLM_F_REQUEST, command: TX_INFO_FRAME };
        request(
            header,
            &[
                Attribute { kind: TRANSMITTER, value: &self.radio },
                Attribute { kind: FLAGS, value: &flags.to_ne_bytes() },
                Attribute { kind: COOKIE, value: &self.cookie.to_ne_bytes() },
                Attribute { kind: TX_INFO, value: &tried },
                Attribute { kind: SIGNAL, value: &end.signal_dbm.to_ne_bytes() },
            ],
        )
    }
}

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether its receiver acknowledged it.
    pub is_acked: bool,
    /// Number of attempts.
    pub attempts: u32,
    /// Strength at which the acknowledgment came, dBm.
    pub signal_dbm: i32,
}

/// Frame that arrives at a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Address of the radio, not of its interface.
    pub radio: Address,
    /// The frame from its MAC header on, without check sequence.
    pub frame: &'a [u8],
    /// Number of its rate in the table of the band.
    pub rate: u32,
    /// Strength, dBm.
    pub signal_dbm: i32,
    /// Frequency of the channel, MHz.
    pub frequency_mhz: Option<u32>,
}

impl Received<'_> {
    /// Returns the message that hands the frame to the kernel.
    pub fn message(&self, family: u16) -> Vec<u8> {
        let header = Header { kind: family, flags: NLM_F_REQUEST, command: FRAME };

        // The kernel takes numbers in the byte order of the machine.
        let rate = self.rate.to_ne_bytes();
        let signal = self.signal_dbm.to_ne_bytes();
        let frequency = self.frequency_mhz.map(u32::to_ne_bytes);

        let mut attributes = vec![
            Attribute { kind: RECEIVER, value: &self.radio },
            Attribute { kind: BYTES, value: self.frame },
            Attribute { kind: RX_RATE, value: &rate },
            Attribute { kind: SIGNAL, value: &signal },
        ];

        // Old kernels told none with the frame.
        attributes.extend(frequency.as_ref().map(|mhz| Attribute { kind: FREQUENCY, value: mhz }));
        request(header, &attributes)
    }
}

/// Returns the message by which a program asks for all frames.
pub fn registration(family: u16, flags: u16) -> Vec<u8> {
    request(Header { kind: family, flags, command: REGISTER }, &[])
}

/// Returns a rate out of both tables of a frame.
fn rate(rates: &[u8], kinds: &[u8], at: usize) -> Rate {
    let Some([index, count]) = rates.get(2 * at..2 * at + 2) else {
        return Rate { index: -1, ..Rate::default() };
    };

    // Each entry has the number once more, and then its flags.
    let flags = match kinds.get(3 * at + 1..3 * at + 3) {
        Some([low, high]) => u16::from_ne_bytes([*low, *high]),
        _ => 0,
    };
    Rate { index: index.cast_signed(), count: *count, flags }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Contents of the kernel's message of a frame.
    pub(crate) struct Written<'a> {
        pub(crate) radio: u8,
        pub(crate) frame: &'a [u8],
        pub(crate) cookie: u64,
        pub(crate) flags: u32,
    }

    /// Returns the kernel's message of a frame, sent at 11 and then at 1 Mbit/s.
    pub(crate) fn sent(written: &Written<'_>) -> Vec<u8> {
        sent_without(written, None)
    }

    fn sent_without(written: &Written<'_>, leave_out: Option<u16>) -> Vec<u8> {
        let cookie = written.cookie.to_ne_bytes();
        let flags = written.flags.to_ne_bytes();
        let mhz = 2412_u32.to_ne_bytes();
        let none = 0_u16.to_ne_bytes();
        let kinds = [3, none[0], none[1], 0, 0, 0, 0xFF, 0, 0, 0xFF, 0, 0];
        let all = [
            Attribute { kind: TRANSMITTER, value: &[0x42, 0, 0, 0, written.radio, 0] },
            Attribute { kind: BYTES, value: written.frame },
            Attribute { kind: FLAGS, value: &flags },
            Attribute { kind: TX_INFO, value: &[3, 2, 0, 4, 0xFF, 0, 0xFF, 0] },
            Attribute { kind: TX_INFO_FLAGS, value: &kinds },
            Attribute { kind: COOKIE, value: &cookie },
            Attribute { kind: FREQUENCY, value: &mhz },
        ];
        let kept: Vec<_> = all.into_iter().filter(|one| Some(one.kind) != leave_out).collect();
        request(Header { kind: 30, flags: 0, command: FRAME }, &kept)
    }

    const EXAMPLE: Written<'_> =
        Written { radio: 5, frame: &[8, 0, 1, 2, 3], cookie: 77, flags: 1 | NO_ACK };

    #[test]
    fn a_frame_is_read_whole() {
        let frame = Sent::parse(&sent(&EXAMPLE)).unwrap();
        assert_eq!((frame.radio[4], &frame.frame[..]), (5, &[8, 0, 1, 2, 3][..]));
        assert!(frame.is_unacknowledged());
        assert_eq!((frame.cookie, frame.frequency_mhz), (77, Some(2412)));
        assert_eq!(frame.rates[0], Rate { index: 3, count: 2, flags: 0 });
        assert_eq!(frame.rates[2].index, -1);
    }

    #[test]
    fn a_frame_that_lacks_something_is_none() {
        for kind in [TRANSMITTER, BYTES, FLAGS, TX_INFO, COOKIE] {
            assert_eq!(Sent::parse(&sent_without(&EXAMPLE, Some(kind))), None);
        }
        for kind in [TX_INFO_FLAGS, FREQUENCY] {
            assert!(Sent::parse(&sent_without(&EXAMPLE, Some(kind))).is_some());
        }
        let whole = sent(&EXAMPLE);
        for cut in 0..whole.len() {
            let _ = Sent::parse(&whole[..cut]);
        }
        assert_eq!(Sent::parse(&registration(30, 0)), None);
    }

    #[test]
    fn attempts_are_shared_out_over_the_rates() {
        let frame = Sent::parse(&sent(&EXAMPLE)).unwrap();
        let tried = |attempts| {
            let end = End { is_acked: true, attempts, signal_dbm: -30 };
            let message = frame.status(30, end);
            assert_eq!(number(body(&message), FLAGS), Some(1 | NO_ACK | ACKED));
            assert_eq!(number(body(&message), SIGNAL), Some((-30_i32).cast_unsigned()));
            attribute(body(&message), TX_INFO).unwrap().to_vec()
        };
        assert_eq!(tried(1), [3, 1, 0xFF, 0, 0xFF, 0, 0xFF, 0]);
        assert_eq!(tried(2), [3, 2, 0xFF, 0, 0xFF, 0, 0xFF, 0]);
        // More than the rates have room for counts at the last one.
        assert_eq!(tried(9), [3, 2, 0, 7, 0xFF, 0, 0xFF, 0]);
    }

    #[test]
    fn a_frame_is_handed_over_with_its_strength() {
        let frame = [8, 0, 9];
        let radio = [0x42, 0, 0, 0, 1, 0];
        let message =
            Received { radio, frame: &frame, rate: 1, signal_dbm: -60, frequency_mhz: Some(2412) }
                .message(30);
        assert_eq!(attribute(body(&message), RECEIVER), Some(&radio[..]));
        assert_eq!(attribute(body(&message), BYTES), Some(&frame[..]));
        assert_eq!(number(body(&message), SIGNAL), Some((-60_i32).cast_unsigned()));
        assert_eq!(number(body(&message), RX_RATE), Some(1));
    }
}
