// SPDX-License-Identifier: Apache-2.0

//! The time series of a queue, with a bounded number of rows.

use crate::arrivals::Arrival;

/// Sums over intervals of equal length. When there are too many, the length doubles.
#[derive(Debug)]
pub struct Series {
    span_ns: u64,
    rows: usize,
    spans: Vec<Span>,
}

/// The arrivals of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Packets that arrived.
    pub arrivals: u64,
    /// Sum of the queue lengths at their arrivals.
    pub queue_sum_packets: u64,
    /// Longest queue at an arrival.
    pub queue_max_packets: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
}

/// Initial length of an interval.
const FIRST_SPAN_NS: u64 = 1_000;

impl Series {
    /// A series with at most `rows` rows (at least 2).
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self {
            span_ns: FIRST_SPAN_NS,
            rows: rows.max(2),
            spans: Vec::new(),
        }
    }

    /// Adds an arrival, in any order.
    pub fn add(&mut self, arrival: Arrival) {
        while arrival.at_ns / self.span_ns >= self.rows as u64 {
            self.double();
        }
        // Below `rows`.
        let index = (arrival.at_ns / self.span_ns) as usize;
        if index >= self.spans.len() {
            self.spans.resize(index + 1, Span::default());
        }
        self.spans[index].add(&Span {
            arrivals: 1,
            queue_sum_packets: arrival.queue_packets,
            queue_max_packets: arrival.queue_packets,
            dropped_packets: arrival.dropped_packets,
        });
    }

    /// Length of an interval.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.span_ns
    }

    /// The intervals with arrivals, each with its start.
    pub fn spans(&self) -> impl Iterator<Item = (u64, &Span)> {
        let starts = (0..).map(|index| index * self.span_ns);
        starts
            .zip(&self.spans)
            .filter(|(_, span)| span.arrivals > 0)
    }

    fn double(&mut self) {
        self.span_ns = self.span_ns.saturating_mul(2);
        let half = self.spans.len().div_ceil(2);
        for index in 0..half {
            let mut span = self.spans[2 * index];
            if let Some(second) = self.spans.get(2 * index + 1) {
                span.add(second);
            }
            self.spans[index] = span;
        }
        self.spans.truncate(half);
    }
}

impl Span {
    fn add(&mut self, other: &Self) {
        self.arrivals += other.arrivals;
        self.queue_sum_packets += other.queue_sum_packets;
        self.queue_max_packets = self.queue_max_packets.max(other.queue_max_packets);
        self.dropped_packets += other.dropped_packets;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_number_of_rows_tells_the_same_totals(
            arrivals in proptest::collection::vec((0_u64..10_000_000, 0_u64..100), 1..200),
            rows in 2_usize..50,
        ) {
            let mut series = Series::new(rows);
            for (at_ns, queue_packets) in &arrivals {
                series.add(Arrival {
                    at_ns: *at_ns,
                    bytes: 1514,
                    queue_packets: *queue_packets,
                    dropped_packets: u64::from(*queue_packets == 99),
                });
            }
            let mut total = Span::default();
            series.spans().for_each(|(_, span)| total.add(span));
            prop_assert!(series.spans().count() <= rows);
            let expected = Span {
                arrivals: arrivals.len() as u64,
                queue_sum_packets: arrivals.iter().map(|(_, queue)| queue).sum(),
                queue_max_packets: arrivals.iter().map(|(_, queue)| *queue).max().unwrap(),
                dropped_packets: arrivals.iter().filter(|(_, queue)| *queue == 99).count() as u64,
            };
            prop_assert_eq!(total, expected);
            for (start_ns, span) in series.spans() {
                let within = |at_ns: u64| at_ns / series.span_ns() == start_ns / series.span_ns();
                let count = arrivals.iter().filter(|(at_ns, _)| within(*at_ns)).count() as u64;
                prop_assert_eq!(count, span.arrivals);
            }
        }
    }
}
