// SPDX-License-Identifier: Apache-2.0
//
// Smooths measured RTTs and reports them, for each remote leaf and path:
//
//   full_size = rtt + the additional time on the wire that a full-size packet would take,
//               so that samples of all lengths are comparable
//   smoothed += (full_size - smoothed) / 8, as in TCP (RFC 6298); restarts at full_size
//               when there was no sample for `longest_interval`
//   minimum   = lowest `full_size` since the last digest
//
// A digest leaves with the first sample of a remote leaf and path, when `smoothed` has moved
// by 1/16 or more since the last digest (at most once per `rtt_interval`), and when
// `longest_interval` has passed. If the packet already has a digest, the next one reports.

#ifndef STAGES_SMOOTH_RTT_P4_
#define STAGES_SMOOTH_RTT_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"
#include "flow.p4"

struct rtt_sample_t {
    // The subflow, in the direction of its data.
    bit<32> src_addr;
    bit<32> dst_addr;
    bit<16> src_port;
    bit<16> dst_port;
    // Of the segment: its path, IP length with the header, and RTT.
    bit<8>  path;
    bit<16> length_bytes;
    bit<48> rtt;
    // Of the remote leaf and path: RTTs of full-size packets.
    bit<48> smoothed;
    bit<48> minimum;
    bit<48> at;  // now, by the clock of the switch
}

const bit<32> RTT_ROUTES = 0x10000;  // every remote leaf and path
const bit<32> RTT_PATHS  = 4096;     // how many of these may be in use

// IP length of a full-size packet.
const bit<16> FULL_SIZE_BYTES = 1500;
// The weight of a sample is 2^-3.
const bit<8> RTT_WEIGHT_SHIFT = 3;
// A change by 2^-4 is reported at once.
const bit<8> RTT_STEP_SHIFT = 4;
// The unit of `per_byte` is 2^-16 clock units.
const bit<8> PER_BYTE_SHIFT = 16;

// Time of the last digest of a remote leaf and path, and the RTT that it reported.
@name("rtt.sampled") @id(0x16000008)
register<time_t>(RTT_ROUTES) rtt_sampled;
@name("rtt.told") @id(0x1600000b)
register<time_t>(RTT_ROUTES) rtt_told;
// Scaled by 2^RTT_WEIGHT_SHIFT, so that shifts lose nothing. 0: no sample yet.
@name("rtt.smoothed") @id(0x1600000c)
register<time_t>(RTT_ROUTES) rtt_smoothed;
// 0: no sample since the last digest.
@name("rtt.minimum") @id(0x1600000d)
register<time_t>(RTT_ROUTES) rtt_minimum;
// When the last sample was measured.
@name("rtt.measured") @id(0x1600000e)
register<time_t>(RTT_ROUTES) rtt_measured;

// A measured RTT.
struct measured_t {
    bit<16> route;  // remote leaf ++ path
    bit<16> length_bytes;
    time_t  rtt;
}

// Converts an RTT to that of a full-size packet, and checks whether the network can cause it.
control NormaliseRtt(in measured_t measured,
                     out time_t full_size_rtt,
                     out bool is_possible) {
    time_t byte_time = 0;

    // `per_byte`: time of a byte on all wires to the receiver. `longest`: RTT with full
    // queues.
    @name(".rtt.expect") @id(0x01000031)
    action expect(@id(1) time_t per_byte, @id(2) time_t longest) {
        byte_time = per_byte;
        is_possible = measured.rtt <= longest;
    }

    // Leaves are counted from 1. Paths are counted from 0, without NO_PATH.
    @name(".rtt.paths") @id(0x02000031)
    @entry_restriction("leaf != 0; path != 255")
    table paths {
        key = {
            measured.route[15:8]: exact @id(1) @name("leaf");
            measured.route[7:0]:  exact @id(2) @name("path");
        }
        actions = {
            expect;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = RTT_PATHS;
    }

    apply {
        is_possible = true;
        paths.apply();
        time_t missing_bytes = (time_t) (FULL_SIZE_BYTES |-| measured.length_bytes);
        full_size_rtt = measured.rtt + ((missing_bytes * byte_time) >> PER_BYTE_SHIFT);
    }
}

// Adds a sample to the smoothed RTT, and reports if a report is due.
control SmoothRtt(in flow_t flow,
                  in measured_t measured,
                  in time_t full_size_rtt,
                  inout telemetry_t telemetry,
                  in time_t now) {
    apply {
        bit<32> route = (bit<32>) measured.route;
        time_t smoothed;
        time_t minimum;
        time_t reported;
        time_t reported_at;
        time_t last_measured;
        rtt_smoothed.read(smoothed, route);
        rtt_minimum.read(minimum, route);
        rtt_told.read(reported, route);
        rtt_sampled.read(reported_at, route);
        rtt_measured.read(last_measured, route);

        bool is_first = smoothed == 0;
        bool is_old = is_due(now, reported_at, telemetry.longest_interval);
        if (is_first || is_due(now, last_measured, telemetry.longest_interval)) {
            smoothed = full_size_rtt << RTT_WEIGHT_SHIFT;
        } else {
            smoothed = smoothed + full_size_rtt - (smoothed >> RTT_WEIGHT_SHIFT);
        }
        if (minimum == 0 || full_size_rtt < minimum) {
            minimum = full_size_rtt;
        }
        time_t estimate = smoothed >> RTT_WEIGHT_SHIFT;
        time_t step = estimate |-| reported;
        if (reported > estimate) {
            step = reported - estimate;
        }
        bool has_moved = step >= (reported >> RTT_STEP_SHIFT);
        bool may_report = is_due(now, reported_at, telemetry.rtt_interval);
        bool report_is_due = is_first ||
                             (has_moved && may_report &&
                              telemetry.affordable == 1) ||
                             (is_old && telemetry.spare == 1);
        if (telemetry.enabled == 1 && telemetry.reported == 0 && report_is_due) {
            telemetry.reported = 1;
            rtt_sampled.write(route, now);
            rtt_told.write(route, estimate);
            digest<rtt_sample_t>(DIGEST_RECEIVER,
                                 { flow.src_addr, flow.dst_addr,
                                   flow.src_port, flow.dst_port,
                                   measured.route[7:0],
                                   measured.length_bytes, measured.rtt,
                                   estimate, minimum, now });
            minimum = 0;
        }
        rtt_smoothed.write(route, smoothed);
        rtt_minimum.write(route, minimum);
        rtt_measured.write(route, now);
    }
}

#endif  // STAGES_SMOOTH_RTT_P4_
