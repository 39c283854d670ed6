//! Datagrams between the channel emulator and its radios.
//!
//! Each UDP datagram has the bytes `N E`, a version (1), a kind, and the kind's fields, big-endian
//! and without padding. A datagram of the wrong length for its kind is refused.
//!
//! | kind | name | fields | meaning |
//! | --- | --- | --- | --- |
//! | 1 | ATTACH | token 16, radio u32 | node: attach as this radio |
//! | 2 | DETACH | - | node: detach |
//! | 3 | REQUEST | - | node: request the channel for a frame |
//! | 4 | WITHDRAW | - | node: withdraw the request |
//! | 5 | FRAME | serial u64, to u32, bytes | node: frame for the grant; `to` all ones is broadcast |
//! | 6 | DECLINE | serial u64 | node: no frame for the grant |
//! | 17 | ATTACHED | radio u32, radios u32 | emulator: attached; number of radios |
//! | 18 | REFUSED | reason u8 | emulator: 1 wrong token, 2 no such radio |
//! | 19 | DETACHED | - | emulator: replaced by another process, given up, or the run ended |
//! | 20 | GRANT | serial u64 | emulator: send now |
//! | 21 | DELIVER | from u32, bytes | emulator: a frame was heard |
//! | 22 | REPORT | outcome u8, attempts u32, airtime u64 ns | emulator: frame 1 sent, 2 acked, 3 failed |
//!
//! Every FRAME is followed by one REPORT, unless its radio is switched off first. A frame that came
//! too late or cannot be sent is reported as failed after 0 attempts.

use std::fmt;
use std::str::FromStr;

const MAGIC: [u8; 2] = *b"NE";
const VERSION: u8 = 1;
const TO_ALL: u32 = u32::MAX;

/// Length of the longest frame that a MAC carries, bytes.
pub const MAX_FRAME_BYTES: usize = 2_304;

/// Length of the longest datagram read, bytes. Longer ones are truncated.
pub(crate) const MAX_DATAGRAM_BYTES: usize = 4_096;

/// Secret of a lab's run, so that a stray process cannot join it: 16 random bytes, displayed as 32
/// hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The text of a token is not 32 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token must be 32 hex digits")]
pub struct BadToken;

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        // By characters, not bytes: text that is not ASCII must not be cut within a character.
        let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 32).ok_or(BadToken)?;
        Ok(Self(std::array::from_fn(|at| (digits[2 * at] << 4 | digits[2 * at + 1]) as u8)))
    }
}

/// Destination of a frame at the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Broadcast, sent once.
    Broadcast,
    /// Unicast to one radio, by index: acknowledged and repeated.
    Unicast(u32),
}

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Broadcast frame: sent.
    Sent = 1,
    /// Unicast frame: acknowledged.
    Acked = 2,
    /// Unicast frame: given up.
    Failed = 3,
}

/// Reason why a radio was not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is not this run's.
    WrongToken = 1,
    /// The emulator has no radio with that index.
    NoSuchRadio = 2,
}

/// Parsed datagram. The module's table describes each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The module's table says it.
pub enum Datagram<'a> {
    Attach { token: Token, radio: u32 },
    Detach,
    Request,
    Withdraw,
    Frame { serial: u64, access: Access, bytes: &'a [u8] },
    Decline { serial: u64 },
    Attached { radio: u32, radios: u32 },
    Refused { reason: Refusal },
    Detached,
    Grant { serial: u64 },
    Deliver { from: u32, bytes: &'a [u8] },
    Report { outcome: Outcome, attempts: u32, airtime_ns: u64 },
}

/// Reason why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// It does not begin with `N E`.
    #[error("not a datagram of the ether")]
    Foreign,
    /// It has another version of the format.
    #[error("version {0} of the ether's format")]
    Version(u8),
    /// The kind does not exist.
    #[error("kind {0} does not exist")]
    Kind(u8),
    /// The length does not fit the kind, or a field is out of range.
    #[error("kind {0} garbled")]
    Garbled(u8),
}

/// Parses one datagram.
///
/// # Errors
/// [`DatagramError`] if the datagram is malformed.
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, DatagramError> {
    let Some((&[m0, m1, version, kind], fields)) = bytes.split_first_chunk() else {
        return Err(DatagramError::Foreign);
    };
    if [m0, m1] != MAGIC {
        return Err(DatagramError::Foreign);
    }
    if version != VERSION {
        return Err(DatagramError::Version(version));
    }
    if !matches!(kind, 1..=6 | 17..=22) {
        return Err(DatagramError::Kind(kind));
    }
    fields_of(kind, Fields(fields)).ok_or(DatagramError::Garbled(kind))
}

/// Parses the fields of a datagram of a known kind; `None` if they do not fit it.
fn fields_of(kind: u8, mut fields: Fields<'_>) -> Option<Datagram<'_>> {
    // Numbers up to 16 are sent by nodes, those from 17 on by the emulator.
    let datagram = match kind {
        1 => Datagram::Attach { token: Token(fields.array()?), radio: fields.u32()? },
        2 => Datagram::Detach,
        3 => Datagram::Request,
        4 => Datagram::Withdraw,
        5 => {
            let serial = fields.u64()?;
            let to = fields.u32()?;
            let access = if to == TO_ALL { Access::Broadcast } else { Access::Unicast(to) };
            Datagram::Frame { serial, access, bytes: fields.rest() }
        }
        6 => Datagram::Decline { serial: fields.u64()? },
        17 => Datagram::Attached { radio: fields.u32()?, radios: fields.u32()? },
        18 => Datagram::Refused { reason: refusal(fields.u8()?)? },
        19 => Datagram::Detached,
        20 => Datagram::Grant { serial: fields.u64()? },
        21 => Datagram::Deliver { from: fields.u32()?, bytes: fields.rest() },
        // The caller has checked that the kind is known, so this is a report.
        _ => {
            let outcome = outcome(fields.u8()?)?;
            Datagram::Report { outcome, attempts: fields.u32()?, airtime_ns: fields.u64()? }
        }
    };

    // Surplus bytes are an error, so that every datagram has exactly one form.
    fields.0.is_empty().then_some(datagram)
}

/// Returns the reason with this code.
fn refusal(code: u8) -> Option<Refusal> {
    [Refusal::WrongToken, Refusal::NoSuchRadio].into_iter().find(|reason| *reason as u8 == code)
}

/// Returns the outcome with this code.
fn outcome(code: u8) -> Option<Outcome> {
    [Outcome::Sent, Outcome::Acked, Outcome::Failed]
        .into_iter()
        .find(|outcome| *outcome as u8 == code)
}

/// Unread part of a datagram.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

impl Datagram<'_> {
    /// Writes the datagram to `out`, whose contents are replaced.
    pub fn write(&self, out: &mut Vec<u8>) {
        // The buffer is reused, so that a frame for many receivers costs no allocation.
        out.clear();
        out.extend_from_slice(&[MAGIC[0], MAGIC[1], VERSION, self.kind()]);
        match *self {
            Self::Attach { token, radio } => put(out, &[&token.0, &radio.to_be_bytes()]),
            Self::Detach | Self::Request | Self::Withdraw | Self::Detached => {}
            Self::Frame { serial, access, bytes } => {
                let to = match access {
                    Access::Broadcast => TO_ALL,
                    Access::Unicast(to) => to,
                };

                put(out, &[&serial.to_be_bytes(), &to.to_be_bytes(), bytes]);
            }
            Self::Decline { serial } | Self::Grant { serial } => put(out, &[&serial.to_be_bytes()]),
            Self::Attached { radio, radios } => {
                put(out, &[&radio.to_be_bytes(), &radios.to_be_bytes()]);
            }
            Self::Refused { reason } => out.push(reason as u8),
            Self::Deliver { from, bytes } => put(out, &[&from.to_be_bytes(), bytes]),
            Self::Report { outcome, attempts, airtime_ns } => {
                put(out, &[&[outcome as u8], &attempts.to_be_bytes(), &airtime_ns.to_be_bytes()]);
            }
        }
    }

    /// Returns the number of the kind.
    fn kind(&self) -> u8 {
        match self {
            Self::Attach { .. } => 1,
            Self::Detach => 2,
            Self::Request => 3,
            Self::Withdraw => 4,
            Self::Frame { .. } => 5,
            Self::Decline { .. } => 6,
            Self::Attached { .. } => 17,
            Self::Refused { .. } => 18,
            Self::Detached => 19,
            Self::Grant { .. } => 20,
            Self::Deliver { .. } => 21,
            Self::Report { .. } => 22,
        }
    }
}

/// Appends fields to a datagram.
fn put(out: &mut Vec<u8>, fields: &[&[u8]]) {
    fields.iter().for_each(|field| out.extend_from_slice(field));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Datagram<'static>; 14] = [
        Datagram::Attach { token: Token([7; 16]), radio: 3 },
        Datagram::Detach,
        Datagram::Request,
        Datagram::Withdraw,
        Datagram::Frame { serial: 9, access: Access::Broadcast, bytes: b"abc" },
        Datagram::Frame { serial: 9, access: Access::Unicast(2), bytes: b"" },
        Datagram::Decline { serial: u64::MAX },
        Datagram::Attached { radio: 3, radios: 22 },
        Datagram::Refused { reason: Refusal::NoSuchRadio },
        Datagram::Detached,
        Datagram::Grant { serial: 1 },
        Datagram::Deliver { from: 4, bytes: b"abc" },
        Datagram::Report { outcome: Outcome::Failed, attempts: 7, airtime_ns: 1 << 40 },
        Datagram::Report { outcome: Outcome::Sent, attempts: 1, airtime_ns: 0 },
    ];

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        for datagram in ALL {
            datagram.write(&mut bytes);
            assert_eq!(parse(&bytes), Ok(datagram));
            assert!(parse(&bytes[..3]).is_err());
            let open = matches!(datagram, Datagram::Frame { .. } | Datagram::Deliver { .. });
            bytes.push(0);
            assert_eq!(parse(&bytes).is_ok(), open, "{datagram:?} with a byte too many");
        }
    }

    #[test]
    fn a_frame_on_the_wire_is_as_documented() {
        let mut bytes = Vec::new();
        Datagram::Frame { serial: 0x0102, access: Access::Unicast(5), bytes: b"xy" }
            .write(&mut bytes);
        assert_eq!(bytes, b"NE\x01\x05\0\0\0\0\0\0\x01\x02\0\0\0\x05xy");
    }

    #[test]
    fn tokens_are_read_and_shown() {
        let token: Token = "000102030405060708090a0b0c0d0eff".parse().unwrap();
        assert_eq!(token.0[15], 0xff);
        assert_eq!(token.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(format!("{token:?}"), "Token(..)");
        for bad in ["", "00", "g00102030405060708090a0b0c0d0eff", "éé0102030405060708090a0b0c0d0ef"]
        {
            assert_eq!(bad.parse::<Token>(), Err(BadToken));
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            kind in any::<u8>(),
        ) {
            let _ = parse(&bytes);
            let mut near = b"NE\x01".to_vec();
            near.push(kind);
            near.extend(bytes);
            if let Ok(datagram) = parse(&near) {
                let mut again = Vec::new();
                datagram.write(&mut again);
                prop_assert_eq!(again, near);
            }
        }
    }
}
