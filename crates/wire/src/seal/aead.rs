//! XChaCha20-Poly1305, by the fastest well-kept implementation on each processor.
//!
//! XChaCha20 works in two steps, and the first is a key derivation: HChaCha20 makes the key of a
//! start from the network's key and the salt. The second is the ChaCha20-Poly1305 of RFC 8439
//! under that key. Ring has assembly for the second step on x86-64, ARM and AArch64, which takes a
//! quarter of the time of RustCrypto's there. It needs a C compiler, so all other processors, and
//! browsers, run RustCrypto's, which is Rust alone. The frames are the same.

use crate::frame::TAG_LEN;
use crate::id::Salt;
use chacha20::{R20, hchacha};
use core::fmt;
use zeroize::Zeroize;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"))]
use assembly as rfc8439;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm")))]
use portable as rfc8439;

/// The key of one start of a node. Its memory is overwritten when it is dropped.
#[derive(Clone)]
pub(super) struct StartKey([u8; 32]);

impl StartKey {
    /// Derives the key of the start `salt` from the network's key (draft-irtf-cfrg-xchacha-03,
    /// section 2.2).
    pub(super) fn derive(key: &[u8; 32], salt: Salt) -> Self {
        Self(hchacha::<R20>(&(*key).into(), &salt.0.into()).into())
    }

    /// Encrypts `body` in place and returns the tag of `head` and `body`. `number` is the rest of
    /// the nonce (section 2.3) and never comes twice.
    pub(super) fn seal(&self, number: [u8; 8], head: &[u8], body: &mut [u8]) -> [u8; TAG_LEN] {
        rfc8439::seal(&self.0, nonce(number), head, body)
    }

    /// Decrypts `body` in place. Returns whether `tag` is that of `head` and `body`: if it is not,
    /// the frame is forged, and `body` of no use.
    pub(super) fn open(
        &self,
        number: [u8; 8],
        head: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> bool {
        rfc8439::open(&self.0, nonce(number), head, body, tag)
    }
}

impl fmt::Debug for StartKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartKey(..)")
    }
}

impl Drop for StartKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Returns the nonce of the second step, 12 bytes: four zeros, then the number.
fn nonce(number: [u8; 8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number);
    nonce
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"))]
mod assembly {
    use crate::frame::TAG_LEN;
    use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};

    fn cipher(key: &[u8; 32]) -> LessSafeKey {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has 32 bytes");
        LessSafeKey::new(key)
    }

    pub(super) fn seal(
        key: &[u8; 32],
        nonce: [u8; 12],
        head: &[u8],
        body: &mut [u8],
    ) -> [u8; TAG_LEN] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = cipher(key)
            .seal_in_place_separate_tag(nonce, Aad::from(head), body)
            .expect("a frame is far shorter than the cipher's limit");

        let mut bytes = [0; TAG_LEN];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    pub(super) fn open(
        key: &[u8; 32],
        nonce: [u8; 12],
        head: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        cipher(key)
            .open_in_place_separate_tag(nonce, Aad::from(head), Tag::from(tag), body, 0..)
            .is_ok()
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"))))]
mod portable {
    use crate::frame::TAG_LEN;
    use chacha20poly1305::ChaCha20Poly1305;
    use chacha20poly1305::aead::{AeadInOut, KeyInit};

    pub(super) fn seal(
        key: &[u8; 32],
        nonce: [u8; 12],
        head: &[u8],
        body: &mut [u8],
    ) -> [u8; TAG_LEN] {
        ChaCha20Poly1305::new(&(*key).into())
            .encrypt_inout_detached(&nonce.into(), head, body.into())
            .expect("a frame is far shorter than the cipher's limit")
            .into()
    }

    pub(super) fn open(
        key: &[u8; 32],
        nonce: [u8; 12],
        head: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> bool {
        ChaCha20Poly1305::new(&(*key).into())
            .decrypt_inout_detached(&nonce.into(), head, body.into(), &tag.into())
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// draft-irtf-cfrg-xchacha-03, section 2.2.1.
    #[test]
    fn a_start_has_the_key_of_the_draft() {
        let key = core::array::from_fn(|i| i as u8);
        let salt = *b"\x00\x00\x00\x09\x00\x00\x00\x4a\x00\x00\x00\x00\x31\x41\x59\x27";
        let hex: String =
            StartKey::derive(&key, Salt(salt)).0.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc");
    }

    proptest! {
        /// Each length up to a long frame, so that each kernel meets each tail.
        #[test]
        fn both_implementations_make_the_same_frames(
            key: [u8; 32],
            number: [u8; 8],
            head in proptest::collection::vec(any::<u8>(), 0..40),
            body in proptest::collection::vec(any::<u8>(), 0..2100),
            broken in any::<proptest::sample::Index>(),
        ) {
            let mut ours = body.clone();
            let mut portable = body.clone();
            let tag = rfc8439::seal(&key, nonce(number), &head, &mut ours);
            let same = portable::seal(&key, nonce(number), &head, &mut portable);
            prop_assert_eq!(tag, same);
            prop_assert_eq!(&ours, &portable);

            let mut forged = tag;
            forged[broken.index(TAG_LEN)] ^= 1;
            for open in [rfc8439::open, portable::open] {
                let mut opened = ours.clone();
                prop_assert!(open(&key, nonce(number), &head, &mut opened, tag));
                prop_assert_eq!(&opened, &body);
                let mut opened = ours.clone();
                prop_assert!(!open(&key, nonce(number), &head, &mut opened, forged));
            }
        }
    }
}
