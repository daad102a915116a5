// SPDX-License-Identifier: Apache-2.0
//
// Headers, and the constants about ports, protocols and lengths that pipelines share.

#ifndef STAGES_HEADERS_P4_
#define STAGES_HEADERS_P4_

typedef bit<9>  port_t;
typedef bit<48> mac_addr_t;
typedef bit<32> ipv4_addr_t;
typedef bit<96> ipv6_prefix_t;
// In clock units of the target: microseconds on BMv2, nanoseconds on weft-switch with
// `--timestamps ns`. The clock may wrap, so subtract times and never compare them.
typedef bit<48> time_t;

// The port of the controller (`--cpu-port 510` on BMv2).
const port_t CPU_PORT = 510;

const bit<16> ETHER_TYPE_IPV4    = 0x0800;
const bit<16> ETHER_TYPE_IPV6    = 0x86dd;
// Announces `nic_t`. IEEE 802 reserves this EtherType for local experiments.
const bit<16> ETHER_TYPE_NIC     = 0x88b5;
const bit<4>  IP_VERSION_4       = 4;
const bit<4>  IP_VERSION_6       = 6;
const bit<4>  IPV4_MINIMUM_IHL   = 5;   // 32-bit words: a header without options
const bit<16> IPV4_HEADER_BYTES  = 20;  // the same in bytes
const bit<16> IPV6_HEADER_BYTES  = 40;
// ECN is the two low bits of dscp_ecn and traffic_class (RFC 3168).
const bit<8>  ECN_MASK           = 3;
const bit<8>  ECN_NOT_CAPABLE    = 0;
const bit<8>  ECN_CONGESTED      = 3;
const bit<8>  IP_PROTOCOL_TCP    = 6;
const bit<8>  IP_PROTOCOL_UDP    = 17;

// The third byte of the controller's addresses, 10.L.255.x.
const bit<8>  CONTROLLER_HOST    = 255;

// Precedes a frame that goes to the controller.
@id(0x04000001)
@controller_header("packet_in")
header packet_in_t {
    @id(1) port_t ingress_port;
    @id(2) bit<7> pad;
}

// Precedes a frame from the controller, which leaves by `egress_port`.
@id(0x04000002)
@controller_header("packet_out")
header packet_out_t {
    @id(1) port_t egress_port;
    @id(2) bit<7> pad;
}

header ethernet_t {
    mac_addr_t dst_addr;
    mac_addr_t src_addr;
    bit<16>    ether_type;
}

// Between Ethernet and IP, from the sender's NIC to the receiver's, where NICs run
// smartnic.p4. nic_echo.p4 explains its purpose.
header nic_t {
    bit<16> ether_type;  // of the next header
    bit<8>  path;        // of this packet
    // The echo of the last segment that arrived: its path, its IP length with the header
    // (0: there is no echo), its `sent`, and the time since it arrived.
    bit<8>  echo_path;
    bit<16> echo_bytes;
    bit<32> echo;
    bit<32> held;
    bit<32> sent;        // when this packet left, by the clock of the sender's NIC
}

// The path of a packet that does not cross the fabric. No path of a fabric has this number.
const bit<8> NO_PATH = 0xff;
// A segment held for longer is not echoed. Half the range of 32 bits: 2 s in nanoseconds.
const time_t LONGEST_HELD = 0x7fffffff;

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<8>      dscp_ecn;
    bit<16>     total_len;
    bit<16>     identification;
    bit<3>      flags;
    bit<13>     frag_offset;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     hdr_checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

// Every host has one IPv6 address for each of its IPv4 addresses: a prefix that all hosts
// share, followed by the IPv4 address (as in RFC 6052, section 2.2). So one table routes
// both, and a packet takes the same path over either.
header ipv6_t {
    bit<4>        version;
    bit<8>        traffic_class;
    bit<20>       flow_label;
    bit<16>       payload_len;
    bit<8>        next_header;
    bit<8>        hop_limit;
    ipv6_prefix_t src_prefix;
    ipv4_addr_t   src_addr;
    ipv6_prefix_t dst_prefix;
    ipv4_addr_t   dst_addr;
}

// fd57:6566:7400::/96, a unique local prefix (RFC 4193): "Weft".
const ipv6_prefix_t IPV6_PREFIX = 0xfd5765667400000000000000;

// Without TCP's options, which stay in the payload. Switches do not read MPTCP's
// signalling; to them, a subflow is an ordinary TCP connection.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq_no;
    bit<32> ack_no;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<1>  cwr;
    bit<1>  ece;
    bit<1>  urg;
    bit<1>  ack;
    bit<1>  psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

// Parsed for the ports in the ECMP hash, and added in front of in-band telemetry.
header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length_bytes;
    bit<16> checksum;
}

// In-band telemetry (INT-MD) as the P4 applications group's INT dataplane specification
// 2.1 defines it, in the sections "INT over TCP/UDP" (a new UDP header in front of TCP)
// and "INT-MD Metadata Header Format". int_md.p4 explains its purpose.
header int_shim_t {
    bit<4>  type;         // INT_TYPE_MD
    bit<2>  npt;          // INT_NPT_PROTOCOL
    bit<2>  reserved;
    bit<8>  length;       // in 32-bit words, without this header
    bit<8>  reserved2;
    bit<8>  protocol;     // IPv4's, before telemetry was added
}

header int_md_t {
    bit<4>  version;
    bit<1>  discard;
    bit<1>  hops_exceeded;
    bit<1>  mtu_exceeded;
    bit<12> reserved;
    bit<5>  hop_words;    // 32-bit words that each hop adds
    bit<8>  hops_left;
    bit<16> instructions;
    bit<16> domain;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

// What a hop adds, in front of what earlier hops added.
header int_hop_t {
    bit<32> switch_id;        // P4Runtime device id of the switch
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> latency;          // time in the queue, in clock units
    bit<8>  queue_id;
    bit<24> depth_packets;    // left in the queue at dequeue
}

// INT has no assigned port; this one is from the range for private use. Hosts may use it
// too. The parser recognises telemetry by INT_LIKE.
const bit<16> INT_PORT             = 54321;
const bit<4>  INT_TYPE_MD          = 1;
const bit<2>  INT_NPT_PROTOCOL     = 2;
const bit<4>  INT_VERSION          = 2;
const bit<16> INT_INSTRUCTIONS     = 0xf000;  // the fields of int_hop_t
const bit<8>  INT_MD_WORDS         = 3;
const bit<8>  INT_HOP_WORDS        = 4;
const bit<16> INT_HOP_BYTES        = 16;
const bit<16> INT_HEADERS_BYTES    = 24;      // UDP, shim and MD headers
const bit<16> INT_SHIM_END_BYTES   = 12;      // UDP and shim
// UDP checksum, shim and first byte of the MD header when telemetry precedes TCP. The mask
// leaves out lengths and flags.
const bit<56> INT_LIKE             = 0x0000_18000006_20;
const bit<56> INT_LIKE_MASK        = 0xffff_ff0000ff_f0;
const bit<16> INT_LEAST_BYTES      = 44;      // UDP, shim, MD and TCP headers
#define INT_HOPS 4                            // on the longest path through a fabric

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    nic_t        nic;
    ipv4_t       ipv4;
    ipv6_t       ipv6;
    udp_t        int_udp;
    int_shim_t   int_shim;
    int_md_t     int_md;
    int_hop_t[INT_HOPS] int_hops;
    tcp_t        tcp;
    udp_t        udp;
}

#endif  // STAGES_HEADERS_P4_
