// SPDX-License-Identifier: Apache-2.0
//
// Adds up how long an ACK has waited in queues, and reports it to the host that receives
// the ACK.
//
// A sender measures only the RTT. In it, queues on the path of the data look the same as
// queues on the path of the ACKs, but the sender should keep only the first kind short;
// other traffic fills the second. Switches can tell them apart, and ACKs have room for it:
//
//   receiver --ACK--> leaf ------------> spine ------------> leaf --> sender
//                     id = its wait      id += its wait      id += its wait
//
// `id` is IPv4's identification. Only fragments need it; in a packet that may not be
// fragmented it may have any value (RFC 6864, section 4.1). Over IPv6 it is the flow label,
// which no switch here uses. ACKs that carry data keep the value that the receiver wrote,
// because NICs of hosts merge the packets of a flow by it.

#ifndef STAGES_ACK_DELAY_P4_
#define STAGES_ACK_DELAY_P4_

#include "flow.p4"
#include "headers.p4"
#include "metadata.p4"
#include "queue.p4"

// Egress of every switch, before in-band telemetry is added.
control AddAckDelay(inout headers_t hdr,
                    in ip_t ip,
                    in standard_metadata_t standard_metadata) {
    bit<1> is_enabled = 0;
    bit<32> wait_here = 0;
    bit<32> earlier_mask = 0;

    // The ACK comes from another switch: adds to its earlier waits. Waits are in units of
    // 2^shift clock units.
    @name(".ack_delay.carry") @id(0x01000080)
    @action_restriction("shift < 32")
    action carry(@id(1) bit<8> shift) {
        is_enabled = 1;
        wait_here = standard_metadata.deq_timedelta >> shift;
        earlier_mask = 0xffffffff;
    }

    // The ACK comes from a host, and has not waited anywhere else.
    @name(".ack_delay.start") @id(0x01000081)
    @action_restriction("shift < 32")
    action start(@id(1) bit<8> shift) {
        is_enabled = 1;
        wait_here = standard_metadata.deq_timedelta >> shift;
    }

    // The controller sets the default action. Until then, ACKs stay unchanged.
    @name(".ack_delay.ports") @id(0x02000080)
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
        if (hdr.tcp.isValid() && hdr.tcp.ack == 1 && !has_data(hdr, ip)) {
            ports.apply();
            bit<16> added = wait_here > 0xffff ? 16w0xffff : wait_here[15:0];
            if (is_enabled == 1 && hdr.ipv4.isValid()) {
                // Bit 1 of `flags` is DF.
                if (hdr.ipv4.flags[1:1] == 1) {
                    hdr.ipv4.identification =
                        (hdr.ipv4.identification & earlier_mask[15:0]) |+| added;
                }
            } else if (is_enabled == 1) {
                hdr.ipv6.flow_label =
                    (hdr.ipv6.flow_label & earlier_mask[19:0]) |+| (bit<20>) added;
            }
        }
    }
}

#endif  // STAGES_ACK_DELAY_P4_
