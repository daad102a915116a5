// SPDX-License-Identifier: Apache-2.0
//
// A switch between racks, or the aggregation and the core of a fat-tree: a v1model switch
// with the pipeline of a spine.

#include "pipelines/spine.p4"

V1Switch(PacketParser(),
         VerifyIpv4Checksum(),
         SpineIngress(),
         SpineEgress(),
         ComputeIpv4Checksum(),
         PacketDeparser()) main;
