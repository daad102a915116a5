// SPDX-License-Identifier: Apache-2.0
//
// Weft's spine with one more stage: packets are counted by DSCP where they leave.

#include "pipelines/spine.p4"
#include "stages/dscp.p4"

control CountingEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    CountDscp() count_dscp;
    SpineEgress() spine;

    apply {
        count_dscp.apply(hdr);
        spine.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(PacketParser(),
         VerifyIpv4Checksum(),
         SpineIngress(),
         CountingEgress(),
         ComputeIpv4Checksum(),
         PacketDeparser()) main;
