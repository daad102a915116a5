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
// Two tables of registers, both indexed by a crc16 and guarded by a crc32 of the
// same key; who comes later overwrites, whose signature differs finds nothing.
//
//   flow[src, dst, ports]           highest  end of the highest sequence seen
//                                   floor    ACKs up to here are ambiguous
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
//   - an ACK in reverse direction counts when it is above `floor`;
//   - a SYN starts the flow anew, unless it repeats the last one;
//   - of a flow that is unknown (its place was taken by another, or the switch
//     has started after it) the first segment is not measured: it may be a
//     retransmission.
//
// Sequence numbers wrap; they are compared as RFC 1982 has it.

#ifndef STAGES_RTT_P4_
#define STAGES_RTT_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

struct rtt_sample_t {
    // The subflow, in direction of the data.
    bit<32> src_addr;
    bit<32> dst_addr;
    bit<16> src_port;
    bit<16> dst_port;
    // Of the segment: its path, and its IPv4 total length.
    bit<8>  path;
    bit<16> length_bytes;
    bit<48> rtt;
}

const bit<32> RTT_FLOWS   = 0x10000;  // every value of a crc16
const bit<32> RTT_ENTRIES = 0x10000;
const bit<32> RTT_ROUTES  = 0x10000;  // every remote leaf and path
const bit<32> HOST_PORTS  = 512;

// Marks an empty place. A key with this signature is not measured.
const bit<32> NO_SIGNATURE = 0;

@name("rtt.flow_signature") @id(0x16000001)
register<bit<32>>(RTT_FLOWS) rtt_flow_signature;
@name("rtt.flow_highest") @id(0x16000002)
register<bit<32>>(RTT_FLOWS) rtt_flow_highest;
@name("rtt.flow_floor") @id(0x16000003)
register<bit<32>>(RTT_FLOWS) rtt_flow_floor;

@name("rtt.entry_signature") @id(0x16000004)
register<bit<32>>(RTT_ENTRIES) rtt_entry_signature;
@name("rtt.entry_time") @id(0x16000005)
register<time_t>(RTT_ENTRIES) rtt_entry_time;
@name("rtt.entry_length") @id(0x16000006)
register<bit<16>>(RTT_ENTRIES) rtt_entry_length;
@name("rtt.entry_route") @id(0x16000007)
register<bit<16>>(RTT_ENTRIES) rtt_entry_route;  // remote leaf ++ path

// When the last sample of a remote leaf and path left.
@name("rtt.sampled") @id(0x16000008)
register<time_t>(RTT_ROUTES) rtt_sampled;

// A subflow, in direction of its data.
struct flow_t {
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    bit<16>     src_port;
    bit<16>     dst_port;
}

// Where a key is kept, and how it is told from others at the same place.
struct place_t {
    bit<32> index;
    bit<32> signature;
}

// a > b for sequence numbers less than 2^31 apart.
bool is_after(in bit<32> a, in bit<32> b) {
    return a != b && (a - b)[31:31] == 0;
}

void flow_place(in flow_t flow, out place_t place) {
    hash(place.index, HashAlgorithm.crc16, 32w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port },
         RTT_FLOWS);
    hash(place.signature, HashAlgorithm.crc32, 32w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port },
         33w0x100000000);
}

void entry_place(in flow_t flow, in bit<32> ack_no, out place_t place) {
    hash(place.index, HashAlgorithm.crc16, 32w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port, ack_no },
         RTT_ENTRIES);
    hash(place.signature, HashAlgorithm.crc32, 32w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port, ack_no },
         33w0x100000000);
}

// A segment from a host into the fabric.
control RememberSegment(in headers_t hdr,
                        in route_t route,
                        in time_t now) {
    apply {
        bit<16> header_bytes =
            IPV4_HEADER_BYTES + ((bit<16>) hdr.tcp.data_offset << 2);
        bit<16> payload_bytes = 0;
        if (hdr.ipv4.total_len > header_bytes) {
            payload_bytes = hdr.ipv4.total_len - header_bytes;
        }
        bit<32> sequence_space = (bit<32>) payload_bytes +
                                 (bit<32>) hdr.tcp.syn +
                                 (bit<32>) hdr.tcp.fin;
        if (sequence_space != 0) {
            bit<32> end = hdr.tcp.seq_no + sequence_space;
            flow_t flow = { hdr.ipv4.src_addr, hdr.ipv4.dst_addr,
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
                rtt_entry_length.write(entry.index, hdr.ipv4.total_len);
                rtt_entry_route.write(entry.index, route.leaf ++ route.path);
                rtt_flow_highest.write(at.index, end);
                if (hdr.tcp.syn == 1) {
                    rtt_flow_floor.write(at.index, hdr.tcp.seq_no);
                }
            } else {
                bool reaches_beyond = is_after(end, highest);
                if (!is_known || reaches_beyond) {
                    highest = end;
                }
                rtt_flow_highest.write(at.index, highest);
                rtt_flow_floor.write(at.index, highest);
            }
        }
    }
}

// An ACK out of the fabric to a host.
control MatchAck(in headers_t hdr,
                 inout telemetry_t telemetry,
                 in time_t now) {
    apply {
        flow_t flow = { hdr.ipv4.dst_addr, hdr.ipv4.src_addr,
                        hdr.tcp.dst_port, hdr.tcp.src_port };
        place_t at;
        bit<32> signature;
        bit<32> floor;
        flow_place(flow, at);
        rtt_flow_signature.read(signature, at.index);
        rtt_flow_floor.read(floor, at.index);
        bool is_unambiguous = is_after(hdr.tcp.ack_no, floor);
        if (signature == at.signature && is_unambiguous) {
            place_t entry;
            entry_place(flow, hdr.tcp.ack_no, entry);
            rtt_entry_signature.read(signature, entry.index);
            if (signature == entry.signature && signature != NO_SIGNATURE) {
                time_t sent;
                bit<16> length_bytes;
                bit<16> route;
                time_t last;
                rtt_entry_time.read(sent, entry.index);
                rtt_entry_length.read(length_bytes, entry.index);
                rtt_entry_route.read(route, entry.index);
                rtt_entry_signature.write(entry.index, NO_SIGNATURE);
                rtt_flow_floor.write(at.index, hdr.tcp.ack_no);

                rtt_sampled.read(last, (bit<32>) route);
                bool due = is_due(now, last, telemetry.rtt_interval);
                if (telemetry.enabled == 1 && due) {
                    telemetry.reported = 1;
                    rtt_sampled.write((bit<32>) route, now);
                    digest<rtt_sample_t>(DIGEST_RECEIVER,
                                         { flow.src_addr, flow.dst_addr,
                                           flow.src_port, flow.dst_port,
                                           route[7:0], length_bytes,
                                           now - sent });
                }
            }
        }
    }
}

control Rtt(in headers_t hdr,
            in route_t route,
            inout telemetry_t telemetry,
            in standard_metadata_t standard_metadata) {
    RememberSegment() remember_segment;
    MatchAck() match_ack;

    @name(".rtt.measure") @id(0x01000030)
    action measure() { }

    // The ports where hosts are. What comes in elsewhere is from the fabric.
    @name(".rtt.host_port") @id(0x02000030)
    table host_port {
        key = {
            standard_metadata.ingress_port: exact @id(1);
        }
        actions = {
            measure;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = HOST_PORTS;
    }

    apply {
        if (hdr.tcp.isValid()) {
            time_t now = standard_metadata.ingress_global_timestamp;
            if (host_port.apply().hit) {
                if (route.next_hop == next_hop_t.FABRIC) {
                    remember_segment.apply(hdr, route, now);
                }
            } else if (route.next_hop == next_hop_t.HOST &&
                       hdr.tcp.ack == 1) {
                match_ack.apply(hdr, telemetry, now);
            }
        }
    }
}

#endif  // STAGES_RTT_P4_
