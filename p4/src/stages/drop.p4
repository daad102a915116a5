// SPDX-License-Identifier: Apache-2.0
//
// Every packet that the pipeline itself drops is counted under its reason.
// (Packets that find a queue full are the traffic manager's to count.)

#ifndef STAGES_DROP_P4_
#define STAGES_DROP_P4_

#include "headers.p4"
#include "metadata.p4"

// Index into the counter `routing.drops`. New reasons go to the end.
enum bit<32> drop_reason_t {
    NOT_IPV4     = 0,
    BAD_HEADER   = 1,  // checksum, version, or truncated
    IPV4_OPTIONS = 2,
    TTL_EXPIRED  = 3,
    NO_ROUTE     = 4,  // `ipv4_lpm` has none, or says drop
    NO_UPLINK    = 5   // leaf: `path_select` does not know the path
}
const bit<32> DROP_REASONS = 6;

@name("routing.drops") @id(0x12000001)
counter(DROP_REASONS, CounterType.packets) drops;

void drop_packet(inout standard_metadata_t standard_metadata,
                 inout route_t route,
                 in drop_reason_t reason) {
    mark_to_drop(standard_metadata);
    route.next_hop = next_hop_t.NONE;
    drops.count((bit<32>) reason);
}

// Leaves only packets that can be routed: whole, correct IPv4 without options
// and with a hop left.
control DropUnroutable(in headers_t hdr,
                       inout standard_metadata_t standard_metadata,
                       inout route_t route,
                       out bool routable) {
    apply {
        routable = false;
        if (!hdr.ipv4.isValid()) {
            drop_packet(standard_metadata, route, drop_reason_t.NOT_IPV4);
        } else if (hdr.ipv4.ihl > IPV4_MINIMUM_IHL) {
            drop_packet(standard_metadata, route, drop_reason_t.IPV4_OPTIONS);
        } else if (standard_metadata.checksum_error == 1 ||
                   standard_metadata.parser_error != error.NoError ||
                   hdr.ipv4.version != IP_VERSION_4 ||
                   hdr.ipv4.ihl < IPV4_MINIMUM_IHL) {
            drop_packet(standard_metadata, route, drop_reason_t.BAD_HEADER);
        } else if (hdr.ipv4.ttl <= 1) {
            drop_packet(standard_metadata, route, drop_reason_t.TTL_EXPIRED);
        } else {
            routable = true;
        }
    }
}

#endif  // STAGES_DROP_P4_
