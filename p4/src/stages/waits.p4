// SPDX-License-Identifier: Apache-2.0
//
// How long an ACK has waited in queues on its way, for the host that gets it.
//
// A sender sees only the RTT, in which queues on the way of its data, that it had
// better not fill, and queues on the way of the ACKs, which are none of its business,
// look the same. Switches know them apart, and ACKs have room to tell:
//
//   receiver --ACK--> leaf ------------> spine ------------> leaf --> sender
//                     id = its wait      id += its wait      id += its wait
//
// IPv4's identification is of use to fragments only; where a packet may not be
// fragmented any value may stand there (RFC 6864, section 4.1). Over IPv6 it is the
// flow label, which nothing here goes by. ACKs that carry data keep what the receiver
// wrote: network cards of hosts join packets of one flow by it.

#ifndef STAGES_WAITS_P4_
#define STAGES_WAITS_P4_

#include "headers.p4"
#include "metadata.p4"
#include "queue.p4"

// Egress of every switch, before in-band telemetry is put on.
control CarryWait(inout headers_t hdr,
                  in ip_t ip,
                  in standard_metadata_t standard_metadata) {
    bit<1> is_told = 0;
    bit<32> own = 0;
    bit<32> before = 0;

    // It comes from another switch, or ...
    @name(".waits.carry") @id(0x01000080)
    action carry(@id(1) bit<8> shift) {
        is_told = 1;
        own = standard_metadata.deq_timedelta >> shift;
        before = 0xffffffff;
    }

    // ... from a host, and has waited nowhere yet. Both in units of 2^shift of the clock's.
    @name(".waits.start") @id(0x01000081)
    action start(@id(1) bit<8> shift) {
        is_told = 1;
        own = standard_metadata.deq_timedelta >> shift;
    }

    // The controller sets the default action. Without it ACKs are left alone.
    @name(".waits.ports") @id(0x02000080)
    table ports {
        key = {
            standard_metadata.ingress_port: exact @id(1);
        }
        actions = {
            carry;
            start;
            NoAction;
        }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (hdr.tcp.isValid() && hdr.tcp.ack == 1 &&
            ip.payload_bytes == (bit<16>) hdr.tcp.data_offset << 2) {
            ports.apply();
            bit<16> more = own > 0xffff ? 16w0xffff : own[15:0];
            if (is_told == 1 && hdr.ipv4.isValid()) {
                // Bit 1 of `flags` is DF.
                if (hdr.ipv4.flags[1:1] == 1) {
                    hdr.ipv4.identification =
                        (hdr.ipv4.identification & before[15:0]) |+| more;
                }
            } else if (is_told == 1) {
                hdr.ipv6.flow_label =
                    (hdr.ipv6.flow_label & before[19:0]) |+| (bit<20>) more;
            }
        }
    }
}

#endif  // STAGES_WAITS_P4_
