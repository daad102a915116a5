// SPDX-License-Identifier: Apache-2.0
//
// Counts the packets that leave a switch, by DSCP (RFC 2474). DSCP 0 is best effort.

#ifndef STAGES_DSCP_P4_
#define STAGES_DSCP_P4_

#include "stages/headers.p4"

control CountDscp(in headers_t hdr) {
    @name(".dscp.packets") @id(0x12000070)
    counter(64, CounterType.packets) packets;

    apply {
        if (hdr.ipv4.isValid()) {
            packets.count((bit<32>) (hdr.ipv4.dscp_ecn >> 2));
        }
    }
}

#endif  // STAGES_DSCP_P4_
