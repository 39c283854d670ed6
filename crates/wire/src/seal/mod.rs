//! Sealing: authenticated encryption of every frame with the network's key.
//!
//! All nodes share one key. XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03; RFC 8439) encrypts the
//! body and authenticates header and body. Its nonce is the random [`Salt`] of the sender's start,
//! the sender and the counter.
//!
//! The salt goes into a key derivation, so each start has a key of its own ([`aead`]), with sender
//! and counter as the nonce. A nonce cannot repeat unless two starts draw the same 128 bits.
//! Nothing has to be remembered from start to start.

mod aead;

use crate::frame::{self, HEADER_LEN, Header, OpenError, Opened, SealedFrame, TAG_LEN, Versions};
use crate::hex::hex;
use crate::id::{NodeId, Salt, ServiceId};
use aead::StartKey;
use core::fmt;
use core::str::FromStr;
use zeroize::Zeroize;

/// The network's 256-bit key. Only [`Key::to_hex`] shows it; `Debug` does not. Its memory is
/// overwritten when it is dropped, as that of a [`Cipher`] is.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// Reason why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits; make one with `ncmesh keygen`")]
    Form,
    /// All digits are the same: a placeholder, which anybody would try first.
    #[error("this key is a placeholder that anybody can guess; make one with `ncmesh keygen`")]
    Placeholder,
}

impl Key {
    /// Creates a key from its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the key as 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        // Files and editors end a key with a line break.
        let text = text.trim().as_bytes();
        if text.len() != 64 {
            return Err(KeyError::Form);
        }

        // The error does not show the text, because most of it may be a key.
        let mut key = [0; 32];
        for (byte, pair) in key.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or(KeyError::Form);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }

        // A key of one digit is an example from a manual, which is no secret.
        if text.iter().all(|digit| *digit == text[0]) {
            return Err(KeyError::Placeholder);
        }

        Ok(Self(key))
    }
}

/// Algorithm that seals frames.
#[derive(Clone)]
pub enum Cipher {
    /// XChaCha20-Poly1305 with the network's key.
    Sealed(Key),
    /// No protection, with frames of the same length. For simulations, whose results say so.
    Null,
}

impl Cipher {
    /// Creates the cipher with `key`.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        Self::Sealed(key.clone())
    }

    /// Authenticates and decrypts one frame, of a version that this program understands, into
    /// `scratch`, however often it is asked.
    ///
    /// # Errors
    /// An [`OpenError`] if the frame must be dropped.
    pub fn open<'s>(
        &self,
        datagram: &[u8],
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        self.open_parsed(&frame::parse(datagram, Versions::OWN)?, scratch)
    }

    /// Does the same with a frame that was parsed before.
    ///
    /// # Errors
    /// [`OpenError::Unauthentic`], or [`OpenError::Foreign`] if the body lacks service and kind.
    pub fn open_parsed<'s>(
        &self,
        frame: &SealedFrame<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        let SealedFrame { header, head, body, tag } = *frame;

        // Decryption works in place, so the body is copied: the datagram may be in use elsewhere.
        scratch.clear();
        scratch.extend_from_slice(body);

        // Nothing is parsed before the tag is verified.
        if let Self::Sealed(key) = self {
            let number = number(header.sender, header.counter);
            if !StartKey::derive(&key.0, header.salt).open(number, head, scratch, *tag) {
                return Err(OpenError::Unauthentic);
            }
        }

        Opened::parse(header, scratch)
    }

    /// Returns the salt with which `sender` goes on when the counters of the start `salt` are used
    /// up. Only those who have the key can tell it, so it proves that it follows that start.
    #[must_use]
    pub fn next_salt(&self, sender: NodeId, salt: Salt) -> Salt {
        match self {
            // Without a key nothing can be proved, so the next number is as good.
            Self::Null => Salt(u128::from_be_bytes(salt.0).wrapping_add(1).to_be_bytes()),
            // Frames count from 1. The key stream of frame 0 is not used otherwise.
            Self::Sealed(key) => {
                let mut next = [0; 16];
                StartKey::derive(&key.0, salt).seal(number(sender, 0), &[], &mut next);
                Salt(next)
            }
        }
    }

    /// Returns the key of the start `salt`, or `None` without protection.
    fn start(&self, salt: Salt) -> Option<StartKey> {
        match self {
            Self::Null => None,
            Self::Sealed(key) => Some(StartKey::derive(&key.0, salt)),
        }
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sealed(_) => "Sealed",
            Self::Null => "Null",
        })
    }
}

/// Seals the frames of this node and never uses a nonce twice.
#[derive(Debug)]
pub struct Sealer {
    cipher: Cipher,
    /// Key of the present start, derived once.
    start: Option<StartKey>,
    sender: NodeId,
    salt: Salt,
    counter: u32,
}

impl Sealer {
    /// Creates a sealer for a start of `sender`. The `salt` is random and was never used before.
    #[must_use]
    pub fn new(cipher: Cipher, sender: NodeId, salt: Salt) -> Self {
        Self::resume(cipher, sender, salt, 0)
    }

    /// Creates a sealer that goes on with a start after the frame `counter`.
    #[must_use]
    pub fn resume(cipher: Cipher, sender: NodeId, salt: Salt, counter: u32) -> Self {
        Self { start: cipher.start(salt), cipher, sender, salt, counter }
    }

    /// Returns the salt of the present start.
    #[must_use]
    pub fn salt(&self) -> Salt {
        self.salt
    }

    /// Returns the number of the last frame.
    #[must_use]
    pub fn counter(&self) -> u32 {
        self.counter
    }

    /// Starts a frame in `out`, which is cleared: reserves the header and writes service and kind.
    /// The caller appends the body and then calls [`seal`](Self::seal).
    pub fn begin(out: &mut Vec<u8>, service: ServiceId, kind: u8) {
        out.clear();
        out.resize(HEADER_LEN, 0);
        out.extend_from_slice(&[service.0, kind]);
    }

    /// Seals the frame in `out`, which is written in `version`: writes the header, encrypts the
    /// body in place, appends the tag.
    pub fn seal(&mut self, out: &mut Vec<u8>, version: u8) {
        // The counter must not wrap, or nonces would repeat. A new start begins instead.
        if self.counter == u32::MAX {
            self.salt = self.cipher.next_salt(self.sender, self.salt);
            self.start = self.cipher.start(self.salt);
            self.counter = 0;
        }
        self.counter += 1;

        let Self { sender, salt, counter, .. } = *self;
        let header = Header { version, sender, salt, counter };

        // The header is authenticated as well, so it must be complete before the body is sealed.
        let (head, body) = out.split_at_mut(HEADER_LEN);
        header.write(head);
        let tag = match &self.start {
            None => [0; TAG_LEN],
            Some(start) => start.seal(number(sender, counter), head, body),
        };
        out.extend_from_slice(&tag);
    }
}

/// Returns what tells the frames under a start's key apart: sender, two zeros, counter. The version
/// has no part in it: a number is used once, whatever the frame is written in.
fn number(sender: NodeId, counter: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..2].copy_from_slice(&sender.0.to_be_bytes());
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    bytes
}
