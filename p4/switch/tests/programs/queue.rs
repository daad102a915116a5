//! The queue stage: what egress saw comes out of ingress.

use weft_switch::pipeline::QueueMetadata;

use crate::bench::{Bench, QueueSample};
use crate::packet::{Tcp, address, ping};

/// From h1_1 to h1_2, on a leaf: out by port 2.
fn to_neighbour() -> Vec<u8> {
    ping(address(1, 1, 1), address(1, 2, 1))
}

fn queue(deq_qdepth: u32, deq_timedelta: u64) -> QueueMetadata {
    QueueMetadata {
        deq_qdepth,
        deq_timedelta,
        ..QueueMetadata::default()
    }
}

#[test]
fn a_sample_tells_what_the_last_packet_of_the_port_left_behind() {
    let mut leaf = Bench::leaf(1);
    leaf.send_through(1, &to_neighbour(), 10, queue(50, 9_000));
    leaf.send_through(1, &to_neighbour(), 20, queue(7, 84_000));
    leaf.send_through(
        2,
        &ping(address(1, 2, 1), address(1, 1, 1)),
        30,
        queue(1, 1),
    );
    let expected = QueueSample {
        port: 2,
        depth_packets: 7,
        delay: 84_000,
    };
    assert_eq!(leaf.send(1, &to_neighbour(), 40).queues, [expected]);
}

#[test]
fn a_spine_samples_its_queues() {
    let mut spine = Bench::spine();
    let frame = ping(address(1, 1, 1), address(3, 1, 1));
    spine.send_through(1, &frame, 10, queue(99, 1_188_000));
    let expected = QueueSample {
        port: 3,
        depth_packets: 99,
        delay: 1_188_000,
    };
    assert_eq!(spine.send(2, &frame, 20).queues, [expected]);
}

#[test]
fn queue_samples_come_at_most_once_per_interval() {
    let mut leaf = Bench::leaf(1);
    leaf.sample_every(0, 1_000);
    let elsewhere = ping(address(1, 1, 1), address(2, 1, 1));
    let mut samples = |frame: &[u8], now| leaf.send(1, frame, now).queues.len();
    assert_eq!(samples(&to_neighbour(), 5_000), 1);
    assert_eq!(samples(&to_neighbour(), 5_999), 0);
    assert_eq!(samples(&elsewhere, 5_999), 1, "of another port");
    assert_eq!(samples(&to_neighbour(), 6_000), 1);
    assert_eq!(samples(&to_neighbour(), 6_500), 0);
}

#[test]
fn a_packet_that_is_dropped_samples_nothing() {
    let mut leaf = Bench::leaf(1);
    let outcome = leaf.send(1, &ping(address(1, 1, 1), address(9, 1, 1)), 10);
    assert!(outcome.queues.is_empty());
}

#[test]
fn who_wants_no_samples_gets_none() {
    let mut leaf = Bench::leaf(1);
    leaf.sample_nothing();
    assert!(leaf.send(1, &to_neighbour(), 10).queues.is_empty());
}

#[test]
fn a_packet_sends_one_digest_and_the_queue_waits_for_the_next() {
    let flow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
    let mut leaf = Bench::leaf(1);
    leaf.sample_every(0, 1_000);
    leaf.send(1, &flow.syn(0).frame(), 5_000);
    let ack = leaf.send(3, &flow.ack_of(1).frame(), 5_020);
    assert_eq!((ack.rtt.len(), ack.queues.len()), (1, 0));
    let next = leaf.send(3, &flow.ack_of(1).frame(), 5_030);
    assert_eq!((next.rtt.len(), next.queues.len()), (0, 1));
}
