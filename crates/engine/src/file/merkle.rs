//! Hash tree (Merkle tree) over the generations of a file.
//!
//! The root travels in the announcement. The branch of each generation travels inside the
//! generation, coded with it. So every generation proves by itself that it belongs to the file, in
//! whatever order generations arrive. That costs 32 bytes for each generation and level of the
//! tree.

use std::io::{self, Read};

use super::geometry::Geometry;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// Hash in place of the leaves after the last generation.
const ABSENT: Hash = [0; 32];

/// Returns the hash of a generation's bytes.
#[must_use]
pub fn leaf(data: &[u8]) -> Hash {
    *blake3::hash(data).as_bytes()
}

/// Returns the hash of an inner node. Its domain differs from that of leaves, so that no generation
/// can pass for an inner node.
fn join(left: &Hash, right: &Hash) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("ncmesh batch tree node v1");
    hasher.update(left).update(right);
    *hasher.finalize().as_bytes()
}

/// Whole tree, as the source keeps it: 64 bytes for each generation.
#[derive(Clone, Debug)]
pub struct MerkleTree {
    /// Hashes of each level, from the leaves to the root.
    levels: Vec<Vec<Hash>>,
}

impl MerkleTree {
    /// Returns the tree over `leaves` with `depth` levels above them. There must be at most
    /// 2^`depth` leaves.
    #[must_use]
    pub fn new(leaves: Vec<Hash>, depth: usize) -> Self {
        let mut levels = vec![leaves];
        for _ in 0..depth {
            let below = levels.last().map_or(&[][..], Vec::as_slice);
            // A level with an odd number of hashes is filled up, so that each branch has the same
            // length.
            let up = below.chunks(2).map(|p| join(&p[0], p.get(1).unwrap_or(&ABSENT))).collect();
            levels.push(up);
        }
        Self { levels }
    }

    /// Returns the root; for an empty file, all zeros.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.levels.last().and_then(|top| top.first()).copied().unwrap_or(ABSENT)
    }

    /// Returns the hash of generation `i`.
    #[must_use]
    pub fn leaf(&self, i: u32) -> Option<&Hash> {
        self.levels[0].get(i as usize)
    }

    /// Appends the branch of generation `i`, from the sibling of its leaf upwards.
    pub fn write_branch(&self, i: u32, out: &mut Vec<u8>) {
        let mut at = i as usize;
        for level in &self.levels[..self.levels.len() - 1] {
            out.extend_from_slice(level.get(at ^ 1).unwrap_or(&ABSENT));
            at /= 2;
        }
    }
}

/// Returns whether a generation with this `leaf` hash, number `i` and `branch` belongs to the tree
/// of `root`.
#[must_use]
pub fn verify(root: &Hash, i: u32, leaf: Hash, branch: &[u8]) -> bool {
    let mut at = i;
    let mut hash = leaf;
    for sibling in branch.as_chunks::<32>().0 {
        // The number of the generation decides the sides, so a generation does not prove itself in
        // another place.
        hash = if at & 1 == 0 { join(&hash, sibling) } else { join(sibling, &hash) };
        at /= 2;
    }
    hash == *root
}

/// Hashes of a file that is to be sent.
#[derive(Clone, Debug)]
pub struct Digest {
    /// BLAKE3 of the whole file.
    pub whole: Hash,
    /// BLAKE3 of each generation.
    pub leaves: Vec<Hash>,
}

/// Reads a file once, and hashes it as a whole and by generations.
///
/// # Errors
/// Errors of the reader; [`io::ErrorKind::UnexpectedEof`] if the file is shorter than `geometry`
/// says.
pub fn digest(mut file: impl Read, geometry: &Geometry) -> io::Result<Digest> {
    let mut whole = blake3::Hasher::new();
    let mut leaves = Vec::with_capacity(geometry.generations() as usize);
    let mut generation = Vec::new();
    for i in 0..geometry.generations() {
        // One pass over the file gives both hashes. Memory is that of one generation.
        generation.resize(geometry.data_len(i), 0);
        file.read_exact(&mut generation)?;
        whole.update(&generation);
        leaves.push(leaf(&generation));
    }

    Ok(Digest { whole: *whole.finalize().as_bytes(), leaves })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_proves_the_generation_at_its_number_and_no_other() {
        for n in [1u32, 2, 3, 5, 8, 13] {
            let depth = n.next_power_of_two().trailing_zeros() as usize;
            let leaves: Vec<Hash> = (0..n).map(|i| leaf(&[i as u8; 9])).collect();
            let tree = MerkleTree::new(leaves.clone(), depth);
            for i in 0..n {
                let mut branch = Vec::new();
                tree.write_branch(i, &mut branch);
                assert_eq!(branch.len(), 32 * depth);
                for j in 0..n {
                    assert_eq!(verify(&tree.root(), i, leaves[j as usize], &branch), i == j);
                }
            }
        }
    }
}
