// SPDX-License-Identifier: Apache-2.0
//
// Explicit congestion notification: a packet that met a queue above the threshold of its
// port leaves with Congestion Experienced (RFC 3168, section 5). DCTCP needs nothing else
// from switches (RFC 8257, section 3.1).
//
//   ECN-capable, and its      joined a queue longer than `packets`,      CE,
//   port has a threshold ---> or waited longer than `delay`  ----------> ecn.marks
//
// A threshold in packets is compared with the queue as the packet joined it, including the
// packet itself. A threshold in bytes is set as the time that the link takes to send them:
// in a FIFO queue, a packet that finds so many bytes ahead of it waits for that long.
// v1model does not know the length of a queue in bytes.

#ifndef STAGES_ECN_P4_
#define STAGES_ECN_P4_

#include "headers.p4"
#include "metadata.p4"
#include "queue.p4"

// Egress, before another stage changes the packet.
control MarkCongestion(inout headers_t hdr,
                       in standard_metadata_t standard_metadata) {
    bit<32> limit;
    bit<32> observed;

    @name(".ecn.above_packets") @id(0x01000060)
    action above_packets(@id(1) bit<32> packets) {
        limit = packets;
        observed = (bit<32>) standard_metadata.enq_qdepth;
    }

    @name(".ecn.above_delay") @id(0x01000061)
    action above_delay(@id(1) bit<32> delay) {
        limit = delay;
        observed = standard_metadata.deq_timedelta;
    }

    @name(".ecn.never") @id(0x01000062)
    action never() {
        limit = 0;
        observed = 0;
    }

    // A port without an entry marks nothing.
    @name(".ecn.threshold") @id(0x02000060)
    table threshold {
        key = {
            standard_metadata.egress_port: exact @id(1);
        }
        actions = {
            above_packets;
            above_delay;
            @defaultonly never;
        }
        const default_action = never();
        size = PORTS;
    }

    @name(".ecn.marks") @id(0x12000060)
    counter(PORTS, CounterType.packets) marks;

    apply {
        bit<8> dscp_ecn = 0;
        if (hdr.ipv4.isValid()) {
            dscp_ecn = hdr.ipv4.dscp_ecn;
        } else if (hdr.ipv6.isValid()) {
            dscp_ecn = hdr.ipv6.traffic_class;
        }
        if ((dscp_ecn & ECN_MASK) != ECN_NOT_CAPABLE) {
            threshold.apply();
            if (observed > limit) {
                if (hdr.ipv4.isValid()) {
                    hdr.ipv4.dscp_ecn = dscp_ecn | ECN_CONGESTED;
                } else {
                    hdr.ipv6.traffic_class = dscp_ecn | ECN_CONGESTED;
                }
                marks.count((bit<32>) standard_metadata.egress_port);
            }
        }
    }
}

#endif  // STAGES_ECN_P4_
