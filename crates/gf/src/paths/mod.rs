//! One module per code path, and the table of entry points that each module defines.
//!
//! A path module implements [`Vector`](crate::vector::Vector) for its register and
//! [`Multiply`](crate::vector::Multiply) for each field. The macro `entries!` then compiles the
//! generic loops with the path's target features. Everything below an entry point is
//! `inline(always)`, since a function without the target features cannot inline intrinsics.

use crate::elimination::Step;
use crate::skeleton::Job;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gfni_avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gfni_avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shuffle;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ssse3;
pub(crate) mod word;
#[cfg(target_arch = "x86_64")]
mod ymm;

/// The entry points of one path for one field.
///
/// Each is `unsafe` because it needs the path's instructions and arguments with valid pointers
/// (see [`Job`] and [`Step`]).
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) product: unsafe fn(&Job<'_>),
    pub(crate) accumulate: unsafe fn(&Job<'_>),
    pub(crate) eliminate: unsafe fn(&Step) -> Option<usize>,
}

/// Defines `static $name: Entries` for the register `$v` and the multiplication `$m`, compiled with
/// the target features `$features`. Column blocks have `$widest` registers for several outputs and
/// `$longest` for one, and 64 bytes are `$per_line` registers.
macro_rules! entries {
    ($name:ident, $v:ty, $m:ty, $widest:literal, $longest:literal, $per_line:literal
     $(, $features:literal)?) => {
        pub(crate) static $name: $crate::paths::Entries = {
            $(#[target_feature(enable = $features)])?
            unsafe fn product(job: &$crate::skeleton::Job<'_>) {
                // SAFETY: the caller keeps the same contract.
                unsafe { $crate::skeleton::product::<$v, $m, $widest, $longest>(job) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn accumulate(job: &$crate::skeleton::Job<'_>) {
                // SAFETY: the caller keeps the same contract.
                unsafe { $crate::skeleton::accumulate::<$v, $m, $longest>(job) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn eliminate(step: &$crate::elimination::Step) -> Option<usize> {
                // SAFETY: the caller keeps the same contract.
                unsafe { $crate::elimination::eliminate::<$v, $m, $per_line>(step) }
            }
            $crate::paths::Entries { product, accumulate, eliminate }
        };
    };
}
pub(crate) use entries;
