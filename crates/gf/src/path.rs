use crate::field::Field;
use crate::paths::{self, Entries};
use std::fmt;

/// A way to compute, named after the instructions that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Path {
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
    /// Machine words; runs anywhere.
    Portable,
}

/// The three entry points of a path's module, smallest field first.
macro_rules! of_module {
    ($module:ident) => {
        [&paths::$module::GF2, &paths::$module::GF16, &paths::$module::GF256]
    };
}

impl Path {
    /// Every path compiled for this architecture, fastest first.
    pub const ALL: &'static [Self] = &[
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

    /// Whether this processor has the path's instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
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

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx512 => "gfni-avx512",
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx2 => "gfni-avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => "ssse3",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            Self::Portable => "portable",
        })
    }
}
