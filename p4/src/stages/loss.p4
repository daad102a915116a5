// SPDX-License-Identifier: Apache-2.0
//
// What links between switches lose, by alternate marking (RFC 9341).
//
//   egress, a packet leaves for a switch     ingress, a packet came from a switch
//     sent[p] += 1                             colour of the packet
//     its colour: one in LOSS_BLOCK_PACKETS,     as before     block[p] += 1
//     the other in as many that follow           another one   a block is over:
//          |                                                   lost[p] += what is
//          '---- reserved bit of the IPv4 flags --->           missing in block[p]
//
// Blocks are counted in packets, not in time: the receiving switch knows how many there
// were, and no report of the sender is needed. A link does not reorder, and queues are
// in front of the marking: what overflows there is not taken for a loss of the link.
// What a switch loses inside before it counts is one of the link that leads there.
//
// The bit must be zero (RFC 791) in what hosts send, and is zero again in what they
// get. On ports of hosts the colour never changes, and no block ends. IPv6 has no bit to
// spare: its packets are not counted.
//
// A digest leaves at the end of a block when there were losses since the last one; and
// for LOSS_WATCHED_BLOCKS more, as often as what confirms old news, to say that there
// were none. It tells of all since the program started, so one that gets lost is no
// harm. A link that loses nothing says nothing.
//
// The first block of a port is not counted: the program may have started in it. When the
// sending switch starts anew, one block is too short.

#ifndef STAGES_LOSS_P4_
#define STAGES_LOSS_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

struct loss_sample_t {
    bit<16> port;    // that packets came in by
    bit<32> blocks;  // of LOSS_BLOCK_PACKETS that were counted there
    bit<32> lost;    // packets of them that did not come
    bit<48> at;      // now, by the clock of the switch
}

const bit<32> LOSS_PORTS = 512;  // every value of port_t

// 2^7 packets. More than that lost in a row are not counted right.
#define LOSS_BLOCK_SHIFT 7
const bit<14> LOSS_BLOCK_PACKETS = 1 << LOSS_BLOCK_SHIFT;

// 8192 packets: who waits to hear that a link is well has heard it by then.
const bit<32> LOSS_WATCHED_BLOCKS = 64;

// Packets that were marked.
@name("loss.sent") @id(0x16000070)
register<bit<32>>(LOSS_PORTS) loss_sent;
// Whether the block under way was seen from its start, its colour, and packets of it.
@name("loss.block") @id(0x16000071)
register<bit<16>>(LOSS_PORTS) loss_block;
// What a digest tells, and of what the last one told.
@name("loss.blocks") @id(0x16000072)
register<bit<32>>(LOSS_PORTS) loss_blocks;
@name("loss.lost") @id(0x16000073)
register<bit<32>>(LOSS_PORTS) loss_lost;
@name("loss.told") @id(0x16000074)
register<bit<32>>(LOSS_PORTS) loss_told;
@name("loss.told_at") @id(0x16000075)
register<time_t>(LOSS_PORTS) loss_told_at;
// `blocks` when something was lost last.
@name("loss.last") @id(0x16000076)
register<bit<32>>(LOSS_PORTS) loss_last;

// Egress, last of all that changes the IPv4 header.
control MarkBlock(inout headers_t hdr,
                  in standard_metadata_t standard_metadata) {
    @name(".loss.mark") @id(0x01000070)
    action mark() { }

    // The ports behind which there are switches.
    @name(".loss.links") @id(0x02000070)
    table links {
        key = {
            standard_metadata.egress_port: exact @id(1);
        }
        actions = {
            mark;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = LOSS_PORTS;
    }

    apply {
        // Without options, or the checksum would not be computed anew.
        if (hdr.ipv4.isValid() && hdr.ipv4.ihl == IPV4_MINIMUM_IHL) {
            bit<1> colour = 0;
            if (links.apply().hit) {
                bit<32> port = (bit<32>) standard_metadata.egress_port;
                bit<32> sent;
                loss_sent.read(sent, port);
                loss_sent.write(port, sent + 1);
                colour = sent[LOSS_BLOCK_SHIFT:LOSS_BLOCK_SHIFT];
            }
            hdr.ipv4.flags[2:2] = colour;
        }
    }
}

// Ingress, before anything is dropped that has arrived in one piece.
control CountBlock(in headers_t hdr,
                   inout loss_t loss,
                   in standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ipv4.isValid() && standard_metadata.checksum_error == 0) {
            bit<32> port = (bit<32>) standard_metadata.ingress_port;
            bit<1> colour = hdr.ipv4.flags[2:2];
            bit<16> block;
            loss_block.read(block, port);
            bit<14> packets = block[13:0];
            if (colour == block[14:14]) {
                loss_block.write(port, block[15:14] ++ (packets |+| 1));
            } else {
                loss_block.write(port, 1w1 ++ colour ++ 14w1);
                if (block[15:15] == 1) {
                    bit<32> blocks;
                    loss_blocks.read(blocks, port);
                    blocks = blocks + 1;
                    loss_blocks.write(port, blocks);
                    bit<14> missing = LOSS_BLOCK_PACKETS |-| packets;
                    if (missing != 0) {
                        bit<32> lost;
                        loss_lost.read(lost, port);
                        loss_lost.write(port, lost + (bit<32>) missing);
                        loss_last.write(port, blocks);
                    }
                    loss.has_ended = 1;
                }
            }
        }
    }
}

// Ingress, among those that tell something.
control TellLoss(in loss_t loss,
                 inout telemetry_t telemetry,
                 in standard_metadata_t standard_metadata) {
    apply {
        if (loss.has_ended == 1 && telemetry.enabled == 1 &&
            telemetry.reported == 0) {
            time_t now = standard_metadata.ingress_global_timestamp;
            bit<32> port = (bit<32>) standard_metadata.ingress_port;
            bit<32> blocks;
            bit<32> lost;
            bit<32> told;
            bit<32> last;
            time_t told_at;
            loss_blocks.read(blocks, port);
            loss_lost.read(lost, port);
            loss_told.read(told, port);
            loss_last.read(last, port);
            loss_told_at.read(told_at, port);
            bool has_lost = lost != told;
            bool is_watched = told != 0 &&
                              blocks - last <= LOSS_WATCHED_BLOCKS;
            bool is_old = is_due(now, told_at, telemetry.longest_interval);
            if ((has_lost && telemetry.affordable == 1) ||
                (is_watched && is_old && telemetry.spare == 1)) {
                telemetry.reported = 1;
                loss_told.write(port, lost);
                loss_told_at.write(port, now);
                digest<loss_sample_t>(DIGEST_RECEIVER,
                                      { (bit<16>) standard_metadata.ingress_port,
                                        blocks, lost, now });
            }
        }
    }
}

#endif  // STAGES_LOSS_P4_
