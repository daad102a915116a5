// SPDX-License-Identifier: Apache-2.0
//
// The way up, for every switch that has one: leaves, and the aggregation of a
// fat-tree.
//
//   path_policy -> path_select --- set_uplink ------------------------> port
//   which path?    which way up?   `-- spread -> uplink_select -> set_uplink
//
// path_policy (no key, the controller sets its default action) is either
//
//   weft_paths  (P(src) + P(dst) + crc16(net(src) ^ net(dst))) mod paths, with
//               P the last byte of an address and net its first three. Nothing
//               in it changes when source and destination change places: data
//               and ACKs of a subflow meet the same switches. A host's addresses
//               differ in P only: subflows between different addresses take
//               different paths. The hash makes pairs of hosts start on
//               different ones.
//   ecmp_paths  crc32 of the 5-tuple, as most fabrics do it. The two directions
//               of a flow are independent, and subflows may meet.
//
// Every switch computes the same path of a packet, so that a path is a way through
// all tiers: in a fat-tree the leaf takes uplink `path mod uplinks` and the
// aggregation, with what is left of the path, uplink `path / uplinks`.
//
// A fabric may have more ways than a connection has subflows. Then what path_select
// says is only where to begin, and `spread` goes on from there:
//
//   spread_leaves  by crc16 of the two leaves (the second byte of an address): each
//                  pair of leaves has `paths` of all the ways.
//   spread_flows   by crc16 of the 5-tuple, to go with ecmp_paths.

#ifndef STAGES_UPLINK_P4_
#define STAGES_UPLINK_P4_

#include "headers.p4"
#include "metadata.p4"

// Every value of route.path, and of route.uplink.
const bit<32> PATHS   = 256;
const bit<32> UPLINKS = 256;

// value mod divisor. BMv2 has no `%` outside of hash, which with the identity as
// algorithm is just that.
void modulo(out bit<8> result, in bit<32> value, in bit<8> divisor) {
    hash(result, HashAlgorithm.identity, 8w0, { value }, divisor);
}

control ChooseUplink(in headers_t hdr,
                     in ip_t ip,
                     inout route_t route,
                     inout standard_metadata_t standard_metadata) {
    bit<16> src_port = 0;
    bit<16> dst_port = 0;
    bit<1> is_spread = 0;

    // `paths` is at least 1.
    @name(".routing.weft_paths") @id(0x01000004)
    action weft_paths(@id(1) bit<8> paths) {
        bit<16> pair;
        hash(pair, HashAlgorithm.crc16, 16w0,
             { ip.src_addr[31:8] ^ ip.dst_addr[31:8] }, 32w0x10000);
        bit<32> sum = (bit<32>) ip.src_addr[7:0] +
                      (bit<32>) ip.dst_addr[7:0] +
                      (bit<32>) pair;
        modulo(route.path, sum, paths);
    }

    @name(".routing.ecmp_paths") @id(0x01000005)
    action ecmp_paths(@id(1) bit<8> paths) {
        hash(route.path, HashAlgorithm.crc32, 8w0,
             { ip.src_addr, ip.dst_addr, ip.protocol,
               src_port, dst_port }, paths);
    }

    @name(".routing.path_policy") @id(0x02000002)
    table path_policy {
        actions = {
            weft_paths;
            ecmp_paths;
        }
        default_action = weft_paths(1);
        size = 1;
    }

    @name(".routing.set_uplink") @id(0x01000006)
    action set_uplink(@id(1) port_t port) {
        standard_metadata.egress_spec = port;
    }

    @name(".routing.no_uplink") @id(0x01000007)
    action no_uplink() {
        route.drop_reason = drop_reason_t.NO_UPLINK;
    }

    // `uplinks` is at least 1. Sum and difference are the same both ways.
    @name(".routing.spread_leaves") @id(0x01000009)
    action spread_leaves(@id(1) bit<8> first, @id(2) bit<8> uplinks) {
        bit<8> src_leaf = ip.src_addr[23:16];
        bit<8> dst_leaf = ip.dst_addr[23:16];
        bit<16> leaves;
        hash(leaves, HashAlgorithm.crc16, 16w0,
             { (bit<16>) src_leaf + (bit<16>) dst_leaf, src_leaf ^ dst_leaf }, 32w0x10000);
        modulo(route.uplink, (bit<32>) first + (bit<32>) leaves, uplinks);
        is_spread = 1;
    }

    @name(".routing.spread_flows") @id(0x0100000a)
    action spread_flows(@id(1) bit<8> first, @id(2) bit<8> uplinks) {
        bit<16> flow;
        hash(flow, HashAlgorithm.crc16, 16w0,
             { ip.src_addr, ip.dst_addr, ip.protocol,
               src_port, dst_port }, 32w0x10000);
        modulo(route.uplink, (bit<32>) first + (bit<32>) flow, uplinks);
        is_spread = 1;
    }

    @name(".routing.path_traffic") @id(0x13000002)
    direct_counter(CounterType.packets_and_bytes) path_traffic;

    @name(".routing.path_select") @id(0x02000003)
    table path_select {
        key = {
            route.path: exact @id(1) @name("meta.path");
        }
        actions = {
            set_uplink;
            spread_leaves;
            spread_flows;
            @defaultonly no_uplink;
        }
        const default_action = no_uplink();
        counters = path_traffic;
        size = PATHS;
    }

    @name(".routing.uplink_select") @id(0x02000004)
    table uplink_select {
        key = {
            route.uplink: exact @id(1) @name("meta.uplink");
        }
        actions = {
            set_uplink;
            @defaultonly no_uplink;
        }
        const default_action = no_uplink();
        size = UPLINKS;
    }

    apply {
        if (hdr.tcp.isValid()) {
            src_port = hdr.tcp.src_port;
            dst_port = hdr.tcp.dst_port;
        } else if (hdr.udp.isValid()) {
            src_port = hdr.udp.src_port;
            dst_port = hdr.udp.dst_port;
        }
        path_policy.apply();
        path_select.apply();
        if (is_spread == 1) {
            uplink_select.apply();
        }
    }
}

#endif  // STAGES_UPLINK_P4_
