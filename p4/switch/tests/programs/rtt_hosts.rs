// SPDX-License-Identifier: Apache-2.0

//! The RTT stage with the behaviour of real TCP: delayed ACKs, reordering, idle connections, and
//! thousands of connections at once.

use weft_testing::packet::{SYN, Tcp, address};

use crate::bench::{Bench, Intervals};
use crate::rtt::{leaf_with, rtts, samples, send, subflow};

#[test]
fn a_keep_alive_gives_no_sample_and_spoils_none() {
    let flow = subflow();
    for garbage_bytes in [0, 1] {
        let mut leaf = leaf_with(flow, 0);
        send(&mut leaf, flow.data(1, 1000), 10);
        assert_eq!(rtts(&mut leaf, flow.ack_of(1001), 30), [20]);
        send(&mut leaf, flow.data(1000, garbage_bytes), 5_000);
        assert!(rtts(&mut leaf, flow.ack_of(1001), 5_020).is_empty());
        send(&mut leaf, flow.data(1001, 1000), 6_000);
        assert_eq!(rtts(&mut leaf, flow.ack_of(2001), 6_020), [20]);
    }
}

#[test]
fn a_window_probe_that_the_receiver_drops_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    assert_eq!(rtts(&mut leaf, flow.ack_of(1001), 30), [20]);
    // One byte beyond the window, until there is room for it.
    for now in [1_000, 2_000, 3_000] {
        send(&mut leaf, flow.data(1001, 1), now);
        assert!(rtts(&mut leaf, flow.ack_of(1001), now + 20).is_empty());
    }
    send(&mut leaf, flow.data(1001, 1000), 4_000);
    assert!(rtts(&mut leaf, flow.ack_of(2001), 4_020).is_empty());
    send(&mut leaf, flow.data(2001, 1000), 5_000);
    assert_eq!(rtts(&mut leaf, flow.ack_of(3001), 5_020), [20]);
}

#[test]
fn segments_that_overtook_a_late_one_give_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10); // arrives after the next two
    send(&mut leaf, flow.data(1001, 1000), 20);
    send(&mut leaf, flow.data(2001, 1000), 30);
    assert!(rtts(&mut leaf, flow.ack_of(1), 40).is_empty());
    assert!(rtts(&mut leaf, flow.ack_of(3001), 90).is_empty());
    send(&mut leaf, flow.data(3001, 1000), 100);
    assert_eq!(rtts(&mut leaf, flow.ack_of(4001), 120), [20]);
}

#[test]
fn what_is_sent_while_a_segment_is_missing_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10); // lost
    send(&mut leaf, flow.data(1001, 1000), 20);
    assert!(rtts(&mut leaf, flow.ack_of(1), 40).is_empty());
    send(&mut leaf, flow.data(2001, 1000), 50); // limited transmit
    assert!(rtts(&mut leaf, flow.ack_of(1), 70).is_empty());
    send(&mut leaf, flow.data(1, 1000), 80);
    assert!(rtts(&mut leaf, flow.ack_of(3001), 100).is_empty());
}

#[test]
fn a_new_window_is_no_duplicate_ack() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    let update = Tcp {
        window: 600,
        ..flow.ack_of(1)
    };
    assert!(rtts(&mut leaf, update, 15).is_empty());
    assert_eq!(rtts(&mut leaf, flow.ack_of(1001), 30), [20]);
}

#[test]
fn an_ack_that_was_overtaken_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    send(&mut leaf, flow.data(1001, 1000), 20);
    assert_eq!(rtts(&mut leaf, flow.ack_of(2001), 40), [20]);
    assert!(rtts(&mut leaf, flow.ack_of(1001), 900).is_empty());
}

#[test]
fn a_delayed_ack_is_counted_and_not_used() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    for path in 0..4 {
        leaf.expect(2, path, 0, 7_000);
    }
    send(&mut leaf, flow.syn(0), 0);
    assert_eq!(rtts(&mut leaf, flow.ack_of(1), 7_000), [7_000]);
    send(&mut leaf, flow.data(1, 1000), 10_000);
    assert!(rtts(&mut leaf, flow.ack_of(1001), 50_000).is_empty());
    assert_eq!(leaf.count("rtt.delayed_acks"), 1);
}

#[test]
fn segments_of_any_length_tell_the_rtt_of_full_size_ones() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    // 24 ns a byte: three links of 1 Gbps.
    for path in 0..4 {
        leaf.expect(2, path, 24 << 16, 7_000_000);
    }
    leaf.send(1, &flow.syn(0).frame(), 0);
    let syn = samples(&mut leaf, flow.ack_of(1), 100_000).remove(0);
    let lacking = u64::from(1500 - syn.length_bytes);
    assert_eq!((syn.rtt, syn.smoothed), (100_000, 100_000 + 24 * lacking));
    send(&mut leaf, flow.data(1, 1448), 200_000);
    let full = samples(&mut leaf, flow.ack_of(1449), 335_000).remove(0);
    assert_eq!((full.rtt, full.smoothed), (135_000, 135_000));
}

#[test]
fn a_late_ack_of_a_single_segment_is_counted_and_not_used() {
    let mut exchange = Exchange::new(Intervals {
        longest: 10_000_000,
        ..Intervals::CHANGES
    });
    let flow = subflow();
    let mut single = |seq, now, rtt| {
        send(&mut exchange.leaf, flow.data(seq, 1000), now);
        rtts(&mut exchange.leaf, flow.ack_of(seq + 1000), now + rtt)
    };
    // The ACK may have waited for a second segment.
    assert!(single(1, 1_000_000, 900_000).is_empty());
    // A lower RTT is certain.
    assert_eq!(single(1001, 2_000_000, 40_000), [40_000]);
    // A higher one is accepted if there was no better one for long enough.
    assert_eq!(single(2001, 13_000_000, 900_000), [900_000]);
    assert_eq!(exchange.leaf.count("rtt.delayed_acks"), 1);
}

/// Pairs of segments of one flow, each acknowledged after `rtt`.
struct Exchange {
    leaf: Bench,
    next: u32,
    now: u64,
}

impl Exchange {
    /// Begins with a handshake of 80 us, with a leaf that sends samples at `intervals`.
    fn new(intervals: Intervals) -> Exchange {
        let mut leaf = Bench::leaf(1);
        leaf.sample_every(intervals);
        send(&mut leaf, subflow().syn(0), 0);
        assert_eq!(rtts(&mut leaf, subflow().ack_of(1), 80_000), [80_000]);
        Exchange {
            leaf,
            next: 1,
            now: 100_000,
        }
    }

    /// Measures one more pair. Returns smoothed and lowest RTT if they are sent.
    fn measure(&mut self, rtt: u64) -> Option<(u64, u64)> {
        let (flow, end) = (subflow(), self.next + 1000);
        for half in [self.next, self.next + 500] {
            send(&mut self.leaf, flow.data(half, 500), self.now);
        }
        let told = samples(&mut self.leaf, flow.ack_of(end), self.now + rtt);
        self.next = end;
        self.now += rtt + 20_000;
        told.first().map(|sample| (sample.smoothed, sample.minimum))
    }
}

#[test]
fn the_rtt_is_smoothed_by_an_eighth() {
    let mut exchange = Exchange::new(Intervals::CHANGES);
    assert_eq!(exchange.measure(40_000), Some((75_000, 40_000)));
    assert_eq!(exchange.measure(35_000), Some((70_000, 35_000)));
}

#[test]
fn a_sudden_rtt_is_used_when_the_next_one_confirms_it() {
    let mut exchange = Exchange::new(Intervals::CHANGES);
    assert_eq!(exchange.measure(160_000), None);
    assert_eq!(exchange.measure(80_000), None);
    assert_eq!(exchange.measure(160_000), None);
    assert_eq!(exchange.measure(240_000), None);
    assert_eq!(exchange.measure(240_000), Some((100_000, 80_000)));
    assert_eq!(exchange.leaf.count("rtt.delayed_acks"), 3);
}

#[test]
fn acks_of_one_burst_do_not_confirm_each_other() {
    let mut exchange = Exchange::new(Intervals::CHANGES);
    let flow = subflow();
    for half in 0..8 {
        send(&mut exchange.leaf, flow.data(1 + half * 500, 500), 100_000);
    }
    let mut acks = [(2, 250_000), (4, 250_100), (6, 250_200), (8, 260_000)]
        .map(|(halves, now)| rtts(&mut exchange.leaf, flow.ack_of(1 + halves * 500), now).len())
        .into_iter();
    assert!(acks.by_ref().take(3).all(|told| told == 0));
    assert_eq!(acks.next(), Some(1), "a while later");
}

#[test]
fn the_late_ack_of_many_segments_is_not_used() {
    let mut exchange = Exchange::new(Intervals::CHANGES);
    let flow = subflow();
    for round in 0..3 {
        let (seq, now) = (1 + round * 3000, 1_000_000 * u64::from(round + 1));
        for half in 0..6 {
            send(&mut exchange.leaf, flow.data(seq + half * 500, 500), now);
        }
        assert!(rtts(&mut exchange.leaf, flow.ack_of(seq + 3000), now + 160_000).is_empty());
    }
}

#[test]
fn small_changes_are_smoothed_and_told_when_they_add_up() {
    let mut exchange = Exchange::new(Intervals::CHANGES);
    // Towards 84 us: this never differs by a sixteenth of 80 us.
    assert!((0..100).all(|_| exchange.measure(84_000).is_none()));
    // From 84 us on to 88 us: a sample is sent at 85 us, with the lowest since the last one.
    let told: Vec<_> = (0..100).filter_map(|_| exchange.measure(88_000)).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, 84_000);
    assert!(told[0].0.abs_diff(85_200) < 200, "{told:?}");
}

#[test]
fn changes_are_told_at_most_once_in_an_interval() {
    let mut exchange = Exchange::new(Intervals {
        rtt: 1_000_000,
        ..Intervals::CHANGES
    });
    let told = (0..40).filter_map(|round| exchange.measure(100_000 + 10_000 * round));
    let told = told.count();
    assert!((8..=13).contains(&told), "{told} in 12.6 intervals");
}

#[test]
fn without_a_change_the_rtt_is_told_after_the_longest_interval() {
    let mut exchange = Exchange::new(Intervals {
        longest: 1_000_000,
        ..Intervals::CHANGES
    });
    let told: Vec<_> = (0..100).filter_map(|_| exchange.measure(80_000)).collect();
    assert_eq!(told, vec![(80_000, 80_000); 10], "in ten intervals");
}

#[test]
fn after_a_rest_the_old_rtt_weighs_nothing() {
    let mut exchange = Exchange::new(Intervals {
        longest: 10_000_000,
        ..Intervals::CHANGES
    });
    exchange.now += 10_000_000;
    assert_eq!(exchange.measure(160_000), Some((160_000, 160_000)));
}

#[test]
fn the_first_rtt_of_each_route_is_told_at_once_whatever_was_spent() {
    let mut leaf = Bench::leaf(1);
    leaf.sample_every(Intervals {
        rtt: 1 << 40,
        digest_bytes: 1 << 24,
        ..Intervals::CHANGES
    });
    for remote in [2, 3] {
        for local in 1..=4 {
            let flow = Tcp::subflow(address(1, 1, local), address(remote, 1, 1));
            let now = u64::from(local) * 1_000;
            send(&mut leaf, flow.syn(0), now);
            assert_eq!(rtts(&mut leaf, flow.ack_of(1), now + 100), [100]);
            send(&mut leaf, flow.data(1, 1000), now + 200);
            assert!(rtts(&mut leaf, flow.ack_of(1001), now + 900).is_empty());
        }
    }
}

#[test]
fn digests_leave_as_traffic_pays_for_them() {
    let mut exchange = Exchange::new(Intervals {
        digest_bytes: 0x10000,
        ..Intervals::CHANGES
    });
    // Jumps between two RTTs, so that every sample is a change.
    let told = |exchange: &mut Exchange, rounds: u64| {
        let rtts = (0..rounds).map(|round| 100_000 + round / 4 % 2 * 900_000);
        rtts.filter(|rtt| exchange.measure(*rtt).is_some()).count()
    };
    told(&mut exchange, 100);
    let rounds = 2_000;
    let bytes = rounds * (2 * 566 + 66);
    let told = told(&mut exchange, rounds) as u64;
    assert!(told.abs_diff(bytes / 0x10000) <= 1, "{told} digests");
}

/// Sends `segments` segments of each of `flows` subflows to one leaf before any is acknowledged.
/// Returns how many are measured.
fn measured(flows: u32, segments: u32) -> u32 {
    const LENGTH: u32 = 1448;
    let flow = |number: u32| Tcp {
        src: address(1, 1, 1 + (number / 40 % 4) as u8),
        dst: address(2, 1 + (number % 40) as u8, 1),
        // Spread, as hosts choose them.
        src_port: 32_768 + (number * 7_919 % 28_000) as u16,
        ..subflow()
    };
    let mut leaf = Bench::leaf(1);
    let mut now = 0;
    for number in 0..flows {
        let syn = Tcp {
            flags: SYN,
            ..flow(number)
        };
        leaf.send(1, &syn.frame(), now);
        now += 1;
    }
    let start = now;
    for segment in 0..segments {
        for number in 0..flows {
            let data = flow(number).data(1 + segment * LENGTH, LENGTH as usize);
            leaf.send(1, &data.frame(), now);
            now += 1;
        }
    }
    let mut measured = 0;
    for segment in 0..segments {
        for number in 0..flows {
            let sent = start + u64::from(segment * flows + number);
            let ack = flow(number).ack_of(1 + (segment + 1) * LENGTH);
            for rtt in rtts(&mut leaf, ack, now) {
                assert_eq!(rtt, now - sent, "segment {segment} of flow {number}");
                measured += 1;
            }
            now += 1;
        }
    }
    measured
}

/// Flows and segments have 65 536 places each. Of `flows` that send in turn, about exp(-flows /
/// places) share no place with another, and are measured. A segment is measured unless a later one
/// took its place: that is (1 - exp(-load)) / load of them, with load = segments / places.
#[test]
fn ten_thousand_subflows_at_once_are_measured_and_none_is_mistaken() {
    for (flows, segments, least_percent) in [(1_000, 1, 95), (10_000, 1, 75), (10_000, 4, 60)] {
        let all = flows * segments;
        let measured = measured(flows, segments);
        println!("{flows} subflows, {segments} segments each: {measured} of {all} measured");
        assert!(measured * 100 >= all * least_percent);
    }
}
