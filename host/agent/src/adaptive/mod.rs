// SPDX-License-Identifier: Apache-2.0

//! Decides how many subflows each path of a connection should have. No I/O: samples and the
//! time go in, subflows to open and close come out.
//!
//! # From the paper
//!
//! Li et al., "Adaptive subflow allocation for multipath data transmission in mobile edge
//! networks", J. Systems Architecture 2021: with random loss, several *uncoupled* AIMD
//! subflows over one path are faster than one. Each further subflow costs resources, and its
//! *throughput gain* shrinks. So a path manager of mode "adaptive" measures network
//! conditions periodically, and sets the number of subflows of every path by the expected
//! gain. We had only the abstract and the beginnings of the sections, so the formulas here
//! are not those of the paper.
//!
//! # Ours
//!
//! - The throughput law and the gain: [`model`].
//! - *Is it random loss?* A full queue loses packets too, and AIMD obeys the law there as
//!   well, because its rate determines the loss. The queueing delay distinguishes the two. A
//!   path is loss-limited if packets are lost, the RTT stays within [`QUEUE_NONE`] of the
//!   lowest one, subflows are busy ([`BUSY`]), and the law explains the rate (which is at
//!   least [`EXPLAINED`] of what the law allows). Otherwise the application, the receiver or
//!   the capacity is the limit, and another subflow gains nothing.
//! - *Capacity*: the throughput measured while there was a standing queue
//!   ([`QUEUE_STANDS`]); unknown until then.
//! - *The model proposes, the measurement decides.* One more subflow is a trial. After slow
//!   start, the throughput of a window is compared with the window before. If the gain is
//!   below the threshold, the subflow is closed again. One subflow less is also a trial, made
//!   when the path isn't loss-limited. If the loss of throughput reaches the threshold, the
//!   subflow is opened again. Random loss makes throughput random too. So a trial goes on, for
//!   up to `TRIAL_WINDOWS_MAX` windows, while its outcome is within the error of so few losses.
//! - *No flapping*: after a trial there is a pause before its opposite, or a failed trial
//!   itself, is tried again. The pause doubles each time, up to `PAUSE_WINDOWS_MAX` windows. A
//!   changed loss (by [`CHANGED`]) ends pauses.
//!
//! # Limits
//!
//! Only the end that opened the connection opens subflows, and it sees only the loss of its
//! own packets. So a client that only receives keeps one subflow per path. Coupled congestion
//! control (LIA, OLIA, BALIA) gives all subflows of a connection one share of a bottleneck;
//! the law above applies to uncoupled subflows.

mod connection;
pub mod measure;
pub mod model;
mod path;

pub use connection::{Action, Connection};
pub use measure::Sample;

/// Maximum number of subflows of a connection: the limit of the module's schedulers and of the
/// kernel's own path manager.
pub const SUBFLOWS_MAX: usize = crate::weft::spec::PATHS_MAX;

/// Minimum length of a measurement window, in intervals and in RTTs.
const WINDOW_INTERVALS: u64 = 10;
const WINDOW_RTTS: u64 = 50;
/// Time to settle after a change, before a window begins: slow start of the new subflow, its
/// overshoot and the recovery.
const SETTLE_INTERVALS: u64 = 4;
const SETTLE_RTTS: u64 = 20;
/// A subflow that isn't established after this time is requested again.
const OPEN_TIMEOUT_NS: u64 = 4_000_000_000;
/// A throughput is known after this many losses or windows, and averaged over at most
/// `RATE_WINDOWS_MAX` windows.
const LOSSES_KNOWN: u64 = 6;
const RATE_WINDOWS_KNOWN: u32 = 3;
const RATE_WINDOWS_MAX: u32 = 8;
/// Relative variation of the throughput between two losses.
const SPREAD: f64 = 0.8;
/// Maximum number of windows in a trial.
const TRIAL_WINDOWS_MAX: u32 = 4;
/// Pause between trials, in windows: at first, and at most.
const PAUSE_WINDOWS: u64 = 4;
const PAUSE_WINDOWS_MAX: u64 = 64;
/// Queueing delay, relative to the lowest RTT, up to which the queue isn't the cause of loss.
pub const QUEUE_NONE: f64 = 0.2;
/// Queueing delay from which on there is a standing queue, so that the path is full.
pub const QUEUE_STANDS: f64 = 0.3;
/// Share of time with data in flight above which the application isn't the limit.
pub const BUSY: f64 = 0.7;
/// Share of what the law allows above which the law explains the rate.
pub const EXPLAINED: f64 = 0.5;
/// Factor between two loss rates that means that conditions have changed.
pub const CHANGED: f64 = 4.0;
/// When conditions are compared, less loss than this counts as none.
const LOSS_FLOOR: f64 = 1e-4;

/// How the number of subflows per path is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// A fixed number.
    Fixed(usize),
    /// By measurement.
    Adaptive(Parameters),
}

/// Parameters of [`Policy::Adaptive`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Interval between two reads of the kernel's counters.
    pub interval_ns: u64,
    /// Maximum number of subflows per path.
    pub max: usize,
    /// Throughput gain that one more subflow must bring: 0.1 is 10%.
    pub gain: f64,
}

impl Default for Parameters {
    /// An interval of 100 ms, at most 4 subflows per path, a gain of 10%.
    fn default() -> Self {
        Self {
            interval_ns: 100_000_000,
            max: 4,
            gain: 0.1,
        }
    }
}

#[cfg(test)]
mod tests;
