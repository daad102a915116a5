// SPDX-License-Identifier: Apache-2.0
//
// In-band telemetry: some packets collect what they meet on the way from leaf to leaf.
//
//   first leaf, ingress    IntSource   chooses one packet per interval, for each remote
//                                      leaf and path
//               egress     IntHop      puts UDP, shim and MD header in front of TCP
//   first leaf, spines,
//               egress     IntHop      adds switch, ports, latency and queue depth
//   last leaf,  ingress    IntReport   sends a digest, and removes it all from the packet
//
//   IPv4 | UDP | shim | MD | hop n ... hop 1 | TCP | payload
//
// With a queue sample (queue.p4), each switch reports its own ports. An in-band report has
// what one packet met in all queues of its path. The header layout is that of INT 2.1 with a
// new UDP header, so that the TCP segment stays in one piece and its checksum correct. IPv6
// packets carry no telemetry, because UDP over IPv6 needs a checksum. Links between switches
// must carry packets that are INT_HEADERS_BYTES and INT_HOPS times INT_HOP_BYTES longer than
// those of hosts.

#ifndef STAGES_INT_MD_P4_
#define STAGES_INT_MD_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

// Egress of every switch.
control IntHop(inout headers_t hdr,
               in int_state_t state,
               in standard_metadata_t standard_metadata) {
    bit<32> own_id = 0;

    // 0 would mean that this switch has no id.
    @name(".int.be") @id(0x01000050)
    @action_restriction("switch_id != 0")
    action be(@id(1) bit<32> switch_id) {
        own_id = switch_id;
    }

    // No key: the controller sets the default action. Until then, this switch adds no hop.
    @name(".int.node") @id(0x02000050)
    table node {
        actions = {
            be;
            NoAction;
        }
        default_action = NoAction();
        size = 1;
    }

    apply {
        if (state.starts == 1) {
            hdr.int_udp.setValid();
            hdr.int_udp.src_port = hdr.tcp.src_port;
            hdr.int_udp.dst_port = INT_PORT;
            hdr.int_udp.length_bytes =
                hdr.ipv4.total_len - IPV4_HEADER_BYTES + INT_HEADERS_BYTES;
            hdr.int_udp.checksum = 0;
            hdr.int_shim.setValid();
            hdr.int_shim.type = INT_TYPE_MD;
            hdr.int_shim.npt = INT_NPT_PROTOCOL;
            hdr.int_shim.reserved = 0;
            hdr.int_shim.length = INT_MD_WORDS;
            hdr.int_shim.reserved2 = 0;
            hdr.int_shim.protocol = hdr.ipv4.protocol;
            hdr.int_md.setValid();
            hdr.int_md.version = INT_VERSION;
            hdr.int_md.discard = 0;
            hdr.int_md.hops_exceeded = 0;
            hdr.int_md.mtu_exceeded = 0;
            hdr.int_md.reserved = 0;
            hdr.int_md.hop_words = (bit<5>) INT_HOP_WORDS;
            hdr.int_md.hops_left = INT_HOPS;
            hdr.int_md.instructions = INT_INSTRUCTIONS;
            hdr.int_md.domain = 0;
            hdr.int_md.domain_instructions = 0;
            hdr.int_md.domain_flags = 0;
            hdr.ipv4.protocol = IP_PROTOCOL_UDP;
            hdr.ipv4.total_len = hdr.ipv4.total_len + INT_HEADERS_BYTES;
        }
        if (hdr.int_md.isValid()) {
            node.apply();
            if (hdr.int_md.hops_left == 0) {
                hdr.int_md.hops_exceeded = 1;
            } else if (own_id != 0 &&
                       hdr.int_md.instructions == INT_INSTRUCTIONS) {
                hdr.int_hops.push_front(1);
                hdr.int_hops[0].setValid();
                hdr.int_hops[0].switch_id = own_id;
                hdr.int_hops[0].ingress_port =
                    (bit<16>) standard_metadata.ingress_port;
                hdr.int_hops[0].egress_port =
                    (bit<16>) standard_metadata.egress_port;
                hdr.int_hops[0].latency = standard_metadata.deq_timedelta;
                hdr.int_hops[0].queue_id =
                    (bit<8>) standard_metadata.priority;
                hdr.int_hops[0].depth_packets =
                    (bit<24>) standard_metadata.deq_qdepth;
                hdr.int_md.hops_left = hdr.int_md.hops_left - 1;
                hdr.int_shim.length = hdr.int_shim.length + INT_HOP_WORDS;
                hdr.int_udp.length_bytes =
                    hdr.int_udp.length_bytes + INT_HOP_BYTES;
                hdr.ipv4.total_len = hdr.ipv4.total_len + INT_HOP_BYTES;
            }
        }
    }
}

#endif  // STAGES_INT_MD_P4_
