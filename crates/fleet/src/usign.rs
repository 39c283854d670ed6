//! Keys and signatures of OpenWrt's `usign`: Ed25519 in files of a comment and a line of base64.

use crate::hex::hex;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ed25519_dalek::VerifyingKey;

/// Begins every key and every signature.
const ALGORITHM: &[u8; 2] = b"Ed";
/// Longest file that is read, bytes.
const MAX_BYTES: usize = 4096;

/// Reason why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsignError {
    /// A file is not one of usign.
    #[error("expected a line \"untrusted comment: ...\" and a line of base64 of usign")]
    Form,
    /// The key is none, or one that anybody can sign for.
    #[error("this is no public key")]
    Key,
    /// Another key signed.
    #[error("it was signed by key {found}, not by key {wanted}")]
    OtherKey {
        /// Number of the signature's key.
        found: String,
        /// Number of the key.
        wanted: String,
    },
    /// The contents are not what was signed.
    #[error("its signature is false")]
    Signature,
}

/// Public key.
#[derive(Clone, Debug)]
pub struct UsignKey {
    number: [u8; 8],
    key: VerifyingKey,
}

impl UsignKey {
    /// Reads the file of a public key.
    ///
    /// # Errors
    /// [`UsignError::Form`] or [`UsignError::Key`].
    pub fn parse(file: &[u8]) -> Result<Self, UsignError> {
        let (number, key) = body::<32>(file)?;
        let key = VerifyingKey::from_bytes(&key).map_err(|_| UsignError::Key)?;
        // A weak key accepts signatures that nobody made.
        if key.is_weak() { Err(UsignError::Key) } else { Ok(Self { number, key }) }
    }

    /// Checks the signature of contents.
    ///
    /// # Errors
    /// [`UsignError`].
    pub fn check(&self, contents: &[u8], signature_file: &[u8]) -> Result<(), UsignError> {
        let (number, signature) = body::<64>(signature_file)?;
        // The number only tells keys apart for a clear error: it is not what is trusted.
        if number != self.number {
            return Err(UsignError::OtherKey { found: hex(&number), wanted: hex(&self.number) });
        }

        let signature = ed25519_dalek::Signature::from_bytes(&signature);
        let checked = self.key.verify_strict(contents, &signature);
        checked.map_err(|_| UsignError::Signature)
    }
}

/// Returns the number of the key and what follows it.
fn body<const N: usize>(file: &[u8]) -> Result<([u8; 8], [u8; N]), UsignError> {
    let text = core::str::from_utf8(file).map_err(|_| UsignError::Form)?;
    let (comment, line) = text.split_once('\n').ok_or(UsignError::Form)?;
    if file.len() > MAX_BYTES || !comment.starts_with("untrusted comment: ") {
        return Err(UsignError::Form);
    }

    let bytes = BASE64_STANDARD.decode(line.trim_end()).map_err(|_| UsignError::Form)?;
    let rest = bytes.strip_prefix(ALGORITHM).ok_or(UsignError::Form)?;
    let (number, rest) = rest.split_first_chunk().ok_or(UsignError::Form)?;
    let rest = rest.try_into().map_err(|_| UsignError::Form)?;
    Ok((*number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signer, SigningKey};

    fn file(number: u8, body: &[u8]) -> Vec<u8> {
        let bytes = [&ALGORITHM[..], &[number; 8], body].concat();
        format!("untrusted comment: test\n{}\n", BASE64_STANDARD.encode(bytes)).into_bytes()
    }

    #[test]
    fn signatures_count_for_their_contents_and_key() {
        let secret = SigningKey::from_bytes(&[7; 32]);
        let key = UsignKey::parse(&file(1, secret.verifying_key().as_bytes())).unwrap();
        let signature = file(1, &secret.sign(b"contents").to_bytes());
        assert_eq!(key.check(b"contents", &signature), Ok(()));
        assert_eq!(key.check(b"other", &signature), Err(UsignError::Signature));
        let other = file(2, &secret.sign(b"contents").to_bytes());
        assert!(matches!(key.check(b"contents", &other), Err(UsignError::OtherKey { .. })));
        assert_eq!(key.check(b"contents", b"x"), Err(UsignError::Form));
        assert_eq!(key.check(b"contents", &file(1, &[0; 63])), Err(UsignError::Form));
        // A point of small order.
        let mut weak = [0; 32];
        weak[0] = 1;
        assert_eq!(UsignKey::parse(&file(1, &weak)).map(drop), Err(UsignError::Key));
    }
}
