//! Images and their hashes.

use crate::hex::hex;
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Hashes of an image. BLAKE3 is the hash by which the mesh announces a file, so a node knows
/// before a transfer begins whether it is one of the release. Other updaters know SHA-256 alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digests {
    /// SHA-256.
    pub sha256: [u8; 32],
    /// BLAKE3.
    pub blake3: [u8; 32],
}

impl Digests {
    /// Reads an image to its end. Returns its length in bytes and its hashes.
    ///
    /// # Errors
    /// The reader's.
    pub fn read(mut image: impl Read) -> io::Result<(u64, Self)> {
        // Both in one pass: the file may be larger than the memory that a router can spare.
        let mut sha256 = Sha256::new();
        let mut blake3 = blake3::Hasher::new();
        let mut piece = vec![0; 64 * 1024];
        let mut length = 0;
        loop {
            let got = match image.read(&mut piece) {
                Ok(0) => break,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };

            sha256.update(&piece[..got]);
            blake3.update(&piece[..got]);
            length += got as u64;
        }

        let digests = Self { sha256: sha256.finalize().into(), blake3: blake3.finalize().into() };
        Ok((length, digests))
    }
}

impl core::fmt::Debug for Digests {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Digests(sha256 {}..)", hex(&self.sha256[..4]))
    }
}

/// Image for one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Model of the routers that it is for.
    pub model: String,
    /// Name of its file. Several models may share one.
    pub file: String,
    /// Size, bytes.
    pub size: u64,
    /// Its hashes.
    pub digests: Digests,
}

impl Image {
    /// Reads a file. Returns whether it is this image.
    ///
    /// # Errors
    /// The reader's.
    pub fn is(&self, file: impl Read) -> io::Result<bool> {
        // One byte more than the image has is enough to see that a file is too long.
        let found = Digests::read(file.take(self.size.saturating_add(1)))?;
        Ok(found == (self.size, self.digests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_known_ones() {
        let (length, digests) = Digests::read(&b"abc"[..]).unwrap();
        assert_eq!(length, 3);
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&digests.sha256), sha256);
        let blake3 = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(hex(&digests.blake3), blake3);
    }

    #[test]
    fn a_file_is_an_image_only_byte_for_byte() {
        let (size, digests) = Digests::read(&b"image"[..]).unwrap();
        let image = Image { model: "m".into(), file: "f".into(), size, digests };
        assert!(image.is(&b"image"[..]).unwrap());
        for other in [&b""[..], b"imag", b"imagf", b"image!", b"image and more"] {
            assert!(!image.is(other).unwrap());
        }
    }
}
