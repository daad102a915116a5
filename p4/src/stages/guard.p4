// SPDX-License-Identifier: Apache-2.0
//
// What a leaf does not take from a host: packets that only switches and the controller
// send. Behind the first leaf nobody could tell them apart.
//
//   in-band telemetry          a report of it would move traffic
//   for the controller (addresses 10.L.255.x)
//                              an answer to a probe that came back to nobody

#ifndef STAGES_GUARD_P4_
#define STAGES_GUARD_P4_

#include "headers.p4"
#include "metadata.p4"

const bit<32> HOST_PORTS = 512;

// Ingress of leaves, before routing.
control Guard(in headers_t hdr,
              in ip_t ip,
              inout route_t route,
              in standard_metadata_t standard_metadata) {
    // A host whose RTTs this leaf measures, or ...
    @name(".rtt.measure") @id(0x01000030)
    action measure() {
        route.measured_host = 1;
    }

    // ... whose card does.
    @name(".rtt.leave_to_card") @id(0x01000036)
    action leave_to_card() { }

    // The ports where hosts are. What comes in elsewhere is from the fabric.
    @name(".rtt.host_port") @id(0x02000030)
    table host_port {
        key = {
            standard_metadata.ingress_port: exact @id(1);
        }
        actions = {
            measure;
            leave_to_card;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = HOST_PORTS;
    }

    apply {
        if (host_port.apply().hit) {
            if (hdr.int_md.isValid() || ip.dst_addr[15:8] == CONTROLLER_HOST) {
                route.drop_reason = drop_reason_t.FORGED;
            }
        }
    }
}

#endif  // STAGES_GUARD_P4_
