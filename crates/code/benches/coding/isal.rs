//! Intel ISA-L, the Debian package `libisal2`. Its GF(2^8) has another polynomial (0x11D), which
//! does not change the amount of work.

use crate::ours::Packets;
use crate::{Group, making};
use criterion::Bencher;
use libloading::Library;
use ncmesh_code::Shape;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use std::ffi::c_int;

type InitTables = unsafe extern "C" fn(c_int, c_int, *mut u8, *mut u8);
type EncodeData = unsafe extern "C" fn(c_int, c_int, c_int, *mut u8, *mut *mut u8, *mut *mut u8);
type InvertMatrix = unsafe extern "C" fn(*mut u8, *mut u8, c_int) -> c_int;

pub struct Isal {
    library: Library,
}

/// Rows in one allocation, with the pointers that ISA-L takes.
struct Table {
    _bytes: Vec<u8>,
    pointers: Vec<*mut u8>,
}

impl Table {
    fn new(size: usize, count: usize) -> Self {
        // The same stride as our own tables: an odd number of cache lines.
        let stride = (size.div_ceil(64) | 1) * 64;
        let mut bytes = vec![0; stride * count + 63];
        SmallRng::seed_from_u64(2).fill_bytes(&mut bytes);
        let start = bytes.as_ptr().align_offset(64);
        let pointers =
            bytes[start..].chunks_mut(stride).take(count).map(<[u8]>::as_mut_ptr).collect();
        Self { _bytes: bytes, pointers }
    }
}

impl Isal {
    pub fn load() -> Option<Self> {
        // SAFETY: the library has no initialisers.
        unsafe { Library::new("libisal.so.2") }.ok().map(|library| Self { library })
    }

    /// # Safety
    /// `F` must be the type of ISA-L's function of that name.
    unsafe fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller passes the right type.
        unsafe { *self.library.get::<F>(name.as_bytes()).unwrap() }
    }

    pub fn bench(&self, group: &mut Group<'_>, shape: Shape) {
        for n in [1, 4, 16] {
            making(group, n * shape.symbol_size());
            group.bench_function(format!("encode-{n}/isa-l"), |b| self.encode(b, shape, n));
        }
        making(group, shape.capacity());
        group.bench_function("decode-dense/isa-l", |b| {
            self.decode(b, &Packets::dense(shape));
        });
    }

    /// Encodes with fresh coefficients in each iteration, so each iteration also makes their
    /// tables.
    fn encode(&self, b: &mut Bencher<'_>, shape: Shape, n: usize) {
        let k = shape.generation_size();
        let size = shape.symbol_size();
        let mut inputs = Table::new(size, k);
        let mut outputs = Table::new(size, n);
        let mut rng = SmallRng::seed_from_u64(1);
        let mut coefficients = vec![0u8; n * k];
        let mut tables = vec![0u8; 32 * n * k];
        // SAFETY: these are functions of ISA-L, and every slice has the length that they need.
        unsafe {
            let init: InitTables = self.function("ec_init_tables");
            let encode: EncodeData = self.function("ec_encode_data");
            b.iter(|| {
                rng.fill_bytes(&mut coefficients);
                init(k as c_int, n as c_int, coefficients.as_mut_ptr(), tables.as_mut_ptr());
                let from = inputs.pointers.as_mut_ptr();
                let to = outputs.pointers.as_mut_ptr();
                encode(size as c_int, k as c_int, n as c_int, tables.as_mut_ptr(), from, to);
            });
        }
    }

    /// Decodes as far as ISA-L can: inverts the matrix, then computes all symbols. It reads packets
    /// in place and does not check the rank as they arrive, so it does less than a decoder.
    fn decode(&self, b: &mut Bencher<'_>, packets: &Packets) {
        let k = packets.shape.generation_size();
        let size = packets.shape.symbol_size();
        let mut inputs = Table::new(size, k);
        let mut outputs = Table::new(size, k);
        let mut matrix = vec![0u8; k * k];
        let mut inverse = vec![0u8; k * k];
        let mut tables = vec![0u8; 32 * k * k];
        // SAFETY: these are functions of ISA-L, and every slice has the length that they need.
        unsafe {
            let invert: InvertMatrix = self.function("gf_invert_matrix");
            let init: InitTables = self.function("ec_init_tables");
            let encode: EncodeData = self.function("ec_encode_data");
            b.iter(|| {
                matrix.copy_from_slice(&packets.coefficients);
                std::hint::black_box(invert(matrix.as_mut_ptr(), inverse.as_mut_ptr(), k as c_int));
                init(k as c_int, k as c_int, inverse.as_mut_ptr(), tables.as_mut_ptr());
                let from = inputs.pointers.as_mut_ptr();
                let to = outputs.pointers.as_mut_ptr();
                encode(size as c_int, k as c_int, k as c_int, tables.as_mut_ptr(), from, to);
            });
        }
    }
}
