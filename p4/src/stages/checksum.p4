// SPDX-License-Identifier: Apache-2.0
//
// The IPv4 header checksum. It is verified on the way in (drop.p4 drops packets that
// fail), and recomputed on the way out because the TTL has changed.

#ifndef STAGES_CHECKSUM_P4_
#define STAGES_CHECKSUM_P4_

#include "headers.p4"
#include "metadata.p4"

#define IPV4_CHECKSUMMED_FIELDS { \
        hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn,  \
        hdr.ipv4.total_len, hdr.ipv4.identification,        \
        hdr.ipv4.flags, hdr.ipv4.frag_offset,               \
        hdr.ipv4.ttl, hdr.ipv4.protocol,                    \
        hdr.ipv4.src_addr, hdr.ipv4.dst_addr }

control VerifyIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == IPV4_MINIMUM_IHL,
                        IPV4_CHECKSUMMED_FIELDS, hdr.ipv4.hdr_checksum,
                        HashAlgorithm.csum16);
    }
}

control ComputeIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == IPV4_MINIMUM_IHL,
                        IPV4_CHECKSUMMED_FIELDS, hdr.ipv4.hdr_checksum,
                        HashAlgorithm.csum16);
    }
}

#endif  // STAGES_CHECKSUM_P4_
