//! Sealing: authenticated encryption of every frame with the network's key.

use crate::frame::{self, HEADER_LEN, Header, OpenError, Opened, TAG_LEN, Unsealed};
use crate::{NodeId, ReplayWindow, ServiceId};
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

/// The network's 256-bit key. Shown as 64 hexadecimal digits by [`Key::to_hex`] only, never by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is 64 hexadecimal digits; make one with `ncmesh keygen`")]
pub struct KeyError;

impl Key {
    /// A key from its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key as 64 hexadecimal digits.
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

/// How frames are sealed.
#[derive(Clone)]
pub enum Cipher {
    /// XChaCha20-Poly1305 under the network's key.
    Sealed(Box<XChaCha20Poly1305>),
    /// No protection, frames of the same length: for simulations that say so in their results.
    Null,
}

impl Cipher {
    /// The cipher under `key`.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        Self::Sealed(Box::new(XChaCha20Poly1305::new(&key.0.into())))
    }

    /// Authenticates and decrypts one frame, however often it was heard: for traces. A node has an [`Opener`].
    /// `scratch` is cleared and holds the decrypted body.
    ///
    /// # Errors
    /// [`OpenError`], but never [`OpenError::Replayed`].
    pub fn open<'s>(
        &self,
        datagram: &[u8],
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        self.open_parsed(&frame::parse(datagram)?, scratch)
    }

    fn open_parsed<'s>(
        &self,
        unsealed: &Unsealed<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        let Unsealed { header, head, sealed, tag } = unsealed;
        scratch.clear();
        scratch.extend_from_slice(sealed);
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

/// Seals this node's frames; no nonce is used twice.
///
/// The nonce is (sender, epoch, counter). The epoch must be higher at each start of the node than at any
/// start before; the counter counts frames within it.
#[derive(Debug)]
pub struct Sealer {
    cipher: Cipher,
    sender: NodeId,
    epoch: u64,
    counter: u32,
}

impl Sealer {
    /// A sealer for `sender` in a fresh `epoch`.
    #[must_use]
    pub fn new(cipher: Cipher, sender: NodeId, epoch: u64) -> Self {
        Self { cipher, sender, epoch, counter: 0 }
    }

    /// The epoch in use.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Begins `epoch` where it is higher than the present one; otherwise changes nothing.
    pub fn raise_epoch(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.counter = 0;
        }
    }

    /// Starts a frame in `out` (cleared first): the header's room and the service's two bytes. Append the
    /// body, then [`seal`](Self::seal).
    pub fn begin(out: &mut Vec<u8>, service: ServiceId, kind: u8) {
        out.clear();
        out.resize(HEADER_LEN, 0);
        out.extend_from_slice(&[service.0, kind]);
    }

    /// Seals the frame begun in `out`: writes the header, encrypts the body in place, appends the tag.
    pub fn seal(&mut self, out: &mut Vec<u8>) {
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

/// Opens frames of others: authenticates, decrypts, refuses replays.
#[derive(Debug)]
pub struct Opener {
    cipher: Cipher,
    windows: BTreeMap<NodeId, ReplayWindow>,
}

impl Opener {
    /// An opener that has heard nobody.
    #[must_use]
    pub fn new(cipher: Cipher) -> Self {
        Self { cipher, windows: BTreeMap::new() }
    }

    /// Refuses frames of `sender` older than `epoch`, as remembered from before a restart.
    pub fn remember(&mut self, sender: NodeId, epoch: u64) {
        self.windows.entry(sender).or_insert_with(|| ReplayWindow::new(epoch));
    }

    /// The latest epoch heard of each sender, to be [remembered](Self::remember) across a restart.
    pub fn epochs(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.windows.iter().map(|(node, window)| (*node, window.epoch()))
    }

    /// Opens one received frame. `scratch` is cleared and holds the decrypted body.
    ///
    /// # Errors
    /// [`OpenError`] says why the frame is to be dropped; nothing is remembered of such a frame.
    pub fn open<'s>(
        &mut self,
        datagram: &[u8],
        scratch: &'s mut Vec<u8>,
    ) -> Result<Opened<'s>, OpenError> {
        let unsealed = frame::parse(datagram)?;
        let header = unsealed.header;
        let window = self.windows.get(&header.sender);
        if window.is_some_and(|w| !w.is_new(header.epoch, header.counter)) {
            return Err(OpenError::Replayed);
        }
        let opened = self.cipher.open_parsed(&unsealed, scratch)?;
        self.windows
            .entry(header.sender)
            .or_insert_with(|| ReplayWindow::new(header.epoch))
            .record(header.epoch, header.counter);
        Ok(opened)
    }
}

/// 24 bytes: the header's sender, epoch and counter, then zeros.
fn nonce(header: &Header) -> XNonce {
    let mut bytes = [0; 24];
    bytes[..2].copy_from_slice(&header.sender.0.to_be_bytes());
    bytes[2..10].copy_from_slice(&header.epoch.to_be_bytes());
    bytes[10..14].copy_from_slice(&header.counter.to_be_bytes());
    bytes.into()
}

/// How many bytes sealing adds to a service's body, its two naming bytes included.
pub(crate) const OVERHEAD: usize = HEADER_LEN + 2 + TAG_LEN;
