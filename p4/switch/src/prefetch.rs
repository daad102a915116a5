// SPDX-License-Identifier: Apache-2.0

//! Prefetching: loads into the processor's cache what will soon be needed.
//!
//! A network of hundreds of switches does not fit into the caches next to the processor, and nearly
//! every packet is at another switch than the one before. So while it works on one packet, the
//! processor already loads the state that the next one is sure to need.

/// Prefetches the cache line that `value` starts in. This changes only how long a later read takes.
/// On processors other than x86 it does nothing.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE, which x86-64 always has. It reads nothing that can be observed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
