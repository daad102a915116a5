// SPDX-License-Identifier: Apache-2.0
//
// Parser and deparser of all pipelines.
//
//   start -+- from CPU_PORT -> packet_out -+
//          |                               v
//          +-------------------------> ethernet -+---------> ipv4, ipv6 -+-> tcp
//                                                '-> nic_t ----^         +-> udp
//                               (IPv4 with in-band telemetry: shim, MD, hops) -> tcp
//
// Parsing ends early for frames other than IP, IPv4 with options, and IPv6 with extension
// headers; drop.p4 decides what happens to them. Only the first fragment of a packet has
// ports. The parser reads the ports of no fragment, so that all of them take the same path.

#ifndef STAGES_PARSER_P4_
#define STAGES_PARSER_P4_

#include "headers.p4"
#include "metadata.p4"

parser PacketParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_IPV6: parse_ipv6;
            ETHER_TYPE_NIC:  parse_nic;
            default:         accept;
        }
    }

    state parse_nic {
        packet.extract(hdr.nic);
        transition select(hdr.nic.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_IPV6: parse_ipv6;
            default:         accept;
        }
    }

    // Bit 2 of `flags` is the reserved one, bit 1 DF, bit 0 MF ("more").
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.ip.src_addr = hdr.ipv4.src_addr;
        meta.ip.dst_addr = hdr.ipv4.dst_addr;
        meta.ip.protocol = hdr.ipv4.protocol;
        meta.ip.dscp = hdr.ipv4.dscp_ecn[7:2];
        meta.ip.total_bytes = hdr.ipv4.total_len;
        meta.ip.payload_bytes = hdr.ipv4.total_len |-| IPV4_HEADER_BYTES;
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (IPV4_MINIMUM_IHL, 0, 0, IP_PROTOCOL_TCP): parse_tcp;
            (IPV4_MINIMUM_IHL, 0, 0, IP_PROTOCOL_UDP): look_at_port;
            default:                                   accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.ip.is_ipv6 = 1;
        meta.ip.src_addr = hdr.ipv6.src_addr;
        meta.ip.dst_addr = hdr.ipv6.dst_addr;
        meta.ip.protocol = hdr.ipv6.next_header;
        meta.ip.dscp = hdr.ipv6.traffic_class[7:2];
        meta.ip.total_bytes = hdr.ipv6.payload_len + IPV6_HEADER_BYTES;
        meta.ip.payload_bytes = hdr.ipv6.payload_len;
        transition select(hdr.ipv6.next_header) {
            IP_PROTOCOL_TCP: parse_tcp;
            IP_PROTOCOL_UDP: parse_udp;
            default:         accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }

    // A packet too short for telemetry must not be read beyond its end.
    state look_at_port {
        transition select(packet.lookahead<bit<32>>()[15:0],
                          meta.ip.payload_bytes |-| (INT_LEAST_BYTES - 1)) {
            (INT_PORT, 0): parse_udp;
            (INT_PORT, _): look_at_shim;
            default:       parse_udp;
        }
    }

    state look_at_shim {
        transition select(packet.lookahead<bit<104>>()[55:0]) {
            INT_LIKE &&& INT_LIKE_MASK: parse_int;
            default:                    parse_udp;
        }
    }

    state parse_int {
        packet.extract(hdr.int_udp);
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_md);
        meta.int_state.unparsed = (hdr.int_shim.length - INT_MD_WORDS) >> 2;
        // The packet without the telemetry.
        bit<16> collected = INT_SHIM_END_BYTES + ((bit<16>) hdr.int_shim.length << 2);
        meta.ip.protocol = hdr.int_shim.protocol;
        meta.ip.total_bytes = meta.ip.total_bytes - collected;
        meta.ip.payload_bytes = meta.ip.payload_bytes - collected;
        transition parse_int_hops;
    }

    state parse_int_hops {
        transition select(meta.int_state.unparsed) {
            0:       parse_tcp;
            default: parse_int_hop;
        }
    }

    // More hops than the stack holds are a parser error, so the packet has a BAD_HEADER.
    state parse_int_hop {
        packet.extract(hdr.int_hops.next);
        meta.int_state.unparsed = meta.int_state.unparsed - 1;
        transition parse_int_hops;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.nic);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.int_udp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_md);
        packet.emit(hdr.int_hops);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif  // STAGES_PARSER_P4_
