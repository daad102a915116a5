// SPDX-License-Identifier: Apache-2.0
//
// What the stages of one pipeline tell each other about a packet. All of it
// starts as zero.

#ifndef STAGES_METADATA_P4_
#define STAGES_METADATA_P4_

#include "headers.p4"

// Why the pipeline drops a packet, and the index of the counter `routing.drops`
// (where NOT_DROPPED stays zero). New reasons go to the end.
enum bit<8> drop_reason_t {
    NOT_DROPPED  = 0,
    NOT_IP       = 1,
    BAD_HEADER   = 2,  // checksum, version, or truncated
    IPV4_OPTIONS = 3,
    TTL_EXPIRED  = 4,
    NO_ROUTE     = 5,  // `ipv4_lpm` has none, or says drop; or IPv6 of another prefix
    NO_UPLINK    = 6,  // on the way up: `path_select` does not know the path
    FORGED       = 7   // from a host, what only switches and the controller send
}
const bit<32> DROP_REASONS = 8;

// Where routing sends a packet.
enum bit<2> next_hop_t {
    NONE       = 0,
    HOST       = 1,  // a host of this leaf
    FABRIC     = 2,  // another switch
    CONTROLLER = 3
}

// parser -> check, routing, rtt, waits: what both versions of IP have. Addresses of IPv6
// are the IPv4 addresses in them; of in-band telemetry nothing is seen here.
struct ip_t {
    bit<1>      is_ipv6;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    bit<8>      protocol;
    bit<16>     total_bytes;    // with the IP header
    bit<16>     payload_bytes;  // behind it
}

// check, guard, routing -> rtt, queue, drop
struct route_t {
    drop_reason_t drop_reason;
    bit<1>        measured_host;  // on a leaf: it comes from a host whose RTTs it measures
    next_hop_t    next_hop;
    bit<8>        leaf;  // FABRIC, on a leaf: the leaf of the destination (from 1)
    bit<8>        path;  // FABRIC, on the way up: the path to it (from 0)
    bit<8>        uplink;  // where the path is spread: which way up (from 0)
}

// telemetry -> rtt -> queue -> account
struct telemetry_t {
    bit<1> enabled;
    // What was sent so far leaves room for a digest that tells a change, and for
    // one that only confirms what was told.
    bit<1> affordable;
    bit<1> spare;
    // The packet has its digest. BMv2 sends one of a packet at most, the last;
    // so the first stage that has something to say takes it, and the others wait
    // for the next packet.
    bit<1> reported;
    time_t rtt_interval;
    time_t queue_interval;
    time_t longest_interval;
    bit<32> digest_bytes;
}

// source (ingress) -> hop (egress); and what the parser counts
struct int_state_t {
    bit<1> starts;    // this switch is to start in-band telemetry on the packet
    bit<8> unparsed;  // hops that the parser has still to extract
}

// count (ingress) -> tell
struct loss_t {
    bit<1> has_ended;  // a block of packets, with this one
}

struct metadata_t {
    ip_t        ip;
    route_t     route;
    telemetry_t telemetry;
    int_state_t int_state;
    loss_t      loss;
}

#endif  // STAGES_METADATA_P4_
