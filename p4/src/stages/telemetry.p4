// SPDX-License-Identifier: Apache-2.0
//
// How often this switch reports, as the controller wishes and as the traffic
// allows. Without a wish it measures and says nothing.
//
//   Telemetry --- may this packet send a digest? ---> Rtt, SampleQueue
//       ^                                                   |
//       '------- debt ------- AccountDigest <---------------'
//
// Digests cost what the traffic pays for: each puts the switch `digest_bytes` into
// debt, each byte of traffic pays one byte back, and nobody reports while the debt
// is above its limit. So there is at most one digest for `digest_bytes` of traffic,
// whatever the load, and a burst of 2^DIGEST_BURST_SHIFT when all is paid. Half of
// that is for changes only: what confirms old news must not keep new ones back.

#ifndef STAGES_TELEMETRY_P4_
#define STAGES_TELEMETRY_P4_

#include "headers.p4"
#include "metadata.p4"

// The receiver of a digest means nothing to P4Runtime targets.
const bit<32> DIGEST_RECEIVER = 1;

// 16 digests may leave one after another, 8 of them without a change to tell.
const bit<8> DIGEST_BURST_SHIFT = 4;
const bit<8> DIGEST_SPARE_SHIFT = 3;

// In bytes of traffic. Starts without debt.
@name("telemetry.debt") @id(0x16000030)
register<bit<32>>(1) telemetry_debt;

// `interval` has passed since `last`. Right across a wrap of the clock.
bool is_due(in time_t now, in time_t last, in time_t interval) {
    return now - last >= interval;
}

control Telemetry(inout telemetry_t telemetry) {
    @name(".telemetry.off") @id(0x01000020)
    action off() {
        telemetry.enabled = 0;
    }

    // What has changed is reported at once, but not twice in `rtt_interval` (of
    // a remote leaf and path) or `queue_interval` (of a port). What has not is
    // after `longest_interval`. Each takes `digest_bytes` of traffic.
    @name(".telemetry.sample_every") @id(0x01000021)
    action sample_every(@id(1) time_t rtt_interval,
                        @id(2) time_t queue_interval,
                        @id(3) time_t longest_interval,
                        @id(4) bit<32> digest_bytes) {
        telemetry.enabled = 1;
        telemetry.rtt_interval = rtt_interval;
        telemetry.queue_interval = queue_interval;
        telemetry.longest_interval = longest_interval;
        telemetry.digest_bytes = digest_bytes;
    }

    // No key: the controller sets the default action.
    @name(".telemetry.policy") @id(0x02000020)
    table policy {
        actions = {
            off;
            sample_every;
        }
        default_action = off();
        size = 1;
    }

    apply {
        policy.apply();
        bit<32> debt;
        telemetry_debt.read(debt, 0);
        bit<32> digest_bytes = telemetry.digest_bytes;
        if (debt <= (digest_bytes << DIGEST_BURST_SHIFT) - digest_bytes) {
            telemetry.affordable = 1;
        }
        if (debt <= (digest_bytes << DIGEST_SPARE_SHIFT) - digest_bytes) {
            telemetry.spare = 1;
        }
    }
}

// After the stages that may have sent a digest.
control AccountDigest(in telemetry_t telemetry,
                      in standard_metadata_t standard_metadata) {
    apply {
        bit<32> debt;
        telemetry_debt.read(debt, 0);
        debt = debt |-| standard_metadata.packet_length;
        if (telemetry.reported == 1) {
            debt = debt |+| telemetry.digest_bytes;
        }
        telemetry_debt.write(0, debt);
    }
}

#endif  // STAGES_TELEMETRY_P4_
