// SPDX-License-Identifier: Apache-2.0
//
// The switch of a rack, or the edge of a fat-tree: a v1model switch with the pipeline of a
// leaf.

#include "pipelines/leaf.p4"

V1Switch(PacketParser(),
         VerifyIpv4Checksum(),
         LeafIngress(),
         LeafEgress(),
         ComputeIpv4Checksum(),
         PacketDeparser()) main;
