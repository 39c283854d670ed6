//! One version of the crate `rlnc`, called through benches/rivals/rlnc_shim.rs.

use crate::ours::{Packets, source};
use crate::{Group, making};
use criterion::{BatchSize, Bencher};
use libloading::Library;
use ncmesh_code::Shape;
use std::ffi::c_void;

type Handle = *mut c_void;

pub struct Rlnc {
    version: &'static str,
    library: Library,
}

/// Data that a receiver of `rlnc` decoded. Dropped outside the timed part.
struct Decoded<'a>(&'a Rlnc, Handle);

impl Drop for Decoded<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is from `receiver_decode`.
        unsafe { self.0.function::<unsafe extern "C" fn(Handle)>("data_free")(self.1) }
    }
}

impl Rlnc {
    /// Loads the library of this version from the folder `NCMESH_RIVALS`, if it exists.
    pub fn load(version: &'static str) -> Option<Self> {
        let folder = std::env::var_os("NCMESH_RIVALS")?;
        let name = format!("librlnc_{}.so", version.replace('.', "_"));
        // SAFETY: the library has no initialisers.
        let library = unsafe { Library::new(std::path::Path::new(&folder).join(name)) };
        library.ok().map(|library| Self { version, library })
    }

    /// # Safety
    /// `F` must be the type of the shim's function of that name.
    unsafe fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller passes the right type.
        unsafe { *self.library.get::<F>(name.as_bytes()).unwrap() }
    }

    pub fn bench(&self, group: &mut Group<'_>, shape: Shape) {
        let rival = format!("rlnc {}", self.version);
        making(group, shape.symbol_size());
        group.bench_function(format!("encode-1/{rival}"), |b| self.encode(b, shape));
        group.bench_function(format!("recode-1/{rival}"), |b| self.recode(b, shape));
        making(group, shape.capacity());
        group.bench_function(format!("decode-dense/{rival}"), |b| {
            self.decode(b, &Packets::dense(shape));
        });
        group.bench_function(format!("decode-systematic/{rival}"), |b| {
            self.decode(b, &Packets::with_losses(shape));
        });
    }

    fn encode(&self, b: &mut Bencher<'_>, shape: Shape) {
        let (_, data) = source(shape);
        let mut packet = vec![0u8; shape.generation_size() + shape.symbol_size()];
        // SAFETY: these are functions of the shim, called with valid slices.
        unsafe {
            let new: unsafe extern "C" fn(*const u8, usize, usize) -> Handle =
                self.function("sender_new");
            let code: unsafe extern "C" fn(Handle, *mut u8, usize) = self.function("sender_code");
            let free: unsafe extern "C" fn(Handle) = self.function("sender_free");
            let sender = new(data.as_ptr(), data.len() - 1, shape.generation_size());
            b.iter(|| code(sender, packet.as_mut_ptr(), packet.len()));
            free(sender);
        }
    }

    fn recode(&self, b: &mut Bencher<'_>, shape: Shape) {
        let packets = Packets::dense(shape).joined();
        let mut packet = vec![0u8; shape.generation_size() + shape.symbol_size()];
        // SAFETY: these are functions of the shim, called with valid slices.
        unsafe {
            let new: unsafe extern "C" fn(*const u8, usize, usize, usize) -> Handle =
                self.function("relay_new");
            let recode: unsafe extern "C" fn(Handle, *mut u8, usize) =
                self.function("relay_recode");
            let free: unsafe extern "C" fn(Handle) = self.function("relay_free");
            let relay = new(packets.as_ptr(), packets.len(), packet.len(), shape.generation_size());
            b.iter(|| recode(relay, packet.as_mut_ptr(), packet.len()));
            free(relay);
        }
    }

    fn decode(&self, b: &mut Bencher<'_>, packets: &Packets) {
        let k = packets.shape.generation_size();
        let size = packets.shape.symbol_size();
        let joined = packets.joined();
        let data = &packets.data[..k * size - 1];
        // SAFETY: these are functions of the shim, called with valid slices. Decoding consumes the
        // receiver.
        unsafe {
            let new: extern "C" fn(usize, usize) -> Handle = self.function("receiver_new");
            let decode: unsafe extern "C" fn(Handle, *const u8, usize, usize) -> Handle =
                self.function("receiver_decode");
            let compare: unsafe extern "C" fn(Handle, *const u8, usize) -> bool =
                self.function("data_compare");
            let run =
                |receiver| Decoded(self, decode(receiver, joined.as_ptr(), joined.len(), k + size));
            assert!(
                compare(run(new(size, k)).1, data.as_ptr(), data.len()),
                "the rival decodes our packets"
            );
            b.iter_batched(|| new(size, k), run, BatchSize::PerIteration);
        }
    }
}
