// SPDX-License-Identifier: Apache-2.0

//! Assesses the pattern of a pair by the current costs of its paths.

use weft_topology::Routing;

use super::{Engine, Rule};
use crate::cost::{self, Input};
use crate::fabric::LeafPair;
use crate::pattern::{gaps, sequence, sticky_gaps};

/// Patterns avoid lossy paths if the others have at least this share of the total rate. Losses
/// cost less than missing capacity; operators who disable links agree (CorrOpt, SIGCOMM
/// 2017). With a loss of 1% on one path, flows end sooner without that path if there are four
/// paths, and later if there are two (`tests/test_gray_failures.py`).
const LEAST_RATE_PERCENT: u128 = 75;

/// An arbitrary cost that is equal on all paths, so that only rates make a difference.
const EQUAL_COST_NS: u64 = 1_000_000;

/// The assessment of a pair at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// Cost per path; empty if one is unknown.
    pub costs_ns: Vec<u64>,
    /// Gaps from costs and rates, without hysteresis.
    pub plain_gaps: Vec<u32>,
    /// Gaps with hysteresis.
    pub gaps: Vec<u32>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The conclusion of an assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The controller makes no patterns; kernels use their own RTT.
    KernelRtt,
    /// With ECMP, flowlets or spraying, an address doesn't determine the path of its subflow.
    Ecmp,
    /// A path has not been measured yet.
    Unmeasured,
    /// The current pattern matches the costs.
    Right,
    /// The costs favor another pattern, but not beyond the hysteresis.
    Sticky,
    /// A new pattern is wanted, but the last one is too recent.
    Resting {
        /// When it is allowed.
        until_ns: u64,
    },
    /// Patterns oscillated, so only rates set the pattern for now.
    Held {
        /// When costs count again; 0 if that is decided now.
        until_ns: u64,
    },
    /// A new pattern is due.
    Due(Rule),
}

impl Engine {
    /// Assesses the pattern of `pair` at `now_ns`.
    #[must_use]
    pub fn assess(&self, now_ns: u64, pair: LeafPair) -> Assessment {
        let without = |verdict| Assessment {
            costs_ns: Vec::new(),
            plain_gaps: Vec::new(),
            gaps: Vec::new(),
            verdict,
        };
        if self.config.input == Input::Srtt {
            return without(Verdict::KernelRtt);
        }
        if self.fabric.topology().routing != Routing::Subflow {
            return without(Verdict::Ecmp);
        }
        let input = self.config.input;
        let carries = self.carries(pair);
        let costs_ns = cost::costs_ns(input, &self.fabric, &self.telemetry, now_ns, pair, &carries);
        let Some(costs_ns) = costs_ns else {
            return without(Verdict::Unmeasured);
        };
        let is_idle = self.idle_at_ns(pair) <= now_ns;
        let rate_limited_ns = self.rate_limited_ns(pair, &costs_ns);
        let plain_gaps = gaps_among(&carries, &rate_limited_ns, gaps);
        let known = self.pairs.get(&pair);
        let Some((known, current)) = known.and_then(|pair| Some((pair, pair.pattern.as_ref()?)))
        else {
            return Assessment {
                costs_ns,
                gaps: plain_gaps.clone(),
                plain_gaps,
                verdict: Verdict::Due(Rule::First),
            };
        };
        // A path that the pattern leaves out was unusable when the pattern was made.
        let had: Vec<bool> = current.gaps.iter().map(|&gap| gap > 0).collect();
        if had != carries {
            let mut lost = (0..).zip(had.iter().zip(&carries));
            let rule = match lost.find(|(_, (had, has))| **had && !**has) {
                None => Rule::Returned,
                Some((path, _)) if self.liveness.is_dead(pair, path) => Rule::Failed,
                Some(_) => Rule::Gray,
            };
            return Assessment {
                costs_ns,
                gaps: plain_gaps.clone(),
                plain_gaps,
                verdict: Verdict::Due(rule),
            };
        }
        if now_ns < known.pace.held_until_ns() {
            let until_ns = known.pace.held_until_ns();
            return self.by_rates_alone(
                pair,
                &carries,
                costs_ns,
                plain_gaps,
                &current.gaps,
                until_ns,
            );
        }
        let gaps = if is_idle {
            plain_gaps.clone()
        } else {
            gaps_among(&carries, &rate_limited_ns, |rate_limited_ns| {
                let current: Vec<u32> = current
                    .gaps
                    .iter()
                    .copied()
                    .filter(|&gap| gap > 0)
                    .collect();
                sticky_gaps(rate_limited_ns, &current)
            })
        };
        let verdict = if gaps == current.gaps {
            if plain_gaps == current.gaps {
                Verdict::Right
            } else {
                Verdict::Sticky
            }
        } else if now_ns < known.pace.next_allowed_ns() {
            Verdict::Resting {
                until_ns: known.pace.next_allowed_ns(),
            }
        } else if is_idle {
            Verdict::Due(Rule::Idle)
        } else if known.pace.is_herd(now_ns, &current.gaps, &gaps) {
            return self.by_rates_alone(pair, &carries, costs_ns, plain_gaps, &current.gaps, 0);
        } else {
            Verdict::Due(Rule::Moved)
        };
        Assessment {
            costs_ns,
            plain_gaps,
            gaps,
            verdict,
        }
    }

    /// The assessment by rates alone. A pair's own traffic builds queues where paths are full.
    /// Then their capacity counts, not their length.
    fn by_rates_alone(
        &self,
        pair: LeafPair,
        carries: &[bool],
        costs_ns: Vec<u64>,
        plain_gaps: Vec<u32>,
        current: &[u32],
        until_ns: u64,
    ) -> Assessment {
        let even: Vec<u64> = carries
            .iter()
            .map(|&carries| EQUAL_COST_NS * u64::from(carries))
            .collect();
        let gaps = gaps_among(carries, &self.rate_limited_ns(pair, &even), gaps);
        let verdict = if gaps == current {
            Verdict::Held { until_ns }
        } else {
            Verdict::Due(Rule::Herd)
        };
        Assessment {
            costs_ns,
            plain_gaps,
            gaps,
            verdict,
        }
    }

    /// Costs, raised where the rate of a path requires it: to the lowest cost times the ratio
    /// of the fastest path's rate to the path's own.
    ///
    /// MPTCP-RB uses RTTs alone, which show a slow link only while its queue is full. But
    /// a pattern for all connections of a leaf drains that queue, and the next one fills it again.
    /// So no path gets a larger share than the ratio of its rate to the fastest.
    fn rate_limited_ns(&self, pair: LeafPair, costs_ns: &[u64]) -> Vec<u64> {
        let rates_bps: Vec<u64> = (0..self.fabric.paths())
            .map(|path| self.rate_bps(pair, path).unwrap_or(0))
            .collect();
        let fastest_bps = u128::from(rates_bps.iter().copied().max().unwrap_or(0));
        let lowest_ns = costs_ns
            .iter()
            .copied()
            .filter(|&cost_ns| cost_ns > 0)
            .min();
        let lowest_ns = u128::from(lowest_ns.unwrap_or(0));
        costs_ns
            .iter()
            .zip(rates_bps)
            .map(|(&cost_ns, rate_bps)| {
                let by_rate_ns = (lowest_ns * fastest_bps).checked_div(rate_bps.into());
                let by_rate_ns = by_rate_ns.and_then(|by_rate_ns| by_rate_ns.try_into().ok());
                cost_ns.max(by_rate_ns.unwrap_or(0))
            })
            .collect()
    }

    /// Which paths of `pair` to use: those that are alive, without lossy ones as long as the
    /// others have enough capacity. All paths if none is alive, because a pattern needs paths.
    fn carries(&self, pair: LeafPair) -> Vec<bool> {
        let paths = 0..self.fabric.paths();
        let alive: Vec<bool> = paths
            .clone()
            .map(|path| !self.liveness.is_dead(pair, path))
            .collect();
        if !alive.contains(&true) {
            return vec![true; alive.len()];
        }
        let is_lossless: Vec<bool> = (0..)
            .zip(&alive)
            .map(|(path, alive)| *alive && self.loss_ppm(pair, path).is_none())
            .collect();
        let rate_of = |those: &[bool]| {
            let paths = paths.clone().zip(those).filter(|(_, is_one)| **is_one);
            let rates_bps = paths.filter_map(|(path, _)| self.rate_bps(pair, path));
            rates_bps.map(u128::from).sum::<u128>()
        };
        if rate_of(&is_lossless) * 100 >= rate_of(&alive) * LEAST_RATE_PERCENT {
            is_lossless
        } else {
            alive
        }
    }
}

/// Gaps by `rule` for the paths to use, 0 for the others.
fn gaps_among(carries: &[bool], costs_ns: &[u64], rule: impl Fn(&[u64]) -> Vec<u32>) -> Vec<u32> {
    let costs = costs_ns.iter().zip(carries);
    let costs: Vec<u64> = costs
        .filter(|(_, carries)| **carries)
        .map(|(&cost, _)| cost)
        .collect();
    let mut gaps = rule(&costs).into_iter();
    carries
        .iter()
        .map(|&carries| carries.then(|| gaps.next()).flatten().unwrap_or(0))
        .collect()
}

/// The sequence of `gaps`, without paths whose gap is 0.
pub(super) fn sequence_of(gaps: &[u32]) -> Vec<u8> {
    let (paths, used): (Vec<u8>, Vec<u32>) = (0_u8..)
        .zip(gaps.iter().copied())
        .filter(|&(_, gap)| gap > 0)
        .unzip();
    sequence(&used)
        .into_iter()
        .filter_map(|place| paths.get(usize::from(place)).copied())
        .collect()
}
