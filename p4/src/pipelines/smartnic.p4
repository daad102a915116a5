// SPDX-License-Identifier: Apache-2.0
//
// The pipeline of a host's NIC: the host's kernel on one side, its leaf on the other. It
// forwards every packet, and measures RTTs from NIC to NIC.
//
//   from the host                        from the network
//     |                                    |
//   parser                               parser
//     |                                    |
//     |                                  Telemetry -> MeasureEcho -> StoreStamp
//     |                                                  |               |
//     |                                                  v               v
//   queue -> Stamp <-------------- registers          digest         registers
//     |                                                  |
//   to the network                       to the host <- RemoveStamp
//
// Tables, their keys, and what they decide:
//
//   telemetry.policy   (none)       -> intervals of digests
//   rtt.leaves         source       -> leaf of the host that echoes
//   rtt.paths          leaf, path   -> possible RTTs
//
// Digest: rtt_sample_t, the same as from leaves. Counter: rtt.impossible.
//
// Ids are part of the contract with controllers: an id is never reused for another object.

#ifndef PIPELINES_SMARTNIC_P4_
#define PIPELINES_SMARTNIC_P4_

#include <core.p4>
#include <v1model.p4>

#include "../stages/headers.p4"
#include "../stages/metadata.p4"
#include "../stages/parser.p4"
#include "../stages/controller_io.p4"
#include "../stages/telemetry.p4"
#include "../stages/nic_echo.p4"

// The ports to the host and to the network.
const port_t HOST_PORT    = 1;
const port_t NETWORK_PORT = 2;

control NicIngress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    PacketOut() from_controller;
    Telemetry() telemetry;
    MeasureEcho() measure_echo;
    StoreStamp() store_stamp;
    RemoveStamp() remove_stamp;
    AccountDigest() account_digest;

    apply {
        time_t now = standard_metadata.ingress_global_timestamp;
        if (hdr.packet_out.isValid()) {
            from_controller.apply(hdr, standard_metadata);
        } else if (standard_metadata.ingress_port == HOST_PORT) {
            standard_metadata.egress_spec = NETWORK_PORT;
        } else {
            standard_metadata.egress_spec = HOST_PORT;
            telemetry.apply(meta.telemetry);
            if (hdr.nic.isValid()) {
                if (hdr.tcp.isValid()) {
                    measure_echo.apply(hdr, meta.ip, meta.telemetry, now);
                    store_stamp.apply(hdr, meta.ip, now);
                }
                remove_stamp.apply(hdr);
            }
            account_digest.apply(meta.telemetry, standard_metadata);
        }
    }
}

control NicEgress(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Stamp() stamp;

    apply {
        if (standard_metadata.egress_port == NETWORK_PORT &&
            hdr.tcp.isValid()) {
            stamp.apply(hdr, meta.ip, standard_metadata.egress_global_timestamp);
        }
    }
}

// NICs do not touch checksums.
control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

#endif  // PIPELINES_SMARTNIC_P4_
