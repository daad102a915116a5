// SPDX-License-Identifier: Apache-2.0
//
// Round-trip times from network card to network card.
//
// What a host's kernel, its hypervisor and the receiver's take is no part of them:
// cards stamp segments where they leave for the network and where they come out of
// it, and each takes its own host's time out. `nic_t` carries the stamps; it is put
// in by the one card and taken out by the other.
//
//      sender's card                        receiver's card
//   t1 | sent = t1 ----- segment ----------> | t2   echo[flow] = t1, t2, path, length
//      |                                     |         |
//      |                                     |     its host: for as long as it likes
//      |                                     |         |
//   t4 | <----- echo = t1, held = t3 - t2 -- | t3   a packet of the reverse direction
//
//   RTT = t4 - t1 - held
//
// t1 and t4 are of the one clock and t2 and t3 of the other; only differences of
// each matter, and nobody needs to set clocks. Sequence numbers do not matter
// either: a segment may be a retransmission, out of order, or acknowledged late or
// never. What is measured is the way of the last segment that came, and the way of
// the packet that happened to go back next. Each segment is echoed once at most.
//
// Registers, by hash of the subflow in direction of its data, as those of rtt.p4:
// who comes later overwrites, whose signature differs finds nothing.

#ifndef STAGES_NIC_ECHO_P4_
#define STAGES_NIC_ECHO_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"
#include "flow.p4"
#include "smooth_rtt.p4"

const bit<32> NIC_LEAVES = 256;

// The last segment of a subflow to this host. NO_SIGNATURE: none, or echoed.
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

// Ingress, a packet out of the network: keeps its stamp.
control KeepStamp(in headers_t hdr, in ip_t ip, in time_t now) {
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

// Ingress, a packet out of the network: measures by what it echoes.
control MeasureEcho(in headers_t hdr,
                    in ip_t ip,
                    inout telemetry_t telemetry,
                    in time_t now) {
    CompareRtt() compare_rtt;
    SmoothRtt() smooth_rtt;
    bit<8> remote_leaf = 0;

    @name(".rtt.to_leaf") @id(0x01000040)
    action to_leaf(@id(1) bit<8> leaf) {
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

    // RTTs that the network cannot have had.
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
            time_t full;
            bool is_possible;
            compare_rtt.apply(measured, full, is_possible);
            if (is_possible) {
                smooth_rtt.apply(flow, measured, full, telemetry, now);
            } else {
                impossible.count(0);
            }
        }
    }
}

// Ingress, a packet for the host, after the others: it sees nothing of this.
control RemoveStamp(inout headers_t hdr) {
    apply {
        hdr.ethernet.ether_type = hdr.nic.ether_type;
        hdr.nic.setInvalid();
    }
}

// Egress, a TCP packet for the network, as it begins to leave.
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

        // The subflow whose data this packet may acknowledge.
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
