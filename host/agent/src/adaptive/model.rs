// SPDX-License-Identifier: Apache-2.0

//! The throughput of loss-limited TCP, and the gain of one more subflow.
//!
//! A TCP whose window follows AIMD (additive increase, multiplicative decrease)
//! over a path that loses each packet with probability `p` reaches
//!
//! ```text
//! b(p) = MSS / (RTT sqrt(2p/3) + RTO min(1, 3 sqrt(3p/8)) p (1 + 32 p^2))
//! ```
//!
//! (Padhye, Firoiu, Towsley, Kurose: "Modeling TCP throughput", SIGCOMM 1998, equation 30,
//! with one packet per ACK, because Linux grows its window by acknowledged data). The first
//! term is the square-root law of Mathis et al. (CCR 1997). The second term is the cost of
//! timeouts, which matters from a loss of a few percent on. At the RTTs and loss rates of a
//! data center or a metro network, CUBIC is in its Reno-friendly region (RFC 9438, section
//! 4.3), so the law applies to it as well.
//!
//! `n` subflows with uncoupled windows reach `n b(p)`, until the path is full:
//!
//! ```text
//! X(n) = min(n b(p), capacity)      gain(n) = X(n + 1) / X(n) - 1
//! ```
//!
//! The gain is `1/n` while loss is the limit, and zero once the path is full.

/// Throughput of one loss-limited TCP, bits per second; infinite without loss.
#[must_use]
pub fn subflow_bps(loss: f64, rtt_s: f64, rto_s: f64, mss_bytes: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    let recovery = rtt_s * (2.0 * loss / 3.0).sqrt();
    let timeouts =
        rto_s * (3.0 * (3.0 * loss / 8.0).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    8.0 * mss_bytes / (recovery + timeouts)
}

/// The throughput gain of one more subflow, where `subflows` loss-limited subflows have
/// `throughput_bps` together: 0.5 is 50% more. `capacity_bps` is the path's capacity, if known.
#[must_use]
pub fn gain(subflows: usize, throughput_bps: f64, capacity_bps: Option<f64>) -> f64 {
    if throughput_bps <= 0.0 || subflows == 0 {
        return 0.0;
    }
    let proportional = 1.0 / subflows as f64;
    let room = capacity_bps.map_or(f64::INFINITY, |capacity| capacity / throughput_bps - 1.0);
    proportional.min(room).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_timeouts_the_square_root_law_remains() {
        // Mathis: MSS / RTT * sqrt(3/2) / sqrt(p): 12.2 packets of 1460 B per 20 ms.
        let law = subflow_bps(0.01, 0.02, 0.0, 1460.0);
        assert!((law / 7.152e6 - 1.0).abs() < 1e-3, "{law}");
    }

    #[test]
    fn timeouts_weigh_little_at_low_loss_and_much_at_high_loss() {
        let share =
            |loss| subflow_bps(loss, 0.02, 0.22, 1460.0) / subflow_bps(loss, 0.02, 0.0, 1460.0);
        assert!(share(0.000_1) > 0.99);
        assert!(share(0.1) < 0.3);
    }

    #[test]
    fn one_more_subflow_brings_its_share_until_the_path_is_full() {
        assert_eq!(gain(1, 5e6, None), 1.0);
        assert_eq!(gain(4, 20e6, None), 0.25);
        assert!((gain(2, 40e6, Some(50e6)) - 0.25).abs() < 1e-9);
        assert_eq!(gain(2, 50e6, Some(49e6)), 0.0);
        assert_eq!(gain(1, 0.0, None), 0.0);
    }
}
