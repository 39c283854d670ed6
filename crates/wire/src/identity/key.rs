//! Keys and signatures.

use crate::cursor::{Reader, Writer};
use crate::hex::hex;
use crate::record::{Kind, Malformed, Named, Value};
use core::fmt;
use core::str::FromStr;
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

/// Lowest byte of 2^255 - 19, the prime of the curve's field.
const LEAST_ABOVE_PRIME: u8 = 0xED;

/// Contents that a signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Certificate of a node.
    Certificate,
    /// Certificates that are not valid any more.
    Revocations,
    /// Link state of a node.
    LinkState,
    /// Statement of a node in a frame that others pass on.
    Statement,
    /// Release of images for routers.
    Release,
    /// Order of an operator to the nodes of a roll-out.
    Order,
}

impl Purpose {
    /// Returns what stands before the contents. None is the beginning of another.
    fn domain(self) -> &'static [u8] {
        match self {
            Self::Certificate => b"ncmesh certificate 1\n",
            Self::Revocations => b"ncmesh revocations 1\n",
            Self::LinkState => b"ncmesh link state 1\n",
            Self::Statement => b"ncmesh statement 1\n",
            Self::Release => b"ncmesh signed release 1\n",
            Self::Order => b"ncmesh order 1\n",
        }
    }

    fn message(self, contents: &[u8]) -> Vec<u8> {
        [self.domain(), contents].concat()
    }
}

/// Reason why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// It is not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits")]
    Form,
    /// The digits are no point of the curve, or one that anybody can sign for.
    #[error("these 64 digits are no public key")]
    Public,
}

/// Secret key of a node or of a network. Only [`SecretKey::to_hex`] shows it; `Debug` does not. Its
/// memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Creates a key from 32 random bytes.
    #[must_use]
    pub fn new(seed: &Zeroizing<[u8; 32]>) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Returns the key as 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(&*Zeroizing::new(self.0.to_bytes())))
    }

    /// Returns the public part.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Returns what the owner of this key and the owner of another can both compute: X25519 (RFC
    /// 7748) of both in Montgomery form; `None` if the other is no key.
    pub(super) fn shared_with(&self, other: &PublicKey) -> Option<Zeroizing<[u8; 32]>> {
        let point = VerifyingKey::from_bytes(&other.0).ok()?.to_montgomery();
        let scalar = Zeroizing::new(self.0.to_scalar_bytes());
        Some(Zeroizing::new(point.mul_clamped(*scalar).to_bytes()))
    }

    /// Signs contents.
    #[must_use]
    pub fn sign(&self, purpose: Purpose, contents: &[u8]) -> Signature {
        Signature(self.0.sign(&purpose.message(contents)).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

impl FromStr for SecretKey {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        Ok(Self::new(&Zeroizing::new(unhex(text.trim())?)))
    }
}

/// Public key of a node or of a network: a point of the curve, and none of small order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Creates a key from its bytes. Returns `None` if they are no key.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Option<Self> {
        // A number above the field's prime would be a second way to write a key.
        let is_canonical = bytes[31] & 0x7F != 0x7F
            || bytes[1..31].iter().any(|byte| *byte != 0xFF)
            || bytes[0] < LEAST_ABOVE_PRIME;

        // A weak key has a small order: signatures by it fit several messages.
        let key = VerifyingKey::from_bytes(&bytes).ok().filter(|_| is_canonical)?;
        (!key.is_weak()).then_some(Self(bytes))
    }

    /// Returns its bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Returns the beginning of the key, 16 digits in groups of four, for people to compare.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let groups: Vec<String> = self.0[..8].chunks(2).map(hex).collect();
        groups.join("-")
    }

    /// Returns whether this key signed the contents.
    #[must_use]
    pub fn has_signed(&self, purpose: Purpose, contents: &[u8], signature: &Signature) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else { return false };
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        key.verify_strict(&purpose.message(contents), &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

impl FromStr for PublicKey {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        Self::new(unhex(text.trim())?).ok_or(IdentityError::Public)
    }
}

impl Value<'_> for PublicKey {
    const KIND: Kind = Kind::Array(32);

    fn read(r: &mut Reader<'_>, _how: &Named) -> Result<Self, Malformed> {
        Self::new(r.array()?).ok_or(Malformed)
    }

    fn put(&self, w: &mut Writer<'_>, _how: &Named) {
        w.bytes(&self.0);
    }
}

/// Ed25519 signature. Whether it is good is known only with the key and the contents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; Signature::LEN]);

impl Signature {
    /// Length, bytes.
    pub const LEN: usize = 64;
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({}..)", hex(&self.0[..4]))
    }
}

impl Value<'_> for Signature {
    const KIND: Kind = Kind::Array(Self::LEN);

    fn read(r: &mut Reader<'_>, _how: &Named) -> Result<Self, Malformed> {
        Ok(Self(r.array()?))
    }

    fn put(&self, w: &mut Writer<'_>, _how: &Named) {
        w.bytes(&self.0);
    }
}

fn unhex(text: &str) -> Result<[u8; 32], IdentityError> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return Err(IdentityError::Form);
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16).ok_or(IdentityError::Form);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(bytes)
}
