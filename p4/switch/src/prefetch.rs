//! What will soon be needed, on its way into the processor's cache.
//!
//! A network of hundreds of switches does not fit into the caches next to the processor, and nearly
//! every packet is at another switch than the one before. While one packet is worked on, the state
//! that the next one is sure to need comes nearer, all of it at once.

/// Lets the line of the cache that `value` starts in come nearer. Changes nothing but how long it
/// takes to read it, and where the processor is no x86, not even that.
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
