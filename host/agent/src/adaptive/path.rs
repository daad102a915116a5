// SPDX-License-Identifier: Apache-2.0

//! One path of a connection: how many subflows it should have.

use super::measure::{Sample, Summary, Window};
use super::{
    BUSY, CHANGED, EXPLAINED, LOSS_FLOOR, LOSSES_KNOWN, OPEN_TIMEOUT_NS, PAUSE_WINDOWS,
    PAUSE_WINDOWS_MAX, Parameters, QUEUE_NONE, QUEUE_STANDS, RATE_WINDOWS_KNOWN, RATE_WINDOWS_MAX,
    SETTLE_INTERVALS, SETTLE_RTTS, SPREAD, TRIAL_WINDOWS_MAX, WINDOW_INTERVALS, WINDOW_RTTS, model,
};

/// The state of one path.
#[derive(Debug, Clone)]
pub(super) struct Path {
    target: usize,
    phase: Phase,
    window: Window,
    rtt_ns: u64,
    capacity: Option<Capacity>,
    open: Pause,
    close: Pause,
    /// Loss at the last trial.
    reference: Option<f64>,
    /// Throughput with the current number of subflows.
    rate: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Waits for requested subflows.
    Opening {
        deadline_ns: u64,
        trial: Option<Trial>,
    },
    /// Waits until the effects of a change have settled.
    Settling { until_ns: u64, trial: Option<Trial> },
    /// Measures a window.
    Measuring { until_ns: u64, trial: Option<Trial> },
}

/// A change whose effect is being measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trial {
    kind: Kind,
    before: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    More,
    Less,
}

#[derive(Debug, Clone, Copy)]
struct Capacity {
    bps: f64,
    until_ns: u64,
}

/// When a trial may be repeated.
#[derive(Debug, Clone, Copy, Default)]
struct Pause {
    until_ns: u64,
    windows: u64,
}

impl Pause {
    /// Doubles the pause.
    fn extend(&mut self, now_ns: u64, window_ns: u64) {
        self.windows = (self.windows * 2).clamp(PAUSE_WINDOWS, PAUSE_WINDOWS_MAX);
        self.until_ns = now_ns.saturating_add(self.windows.saturating_mul(window_ns));
    }
}

/// Throughput over the windows since the last change.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rate {
    bits: f64,
    elapsed_ns: u64,
    lost_packets: u64,
    windows: u32,
}

impl Rate {
    fn add(&mut self, summary: &Summary) {
        if self.windows >= RATE_WINDOWS_MAX {
            // Older windows lose weight.
            self.bits /= 2.0;
            self.elapsed_ns /= 2;
            self.lost_packets /= 2;
            self.windows /= 2;
        }
        self.bits += summary.throughput_bps * summary.elapsed_ns as f64 / 1e9;
        self.elapsed_ns += summary.elapsed_ns;
        self.lost_packets += summary.lost_packets;
        self.windows += 1;
    }

    fn bps(&self) -> f64 {
        self.bits * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Relative standard error. Between two losses, AIMD's throughput varies by [`SPREAD`].
    /// Without loss, nothing is random.
    fn error(&self) -> f64 {
        match self.lost_packets {
            0 => 0.0,
            lost => SPREAD / (lost as f64).sqrt(),
        }
    }

    fn is_known(&self) -> bool {
        self.lost_packets >= LOSSES_KNOWN || self.windows >= RATE_WINDOWS_KNOWN
    }
}

impl Path {
    /// A path whose first subflow is just being opened.
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            target: 1,
            phase: Phase::Opening {
                deadline_ns: now_ns.saturating_add(OPEN_TIMEOUT_NS),
                trial: None,
            },
            window: Window::default(),
            rtt_ns: 0,
            capacity: None,
            open: Pause::default(),
            close: Pause::default(),
            reference: None,
            rate: Rate::default(),
        }
    }

    /// The wanted number of subflows.
    pub(super) fn target(&self) -> usize {
        self.target
    }

    /// Processes samples of its established subflows. `may_grow` says whether the connection has
    /// room for one more subflow.
    pub(super) fn observe(
        &mut self,
        now_ns: u64,
        samples: &[&Sample],
        may_grow: bool,
        parameters: &Parameters,
    ) {
        self.window.add(samples.iter().copied());
        self.rtt_ns = samples
            .iter()
            .map(|sample| sample.rtt_ns)
            .max()
            .unwrap_or(0);
        match self.phase {
            Phase::Opening { trial, deadline_ns } => {
                if samples.len() >= self.target {
                    self.settle(now_ns, trial, parameters);
                } else if now_ns >= deadline_ns {
                    self.open_timed_out(now_ns, parameters);
                }
            }
            // A subflow was lost meanwhile, so measurements aren't comparable.
            _ if samples.len() < self.target => self.reopen(now_ns),
            Phase::Settling { until_ns, trial } if now_ns >= until_ns => {
                self.window.restart(now_ns);
                self.phase = Phase::Measuring {
                    until_ns: now_ns.saturating_add(self.window_ns(parameters)),
                    trial,
                };
            }
            Phase::Measuring { until_ns, trial } if now_ns >= until_ns => {
                let summary = self.window.finish(now_ns);
                self.rate.add(&summary);
                self.phase = Phase::Measuring {
                    until_ns: now_ns.saturating_add(self.window_ns(parameters)),
                    trial: None,
                };
                // The window of a successful trial is the first with the new number of subflows.
                if trial.is_none_or(|trial| self.trial_succeeded(now_ns, trial, parameters)) {
                    self.decide(now_ns, &summary, may_grow, parameters);
                }
            }
            _ => {}
        }
    }

    /// After a steady window: decides whether to try one subflow more or less.
    fn decide(&mut self, now_ns: u64, summary: &Summary, may_grow: bool, parameters: &Parameters) {
        let window_ns = self.window_ns(parameters);
        let full = summary.queueing >= QUEUE_STANDS && summary.busy >= BUSY;
        if full {
            self.capacity = Some(Capacity {
                bps: summary.throughput_bps,
                until_ns: now_ns.saturating_add(PAUSE_WINDOWS_MAX.saturating_mul(window_ns)),
            });
        }
        self.capacity = self.capacity.filter(|known| now_ns < known.until_ns);
        if self
            .reference
            .is_some_and(|reference| differs(reference, summary.loss))
        {
            self.open = Pause::default();
            self.close = Pause::default();
            self.reference = None;
        }

        let loss_limited = self.loss_limited(summary);
        let gain = model::gain(
            self.target,
            self.rate.bps(),
            self.capacity.map(|known| known.bps),
        );
        if loss_limited
            && may_grow
            && self.target < parameters.max
            && gain >= parameters.gain
            && self.rate.is_known()
            && now_ns >= self.open.until_ns
        {
            self.target += 1;
            self.begin(now_ns, Kind::More, summary, parameters);
        } else if self.target > 1
            && (full || summary.loss == 0.0 || summary.busy < BUSY)
            && now_ns >= self.close.until_ns
        {
            self.target -= 1;
            self.begin(now_ns, Kind::Less, summary, parameters);
        }
    }

    fn loss_limited(&self, summary: &Summary) -> bool {
        summary.loss > 0.0
            && summary.queueing < QUEUE_NONE
            && summary.busy >= BUSY
            && summary.throughput_bps >= EXPLAINED * self.target as f64 * summary.subflow_bps
    }

    fn begin(&mut self, now_ns: u64, kind: Kind, summary: &Summary, parameters: &Parameters) {
        let before = std::mem::take(&mut self.rate);
        let trial = Some(Trial { kind, before });
        self.reference = Some(summary.loss);
        match kind {
            Kind::More => {
                self.phase = Phase::Opening {
                    deadline_ns: now_ns.saturating_add(OPEN_TIMEOUT_NS),
                    trial,
                }
            }
            Kind::Less => self.settle(now_ns, trial, parameters),
        }
    }

    /// After a window of a trial: decides whether it succeeded, failed and is undone, or goes on
    /// because the outcome is unclear.
    fn trial_succeeded(&mut self, now_ns: u64, trial: Trial, parameters: &Parameters) -> bool {
        let (more, less) = match trial.kind {
            Kind::More => (&self.rate, &trial.before),
            Kind::Less => (&trial.before, &self.rate),
        };
        let error = more.error().hypot(less.error());
        let gain = if less.bps() > 0.0 {
            more.bps() / less.bps() - 1.0
        } else {
            0.0
        };
        let clear = gain - error / 2.0 >= parameters.gain || gain + error < parameters.gain;
        let window_ns = self.window_ns(parameters);
        if !clear && self.rate.windows < TRIAL_WINDOWS_MAX {
            self.phase = Phase::Measuring {
                until_ns: now_ns.saturating_add(window_ns),
                trial: Some(trial),
            };
            return false;
        }
        match (trial.kind, gain >= parameters.gain) {
            (Kind::More, true) => self.close.extend(now_ns, window_ns),
            (Kind::Less, false) => self.open.extend(now_ns, window_ns),
            (Kind::More, false) => {
                self.target -= 1;
                self.open.extend(now_ns, window_ns);
                self.settle(now_ns, None, parameters);
                return false;
            }
            (Kind::Less, true) => {
                self.target += 1;
                self.close.extend(now_ns, window_ns);
                self.reopen(now_ns);
                return false;
            }
        }
        true
    }

    /// A requested subflow was not established in time.
    fn open_timed_out(&mut self, now_ns: u64, parameters: &Parameters) {
        if self.target > 1 {
            self.target -= 1;
            let window_ns = self.window_ns(parameters);
            self.open.extend(now_ns, window_ns);
            self.settle(now_ns, None, parameters);
        } else {
            self.reopen(now_ns);
        }
    }

    fn reopen(&mut self, now_ns: u64) {
        self.phase = Phase::Opening {
            deadline_ns: now_ns.saturating_add(OPEN_TIMEOUT_NS),
            trial: None,
        };
    }

    fn settle(&mut self, now_ns: u64, trial: Option<Trial>, parameters: &Parameters) {
        self.rate = Rate::default();
        let settle_ns = (parameters.interval_ns.saturating_mul(SETTLE_INTERVALS))
            .max(self.rtt_ns.saturating_mul(SETTLE_RTTS));
        self.phase = Phase::Settling {
            until_ns: now_ns.saturating_add(settle_ns),
            trial,
        };
    }

    fn window_ns(&self, parameters: &Parameters) -> u64 {
        (parameters.interval_ns.saturating_mul(WINDOW_INTERVALS))
            .max(self.rtt_ns.saturating_mul(WINDOW_RTTS))
    }
}

/// Whether two loss rates mean that conditions have changed.
fn differs(before: f64, now: f64) -> bool {
    let (before, now) = (before.max(LOSS_FLOOR), now.max(LOSS_FLOOR));
    now >= before * CHANGED || before >= now * CHANGED
}
