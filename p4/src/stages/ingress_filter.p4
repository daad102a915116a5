// SPDX-License-Identifier: Apache-2.0
//
// Drops what hosts may not send: packets that only switches and the controller send. Behind
// the first leaf, no switch could tell a forged packet from a genuine one.
//
//   in-band telemetry          a forged report would move traffic
//   packets to the controller (addresses 10.L.255.x)
//                              a forged probe would say that a path works

#ifndef STAGES_INGRESS_FILTER_P4_
#define STAGES_INGRESS_FILTER_P4_

#include "headers.p4"
#include "metadata.p4"

const bit<32> HOST_PORTS = 512;

// Ingress of leaves, before routing.
control IngressFilter(in headers_t hdr,
                      in ip_t ip,
                      inout route_t route,
                      in standard_metadata_t standard_metadata) {
    // This leaf measures the RTTs of the host.
    @name(".rtt.measure") @id(0x01000030)
    action measure() {
        route.measured_host = 1;
    }

    // The host's NIC measures them.
    @name(".rtt.leave_to_nic") @id(0x01000036)
    action leave_to_nic() { }

    // Ports with hosts. Packets from all other ports come from the fabric.
    @name(".rtt.host_port") @id(0x02000030)
    table host_port {
        key = {
            standard_metadata.ingress_port: exact @id(1);
        }
        actions = {
            measure;
            leave_to_nic;
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

#endif  // STAGES_INGRESS_FILTER_P4_
