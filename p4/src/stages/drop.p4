// SPDX-License-Identifier: Apache-2.0
//
// Checks which packets can be routed, and drops packets. The pipeline drops nowhere else,
// and counts each packet that it drops by reason. (The traffic manager counts packets that
// find a queue full.)

#ifndef STAGES_DROP_P4_
#define STAGES_DROP_P4_

#include "headers.p4"
#include "metadata.p4"

// A packet can be routed if its IP header is complete and correct, it has no IPv4 options,
// and a hop is left. IPv6 addresses must belong to the fabric.
control CheckHeaders(in headers_t hdr,
                     in standard_metadata_t standard_metadata,
                     inout route_t route) {
    apply {
        if (hdr.ipv6.isValid()) {
            if (standard_metadata.parser_error != error.NoError ||
                hdr.ipv6.version != IP_VERSION_6) {
                route.drop_reason = drop_reason_t.BAD_HEADER;
            } else if (hdr.ipv6.src_prefix != IPV6_PREFIX ||
                       hdr.ipv6.dst_prefix != IPV6_PREFIX) {
                route.drop_reason = drop_reason_t.NO_ROUTE;
            } else if (hdr.ipv6.hop_limit <= 1) {
                route.drop_reason = drop_reason_t.TTL_EXPIRED;
            }
        } else if (!hdr.ipv4.isValid()) {
            route.drop_reason = drop_reason_t.NOT_IP;
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

// For packets that are forwarded.
control DecrementTtl(inout headers_t hdr) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        } else {
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
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
