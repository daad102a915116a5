// SPDX-License-Identifier: Apache-2.0
//
// What cannot be routed, and the one place where the pipeline drops: every
// packet is counted under its reason. (Packets that find a queue full are the
// traffic manager's to count.)

#ifndef STAGES_DROP_P4_
#define STAGES_DROP_P4_

#include "headers.p4"
#include "metadata.p4"

// Only whole, correct IPv4 without options and with a hop left can be routed.
control Check(in headers_t hdr,
              in standard_metadata_t standard_metadata,
              inout route_t route) {
    apply {
        if (!hdr.ipv4.isValid()) {
            route.drop_reason = drop_reason_t.NOT_IPV4;
        } else if (hdr.ipv4.ihl > IPV4_MINIMUM_IHL) {
            route.drop_reason = drop_reason_t.IPV4_OPTIONS;
        } else if (standard_metadata.checksum_error == 1 ||
                   standard_metadata.parser_error != error.NoError ||
                   hdr.ipv4.version != IP_VERSION_4 ||
                   hdr.ipv4.ihl < IPV4_MINIMUM_IHL) {
            route.drop_reason = drop_reason_t.BAD_HEADER;
        } else if (hdr.ipv4.ttl <= 1) {
            route.drop_reason = drop_reason_t.TTL_EXPIRED;
        }
    }
}

// For packets with a drop_reason.
control Drop(in route_t route,
             inout standard_metadata_t standard_metadata) {
    @name(".routing.drops") @id(0x12000001)
    counter(DROP_REASONS, CounterType.packets) drops;

    apply {
        drops.count((bit<32>) (bit<8>) route.drop_reason);
        mark_to_drop(standard_metadata);
    }
}

#endif  // STAGES_DROP_P4_
