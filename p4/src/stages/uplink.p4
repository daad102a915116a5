// SPDX-License-Identifier: Apache-2.0
//
// Chooses an uplink, on every switch that has uplinks: leaves, and the aggregation of a
// fat-tree.
//
//   path_policy -> path_select --- set_uplink ------------------------> port
//   which path?    which uplink?   `-- spread -> uplink_select -> set_uplink
//
// path_policy (no key, the controller sets its default action) is one that numbers the paths
//
//   subflow_paths  (P(src) + P(dst) + crc16(net(src) ^ net(dst))) mod paths, where P is
//                  the last byte of an address and net is its first three. The result is
//                  the same when source and destination are swapped, so data and ACKs of
//                  a subflow cross the same switches. A host's addresses differ only in
//                  P, so subflows between different addresses take different paths. The
//                  hash makes the pairs of hosts start on different paths.
//   ecmp_paths     crc32 of the 5-tuple, as in most fabrics. The two directions of a flow
//                  are independent, and subflows may share a path.
//
// or one of two that do not look at paths, but number the uplinks of this switch instead:
//
//   flowlet_uplinks  for every flowlet an uplink at random, as in LetFlow (Vanini et al.,
//                    NSDI 2017). A packet begins a flowlet if its flow has sent nothing for
//                    longer than the flowlet timeout; others follow the packet before them.
//   spray_uplinks    for every packet an uplink at random, as in random packet spraying
//                    (Dixit et al., INFOCOM 2013).
//
// With the first two, every switch computes the same path for a packet, so a path is a
// route through all tiers. In a fat-tree, the leaf takes uplink `path mod uplinks`, and the
// aggregation takes uplink `path / uplinks`, with the rest of the path. With the last two,
// every tier draws for itself.
//
// A fabric may have more routes than a connection has subflows. Then the entry of
// path_select only gives the first uplink, and `spread` adds a hash to it:
//
//   spread_leaves  crc16 of the two leaves (the second byte of an address): each pair of
//                  leaves has `paths` of all routes.
//   spread_flows   crc16 of the 5-tuple, for ecmp_paths.

#ifndef STAGES_UPLINK_P4_
#define STAGES_UPLINK_P4_

#include "flow.p4"
#include "headers.p4"
#include "metadata.p4"

// One entry for each value of route.path, and of route.uplink.
const bit<32> PATHS   = 256;
const bit<32> UPLINKS = 256;

// Flows whose flowlets are told apart, as in LetFlow. Two flows that share a slot are one
// to the switch: their flowlets are longer.
const bit<32> FLOWLETS = 0x10000;

// When the last packet of a flow arrived, and the uplink that it took.
@name("routing.flowlet_last") @id(0x16000060)
register<time_t>(FLOWLETS) flowlet_last;
@name("routing.flowlet_uplink") @id(0x16000061)
register<bit<8>>(FLOWLETS) flowlet_uplink;

// value mod divisor. BMv2 has no `%` outside of hash; with the identity as its algorithm,
// hash computes exactly that.
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

    // `paths` is a divisor.
    @name(".routing.subflow_paths") @id(0x01000004)
    @action_restriction("paths != 0")
    action subflow_paths(@id(1) bit<8> paths) {
        bit<16> pair_hash;
        hash(pair_hash, HashAlgorithm.crc16, 16w0,
             { ip.src_addr[31:8] ^ ip.dst_addr[31:8] }, 32w0x10000);
        bit<32> sum = (bit<32>) ip.src_addr[7:0] +
                      (bit<32>) ip.dst_addr[7:0] +
                      (bit<32>) pair_hash;
        modulo(route.path, sum, paths);
    }

    @name(".routing.ecmp_paths") @id(0x01000005)
    @action_restriction("paths != 0")
    action ecmp_paths(@id(1) bit<8> paths) {
        hash(route.path, HashAlgorithm.crc32, 8w0,
             { ip.src_addr, ip.dst_addr, ip.protocol,
               src_port, dst_port }, paths);
    }

    // Without a branch, because p4c makes a jump of it, which weft-switch does not have: the
    // highest bit of `rest` says that the gap exceeds the timeout.
    @name(".routing.flowlet_uplinks") @id(0x0100000b)
    @action_restriction("uplinks != 0")
    action flowlet_uplinks(@id(1) bit<8> uplinks, @id(2) time_t timeout) {
        time_t now = standard_metadata.ingress_global_timestamp;
        bit<32> slot;
        hash(slot, HashAlgorithm.crc32, 32w0,
             { ip.src_addr, ip.dst_addr, ip.protocol,
               src_port, dst_port }, FLOWLETS);
        time_t last;
        flowlet_last.read(last, slot);
        flowlet_last.write(slot, now);
        bit<49> rest = (bit<49>) timeout - (bit<49>) (now - last);
        bit<8> begins = 0 - (bit<8>) rest[48:48];
        bit<8> drawn;
        random(drawn, 0, uplinks - 1);
        bit<8> before;
        flowlet_uplink.read(before, slot);
        route.path = (drawn & begins) | (before & ~begins);
        flowlet_uplink.write(slot, route.path);
    }

    @name(".routing.spray_uplinks") @id(0x0100000c)
    @action_restriction("uplinks != 0")
    action spray_uplinks(@id(1) bit<8> uplinks) {
        random(route.path, 0, uplinks - 1);
    }

    @name(".routing.path_policy") @id(0x02000002)
    table path_policy {
        actions = {
            subflow_paths;
            ecmp_paths;
            flowlet_uplinks;
            spray_uplinks;
        }
        default_action = subflow_paths(1);
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

    // `uplinks` is a divisor. Sum and XOR of the leaves are the same in both directions.
    @name(".routing.spread_leaves") @id(0x01000009)
    @action_restriction("uplinks != 0")
    action spread_leaves(@id(1) bit<8> first, @id(2) bit<8> uplinks) {
        bit<8> src_leaf = ip.src_addr[23:16];
        bit<8> dst_leaf = ip.dst_addr[23:16];
        bit<16> leaves_hash;
        hash(leaves_hash, HashAlgorithm.crc16, 16w0,
             { (bit<16>) src_leaf + (bit<16>) dst_leaf, src_leaf ^ dst_leaf }, 32w0x10000);
        modulo(route.uplink, (bit<32>) first + (bit<32>) leaves_hash, uplinks);
        is_spread = 1;
    }

    @name(".routing.spread_flows") @id(0x0100000a)
    @action_restriction("uplinks != 0")
    action spread_flows(@id(1) bit<8> first, @id(2) bit<8> uplinks) {
        bit<16> flow_hash;
        hash(flow_hash, HashAlgorithm.crc16, 16w0,
             { ip.src_addr, ip.dst_addr, ip.protocol,
               src_port, dst_port }, 32w0x10000);
        modulo(route.uplink, (bit<32>) first + (bit<32>) flow_hash, uplinks);
        is_spread = 1;
    }

    @name(".routing.path_traffic") @id(0x13000002)
    direct_counter(CounterType.packets_and_bytes) path_traffic;

    // At most 255 paths and uplinks are counted from 0, so 255 is neither (NO_PATH).
    @name(".routing.path_select") @id(0x02000003)
    @entry_restriction("meta.path != 255")
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
    @entry_restriction("meta.uplink != 255")
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
        ports_of(hdr, src_port, dst_port);
        path_policy.apply();
        path_select.apply();
        if (is_spread == 1) {
            uplink_select.apply();
        }
    }
}

#endif  // STAGES_UPLINK_P4_
