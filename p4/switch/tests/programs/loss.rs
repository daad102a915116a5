// SPDX-License-Identifier: Apache-2.0

//! The loss stage: what one switch marks and another counts.

use weft_testing::packet::{Tcp, address, checksum_is_right, ping, ping_with_ttl};

use crate::bench::{Bench, Intervals, LossSample, Outcome, uplink};

/// Packets of one colour.
const BLOCK: u64 = 128;
/// Where the first byte of flags and fragment offset is, and the reserved bit in it.
const FLAGS: usize = 14 + 6;
const RESERVED: u8 = 0x80;
/// The port of leaf 1 at every spine.
const FROM_LEAF: u16 = 1;

/// A leaf and a spine at the ends of a link.
struct Link {
    leaf: Bench,
    spine: Bench,
    sent: u64,
}

impl Link {
    fn new() -> Link {
        let mut link = Link {
            leaf: Bench::leaf(1),
            spine: Bench::spine(),
            sent: 0,
        };
        link.spine.sample_every(Intervals::CHANGES);
        link
    }

    /// The next packet as the leaf puts it on the link, a nanosecond after the last.
    fn mark(&mut self) -> Vec<u8> {
        self.sent += 1;
        let frame = Tcp::subflow(address(1, 1, 1), address(2, 1, 1)).data(1, 1000);
        let (port, frame) = self.leaf.send(1, &frame.frame(), self.sent).sent.unwrap();
        assert!((uplink(0)..=uplink(3)).contains(&port));
        frame
    }

    /// Sends `packets`, and loses those whose number `is_lost` selects. Returns the spine's
    /// samples.
    fn send(&mut self, packets: u64, is_lost: impl Fn(u64) -> bool) -> Vec<LossSample> {
        (0..packets)
            .filter_map(|packet| {
                let frame = self.mark();
                let outcome = || self.spine.send(FROM_LEAF, &frame, self.sent);
                (!is_lost(packet)).then(outcome)
            })
            .flat_map(|outcome: Outcome| outcome.losses)
            .collect()
    }
}

#[test]
fn every_block_has_the_other_colour_and_is_correct_ipv4() {
    let mut link = Link::new();
    for packet in 0..5 * BLOCK {
        let frame = link.mark();
        assert_eq!(frame[FLAGS] & RESERVED != 0, packet / BLOCK % 2 == 1);
        // DF stays.
        assert_eq!(frame[FLAGS] & !RESERVED, 0x40);
        assert!(checksum_is_right(&frame));
    }
}

#[test]
fn hosts_get_no_colour() {
    let mut last = Bench::leaf(2);
    let mut link = Link::new();
    for _ in 0..2 * BLOCK {
        let frame = link.mark();
        let (port, frame) = last.send(uplink(0), &frame, 1).sent.unwrap();
        assert_eq!((port, frame[FLAGS] & RESERVED), (1, 0));
        assert!(checksum_is_right(&frame));
    }
}

#[test]
fn a_link_that_loses_nothing_tells_nothing() {
    let mut link = Link::new();
    link.spine.sample_every(Intervals {
        longest: 1,
        ..Intervals::CHANGES
    });
    assert_eq!(link.send(20 * BLOCK, |_| false), []);
}

#[test]
fn what_a_block_lacks_is_told_when_it_is_over() {
    let mut link = Link::new();
    link.send(BLOCK, |_| false);
    let told = link.send(3 * BLOCK, |packet| [5, 77, 130].contains(&packet));
    let sample = |blocks: u64, lost| LossSample {
        port: FROM_LEAF,
        blocks: blocks as u32,
        lost,
        at: (blocks + 1) * BLOCK + 1,
    };
    assert_eq!(told, [sample(1, 2), sample(2, 3)]);
}

#[test]
fn packets_lost_where_colours_change_are_counted_once() {
    for first in BLOCK - 3..=BLOCK {
        let mut link = Link::new();
        link.send(BLOCK, |_| false);
        let lost = first..first + 3;
        let told = link.send(4 * BLOCK, |packet| lost.contains(&packet));
        assert_eq!(told.last().map(|told| told.lost), Some(3), "from {first}");
    }
}

#[test]
fn random_losses_are_counted_one_by_one() {
    let mut link = Link::new();
    link.send(BLOCK, |_| false);
    // One in 100, spread by a linear congruence.
    let strikes = |packet: u64| (packet * 7_919 + 13) % 10_007 < 100;
    let packets = 200 * BLOCK;
    let told = link.send(packets + 1, strikes);
    let lost = (0..packets).filter(|&packet| strikes(packet)).count();
    assert!((200..320).contains(&lost), "{lost}");
    assert_eq!(told.last().map(|told| told.lost), Some(lost as u32));
}

#[test]
fn a_link_that_is_well_again_says_so_for_64_blocks() {
    let mut link = Link::new();
    link.spine.sample_every(Intervals {
        longest: BLOCK,
        ..Intervals::CHANGES
    });
    link.send(BLOCK, |_| false);
    let told = link.send(200 * BLOCK, |packet| packet == 9);
    assert_eq!(told.len(), 1 + 64);
    assert!(told.iter().all(|told| told.lost == 1));
    assert_eq!(told.last().unwrap().blocks, 65);
}

#[test]
fn losses_that_cannot_be_told_at_once_are_told_later() {
    let mut link = Link::new();
    // As much as the bytes of ten blocks.
    link.spine.sample_every(Intervals {
        digest_bytes: 10 * 1066 * BLOCK as u32,
        ..Intervals::CHANGES
    });
    link.send(BLOCK, |_| false);
    let told = link.send(100 * BLOCK, |packet| packet % BLOCK == 0);
    assert!(
        (16..=16 + 10).contains(&told.len()),
        "a burst, then {told:?}"
    );
    let told = link.send(20 * BLOCK, |_| false);
    assert_eq!((told.len(), told[0].lost), (1, 100));
}

#[test]
fn packets_that_the_switch_itself_drops_have_arrived() {
    let mut link = Link::new();
    link.send(BLOCK, |_| false);
    // Marked as the leaf would have done.
    let colours = (0..BLOCK).map(|_| link.mark()[FLAGS] & RESERVED);
    let colours: Vec<u8> = colours.collect();
    for colour in colours {
        let mut frame = ping_with_ttl(address(1, 1, 1), address(2, 1, 1), 1);
        weft_testing::packet::edit_ipv4(&mut frame, |header| header[6] |= colour);
        assert_eq!(link.spine.send(FROM_LEAF, &frame, 1).sent, None);
    }
    let told = link.send(2 * BLOCK, |_| false);
    assert_eq!(told, []);
}

#[test]
fn the_block_in_which_a_program_starts_is_not_counted() {
    let mut link = Link::new();
    // The spine has no program for the first packets.
    let told = link.send(5 * BLOCK, |packet| packet < 100);
    assert_eq!(told, []);
}

#[test]
fn a_host_that_only_sends_ends_no_block() {
    let mut leaf = Bench::leaf(1);
    leaf.sample_every(Intervals::CHANGES);
    let frame = ping(address(1, 1, 1), address(1, 2, 1));
    for now in 0..20_000 {
        assert_eq!(leaf.send(1, &frame, now).losses, []);
    }
}
