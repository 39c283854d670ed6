//! The code paths and their detection at run time.
//!
//! [`Path::ALL`] lists the paths of this architecture, fastest first. A binary contains all of
//! them; the processor it runs on decides which one is used.

use crate::field::Field;
use crate::paths::{self, Entries};

/// A code path, named after the instructions that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// GFNI on 64-byte registers (`gfni`, `avx512f`, `avx512bw`).
    #[cfg(target_arch = "x86_64")]
    GfniAvx512,
    /// GFNI on 32-byte registers (`gfni`, `avx2`).
    #[cfg(target_arch = "x86_64")]
    GfniAvx2,
    /// Byte shuffles on 32-byte registers (`avx2`).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Byte shuffles on 16-byte registers (`ssse3`).
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    /// Table look-ups on 16-byte registers (`neon`).
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Machine words. Runs on any processor.
    Portable,
}

/// Expands to the entry points of a path's module for the three fields, smallest field first.
macro_rules! of_module {
    ($module:ident) => {
        [&paths::$module::GF2, &paths::$module::GF16, &paths::$module::GF256]
    };
}

impl Path {
    /// Every path compiled for this architecture, fastest first.
    pub(crate) const ALL: &'static [Self] = &[
        #[cfg(target_arch = "x86_64")]
        Self::GfniAvx512,
        #[cfg(target_arch = "x86_64")]
        Self::GfniAvx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Ssse3,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        Self::Portable,
    ];

    /// Returns whether this processor has the path's instructions.
    pub(crate) fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx512 => {
                is_x86_feature_detected!("gfni")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx2 => is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            Self::Portable => true,
        }
    }

    /// Returns the entry points of this path for `field`.
    pub(crate) fn entries(self, field: Field) -> &'static Entries {
        let of_all: [&'static Entries; 3] = match self {
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx512 => of_module!(gfni_avx512),
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx2 => of_module!(gfni_avx2),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => of_module!(avx2),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => of_module!(ssse3),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => of_module!(neon),
            Self::Portable => of_module!(word),
        };

        of_all[field as usize]
    }
}
