// SPDX-License-Identifier: Apache-2.0
//
// What the stages of one pipeline tell each other about a packet.

#ifndef STAGES_METADATA_P4_
#define STAGES_METADATA_P4_

#include "headers.p4"

// Where routing sends a packet; all zero, as metadata starts, is "nowhere".
enum bit<2> next_hop_t {
    NONE       = 0,  // dropped
    HOST       = 1,  // a host of this leaf
    FABRIC     = 2,  // another switch
    CONTROLLER = 3
}

// routing -> rtt, queue
struct route_t {
    next_hop_t next_hop;
    bit<8>     leaf;  // FABRIC, on a leaf: the leaf of the destination (from 1)
    bit<8>     path;  // FABRIC, on a leaf: the path to it (from 0)
}

// telemetry -> rtt, queue
struct telemetry_t {
    bit<1> enabled;
    time_t rtt_interval;
    time_t queue_interval;
}

struct metadata_t {
    route_t     route;
    telemetry_t telemetry;
}

#endif  // STAGES_METADATA_P4_
