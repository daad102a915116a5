// SPDX-License-Identifier: Apache-2.0
//
// What the stages of a pipeline tell each other about a packet. Every field starts at zero.

#ifndef STAGES_METADATA_P4_
#define STAGES_METADATA_P4_

#include "headers.p4"

// Why the pipeline drops a packet. The value is the index in the counter `routing.drops`,
// where NOT_DROPPED stays zero. New reasons go to the end.
enum bit<8> drop_reason_t {
    NOT_DROPPED  = 0,
    NOT_IP       = 1,
    BAD_HEADER   = 2,  // checksum, version, or truncated
    IPV4_OPTIONS = 3,
    TTL_EXPIRED  = 4,
    NO_ROUTE     = 5,  // no entry in `ipv4_lpm`, an entry that drops, or a foreign IPv6 prefix
    NO_UPLINK    = 6,  // on the way up: no entry for the path or the uplink
    FORGED       = 7   // a host sent what only switches and the controller may send
}
const bit<32> DROP_REASONS = 8;

// Where routing sends a packet.
enum bit<2> next_hop_t {
    NONE       = 0,
    HOST       = 1,  // a host of this leaf
    FABRIC     = 2,  // another switch
    CONTROLLER = 3
}

// parser -> check, routing, rtt, ack_delay: what IPv4 and IPv6 have in common. Addresses
// of IPv6 packets are the IPv4 addresses that they embed. Protocol and lengths are those
// of the packet without in-band telemetry.
struct ip_t {
    bit<1>      is_ipv6;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    bit<8>      protocol;
    bit<6>      dscp;           // 0 once the leaf takes the class away
    bit<16>     total_bytes;    // with the IP header
    bit<16>     payload_bytes;  // without the IP header
}

// check, ingress_filter, routing -> rtt, queue, drop
struct route_t {
    drop_reason_t drop_reason;
    bit<1>        measured_host;  // on a leaf: from a host whose RTTs this leaf measures
    next_hop_t    next_hop;
    bit<8>        leaf;    // FABRIC, on a leaf: the leaf of the destination (from 1)
    bit<8>        path;    // FABRIC, on the way up: the path to that leaf, or the uplink (from 0)
    bit<8>        uplink;  // if the path is spread over uplinks: the uplink (from 0)
}

// police -> classify, sample: the class that a host claims for a packet, if it does
struct claim_t {
    bit<1> made;
    bit<3> number;
}

// telemetry -> rtt -> queue -> account
struct telemetry_t {
    bit<1> enabled;
    // Whether the traffic so far pays for a digest that reports a change (`affordable`),
    // and for one that only confirms an earlier report (`spare`).
    bit<1> affordable;
    bit<1> spare;
    // A stage has sent a digest for this packet. BMv2 sends only the last digest of a
    // packet. So the first stage with something to report sends it, and the others wait
    // for the next packet.
    bit<1> reported;
    time_t rtt_interval;
    time_t queue_interval;
    time_t longest_interval;
    bit<32> digest_bytes;
}

// source (ingress) -> hop (egress); the parser counts in `unparsed`
struct int_state_t {
    bit<1> starts;    // this switch starts in-band telemetry on the packet
    bit<8> unparsed;  // hops that the parser still has to extract
}

// count -> sample
struct loss_t {
    bit<1> has_ended;  // this packet ends a block
}

struct metadata_t {
    ip_t        ip;
    route_t     route;
    telemetry_t telemetry;
    int_state_t int_state;
    loss_t      loss;
    claim_t     claim;
}

#endif  // STAGES_METADATA_P4_
