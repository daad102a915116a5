// SPDX-License-Identifier: Apache-2.0
//
// Round-trip times from NIC to NIC.
//
// These RTTs leave out the time that kernels and hypervisors of both hosts take. NICs stamp
// segments where they enter the network and where they leave it, and subtract the time
// inside the receiving host. The header `nic_t` carries the stamps; one NIC adds it, and
// the other removes it.
//
//      sender's NIC                         receiver's NIC
//   t1 | sent = t1 ----- segment ----------> | t2   echo[flow] = t1, t2, path, length
//      |                                     |         |
//      |                                     |     the host takes any time
//      |                                     |         |
//   t4 | <----- echo = t1, held = t3 - t2 -- | t3   a packet of the reverse direction
//
//   RTT = t4 - t1 - held
//
// t1 and t4 come from the sender's clock, t2 and t3 from the receiver's. Only differences on
// the same clock matter, so the clocks need not be synchronised. Sequence numbers do not
// matter either: a segment may be a retransmission, out of order, or acknowledged late or
// never. An RTT covers the way of the last segment that arrived, and the way of the next
// packet that goes back. Each segment is echoed at most once.
//
// Registers are indexed by a hash of the subflow in the direction of its data, as in rtt.p4.
// A later subflow overwrites the slot; a lookup whose signature differs finds nothing.

#ifndef STAGES_NIC_ECHO_P4_
#define STAGES_NIC_ECHO_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"
#include "flow.p4"
#include "smooth_rtt.p4"

const bit<32> NIC_LEAVES = 256;

// The last segment of a subflow to this host. NO_SIGNATURE: there is none, or it has been
// echoed.
@name("echo.signature") @id(0x16000040)
register<bit<32>>(PLACES) echo_signature;
@name("echo.sent") @id(0x16000041)
register<bit<32>>(PLACES) echo_sent;
@name("echo.arrived") @id(0x16000042)
register<time_t>(PLACES) echo_arrived;
@name("echo.path") @id(0x16000043)
register<bit<8>>(PLACES) echo_path;
@name("echo.bytes") @id(0x16000044)
register<bit<16>>(PLACES) echo_bytes;

// Ingress, for a packet from the network: stores its stamp.
control StoreStamp(in headers_t hdr, in ip_t ip, in time_t now) {
    apply {
        bit<32> space;
        sequence_space(ip.payload_bytes, hdr.tcp.data_offset, hdr.tcp.syn,
                       hdr.tcp.fin, space);
        if (space != 0) {
            flow_t flow = { ip.is_ipv6, ip.src_addr, ip.dst_addr,
                            hdr.tcp.src_port, hdr.tcp.dst_port };
            place_t at;
            flow_place(flow, at);
            echo_signature.write(at.index, at.signature);
            echo_sent.write(at.index, hdr.nic.sent);
            echo_arrived.write(at.index, now);
            echo_path.write(at.index, hdr.nic.path);
            echo_bytes.write(at.index, ip.total_bytes);
        }
    }
}

// Ingress, for a packet from the network: measures the RTT of the segment that it echoes.
control MeasureEcho(in headers_t hdr,
                    in ip_t ip,
                    inout telemetry_t telemetry,
                    in time_t now) {
    NormaliseRtt() normalise_rtt;
    SmoothRtt() smooth_rtt;
    bit<8> remote_leaf = 0;

    // Leaves are counted from 1.
    @name(".rtt.to_leaf") @id(0x01000040)
    @action_restriction("leaf != 0")
    action to_leaf(@id(1) @refers_to(paths, leaf) bit<8> leaf) {
        remote_leaf = leaf;
    }

    // The leaf of the host that echoes.
    @name(".rtt.leaves") @id(0x02000040)
    table leaves {
        key = {
            ip.src_addr: lpm @id(1) @name("src_addr");
        }
        actions = {
            to_leaf;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = NIC_LEAVES;
    }

    // RTTs above what the network can cause.
    @name(".rtt.impossible") @id(0x12000040)
    counter(1, CounterType.packets) impossible;

    apply {
        bool is_echo = hdr.nic.echo_bytes != 0 && hdr.nic.echo_path != NO_PATH;
        if (is_echo) {
            is_echo = leaves.apply().hit;
        }
        if (is_echo) {
            bit<32> rtt = now[31:0] - hdr.nic.echo - hdr.nic.held;
            flow_t flow = { ip.is_ipv6, ip.dst_addr, ip.src_addr,
                            hdr.tcp.dst_port, hdr.tcp.src_port };
            measured_t measured = { remote_leaf ++ hdr.nic.echo_path,
                                    hdr.nic.echo_bytes, (time_t) rtt };
            time_t full_size_rtt;
            bool is_possible;
            normalise_rtt.apply(measured, full_size_rtt, is_possible);
            if (is_possible) {
                smooth_rtt.apply(flow, measured, full_size_rtt, telemetry, now);
            } else {
                impossible.count(0);
            }
        }
    }
}

// Ingress, after the others, for a packet to the host. The host sees no stamps.
control RemoveStamp(inout headers_t hdr) {
    apply {
        hdr.ethernet.ether_type = hdr.nic.ether_type;
        hdr.nic.setInvalid();
    }
}

// Egress, for a TCP packet to the network, as it begins to leave.
control Stamp(inout headers_t hdr, in ip_t ip, in time_t now) {
    apply {
        hdr.nic.setValid();
        hdr.nic.ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = ETHER_TYPE_NIC;
        hdr.nic.path = NO_PATH;
        hdr.nic.sent = now[31:0];
        hdr.nic.echo_path = NO_PATH;
        hdr.nic.echo_bytes = 0;
        hdr.nic.echo = 0;
        hdr.nic.held = 0;

        // The subflow of the reverse direction, whose data this packet may acknowledge.
        flow_t flow = { ip.is_ipv6, ip.dst_addr, ip.src_addr,
                        hdr.tcp.dst_port, hdr.tcp.src_port };
        place_t at;
        bit<32> signature;
        time_t arrived;
        flow_place(flow, at);
        echo_signature.read(signature, at.index);
        echo_arrived.read(arrived, at.index);
        time_t held = now - arrived;
        if (signature == at.signature && signature != NO_SIGNATURE &&
            held <= LONGEST_HELD) {
            echo_signature.write(at.index, NO_SIGNATURE);
            echo_sent.read(hdr.nic.echo, at.index);
            echo_path.read(hdr.nic.echo_path, at.index);
            echo_bytes.read(hdr.nic.echo_bytes, at.index);
            hdr.nic.held = held[31:0];
        }
    }
}

#endif  // STAGES_NIC_ECHO_P4_
