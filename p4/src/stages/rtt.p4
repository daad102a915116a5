// SPDX-License-Identifier: Apache-2.0
//
// Round-trip times in the data plane (after Dart, SIGCOMM 2022): the time from
// a TCP segment's arrival at the leaf of its sender to the arrival of the ACK
// that acknowledges exactly its end.
//
//   host --segment--> [leaf] ---------> fabric -> the other host
//                     entry(4-tuple, expected ACK) = now
//   host <----------- [leaf] <--ACK---- fabric <-+
//                     RTT = now - entry
//
// Two tables of registers, indexed by hashes and guarded by signatures of the same
// key; who comes later overwrites, whose signature differs finds nothing.
//
//   flow[src, dst, ports]           highest  end of the highest sequence seen
//                                   floor    ACKs up to here measure nothing
//                                   acked, window   of the last ACK
//   entry[src, dst, ports, ACK]     time, length, route of the segment
//
// A segment ends at its sequence number + payload + one for SYN and for FIN each,
// so that SYN, SYN-ACK and FIN count too; one that takes no sequence space (a
// bare ACK) is not acknowledged. With that,
//
//   - a segment that starts at or after `highest` is new: it is stored and
//     raises `highest`;
//   - any other is a retransmission, and Karn's rule applies: `floor` rises to
//     `highest`. That rejects the ACK of the segment itself, and those of all
//     segments sent before: one of them acknowledges the end of the gap just
//     filled, long after its segment had arrived;
//   - an ACK in reverse direction counts when it is above `floor`, which rises
//     to it: an older one that arrives later does not count;
//   - a duplicate ACK (RFC 5681, section 2: data outstanding, no payload, the
//     last ACK's number and window) says that a segment is missing and others
//     wait behind it at the receiver. `floor` rises to `highest`, because what
//     acknowledges them will have waited for that segment, be it sent again or
//     only late;
//   - a SYN starts the flow anew, unless it repeats the last one;
//   - of a flow that is unknown (its place was taken by another, or the switch
//     has started after it) the first segment is not measured: it may be a
//     retransmission.
//
// Sequence numbers wrap; they are compared as RFC 1982 has it.
//
// A segment that ends at the number of an ACK is the one that called for it:
// where a receiver acknowledges several at once, it is the last. But one segment
// alone may wait for a second before it is acknowledged (RFC 1122, 4.2.3.2; for 40
// ms on Linux, or until the receiver has another reason). So
//
//   - a sample above what the path's links and full queues can take, as the
//     controller states it, is not used;
//   - nor is one of an ACK for a single segment that is 1/16 or more above
//     `smoothed`, unless there was no sample for `longest_interval`.
//
// A receiver that is behind (its socket is in use, its buffer nearly full) delays
// ACKs of several, too, and then sends one for many or a burst. Queues are seen by
// every packet, such a delay by those of a moment: of other ACKs, one so far above
// `smoothed` needs another one before it, by a 1/16 of the RTT at least, that was
// not far below, 4/5 of it. An ACK for more than 4 segments counts as one for one.
//
// All that are not used are counted. The others are smoothed (smooth_rtt.p4).

#ifndef STAGES_RTT_P4_
#define STAGES_RTT_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"
#include "flow.p4"
#include "smooth_rtt.p4"

const bit<32> RTT_FLOWS   = PLACES;
const bit<32> RTT_ENTRIES = PLACES;

// An ACK for more than 2^2 segments is that of a receiver that was behind.
const bit<8> RTT_SURE_SHIFT = 2;
// A sample 2^-2 above a doubted one is confirmed by it.
const bit<8> RTT_DOUBT_SHIFT = 2;

@name("rtt.flow_signature") @id(0x16000001)
register<bit<32>>(RTT_FLOWS) rtt_flow_signature;
@name("rtt.flow_highest") @id(0x16000002)
register<bit<32>>(RTT_FLOWS) rtt_flow_highest;
@name("rtt.flow_floor") @id(0x16000003)
register<bit<32>>(RTT_FLOWS) rtt_flow_floor;

@name("rtt.flow_acked") @id(0x16000009)
register<bit<32>>(RTT_FLOWS) rtt_flow_acked;
@name("rtt.flow_window") @id(0x1600000a)
register<bit<16>>(RTT_FLOWS) rtt_flow_window;

@name("rtt.entry_signature") @id(0x16000004)
register<bit<32>>(RTT_ENTRIES) rtt_entry_signature;
@name("rtt.entry_time") @id(0x16000005)
register<time_t>(RTT_ENTRIES) rtt_entry_time;
@name("rtt.entry_length") @id(0x16000006)
register<bit<16>>(RTT_ENTRIES) rtt_entry_length;
@name("rtt.entry_route") @id(0x16000007)
register<bit<16>>(RTT_ENTRIES) rtt_entry_route;  // remote leaf ++ path

// A sample that needs another one. 0: none.
@name("rtt.doubted") @id(0x1600000f)
register<time_t>(RTT_ROUTES) rtt_doubted;
// When it was measured.
@name("rtt.doubted_at") @id(0x16000010)
register<time_t>(RTT_ROUTES) rtt_doubted_at;

void entry_place(in flow_t flow, in bit<32> ack_no, out place_t place) {
    bit<32> crc32;
    bit<16> crc16;
    hash(crc32, HashAlgorithm.crc32, 32w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port, ack_no },
         33w0x100000000);
    hash(crc16, HashAlgorithm.crc16, 16w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port, ack_no },
         32w0x10000);
    place_of(flow.is_ipv6, crc32, crc16, place);
}

// A segment from a host into the fabric.
control RememberSegment(in headers_t hdr,
                        in ip_t ip,
                        in route_t route,
                        in time_t now) {
    apply {
        bit<32> space;
        sequence_space(ip.payload_bytes, hdr.tcp.data_offset,
                       hdr.tcp.syn, hdr.tcp.fin, space);
        if (space != 0) {
            bit<32> end = hdr.tcp.seq_no + space;
            flow_t flow = { ip.is_ipv6, ip.src_addr, ip.dst_addr,
                            hdr.tcp.src_port, hdr.tcp.dst_port };
            place_t at;
            bit<32> signature;
            bit<32> highest;
            flow_place(flow, at);
            rtt_flow_signature.read(signature, at.index);
            rtt_flow_highest.read(highest, at.index);

            bool is_known = signature == at.signature;
            bool repeats = is_after(highest, hdr.tcp.seq_no);
            bool is_new;
            if (hdr.tcp.syn == 1) {
                is_new = !(is_known && highest == end);
            } else {
                is_new = is_known && !repeats;
            }

            rtt_flow_signature.write(at.index, at.signature);
            if (is_new) {
                place_t entry;
                entry_place(flow, end, entry);
                rtt_entry_signature.write(entry.index, entry.signature);
                rtt_entry_time.write(entry.index, now);
                rtt_entry_length.write(entry.index, ip.total_bytes);
                rtt_entry_route.write(entry.index, route.leaf ++ route.path);
                rtt_flow_highest.write(at.index, end);
                if (hdr.tcp.syn == 1) {
                    rtt_flow_floor.write(at.index, hdr.tcp.seq_no);
                    rtt_flow_acked.write(at.index, hdr.tcp.seq_no);
                }
            } else {
                bool reaches_beyond = is_after(end, highest);
                if (!is_known) {
                    rtt_flow_acked.write(at.index, end);
                }
                if (!is_known || reaches_beyond) {
                    highest = end;
                }
                rtt_flow_highest.write(at.index, highest);
                rtt_flow_floor.write(at.index, highest);
            }
        }
    }
}

// An ACK out of the fabric to a host: takes the entry of the segment that it
// acknowledges, if that tells an RTT.
control MatchAck(in headers_t hdr,
                 in ip_t ip,
                 in flow_t flow,
                 in time_t now,
                 out bool matches,
                 out bool is_unsure,  // the ACK is for one segment, or very many
                 out measured_t measured) {
    apply {
        matches = false;
        is_unsure = false;
        measured = { 0, 0, 0 };
        place_t at;
        bit<32> signature;
        flow_place(flow, at);
        rtt_flow_signature.read(signature, at.index);
        if (signature == at.signature) {
            bit<32> highest;
            bit<32> floor;
            bit<32> acked;
            bit<16> window;
            rtt_flow_highest.read(highest, at.index);
            rtt_flow_floor.read(floor, at.index);
            rtt_flow_acked.read(acked, at.index);
            rtt_flow_window.read(window, at.index);

            bit<16> header_bytes = (bit<16>) hdr.tcp.data_offset << 2;
            bool is_outstanding = is_after(highest, hdr.tcp.ack_no);
            bool is_duplicate = is_outstanding &&
                                ip.payload_bytes <= header_bytes &&
                                hdr.tcp.syn == 0 && hdr.tcp.fin == 0 &&
                                hdr.tcp.ack_no == acked &&
                                hdr.tcp.window == window;
            bool is_news = is_after(hdr.tcp.ack_no, floor);
            if (is_duplicate) {
                rtt_flow_floor.write(at.index, highest);
            } else if (is_news) {
                place_t entry;
                entry_place(flow, hdr.tcp.ack_no, entry);
                rtt_entry_signature.read(signature, entry.index);
                if (signature == entry.signature && signature != NO_SIGNATURE) {
                    time_t sent;
                    rtt_entry_time.read(sent, entry.index);
                    rtt_entry_length.read(measured.length_bytes, entry.index);
                    rtt_entry_route.read(measured.route, entry.index);
                    rtt_entry_signature.write(entry.index, NO_SIGNATURE);
                    measured.rtt = now - sent;
                    // The payload of one is less than its length, that of two more.
                    bit<32> one = (bit<32>) measured.length_bytes;
                    bit<32> acknowledged = hdr.tcp.ack_no - acked;
                    is_unsure = acknowledged <= one ||
                                acknowledged > one << RTT_SURE_SHIFT;
                    matches = true;
                }
                rtt_flow_floor.write(at.index, hdr.tcp.ack_no);
            }
            rtt_flow_acked.write(at.index, hdr.tcp.ack_no);
            rtt_flow_window.write(at.index, hdr.tcp.window);
        }
    }
}

// Whether the receiver may have taken the time that was measured.
control DoubtRtt(in bool is_unsure,
                 in bool is_possible,
                 in bit<16> route_of,
                 in time_t full,
                 in telemetry_t telemetry,
                 in time_t now,
                 out bool is_used) {
    // Samples that measured a delayed ACK.
    @name(".rtt.delayed_acks") @id(0x12000030)
    counter(1, CounterType.packets) delayed_acks;

    apply {
        bit<32> route = (bit<32>) route_of;
        time_t smoothed;
        time_t last_measured;
        time_t doubted;
        time_t doubted_at;
        rtt_smoothed.read(smoothed, route);
        rtt_measured.read(last_measured, route);
        rtt_doubted.read(doubted, route);
        rtt_doubted_at.read(doubted_at, route);
        bool starts = smoothed == 0 ||
                      is_due(now, last_measured, telemetry.longest_interval);
        time_t before = smoothed >> RTT_WEIGHT_SHIFT;
        time_t margin = before >> RTT_STEP_SHIFT;
        bool is_high = !starts && full >= before + margin;
        bool is_confirmed = is_due(now, doubted_at, margin) &&
                            full <= doubted + (doubted >> RTT_DOUBT_SHIFT);
        bool has_waited = is_high && (is_unsure || !is_confirmed);
        if (!is_high) {
            rtt_doubted.write(route, 0);
        } else if (!is_unsure && is_due(now, doubted_at, margin)) {
            rtt_doubted.write(route, full);
            rtt_doubted_at.write(route, now);
        }
        is_used = is_possible && !has_waited;
        if (!is_used) {
            delayed_acks.count(0);
        }
    }
}

control Rtt(in headers_t hdr,
            in ip_t ip,
            in route_t route,
            inout telemetry_t telemetry,
            in standard_metadata_t standard_metadata) {
    RememberSegment() remember_segment;
    MatchAck() match_ack;
    CompareRtt() compare_rtt;
    DoubtRtt() doubt_rtt;
    SmoothRtt() smooth_rtt;

    apply {
        if (hdr.tcp.isValid()) {
            time_t now = standard_metadata.ingress_global_timestamp;
            if (route.measured_host == 1) {
                if (route.next_hop == next_hop_t.FABRIC) {
                    remember_segment.apply(hdr, ip, route, now);
                }
            } else if (route.next_hop == next_hop_t.HOST &&
                       hdr.tcp.ack == 1) {
                // The subflow in direction of the data that is acknowledged.
                flow_t flow = { ip.is_ipv6, ip.dst_addr, ip.src_addr,
                                hdr.tcp.dst_port, hdr.tcp.src_port };
                bool matches;
                bool is_unsure;
                measured_t measured;
                match_ack.apply(hdr, ip, flow, now, matches, is_unsure, measured);
                if (matches) {
                    time_t full;
                    bool is_possible;
                    bool is_used;
                    compare_rtt.apply(measured, full, is_possible);
                    doubt_rtt.apply(is_unsure, is_possible, measured.route, full,
                                    telemetry, now, is_used);
                    if (is_used) {
                        smooth_rtt.apply(flow, measured, full, telemetry, now);
                    }
                }
            }
        }
    }
}

#endif  // STAGES_RTT_P4_
