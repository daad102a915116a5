//! How fast a loss-limited TCP is, and what one more of them brings.
//!
//! A TCP whose window follows AIMD (additive increase, multiplicative decrease)
//! over a path that loses each packet with probability `p` reaches
//!
//! ```text
//! b(p) = MSS / (RTT sqrt(2p/3) + RTO min(1, 3 sqrt(3p/8)) p (1 + 32 p^2))
//! ```
//!
//! (Padhye, Firoiu, Towsley, Kurose: "Modeling TCP throughput", SIGCOMM 1998,
//! equation 30, with one packet per ACK, as Linux grows its window by what is
//! acknowledged). The first term is the square-root law of Mathis et al. (CCR
//! 1997), the second one the time that timeouts cost, which matters from a few
//! per cent of loss on. CUBIC is in its Reno-friendly region wherever RTT and
//! loss are those of a data centre or a metro (RFC 9438, section 4.3), so that
//! the same law holds for it.
//!
//! `n` subflows with uncoupled windows reach `n b(p)`, until the path is full:
//!
//! ```text
//! X(n) = min(n b(p), capacity)      gain(n) = X(n + 1) / X(n) - 1
//! ```
//!
//! That is `1/n` while loss is what limits, and nothing once the path is full.

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

/// The throughput gain of one more subflow where `subflows` have
/// `throughput_bps` together and loss is what limits them: 0.5 is half as much
/// again. `capacity_bps` is what the path carries at most, if that is known.
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
