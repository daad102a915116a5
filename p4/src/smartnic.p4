// SPDX-License-Identifier: Apache-2.0
//
// The NIC of a host: a v1model switch with the pipeline of a smart NIC.

#include "pipelines/smartnic.p4"

V1Switch(PacketParser(),
         NoChecksum(),
         NicIngress(),
         NicEgress(),
         NoChecksum(),
         PacketDeparser()) main;
