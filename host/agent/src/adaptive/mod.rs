//! How many subflows each path of a connection should have: the decisions,
//! without I/O. Samples and the time go in, subflows to open and close come out.
//!
//! # From the paper
//!
//! Li et al., "Adaptive subflow allocation for multipath data transmission in
//! mobile edge networks", J. Systems Architecture 2021: where packets are lost at
//! random, several *uncoupled* AIMD subflows over one path are faster than one;
//! beyond some number the *throughput gain* of one more is marginal, while each
//! costs resources. So a path manager of mode "adaptive" measures network
//! conditions periodically and sets the number of subflows of every path by the
//! gain to be expected. Only the abstract and the sections' beginnings were at
//! hand; the formulas are not theirs.
//!
//! # Ours
//!
//! - The law and the gain: [`model`].
//! - *Is it loss?* A full queue loses packets too, and AIMD obeys the law there
//!   as well: the loss follows from the rate. What tells them apart is the queue.
//!   A path is loss-limited when packets are lost, the RTT stays within
//!   [`QUEUE_NONE`] of the lowest one, subflows are busy ([`BUSY`]), and the law
//!   explains the rate (it is at least [`EXPLAINED`] of what the law allows).
//!   Otherwise application, receiver or capacity limit, and one more brings
//!   nothing.
//! - *Capacity*: the throughput that was measured while a queue stood
//!   ([`QUEUE_STANDS`]); unknown until then.
//! - *The model proposes, the measurement decides.* One subflow more is a trial.
//!   When slow start is over, the throughput of a window is compared with the one
//!   before; a gain below the threshold closes the subflow again. One subflow less
//!   is a trial as well, made where the path is not loss-limited: if the gain that
//!   is given up was at or above the threshold, it is opened again. A random loss
//!   makes throughput random too: a trial goes on for up to `TRIAL_WINDOWS_MAX`
//!   windows while its outcome is within the error that so few losses leave.
//! - *No flapping*: whatever a trial's outcome, the opposite of it, and a failed
//!   trial itself, may be tried again only after a pause, which doubles each time
//!   up to `PAUSE_WINDOWS_MAX` windows. A changed loss (by [`CHANGED`]) ends pauses.
//!
//! # Limits
//!
//! Opening is the part of the end that has opened the connection, and it sees the
//! loss of what it sends: a client that only receives keeps one subflow per path.
//! Coupled congestion control (LIA, OLIA, BALIA) is made to give all subflows of a
//! connection one share of a bottleneck; the law above is that of uncoupled ones.

mod connection;
pub mod measure;
pub mod model;
mod path;

pub use connection::{Action, Connection};
pub use measure::Sample;

/// Subflows of a connection at most: the schedulers of the kernel module use no
/// more, and it is the kernel's own limit of its path manager.
pub const SUBFLOWS_MAX: usize = crate::weft::spec::PATHS_MAX;

/// A window ends after so many intervals and not before so many RTTs.
const WINDOW_INTERVALS: u64 = 10;
const WINDOW_RTTS: u64 = 50;
/// After a change, so long passes before a window begins: slow start of a new
/// subflow, its overshoot and the recovery from it.
const SETTLE_INTERVALS: u64 = 4;
const SETTLE_RTTS: u64 = 20;
/// A subflow that is not there after this long is asked for again.
const OPEN_TIMEOUT_NS: u64 = 4_000_000_000;
/// A throughput is known after so many losses or so many windows; it is that of
/// so many windows at most.
const LOSSES_KNOWN: u64 = 6;
const RATE_WINDOWS_KNOWN: u32 = 3;
const RATE_WINDOWS_MAX: u32 = 8;
/// How much the throughput between two losses varies, relative to its mean.
const SPREAD: f64 = 0.8;
/// A trial lasts so many windows at most.
const TRIAL_WINDOWS_MAX: u32 = 4;
/// Pauses between trials, in windows: the first and the longest.
const PAUSE_WINDOWS: u64 = 4;
const PAUSE_WINDOWS_MAX: u64 = 64;
/// Mean queueing delay, in lowest RTTs, up to which loss is not the queue's.
pub const QUEUE_NONE: f64 = 0.2;
/// From here on the queue stands, and the path is full.
pub const QUEUE_STANDS: f64 = 0.3;
/// Share of time with data in flight from which on the application keeps up.
pub const BUSY: f64 = 0.7;
/// Share of what the law allows from which on the law explains the rate.
pub const EXPLAINED: f64 = 0.5;
/// Factor by which loss differs from that of the last trial when conditions
/// are new.
pub const CHANGED: f64 = 4.0;
/// Below this share, loss is none when conditions are compared.
const LOSS_FLOOR: f64 = 1e-4;

/// How the number of subflows of a path is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// Always so many.
    Fixed(usize),
    /// By measurement.
    Adaptive(Parameters),
}

/// Parameters of [`Policy::Adaptive`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Between two looks at the kernel's counters.
    pub interval_ns: u64,
    /// Subflows of a path at most.
    pub max: usize,
    /// Throughput gain that one more subflow has to bring: 0.1 is a tenth more.
    pub gain: f64,
}

impl Default for Parameters {
    /// A look each 100 ms, at most 4 subflows per path, 10 % of gain.
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
