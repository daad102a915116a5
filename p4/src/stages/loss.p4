// SPDX-License-Identifier: Apache-2.0
//
// Counts the packets that links between switches lose, by alternate marking (RFC 9341).
//
//   egress, a packet leaves for a switch     ingress, a packet came from a switch
//     sent[p] += 1                             colour of the packet
//     colour: one for LOSS_BLOCK_PACKETS,        the same      block[p] += 1
//     the other for the same number of           the other     the block has ended:
//     packets that follow                                      lost[p] += packets
//          |                                                   missing in block[p]
//          '---- reserved bit of the IPv4 flags --->
//
// Blocks are counted in packets, not in time. So the receiving switch knows how many packets
// a block had, and needs no report from the sender. Links do not reorder. Packets are marked
// behind the queue, so packets that find the queue full do not count as loss of the link.
// Packets that a switch loses internally before it counts them do count, as loss of the link
// that leads to this switch.
//
// The bit must be zero (RFC 791) in packets from hosts, and is zero again in packets to
// hosts. So on host ports the colour never changes, and no block ends. IPv6 has no spare
// bit; its packets are not counted.
//
// A digest leaves at the end of a block, if packets were lost since the last digest. For
// LOSS_WATCHED_BLOCKS more blocks, digests also confirm that no more was lost, as often as
// other confirmations are sent. A digest has the totals since the program started, so
// nothing is missed when a digest gets lost. A link that loses nothing sends no digests.
//
// The first block of a port is not counted, because the program may have started in the
// middle of it. When the sending switch restarts, one block is too short.

#ifndef STAGES_LOSS_P4_
#define STAGES_LOSS_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

struct loss_sample_t {
    bit<16> port;    // by which the packets came in
    bit<32> blocks;  // blocks of LOSS_BLOCK_PACKETS that were counted there
    bit<32> lost;    // packets of these blocks that did not arrive
    bit<48> at;      // now, by the clock of the switch
}

const bit<32> LOSS_PORTS = 512;  // every value of port_t

// 2^7 packets. If more are lost in a row, the count is too low.
#define LOSS_BLOCK_SHIFT 7
const bit<14> LOSS_BLOCK_PACKETS = 1 << LOSS_BLOCK_SHIFT;

// 8192 packets: by then, the controller has heard that a link has recovered.
const bit<32> LOSS_WATCHED_BLOCKS = 64;

// Packets that were marked.
@name("loss.sent") @id(0x16000070)
register<bit<32>>(LOSS_PORTS) loss_sent;
// The current block: whether it was seen from its start (1 bit), its colour (1), and how
// many of its packets arrived (14).
@name("loss.block") @id(0x16000071)
register<bit<16>>(LOSS_PORTS) loss_block;
// The totals for the next digest, then the losses in the last digest and its time.
@name("loss.blocks") @id(0x16000072)
register<bit<32>>(LOSS_PORTS) loss_blocks;
@name("loss.lost") @id(0x16000073)
register<bit<32>>(LOSS_PORTS) loss_lost;
@name("loss.told") @id(0x16000074)
register<bit<32>>(LOSS_PORTS) loss_told;
@name("loss.told_at") @id(0x16000075)
register<time_t>(LOSS_PORTS) loss_told_at;
// `blocks` at the last loss.
@name("loss.last") @id(0x16000076)
register<bit<32>>(LOSS_PORTS) loss_last;

// Egress, after all other stages that change the IPv4 header.
control MarkBlock(inout headers_t hdr,
                  in standard_metadata_t standard_metadata) {
    @name(".loss.mark") @id(0x01000070)
    action mark() { }

    // Ports that lead to another switch.
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
        // With options, the checksum would not be recomputed.
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

// Ingress, before any packet that arrived intact is dropped.
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

// Ingress, among the stages that send digests.
control SampleLoss(in loss_t loss,
                   inout telemetry_t telemetry,
                   in standard_metadata_t standard_metadata) {
    apply {
        if (loss.has_ended == 1 && telemetry.enabled == 1 &&
            telemetry.reported == 0) {
            time_t now = standard_metadata.ingress_global_timestamp;
            bit<32> port = (bit<32>) standard_metadata.ingress_port;
            bit<32> blocks;
            bit<32> lost;
            bit<32> reported;
            bit<32> last;
            time_t reported_at;
            loss_blocks.read(blocks, port);
            loss_lost.read(lost, port);
            loss_told.read(reported, port);
            loss_last.read(last, port);
            loss_told_at.read(reported_at, port);
            bool has_lost = lost != reported;
            bool is_watched = reported != 0 &&
                              blocks - last <= LOSS_WATCHED_BLOCKS;
            bool is_old = is_due(now, reported_at, telemetry.longest_interval);
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
