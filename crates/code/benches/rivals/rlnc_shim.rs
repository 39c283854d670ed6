//! The crate `rlnc` behind C functions, so that a benchmark can load several versions at once.
//! The functions only pass slices on.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)]

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rlnc::full::{Decoder, Encoder, Recoder};
use std::slice::{from_raw_parts, from_raw_parts_mut};

pub struct Sender {
    encoder: Encoder,
    rng: SmallRng,
}

pub struct Relay {
    recoder: Recoder,
    rng: SmallRng,
}

/// Creates an encoder of `k` pieces of `length / k` bytes, rounded up to whole pieces after the one
/// marker byte that `rlnc` appends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sender_new(data: *const u8, length: usize, k: usize) -> *mut Sender {
    let data = unsafe { from_raw_parts(data, length) }.to_vec();
    let encoder = Encoder::new(data, k).expect("valid shape");
    Box::into_raw(Box::new(Sender { encoder, rng: SmallRng::seed_from_u64(1) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sender_code(sender: *mut Sender, out: *mut u8, length: usize) {
    let (sender, out) = unsafe { (&mut *sender, from_raw_parts_mut(out, length)) };
    sender.encoder.code_with_buf(&mut sender.rng, out).expect("valid length");
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sender_free(sender: *mut Sender) {
    drop(unsafe { Box::from_raw(sender) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn relay_new(
    packets: *const u8,
    length: usize,
    packet: usize,
    k: usize,
) -> *mut Relay {
    let packets = unsafe { from_raw_parts(packets, length) }.to_vec();
    let recoder = Recoder::new(packets, packet, k).expect("valid shape");
    Box::into_raw(Box::new(Relay { recoder, rng: SmallRng::seed_from_u64(1) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn relay_recode(relay: *mut Relay, out: *mut u8, length: usize) {
    let (relay, out) = unsafe { (&mut *relay, from_raw_parts_mut(out, length)) };
    relay.recoder.recode_with_buf(&mut relay.rng, out).expect("valid length");
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn relay_free(relay: *mut Relay) {
    drop(unsafe { Box::from_raw(relay) });
}

#[unsafe(no_mangle)]
pub extern "C" fn receiver_new(size: usize, k: usize) -> *mut Decoder {
    Box::into_raw(Box::new(Decoder::new(size, k).expect("valid shape")))
}

/// Feeds packets until the generation is complete, and returns the data, or null if the packets do
/// not complete it. Consumes the receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn receiver_decode(
    receiver: *mut Decoder,
    packets: *const u8,
    length: usize,
    packet: usize,
) -> *mut Vec<u8> {
    let (mut decoder, packets) =
        unsafe { (Box::from_raw(receiver), from_raw_parts(packets, length)) };
    for packet in packets.chunks_exact(packet) {
        if decoder.is_already_decoded() {
            break;
        }
        let _useful = decoder.decode(packet).is_ok();
    }
    match decoder.get_decoded_data() {
        Ok(data) => Box::into_raw(Box::new(data)),
        Err(_) => std::ptr::null_mut(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn data_compare(
    data: *const Vec<u8>,
    expected: *const u8,
    length: usize,
) -> bool {
    let expected = unsafe { from_raw_parts(expected, length) };
    unsafe { data.as_ref() }.is_some_and(|data| data == expected)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn data_free(data: *mut Vec<u8>) {
    drop(unsafe { Box::from_raw(data) });
}
