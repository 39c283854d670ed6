//! Tables made at compile time: scalar products, nibble shuffles, bit matrices.
//!
//! All of them derive from one carry-less multiplication, so the scalar arithmetic and every code
//! path agree on the field's polynomial.

/// x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2), the polynomial of the GFNI instruction
/// `gf2p8mulb`.
const POLY_256: u16 = 0x11B;
/// x^4 + x + 1, primitive over GF(2).
const POLY_16: u16 = 0x13;

/// Returns the carry-less product of `a` and `b` modulo `poly`, a polynomial of degree `degree`.
const fn multiply(a: u8, b: u8, poly: u16, degree: u32) -> u8 {
    let mut product = 0u16;
    let mut shifted = a as u16;
    let mut bit = 0;
    while bit < degree {
        if (b >> bit) & 1 == 1 {
            product ^= shifted;
        }

        // The bit that left the field stands for the degree of `poly`, so `poly` is subtracted.
        shifted <<= 1;
        if (shifted >> degree) & 1 == 1 {
            shifted ^= poly;
        }

        bit += 1;
    }

    product as u8
}

/// Returns the product in GF(2^8).
pub(crate) const fn multiply_256(a: u8, b: u8) -> u8 {
    multiply(a, b, POLY_256, 8)
}

/// Returns the product in GF(2^4) of the low nibbles.
pub(crate) const fn multiply_16(a: u8, b: u8) -> u8 {
    multiply(a & 15, b & 15, POLY_16, 4)
}

/// Powers of the generator 3 of GF(2^8), twice in a row, so that a sum of two logarithms needs no
/// reduction modulo 255.
pub(crate) static EXP_256: [u8; 510] = exp_256();
/// Logarithms to base 3; entry 0 has no meaning.
pub(crate) static LOG_256: [u8; 256] = log_256();
/// Inverses in GF(2^8); entry 0 has no meaning.
pub(crate) static INVERSE_256: [u8; 256] = inverse_256();
/// Inverses in GF(2^4); entry 0 has no meaning.
pub(crate) static INVERSE_16: [u8; 16] = inverse_16();
/// All products in GF(2^4).
pub(crate) static PRODUCT_16: [[u8; 16]; 16] = product_16();

const fn exp_256() -> [u8; 510] {
    let mut table = [0; 510];
    let mut power = 1u8;
    let mut i = 0;
    while i < 255 {
        table[i] = power;
        table[i + 255] = power;
        power = multiply_256(power, 3);
        i += 1;
    }

    table
}

const fn log_256() -> [u8; 256] {
    let exp = exp_256();
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[exp[i] as usize] = i as u8;
        i += 1;
    }

    table
}

const fn inverse_256() -> [u8; 256] {
    let exp = exp_256();
    let log = log_256();
    let mut table = [0; 256];
    let mut i = 1;
    while i < 256 {
        table[i] = exp[255 - log[i] as usize];
        i += 1;
    }

    table
}

const fn product_16() -> [[u8; 16]; 16] {
    let mut table = [[0; 16]; 16];
    let mut i = 0;
    while i < 256 {
        table[i >> 4][i & 15] = multiply_16((i >> 4) as u8, i as u8);
        i += 1;
    }
    table
}

const fn inverse_16() -> [u8; 16] {
    let product = product_16();
    let mut table = [0; 16];
    let mut i = 0;
    while i < 256 {
        if product[i >> 4][i & 15] == 1 {
            table[i >> 4] = (i & 15) as u8;
        }
        i += 1;
    }

    table
}

/// Two tables for a byte shuffle: the products of a coefficient with every low nibble of a byte,
/// then with every high nibble.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[repr(align(32))]
pub(crate) struct Nibbles(pub(crate) [u8; 32]);

/// Shuffle tables of GF(2^8), by coefficient.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static SHUFFLE_256: [Nibbles; 256] = shuffle_256();
/// Shuffle tables of GF(2^4), two elements a byte, by coefficient.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static SHUFFLE_16: [Nibbles; 16] = shuffle_16();
/// Bit masks of GF(2), by coefficient.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static MASK_2: [u64; 2] = [0, u64::MAX];
/// Each coefficient in four bytes. A broadcast of four bytes is a load and no more, where that of
/// one byte also takes the unit that multiplies or adds.
#[cfg(target_arch = "x86_64")]
pub(crate) static FOURFOLD_256: [u32; 256] = fourfold_256();
/// Bit matrices of GF(2^4), two elements a byte, for `gf2p8affineqb`, by coefficient.
#[cfg(target_arch = "x86_64")]
pub(crate) static MATRIX_16: [u64; 16] = matrix_16();

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn shuffle_256() -> [Nibbles; 256] {
    let mut tables = [const { Nibbles([0; 32]) }; 256];
    let mut i = 0;
    while i < 256 * 16 {
        let c = i >> 4;
        let n = i & 15;
        tables[c].0[n] = multiply_256(c as u8, n as u8);
        tables[c].0[n + 16] = multiply_256(c as u8, (n << 4) as u8);
        i += 1;
    }

    tables
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn shuffle_16() -> [Nibbles; 16] {
    let mut tables = [const { Nibbles([0; 32]) }; 16];
    let mut i = 0;
    while i < 256 {
        let c = i >> 4;
        let n = i & 15;
        let product = multiply_16(c as u8, n as u8);
        tables[c].0[n] = product;
        tables[c].0[n + 16] = product << 4;
        i += 1;
    }

    tables
}

#[cfg(target_arch = "x86_64")]
const fn fourfold_256() -> [u32; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = c as u32 * 0x0101_0101;
        c += 1;
    }

    table
}

/// The instruction computes bit `i` of a result as the parity of the operand AND byte `7 - i` of
/// the matrix (Intel 64 and IA-32 SDM, vol. 2A, GF2P8AFFINEQB).
#[cfg(target_arch = "x86_64")]
const fn matrix_16() -> [u64; 16] {
    let mut matrices = [0; 16];
    let mut i = 0;
    while i < 16 * 8 * 8 {
        let c = i >> 6;
        let from = i >> 3 & 7;
        let to = i & 7;
        let image = (multiply_16(c as u8, 1 << (from & 3)) as usize) << (from & 4);
        if image >> to & 1 == 1 {
            matrices[c] |= 1 << ((7 - to) * 8 + from);
        }
        i += 1;
    }

    matrices
}
