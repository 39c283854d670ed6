//! C library of the coder: encoder, recoder and decoder of a generation.
//!
//! `include/ncmesh.h` is generated from this file by cbindgen; a test compares them.
//!
//! # The boundary
//! A caller in C holds opaque handles and passes pointers with lengths. Each function checks them
//! before anything else: a null handle, a null pointer with a length above 0, or a length that the
//! generation does not have is an error code, and nothing is written then. What a pointer leads to
//! cannot be checked; the safety section of each function says what the caller must see to. No
//! panic crosses the boundary: it is caught and becomes `NCMESH_STATUS_PANIC`, and the handle must
//! then only be freed. `unsafe` is needed to follow pointers and to free handles, and is used for
//! nothing else.
//!
//! A handle may be used by one thread at a time.

use ncmesh_code::{Absorbed, CodeError, Decoder, Encoder, Field, Recoder, Shape, draw};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// Result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcmeshStatus {
    /// Done.
    Ok = 0,
    /// A handle or pointer is null.
    Null = 1,
    /// A length is not the one that the generation needs.
    Length = 2,
    /// The field is none of `NcmeshField`, or a generation or symbol size is out of range.
    Shape = 3,
    /// A coefficient is not an element of the field.
    Coefficient = 4,
    /// There is nothing yet: no packet to recode, or a symbol that is not determined.
    NotReady = 5,
    /// A defect of the library. Free the handle.
    Panic = 6,
}

/// Field of coefficients and payloads.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcmeshField {
    /// GF(2): coefficients are 0 or 1.
    Gf2 = 1,
    /// GF(2^4): coefficients are 0 to 15.
    Gf16 = 4,
    /// GF(2^8): coefficients are 0 to 255.
    Gf256 = 8,
}

/// Source of a generation.
pub struct NcmeshEncoder {
    encoder: Encoder,
    rng: ChaCha8Rng,
}

/// Relay of a generation.
pub struct NcmeshRecoder {
    recoder: Recoder,
    rng: ChaCha8Rng,
}

/// Receiver of a generation.
pub struct NcmeshDecoder(Decoder);

impl From<CodeError> for NcmeshStatus {
    fn from(e: CodeError) -> Self {
        match e {
            CodeError::Generation(_) | CodeError::SymbolSize(_) => Self::Shape,
            CodeError::Coefficient { .. } => Self::Coefficient,
            CodeError::Length { .. } | CodeError::TooMuchData { .. } => Self::Length,
            // Errors of packing, densities and rows, none of which is part of this library.
            CodeError::Padding | CodeError::Density | CodeError::Layout(_) => Self::Panic,
        }
    }
}

/// Runs what a function does, and returns its status; that of a panic, if it panics.
fn call(run: impl FnOnce() -> Result<(), NcmeshStatus>) -> NcmeshStatus {
    // After a panic the handle may be in a state that was never meant to be. It is memory-safe all
    // the same, since the coder has no unsafe code, and the caller is told only to free it.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => NcmeshStatus::Ok,
        Ok(Err(status)) => status,
        Err(_) => NcmeshStatus::Panic,
    }
}

/// Returns the shape of a generation.
fn shape(field: u8, generation_size: usize, symbol_size: usize) -> Result<Shape, NcmeshStatus> {
    // C may pass any number for an enum, so the field arrives as a number.
    let field = match field {
        1 => Field::Gf2,
        4 => Field::Gf16,
        8 => Field::Gf256,
        _ => return Err(NcmeshStatus::Shape),
    };

    Ok(Shape::new(field, generation_size, symbol_size)?)
}

/// Returns the bytes that a caller points to.
///
/// # Safety
/// Unless it is null, `bytes` must be readable for `length` bytes, which nobody changes meanwhile.
unsafe fn input<'a>(bytes: *const u8, length: usize) -> Result<&'a [u8], NcmeshStatus> {
    match (bytes.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(NcmeshStatus::Null),
        // No object is longer than this, so a larger length is a mistake.
        (false, _) if isize::try_from(length).is_err() => Err(NcmeshStatus::Length),
        // SAFETY: not null, of a length that an object can have; the rest is the caller's promise.
        (false, _) => Ok(unsafe { slice::from_raw_parts(bytes, length) }),
    }
}

/// Returns the room that a caller points to.
///
/// # Safety
/// Unless it is null, `bytes` must be writable for `length` initialized bytes, which nobody else
/// uses meanwhile.
unsafe fn output<'a>(bytes: *mut u8, length: usize) -> Result<&'a mut [u8], NcmeshStatus> {
    match (bytes.is_null(), length) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(NcmeshStatus::Null),
        (false, _) if isize::try_from(length).is_err() => Err(NcmeshStatus::Length),
        // SAFETY: as in `input`.
        (false, _) => Ok(unsafe { slice::from_raw_parts_mut(bytes, length) }),
    }
}

/// Returns the coefficients and the payload of a packet that a caller points to.
///
/// # Safety
/// As for [`input`], of both.
unsafe fn packet<'a>(
    coefficients: *const u8,
    coefficients_length: usize,
    payload: *const u8,
    payload_length: usize,
) -> Result<(&'a [u8], &'a [u8]), NcmeshStatus> {
    // SAFETY: the caller's promise.
    unsafe { Ok((input(coefficients, coefficients_length)?, input(payload, payload_length)?)) }
}

/// Returns the room for a packet that a caller points to: coefficients and payload.
///
/// # Safety
/// As for [`output`], of both.
unsafe fn room<'a>(
    coefficients: *mut u8,
    coefficients_length: usize,
    payload: *mut u8,
    payload_length: usize,
) -> Result<(&'a mut [u8], &'a mut [u8]), NcmeshStatus> {
    // SAFETY: the caller's promise.
    unsafe { Ok((output(coefficients, coefficients_length)?, output(payload, payload_length)?)) }
}

/// Returns what a handle leads to.
///
/// # Safety
/// Unless it is null, `handle` must be one that the library made and that was not freed, and no
/// other thread uses it meanwhile.
unsafe fn open<'a, T>(handle: *mut T) -> Result<&'a mut T, NcmeshStatus> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_mut() }.ok_or(NcmeshStatus::Null)
}

/// Gives a new handle to the caller.
///
/// # Safety
/// Unless it is null, `handle` must be writable.
unsafe fn give<T>(
    handle: *mut *mut T,
    make: impl FnOnce() -> Result<T, NcmeshStatus>,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { open(handle) }?;
        *handle = std::ptr::null_mut();
        *handle = Box::into_raw(Box::new(make()?));
        Ok(())
    })
}

/// Frees a handle; null is allowed.
///
/// # Safety
/// `handle` must be null, or one that the library made and that was not freed.
unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: it came from `Box::into_raw` in `give`.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Makes an encoder in `*encoder`, whose symbols are all zero. `field` is 1, 4 or 8
/// (`NcmeshField`), `generation_size` 1 to 255 symbols, `symbol_size` 1 to 65,535 bytes. The seed
/// decides which coefficients are drawn; two sources of one generation need different ones. On an
/// error `*encoder` is null.
///
/// # Safety
/// `encoder` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_encoder_new(
    field: u8,
    generation_size: usize,
    symbol_size: usize,
    seed: u64,
    encoder: *mut *mut NcmeshEncoder,
) -> NcmeshStatus {
    // SAFETY: the caller's promise.
    unsafe {
        give(encoder, || {
            let encoder = Encoder::new(shape(field, generation_size, symbol_size)?);
            Ok(NcmeshEncoder { encoder, rng: ChaCha8Rng::seed_from_u64(seed) })
        })
    }
}

/// Frees an encoder; null is allowed.
///
/// # Safety
/// `encoder` must be null, or come from `ncmesh_encoder_new` and not be freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_encoder_free(encoder: *mut NcmeshEncoder) {
    // SAFETY: the caller's promise.
    unsafe { free(encoder) }
}

/// Loads the source data of a generation, at most `generation_size * symbol_size` bytes; the rest
/// is zero.
///
/// # Safety
/// `encoder` must be a live handle, `data` readable for `length` bytes; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_encoder_load(
    encoder: *mut NcmeshEncoder,
    data: *const u8,
    length: usize,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let (encoder, data) = unsafe { (open(encoder)?, input(data, length)?) };
        Ok(encoder.encoder.load(data)?)
    })
}

/// Writes the payload of the packet with the given `generation_size` coefficients.
///
/// # Safety
/// `encoder` must be a live handle; `coefficients` readable and `payload` writable for their
/// lengths; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_encoder_encode(
    encoder: *mut NcmeshEncoder,
    coefficients: *const u8,
    coefficients_length: usize,
    payload: *mut u8,
    payload_length: usize,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let encoder = unsafe { open(encoder) }?;

        // SAFETY: the caller's promise.
        let coefficients = unsafe { input(coefficients, coefficients_length) }?;

        // SAFETY: the caller's promise.
        let payload = unsafe { output(payload, payload_length) }?;

        Ok(encoder.encoder.encode(coefficients, payload)?)
    })
}

/// Draws random coefficients, and writes them and the payload of their packet.
///
/// # Safety
/// `encoder` must be a live handle; `coefficients` and `payload` writable for their lengths; or
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_encoder_draw(
    encoder: *mut NcmeshEncoder,
    coefficients: *mut u8,
    coefficients_length: usize,
    payload: *mut u8,
    payload_length: usize,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let NcmeshEncoder { encoder, rng } = unsafe { open(encoder) }?;
        let (coefficients, payload) =
            // SAFETY: the caller's promise.
            unsafe { room(coefficients, coefficients_length, payload, payload_length) }?;
        let shape = encoder.shape();

        // Checked here, so that a wrong length leaves the coefficients as they were.
        if (coefficients.len(), payload.len()) != (shape.generation_size(), shape.symbol_size()) {
            return Err(NcmeshStatus::Length);
        }

        draw(shape.field(), rng, coefficients);
        Ok(encoder.encode(coefficients, payload)?)
    })
}

/// Makes a recoder without packets in `*recoder`; otherwise as `ncmesh_encoder_new`.
///
/// # Safety
/// `recoder` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_recoder_new(
    field: u8,
    generation_size: usize,
    symbol_size: usize,
    seed: u64,
    recoder: *mut *mut NcmeshRecoder,
) -> NcmeshStatus {
    // SAFETY: the caller's promise.
    unsafe {
        give(recoder, || {
            let recoder = Recoder::new(shape(field, generation_size, symbol_size)?);
            Ok(NcmeshRecoder { recoder, rng: ChaCha8Rng::seed_from_u64(seed) })
        })
    }
}

/// Frees a recoder; null is allowed.
///
/// # Safety
/// `recoder` must be null, or come from `ncmesh_recoder_new` and not be freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_recoder_free(recoder: *mut NcmeshRecoder) {
    // SAFETY: the caller's promise.
    unsafe { free(recoder) }
}

/// Takes a packet. `*innovative` says whether it brought something new; `innovative` may be null.
///
/// # Safety
/// `recoder` must be a live handle; `coefficients` and `payload` readable for their lengths;
/// `innovative` writable; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_recoder_absorb(
    recoder: *mut NcmeshRecoder,
    coefficients: *const u8,
    coefficients_length: usize,
    payload: *const u8,
    payload_length: usize,
    innovative: *mut bool,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let recoder = unsafe { open(recoder) }?;
        let (coefficients, payload) =
            // SAFETY: the caller's promise.
            unsafe { packet(coefficients, coefficients_length, payload, payload_length) }?;

        let absorbed = recoder.recoder.absorb(coefficients, payload)?;

        // SAFETY: the caller's promise.
        unsafe { tell(innovative, absorbed == Absorbed::Innovative) };
        Ok(())
    })
}

/// Writes a random combination of the packets held. `NCMESH_STATUS_NOT_READY` without packets.
///
/// # Safety
/// `recoder` must be a live handle; `coefficients` and `payload` writable for their lengths; or
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_recoder_recode(
    recoder: *mut NcmeshRecoder,
    coefficients: *mut u8,
    coefficients_length: usize,
    payload: *mut u8,
    payload_length: usize,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let NcmeshRecoder { recoder, rng } = unsafe { open(recoder) }?;
        let (coefficients, payload) =
            // SAFETY: the caller's promise.
            unsafe { room(coefficients, coefficients_length, payload, payload_length) }?;

        let written = recoder.recode(rng, coefficients, payload)?;
        if written { Ok(()) } else { Err(NcmeshStatus::NotReady) }
    })
}

/// Returns the number of linearly independent packets held; 0 for null.
///
/// # Safety
/// `recoder` must be null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_recoder_rank(recoder: *mut NcmeshRecoder) -> usize {
    // SAFETY: the caller's promise.
    unsafe { open(recoder) }.map_or(0, |recoder| recoder.recoder.rank())
}

/// Makes a decoder without packets in `*decoder`; otherwise as `ncmesh_encoder_new`.
///
/// # Safety
/// `decoder` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_decoder_new(
    field: u8,
    generation_size: usize,
    symbol_size: usize,
    decoder: *mut *mut NcmeshDecoder,
) -> NcmeshStatus {
    // SAFETY: the caller's promise.
    unsafe {
        give(decoder, || {
            Ok(NcmeshDecoder(Decoder::new(shape(field, generation_size, symbol_size)?)))
        })
    }
}

/// Frees a decoder; null is allowed.
///
/// # Safety
/// `decoder` must be null, or come from `ncmesh_decoder_new` and not be freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_decoder_free(decoder: *mut NcmeshDecoder) {
    // SAFETY: the caller's promise.
    unsafe { free(decoder) }
}

/// Takes a packet. `*innovative` says whether it brought something new; `innovative` may be null.
///
/// # Safety
/// As for `ncmesh_recoder_absorb`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_decoder_absorb(
    decoder: *mut NcmeshDecoder,
    coefficients: *const u8,
    coefficients_length: usize,
    payload: *const u8,
    payload_length: usize,
    innovative: *mut bool,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let decoder = unsafe { open(decoder) }?;
        let (coefficients, payload) =
            // SAFETY: the caller's promise.
            unsafe { packet(coefficients, coefficients_length, payload, payload_length) }?;

        let absorbed = decoder.0.absorb(coefficients, payload)?;

        // SAFETY: the caller's promise.
        unsafe { tell(innovative, absorbed == Absorbed::Innovative) };
        Ok(())
    })
}

/// Returns the number of linearly independent packets held; 0 for null.
///
/// # Safety
/// `decoder` must be null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_decoder_rank(decoder: *mut NcmeshDecoder) -> usize {
    // SAFETY: the caller's promise.
    unsafe { open(decoder) }.map_or(0, |decoder| decoder.0.rank())
}

/// Copies source symbol `index`, `symbol_size` bytes, as soon as the packets determine it.
/// `NCMESH_STATUS_NOT_READY` until then, and past the end.
///
/// # Safety
/// `decoder` must be a live handle, `symbol` writable for `length` bytes; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_decoder_symbol(
    decoder: *mut NcmeshDecoder,
    index: usize,
    symbol: *mut u8,
    length: usize,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let (decoder, symbol) = unsafe { (open(decoder)?, output(symbol, length)?) };
        if index >= decoder.0.shape().generation_size() {
            return Err(NcmeshStatus::NotReady);
        }
        copy(decoder.0.symbol(index), symbol)
    })
}

/// Copies the source data, `generation_size * symbol_size` bytes. `NCMESH_STATUS_NOT_READY` before
/// full rank.
///
/// # Safety
/// `decoder` must be a live handle, `data` writable for `length` bytes; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncmesh_decoder_decode(
    decoder: *mut NcmeshDecoder,
    data: *mut u8,
    length: usize,
) -> NcmeshStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let (decoder, data) = unsafe { (open(decoder)?, output(data, length)?) };
        copy(decoder.0.decode(), data)
    })
}

/// Returns the library's version, such as "0.1.0". The text lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn ncmesh_version() -> *const std::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Writes a truth value, if the caller wants it.
///
/// # Safety
/// `to` must be null or writable.
unsafe fn tell(to: *mut bool, value: bool) {
    if !to.is_null() {
        // SAFETY: the caller's promise. C may not have initialized it, so it is written, not read.
        unsafe { to.write(value) };
    }
}

/// Copies what is there to a caller's room of the same length.
fn copy(from: Option<&[u8]>, to: &mut [u8]) -> Result<(), NcmeshStatus> {
    let from = from.ok_or(NcmeshStatus::NotReady)?;
    if from.len() != to.len() {
        return Err(NcmeshStatus::Length);
    }
    to.copy_from_slice(from);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(call(|| panic!("caught")), NcmeshStatus::Panic);
        assert_eq!(call(|| Ok(())), NcmeshStatus::Ok);
    }

    #[test]
    fn a_pointer_with_a_length_must_not_be_null() {
        // SAFETY: null pointers are not followed.
        unsafe {
            assert_eq!(input(std::ptr::null(), 3), Err(NcmeshStatus::Null));
            assert_eq!(input(std::ptr::null(), 0), Ok(&[][..]));
            assert_eq!(output(std::ptr::null_mut(), 1), Err(NcmeshStatus::Null));
            assert_eq!(input(std::ptr::dangling(), usize::MAX), Err(NcmeshStatus::Length));
        }
    }
}
