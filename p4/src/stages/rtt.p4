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
// Two tables of registers are indexed by a hash of the key, and hold a signature of the same
// key. A later key overwrites the slot; a lookup whose signature differs finds nothing.
//
//   flow[src, dst, ports]           highest  end of the highest sequence seen
//                                   floor    ACKs up to here measure nothing
//                                   acked, window   of the last ACK
//   entry[src, dst, ports, ACK]     time, length, route of the segment
//
// A segment ends at its sequence number + payload + one each for SYN and FIN, so that SYN,
// SYN-ACK and FIN are measured too. A segment without sequence space (a bare ACK) is never
// acknowledged. The rules:
//
//   - A segment that starts at or after `highest` is new. It is stored, and raises `highest`.
//   - Any other segment is a retransmission, and Karn's rule applies: `floor` rises to
//     `highest`. That rejects the ACK of the segment itself, and the ACKs of all segments
//     sent before it: when the retransmission fills a gap, the next ACK acknowledges a
//     segment that had arrived long before.
//   - An ACK in the reverse direction counts if it is above `floor`. `floor` then rises to
//     it, so an older ACK that arrives later does not count.
//   - A duplicate ACK (RFC 5681, section 2: data outstanding, no payload, the last ACK's
//     number and window) says that a segment is missing, and that later ones wait for it at
//     the receiver. `floor` rises to `highest`, because the ACK of the later segments will
//     include that wait, whether the missing segment is sent again or only late.
//   - A SYN starts a new flow, unless it repeats the last one.
//   - The first segment of an unknown flow (another flow took its slot, or the flow started
//     before the switch did) is not measured, because it may be a retransmission.
//
// Sequence numbers wrap, and are compared by the rules of RFC 1982.
//
// The segment that ends at the number of an ACK is the one that triggered the ACK. If a
// receiver acknowledges several segments at once, it is the last of them. But a receiver may
// delay the ACK of a single segment until a second one arrives, or until it has another
// reason to send (RFC 1122, 4.2.3.2; for up to 40 ms on Linux). So two kinds of samples are
// not used:
//
//   - those above `longest`, what the path's links and full queues can cause; the controller
//     sets it;
//   - those of an ACK for a single segment, if they are 1/16 or more above `smoothed`, unless
//     there was no sample for `longest_interval`.
//
// A receiver that falls behind (its socket is in use, its buffer nearly full) also delays
// ACKs of several segments, and then sends one ACK for many or a burst of ACKs. A queue
// delays every packet, but a slow receiver only the ACKs of a moment. So when another ACK
// gives a sample that is 1/16 or more above `smoothed`, the sample must be confirmed: an
// earlier high sample, older by at least 1/16 of the RTT, must have reached 4/5 of it. An
// ACK for more than 4 segments is treated like one for a single segment.
//
// Samples that are not used are counted. The others are smoothed (smooth_rtt.p4).

#ifndef STAGES_RTT_P4_
#define STAGES_RTT_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"
#include "flow.p4"
#include "smooth_rtt.p4"

const bit<32> RTT_FLOWS   = PLACES;
const bit<32> RTT_ENTRIES = PLACES;

// An ACK for more than 2^2 segments comes from a receiver that has fallen behind.
const bit<8> RTT_SURE_SHIFT = 2;
// A doubted sample confirms later ones up to 2^-2 above it.
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

// The last high sample, which may confirm another one. 0: none.
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

// For a segment from a host into the fabric: stores when it passed.
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
            bool is_repeated = is_after(highest, hdr.tcp.seq_no);
            bool is_new;
            if (hdr.tcp.syn == 1) {
                is_new = !(is_known && highest == end);
            } else {
                is_new = is_known && !is_repeated;
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

// For an ACK from the fabric to a host: looks up the segment that it acknowledges, and
// measures the RTT if the rules above allow it.
control MatchAck(in headers_t hdr,
                 in ip_t ip,
                 in flow_t flow,
                 in time_t now,
                 out bool matches,
                 out bool may_be_delayed,  // the ACK is for one segment, or very many
                 out measured_t measured) {
    apply {
        matches = false;
        may_be_delayed = false;
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
            bool is_above_floor = is_after(hdr.tcp.ack_no, floor);
            if (is_duplicate) {
                rtt_flow_floor.write(at.index, highest);
            } else if (is_above_floor) {
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
                    // One segment has less payload than its length; two have more.
                    bit<32> segment_bytes = (bit<32>) measured.length_bytes;
                    bit<32> acknowledged = hdr.tcp.ack_no - acked;
                    may_be_delayed = acknowledged <= segment_bytes ||
                                     acknowledged > segment_bytes << RTT_SURE_SHIFT;
                    matches = true;
                }
                rtt_flow_floor.write(at.index, hdr.tcp.ack_no);
            }
            rtt_flow_acked.write(at.index, hdr.tcp.ack_no);
            rtt_flow_window.write(at.index, hdr.tcp.window);
        }
    }
}

// Rejects samples that the receiver may have delayed.
control RejectDelayedAck(in bool may_be_delayed,
                         in bool is_possible,
                         in bit<16> route_index,
                         in time_t full_size_rtt,
                         in telemetry_t telemetry,
                         in time_t now,
                         out bool is_used) {
    // Samples that were not used.
    @name(".rtt.delayed_acks") @id(0x12000030)
    counter(1, CounterType.packets) delayed_acks;

    apply {
        bit<32> route = (bit<32>) route_index;
        time_t smoothed;
        time_t last_measured;
        time_t doubted;
        time_t doubted_at;
        rtt_smoothed.read(smoothed, route);
        rtt_measured.read(last_measured, route);
        rtt_doubted.read(doubted, route);
        rtt_doubted_at.read(doubted_at, route);
        bool restarts = smoothed == 0 ||
                        is_due(now, last_measured, telemetry.longest_interval);
        time_t estimate = smoothed >> RTT_WEIGHT_SHIFT;
        time_t margin = estimate >> RTT_STEP_SHIFT;
        bool is_high = !restarts && full_size_rtt >= estimate + margin;
        bool is_confirmed = is_due(now, doubted_at, margin) &&
                            full_size_rtt <= doubted + (doubted >> RTT_DOUBT_SHIFT);
        bool is_rejected = is_high && (may_be_delayed || !is_confirmed);
        if (!is_high) {
            rtt_doubted.write(route, 0);
        } else if (!may_be_delayed && is_due(now, doubted_at, margin)) {
            rtt_doubted.write(route, full_size_rtt);
            rtt_doubted_at.write(route, now);
        }
        is_used = is_possible && !is_rejected;
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
    NormaliseRtt() normalise_rtt;
    RejectDelayedAck() reject_delayed_ack;
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
                // The subflow, in the direction of the data that is acknowledged.
                flow_t flow = { ip.is_ipv6, ip.dst_addr, ip.src_addr,
                                hdr.tcp.dst_port, hdr.tcp.src_port };
                bool matches;
                bool may_be_delayed;
                measured_t measured;
                match_ack.apply(hdr, ip, flow, now, matches, may_be_delayed, measured);
                if (matches) {
                    time_t full_size_rtt;
                    bool is_possible;
                    bool is_used;
                    normalise_rtt.apply(measured, full_size_rtt, is_possible);
                    reject_delayed_ack.apply(may_be_delayed, is_possible, measured.route,
                                             full_size_rtt, telemetry, now, is_used);
                    if (is_used) {
                        smooth_rtt.apply(flow, measured, full_size_rtt, telemetry, now);
                    }
                }
            }
        }
    }
}

#endif  // STAGES_RTT_P4_
