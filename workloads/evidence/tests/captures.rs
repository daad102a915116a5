// SPDX-License-Identifier: Apache-2.0

//! Evidence of captures made by hand, whose numbers can be worked out on paper.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Conversation, Run};

const KEY: u64 = 1;
/// A key whose first data sequence number is 0xf0e4_44ce_ffff_fe7a: 390 bytes later its low 32
/// bits wrap.
const WRAPPING_KEY: u64 = 9_207_164;

const PACKET: [&str; 5] = [
    "time_ns",
    "subflow",
    "data_sequence",
    "out_of_order_delay_ns",
    "kind",
];

fn received(conversation: &Conversation) -> Run {
    Run::new(&[("h2_1", &conversation.file)], "")
}

#[test]
fn packets_that_overtake_wait_for_the_one_they_overtook() {
    let mut conversation = Conversation::open(KEY);
    conversation.data(10_000, 1, 1_000, 1_000);
    conversation.data(20_000, 1, 2_000, 1_000);
    conversation.data(30_000, 0, 0, 1_000);
    conversation.data_ack(31_000, 0, 3_000, true);
    conversation.data(40_000, 0, 3_000, 1_000);
    conversation.data_ack(80_000, 1, 4_000, false);
    let run = received(&conversation);
    let summary = run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        [
            "30000 0 0 0 new",
            "10000 1 1000 20000 new",
            "20000 1 2000 10000 new",
            "40000 0 3000 0 new",
        ]
    );
    assert_eq!(
        run.rows(
            "data_acks.csv",
            &["time_ns", "subflow", "data_ack", "leap_packets"]
        ),
        ["31000 0 3000 3", "80000 1 4000 1"]
    );
    assert_eq!(
        run.rows("data_ack_leaps.csv", &["leap_packets", "data_acks"]),
        ["1 1", "3 1"]
    );
    assert_eq!(summary.out_of_order_delay_ns.mean, 7_500.0);
    assert_eq!(summary.out_of_order_delay_ns.max, 20_000);
    assert_eq!(summary.out_of_order_packets, 2);
    // 1000 and 2000 bytes wait after the first two packets, none after the others.
    assert_eq!(summary.out_of_order_queue_max_bytes, 2_000);
    assert_eq!(summary.out_of_order_queue_mean_bytes, 750.0);
    let columns = [
        "connection",
        "protocol",
        "source",
        "destination",
        "subflows",
        "first_data_ns",
        "last_data_ns",
        "data_bytes",
        "sent_packets",
    ];
    assert_eq!(
        run.rows("connections.csv", &columns),
        ["0 mptcp h1_1 h2_1 2 10000 40000 4000 "]
    );
}

#[test]
fn data_sequence_numbers_of_four_bytes_go_on_where_they_wrap() {
    let mut conversation = Conversation::open(WRAPPING_KEY);
    conversation.data(10, 0, 0, 200);
    conversation.data(20, 1, 400, 200);
    conversation.data(30, 0, 200, 200);
    conversation.data_ack(40, 0, 600, false);
    let run = received(&conversation);
    let summary = run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        ["10 0 0 0 new", "30 0 200 0 new", "20 1 400 10 new"]
    );
    assert_eq!(summary.data_bytes, 600);
    assert_eq!(summary.data_ack_leap_packets.max, 3);
}

#[test]
fn a_mapping_may_span_segments() {
    let mut conversation = Conversation::open(KEY);
    let option = conversation.mapping(0, 0, 3_000);
    conversation.raw_data(10, 0, 0, &option, 1_000);
    conversation.raw_data(20, 0, 2_000, &[], 1_000);
    conversation.raw_data(30, 0, 1_000, &[], 1_000);
    let run = received(&conversation);
    run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        [
            "10 0 0 0 new",
            "30 0 1000 0 retransmission",
            "20 0 2000 10 new"
        ]
    );
}

#[test]
fn a_mapping_may_be_repeated_in_each_of_its_segments() {
    let mut conversation = Conversation::open(KEY);
    let option = conversation.mapping(0, 0, 3_000);
    for (at_ns, offset) in [(10, 0), (20, 2_000), (30, 1_000)] {
        conversation.raw_data(at_ns, 0, offset, &option, 1_000);
    }
    conversation.data_at(40, 1, 0, 3_000, 1_000);
    let run = received(&conversation);
    run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        [
            "10 0 0 0 new",
            "30 0 1000 0 retransmission",
            "20 0 2000 10 new",
            "40 1 3000 0 new",
        ]
    );
}

#[test]
fn a_segment_whose_mapping_was_lost_is_placed_when_that_comes_again() {
    let mut conversation = Conversation::open(KEY);
    conversation.raw_data(10, 0, 1_000, &[], 1_000);
    let option = conversation.mapping(0, 0, 2_000);
    conversation.raw_data(50, 0, 0, &option, 1_000);
    let run = received(&conversation);
    let summary = run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        ["50 0 0 0 retransmission", "10 0 1000 40 new"]
    );
    assert_eq!(summary.ignored.unmapped_packets, 0);
}

#[test]
fn data_without_any_mapping_is_counted_as_ignored() {
    let mut conversation = Conversation::open(KEY);
    conversation.raw_data(10, 0, 0, &[], 1_000);
    let summary = received(&conversation).evaluate().unwrap();
    assert_eq!(
        (summary.data_packets, summary.ignored.unmapped_packets),
        (0, 1)
    );
}

#[test]
fn the_first_data_may_come_with_the_keys() {
    let mut conversation = Conversation::open(KEY);
    let keys = [KEY.to_be_bytes(), 2_u64.to_be_bytes()].concat();
    let option = [&[30, 22, 0x01, 0x01][..], &keys, &500_u16.to_be_bytes()].concat();
    conversation.raw_data(10, 0, 0, &option, 500);
    conversation.data(20, 1, 500, 500);
    let run = received(&conversation);
    run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        ["10 0 0 0 new", "20 1 500 0 new"]
    );
}

#[test]
fn what_arrives_twice_counts_once() {
    let mut conversation = Conversation::open(KEY);
    let offset = conversation.data(10, 0, 0, 1_000);
    conversation.data_at(20, 0, offset, 0, 1_000);
    conversation.data(30, 1, 0, 1_000);
    let run = received(&conversation);
    let summary = run.evaluate().unwrap();
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        ["10 0 0 0 new", "20 0 0  duplicate", "30 1 0  duplicate"]
    );
    assert_eq!((summary.data_packets, summary.duplicate_packets), (1, 2));
    assert_eq!(summary.data_bytes, 1_000);
}

#[test]
fn sender_and_receiver_together_tell_what_was_sent_again_and_lost() {
    let mut sent = Conversation::open(KEY);
    let lost = sent.data(10, 0, 0, 1_000);
    sent.data(20, 1, 1_000, 1_000);
    sent.data(30, 0, 2_000, 1_000);
    sent.data_at(40, 0, lost, 0, 1_000);
    sent.data(50, 1, 0, 1_000);
    let mut arrived = Conversation::open(KEY);
    arrived.data(25, 1, 1_000, 1_000);
    arrived.data_at(35, 0, 1_000, 2_000, 1_000);
    arrived.data_at(45, 0, lost, 0, 1_000);
    let run = Run::new(&[("h1_1", &sent.file), ("h2_1", &arrived.file)], "");
    let summary = run.evaluate().unwrap();
    assert_eq!(summary.sent_packets, 5);
    assert_eq!(summary.retransmitted_packets, 1);
    assert_eq!(summary.reinjected_packets, 1);
    assert_eq!(summary.lost_packets, 2);
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        [
            "45 0 0 0 retransmission",
            "25 1 1000 20 new",
            "35 0 2000 10 new"
        ]
    );
    assert_eq!(
        run.rows("connections.csv", &["connection", "lost_packets"]),
        ["0 2"]
    );
}

#[test]
fn without_mptcp_the_tcp_stream_is_the_data() {
    let mut conversation = Conversation::new(KEY);
    conversation.open_tcp();
    conversation.raw_data(10, 0, 1_000, &[], 1_000);
    conversation.raw_data(60, 0, 0, &[], 1_000);
    conversation.tcp_ack(70, 2_000);
    let run = received(&conversation);
    run.evaluate().unwrap();
    assert_eq!(
        run.rows("connections.csv", &["protocol", "data_bytes"]),
        ["tcp 2000"]
    );
    assert_eq!(
        run.rows("packets.csv", &PACKET),
        ["60 0 0 0 retransmission", "10 0 1000 50 new"]
    );
    assert_eq!(run.rows("data_acks.csv", &["leap_packets"]), ["2"]);
}

#[test]
fn what_came_before_the_run_is_followed_but_not_counted() {
    let mut conversation = Conversation::open(KEY);
    let before = 0_u64.wrapping_sub(1_000);
    conversation.data(before, 0, 0, 1);
    conversation.data_ack(before, 0, 1, true);
    conversation.data(10, 1, 1, 1_000);
    let run = received(&conversation);
    let summary = run.evaluate().unwrap();
    assert_eq!((summary.data_packets, summary.data_bytes), (1, 1_000));
    assert_eq!(run.rows("packets.csv", &PACKET), ["10 1 1 0 new"]);
    assert_eq!(run.rows("connections.csv", &["subflows"]), ["1"]);
}

#[test]
fn a_queue_is_summed_up_from_what_came_to_it() {
    let start_ns = common::START_NS;
    let arrivals: Vec<_> = [(0, 0, 0), (1, 1, 0), (2, 10, 1), (12_112, 9, 0)]
        .iter()
        .map(|(at_ns, queue, dropped)| {
            format!("{},leaf2,1,h2_1,1514,{queue},{dropped}\n", start_ns + at_ns)
        })
        .collect();
    let boot = "7,leaf1,1,h1_1,60,0,0\n";
    let close = format!("{},leaf2,1,h2_1,90,0,0\n", start_ns + 1_000_001);
    let run = Run::new(&[], &(boot.to_owned() + &arrivals.concat() + &close));
    let summary = run.evaluate().unwrap();
    assert_eq!((summary.arrived_packets, summary.dropped_packets), (4, 1));
    assert_eq!(summary.loss_rate, 0.25);
    let columns = [
        "switch",
        "port",
        "peer",
        "arrived_packets",
        "arrived_bytes",
        "queue_mean_packets",
        "queue_max_packets",
        "bursty_strength_mean_packets",
        "bursty_strength_max_packets",
    ];
    assert_eq!(
        run.rows("ports.csv", &columns),
        ["leaf2 1 h2_1 4 6056 5.0 10 2.25 3"]
    );
    assert_eq!(
        run.rows(
            "bursty_strength.csv",
            &["bursty_strength_packets", "arrivals"]
        ),
        ["1 1", "2 1", "3 2"]
    );
    assert_eq!(
        run.rows(
            "queue.csv",
            &["time_ns", "span_ns", "arrivals", "queue_max_packets"]
        ),
        ["0 1000 3 10", "12000 1000 1 9"]
    );
}
