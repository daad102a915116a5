// SPDX-License-Identifier: Apache-2.0
//
// Packets from and to the controller. A packet with a `packet_out` leaves by the port that
// it names. A packet sent to CPU_PORT gets a `packet_in` with its ingress port.

#ifndef STAGES_CONTROLLER_IO_P4_
#define STAGES_CONTROLLER_IO_P4_

#include "headers.p4"

// Ingress, for packets with a valid `packet_out`.
control PacketOut(inout headers_t hdr,
                  inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = hdr.packet_out.egress_port;
        hdr.packet_out.setInvalid();
    }
}

// Egress.
control PacketIn(inout headers_t hdr,
                 in standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.pad = 0;
        }
    }
}

#endif  // STAGES_CONTROLLER_IO_P4_
