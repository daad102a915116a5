// SPDX-License-Identifier: Apache-2.0
//
// Polices the classes that hosts claim, counts the bytes that each host sends in each class, and
// reports these sums as digests.
//
//   data with the DSCP of       within the rate of   yes     policing.sent of
//   a class, from a host   ---> this host and class? ------> this host and class
//                                     | no (red)
//                                     v
//                               DSCP 0: no class, here and at every later switch
//
// A class says how little its connection has left to send, and the least goes first. A host that
// claims to be urgent with everything would get ahead of all others. So the controller gives every
// host a rate for each class (a meter), from what honest hosts send in it. What exceeds it has no
// class, and waits with the traffic of those that claim nothing.
//
// Segments without data claim nothing: switches see themselves that they are urgent.
//
// From these sums the controller makes the rates, and the thresholds between classes. What lost
// its class is in no sum, so a host that lies hardly changes them. The controller may also let a
// host claim nothing at all, as a leaf does that does not trust the DSCP of its hosts.
//
// A digest about a host is due when `longest_interval` has passed since the last one about it, if
// the traffic pays for a report that brings no change. Short flows change queues and RTTs so often
// that it never does. So a digest is due as well when its host has sent SAMPLE_DIGESTS times what
// pays for one: these take a quarter of all digests at most.

#ifndef STAGES_POLICING_P4_
#define STAGES_POLICING_P4_

#include "flow.p4"
#include "headers.p4"
#include "metadata.p4"
#include "queue.p4"
#include "telemetry.p4"

const bit<32> CLASSES = 8;
// Two rates and three colours; red is what exceeds the peak rate.
const bit<2> METER_RED = 2;
// Two to this power is SAMPLE_DIGESTS, 4.
const bit<8> SAMPLE_DIGESTS_SHIFT = 2;

struct class_sample_t {
    bit<16> port;     // of the host
    bit<48> at;       // now, by the clock of the switch
    bit<48> bytes_0;  // from there in class 0 since the switch started, with headers, ...
    bit<48> bytes_1;
    bit<48> bytes_2;
    bit<48> bytes_3;
    bit<48> bytes_4;
    bit<48> bytes_5;
    bit<48> bytes_6;
    bit<48> bytes_7;
}

// What hosts may send, by port and class.
@name(".policing.rates") @id(0x14000091)
meter(PORTS * CLASSES, MeterType.bytes) class_rates;
// By port and class.
@name("policing.sent") @id(0x16000091)
register<bit<48>>(PORTS * CLASSES) class_sent;
// Time of the last digest, by port.
@name("policing.sampled") @id(0x16000092)
register<time_t>(PORTS) class_sampled;
// Bytes in all classes since then, by port.
@name("policing.untold") @id(0x16000095)
register<bit<32>>(PORTS) class_untold;

// Gives a packet another class, here and at every later switch.
void set_dscp(inout headers_t hdr, inout ip_t ip, in bit<6> dscp) {
    ip.dscp = dscp;
    if (hdr.ipv4.isValid()) {
        hdr.ipv4.dscp_ecn = dscp ++ hdr.ipv4.dscp_ecn[1:0];
    } else {
        hdr.ipv6.traffic_class = dscp ++ hdr.ipv6.traffic_class[1:0];
    }
}

// Ingress of a leaf, before the DSCP decides anything.
control PoliceClasses(inout headers_t hdr,
                      inout ip_t ip,
                      inout claim_t claim,
                      in standard_metadata_t standard_metadata) {
    bit<2> color = METER_RED;

    @name(".policing.claim_class") @id(0x01000091)
    action claim_class(@id(1) bit<3> number) {
        claim.made = 1;
        claim.number = number;
    }

    // This host may claim nothing.
    @name(".policing.clear_class") @id(0x01000092)
    action clear_class() {
    }

    // Only ports of hosts have entries.
    @name(".policing.claims") @id(0x02000091)
    table claims {
        key = {
            standard_metadata.ingress_port: exact @id(1);
            ip.dscp: exact @id(2) @name("dscp");
        }
        actions = {
            claim_class;
            clear_class;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = PORTS * CLASSES;
    }

    // What had its class taken away, by port.
    @name(".policing.demoted") @id(0x12000091)
    counter(PORTS, CounterType.packets_and_bytes) demoted;

    apply {
        if (has_data(hdr, ip) && claims.apply().hit) {
            bit<32> port = (bit<32>) standard_metadata.ingress_port;
            bit<32> cell = port << 3 | (bit<32>) claim.number;
            if (claim.made == 1) {
                class_rates.execute_meter(cell, color);
            }
            if (color == METER_RED) {
                demoted.count(port);
                set_dscp(hdr, ip, 0);
            } else {
                bit<48> sent;
                class_sent.read(sent, cell);
                class_sent.write(cell, sent + (bit<48>) standard_metadata.packet_length);
                bit<32> untold;
                class_untold.read(untold, port);
                class_untold.write(port, untold |+| standard_metadata.packet_length);
            }
        }
    }
}

// Ingress, after the other stages that report.
control SampleClasses(inout telemetry_t telemetry,
                      in claim_t claim,
                      in standard_metadata_t standard_metadata) {
    apply {
        if (claim.made == 1 && telemetry.enabled == 1 && telemetry.reported == 0) {
            time_t now = standard_metadata.ingress_global_timestamp;
            bit<32> port = (bit<32>) standard_metadata.ingress_port;
            bit<32> cell = port << 3;
            time_t last;
            class_sampled.read(last, port);
            bit<32> untold;
            class_untold.read(untold, port);
            bool is_paid = telemetry.spare == 1 ||
                           untold >> SAMPLE_DIGESTS_SHIFT >= telemetry.digest_bytes;
            if (is_paid && is_due(now, last, telemetry.longest_interval)) {
                telemetry.reported = 1;
                class_sampled.write(port, now);
                class_untold.write(port, 0);
                class_sample_t sample;
                sample.port = (bit<16>) standard_metadata.ingress_port;
                sample.at = now;
                class_sent.read(sample.bytes_0, cell);
                class_sent.read(sample.bytes_1, cell + 1);
                class_sent.read(sample.bytes_2, cell + 2);
                class_sent.read(sample.bytes_3, cell + 3);
                class_sent.read(sample.bytes_4, cell + 4);
                class_sent.read(sample.bytes_5, cell + 5);
                class_sent.read(sample.bytes_6, cell + 6);
                class_sent.read(sample.bytes_7, cell + 7);
                digest<class_sample_t>(DIGEST_RECEIVER, sample);
            }
        }
    }
}

#endif  // STAGES_POLICING_P4_
