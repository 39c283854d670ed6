//! Sealing: authenticated encryption of every frame with the network's key.
//!
//! All nodes share one key. XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03; RFC 8439) encrypts the
//! body and authenticates header and body. The nonce is made of the header's sender, epoch and
//! counter. A node must never use a nonce twice, so the counter grows with each frame and the epoch
//! with each start. Receivers keep a [`ReplayWindow`] for each sender.

use crate::frame::{self, HEADER_LEN, Header, OpenError, Opened, SealedFrame};
use crate::id::{NodeId, ServiceId};
use crate::replay::ReplayWindow;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

/// The network's 256-bit key. Only [`Key::to_hex`] shows it; `Debug` does not.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// The text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is 64 hexadecimal digits; make one with `ncmesh keygen`")]
pub struct KeyError;

impl Key {
    /// Creates a key from its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the key as 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
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
        let text = text.trim().as_bytes();
        if text.len() != 64 {
            return Err(KeyError);
        }
        let mut key = [0; 32];
        for (byte, pair) in key.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or(KeyError);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Ok(Self(key))
    }
}

/// Algorithm that seals frames.
#[derive(Clone)]
pub enum Cipher {
    /// XChaCha20-Poly1305 with the network's key.
    Sealed(Box<XChaCha20Poly1305>),
    /// No protection, with frames of the same length. For simulations, whose results say so.
    Null,
}

impl Cipher {
    /// Creates the cipher with `key`.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        Self::Sealed(Box::new(XChaCha20Poly1305::new(&key.0.into())))
    }

    /// Authenticates and decrypts one frame into `scratch`, without a check for replays. For
    /// traces; a node uses an [`Opener`].
    ///
    /// # Errors
    /// Any [`OpenError`] except [`OpenError::Replayed`].
    pub fn open<'s>(
        &self,
        datagram: &[u8],
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        self.open_parsed(&frame::parse(datagram)?, scratch)
    }

    fn open_parsed<'s>(
        &self,
        frame: &SealedFrame<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        let SealedFrame { header, head, body, tag } = frame;
        scratch.clear();
        scratch.extend_from_slice(body);
        if let Self::Sealed(aead) = self {
            aead.decrypt_in_place_detached(&nonce(header), head, scratch, Tag::from_slice(tag))
                .map_err(|_| OpenError::Unauthentic)?;
        }
        Opened::parse(*header, scratch)
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
///
/// The nonce is (sender, epoch, counter). The epoch must be higher at each start of the node than
/// at any earlier start. The counter numbers the frames within the epoch.
#[derive(Debug)]
pub struct Sealer {
    cipher: Cipher,
    sender: NodeId,
    epoch: u64,
    counter: u32,
}

impl Sealer {
    /// Creates a sealer for `sender` in an `epoch` that it has not used before.
    #[must_use]
    pub fn new(cipher: Cipher, sender: NodeId, epoch: u64) -> Self {
        Self { cipher, sender, epoch, counter: 0 }
    }

    /// Returns the current epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Starts `epoch` if it is higher than the current one. Otherwise nothing changes.
    pub fn raise_epoch(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.counter = 0;
        }
    }

    /// Starts a frame in `out`, which is cleared: reserves the header and writes service and kind.
    /// The caller appends the body and then calls [`seal`](Self::seal).
    pub fn begin(out: &mut Vec<u8>, service: ServiceId, kind: u8) {
        out.clear();
        out.resize(HEADER_LEN, 0);
        out.extend_from_slice(&[service.0, kind]);
    }

    /// Seals the frame in `out`: writes the header, encrypts the body in place, appends the tag.
    pub fn seal(&mut self, out: &mut Vec<u8>) {
        // The counter must not wrap, or nonces would repeat.
        if self.counter == u32::MAX {
            self.raise_epoch(self.epoch + 1);
        }
        self.counter += 1;
        let header = Header { sender: self.sender, epoch: self.epoch, counter: self.counter };
        let (head, body) = out.split_at_mut(HEADER_LEN);
        header.write(head);
        let tag = match &self.cipher {
            Cipher::Null => Tag::default(),
            Cipher::Sealed(aead) => aead
                .encrypt_in_place_detached(&nonce(&header), head, body)
                .expect("a frame is far shorter than the cipher's limit"),
        };
        out.extend_from_slice(&tag);
    }
}

/// Opens frames of other nodes: authenticates, decrypts, rejects replays.
#[derive(Debug)]
pub struct Opener {
    cipher: Cipher,
    windows: BTreeMap<NodeId, ReplayWindow>,
}

impl Opener {
    /// Creates an opener that has received no frames.
    #[must_use]
    pub fn new(cipher: Cipher) -> Self {
        Self { cipher, windows: BTreeMap::new() }
    }

    /// Rejects frames of `sender` from before `epoch`, which was saved before a restart.
    pub fn remember(&mut self, sender: NodeId, epoch: u64) {
        self.windows.entry(sender).or_insert_with(|| ReplayWindow::new(epoch));
    }

    /// Returns the latest epoch of each sender, which the caller saves and passes to
    /// [`remember`](Self::remember) after a restart.
    pub fn epochs(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.windows.iter().map(|(node, window)| (*node, window.epoch()))
    }

    /// Opens one received frame. Decrypts its body into `scratch`, which is cleared.
    ///
    /// # Errors
    /// An [`OpenError`] if the frame must be dropped. Such a frame leaves no state.
    pub fn open<'s>(
        &mut self,
        datagram: &[u8],
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        let frame = frame::parse(datagram)?;
        let header = frame.header;

        // The replay check comes first because it is cheap. The window changes only after the
        // frame is authenticated: a forged counter must not block genuine frames.
        let window = self.windows.get(&header.sender);
        if window.is_some_and(|w| !w.is_new(header.epoch, header.counter)) {
            return Err(OpenError::Replayed);
        }
        let opened = self.cipher.open_parsed(&frame, scratch)?;
        self.windows
            .entry(header.sender)
            .or_insert_with(|| ReplayWindow::new(header.epoch))
            .record(header.epoch, header.counter);
        Ok(opened)
    }
}

/// Returns the nonce of a frame, 24 bytes: the header's sender, epoch and counter, then zeros.
fn nonce(header: &Header) -> XNonce {
    let mut bytes = [0; 24];
    bytes[..2].copy_from_slice(&header.sender.0.to_be_bytes());
    bytes[2..10].copy_from_slice(&header.epoch.to_be_bytes());
    bytes[10..14].copy_from_slice(&header.counter.to_be_bytes());
    bytes.into()
}
