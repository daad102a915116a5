// SPDX-License-Identifier: Apache-2.0
//
// Chooses the priority of a packet in the queues of this switch by its DSCP.
//
//   DSCP                        priority
//   that of a class        ---> that of the class; the greatest is served first
//   segments without data  ---> as DSCP CS6: handshakes and ACKs
//   all others             ---> the default action's
//
// Hosts write a class of what a connection has left to send into DSCP; the controller
// installs what the classes mean. Without entries all packets have priority 0, and every
// queue is first in, first out.
//
// Receivers need not know of classes, because switches see themselves that a segment has no
// data.

#ifndef STAGES_PRIORITY_P4_
#define STAGES_PRIORITY_P4_

#include "flow.p4"
#include "headers.p4"
#include "metadata.p4"

// Network control (RFC 4594, section 3.1).
const bit<6> DSCP_CS6 = 48;

// Ingress of every switch.
control ChoosePriority(in headers_t hdr,
                       in ip_t ip,
                       inout standard_metadata_t standard_metadata) {
    bit<6> dscp = 0;

    @name(".priority.set_priority") @id(0x01000090)
    action set_priority(@id(1) bit<3> priority) {
        standard_metadata.priority = priority;
    }

    @name(".priority.classes") @id(0x02000090)
    table classes {
        key = {
            dscp: exact @id(1) @name("dscp");
        }
        actions = {
            set_priority;
            NoAction;
        }
        default_action = NoAction();
        size = 64;
    }

    apply {
        dscp = ip.dscp;
        if (!has_data(hdr, ip)) {
            dscp = DSCP_CS6;
        }
        classes.apply();
    }
}

#endif  // STAGES_PRIORITY_P4_
