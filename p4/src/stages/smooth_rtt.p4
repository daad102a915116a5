// SPDX-License-Identifier: Apache-2.0
//
// What is told of measured RTTs, per remote leaf and path:
//
//   full      = rtt + time on the wire of what the segment lacks to a full-size
//               packet, so that samples of all lengths are comparable
//   smoothed += (full - smoothed) / 8, as TCP has it (RFC 6298); anew when there
//               was no sample for `longest_interval`
//   minimum   = lowest `full` since the last digest
//
// The digest leaves at once when it is the route's first, when `smoothed` is
// 1/16 or more from what was told (at most once in `rtt_interval`), and when
// `longest_interval` is over. Where a packet has another digest, the next one tells.

#ifndef STAGES_SMOOTH_RTT_P4_
#define STAGES_SMOOTH_RTT_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"
#include "flow.p4"

struct rtt_sample_t {
    // The subflow, in direction of the data.
    bit<32> src_addr;
    bit<32> dst_addr;
    bit<16> src_port;
    bit<16> dst_port;
    // Of the segment: its path, its IPv4 total length, its RTT.
    bit<8>  path;
    bit<16> length_bytes;
    bit<48> rtt;
    // Of the remote leaf and path, for full-size packets.
    bit<48> smoothed;
    bit<48> minimum;
    bit<48> at;  // now, by the clock of the switch
}

const bit<32> RTT_ROUTES = 0x10000;  // every remote leaf and path
const bit<32> RTT_PATHS  = 4096;     // of which so many are in use

// IPv4 length of a full-size packet.
const bit<16> FULL_SIZE_BYTES = 1500;
// A sample weighs 2^-3.
const bit<8> RTT_WEIGHT_SHIFT = 3;
// A change by 2^-4 is told at once.
const bit<8> RTT_STEP_SHIFT = 4;
// `per_byte` counts 2^-16 clock units.
const bit<8> PER_BYTE_SHIFT = 16;

// When the last digest of a remote leaf and path left, and what it told.
@name("rtt.sampled") @id(0x16000008)
register<time_t>(RTT_ROUTES) rtt_sampled;
@name("rtt.told") @id(0x1600000b)
register<time_t>(RTT_ROUTES) rtt_told;
// Times 2^RTT_WEIGHT_SHIFT, so that shifts lose nothing. 0: no sample yet.
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

// Makes it comparable with others, and says whether it can be.
control CompareRtt(in measured_t measured,
                   out time_t full,
                   out bool is_possible) {
    time_t byte_time = 0;

    // `per_byte`: time that a byte takes on all wires to the receiver. `longest`:
    // RTT with full queues.
    @name(".rtt.expect") @id(0x01000031)
    action expect(@id(1) time_t per_byte, @id(2) time_t longest) {
        byte_time = per_byte;
        is_possible = measured.rtt <= longest;
    }

    @name(".rtt.paths") @id(0x02000031)
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
        time_t lacking = (time_t) (FULL_SIZE_BYTES |-| measured.length_bytes);
        full = measured.rtt + ((lacking * byte_time) >> PER_BYTE_SHIFT);
    }
}

// Takes it into account, and tells if there is something to tell.
control SmoothRtt(in flow_t flow,
                  in measured_t measured,
                  in time_t full,
                  inout telemetry_t telemetry,
                  in time_t now) {
    apply {
        bit<32> route = (bit<32>) measured.route;
        time_t smoothed;
        time_t minimum;
        time_t told;
        time_t last_told;
        time_t last_measured;
        rtt_smoothed.read(smoothed, route);
        rtt_minimum.read(minimum, route);
        rtt_told.read(told, route);
        rtt_sampled.read(last_told, route);
        rtt_measured.read(last_measured, route);

        bool is_first = smoothed == 0;
        bool is_old = is_due(now, last_told, telemetry.longest_interval);
        if (is_first || is_due(now, last_measured, telemetry.longest_interval)) {
            smoothed = full << RTT_WEIGHT_SHIFT;
        } else {
            smoothed = smoothed + full - (smoothed >> RTT_WEIGHT_SHIFT);
        }
        if (minimum == 0 || full < minimum) {
            minimum = full;
        }
        time_t estimate = smoothed >> RTT_WEIGHT_SHIFT;
        time_t step = estimate |-| told;
        if (told > estimate) {
            step = told - estimate;
        }
        bool has_moved = step >= (told >> RTT_STEP_SHIFT);
        bool may_be_told = is_due(now, last_told, telemetry.rtt_interval);
        bool is_news = is_first ||
                       (has_moved && may_be_told &&
                        telemetry.affordable == 1) ||
                       (is_old && telemetry.spare == 1);
        if (telemetry.enabled == 1 && telemetry.reported == 0 && is_news) {
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
