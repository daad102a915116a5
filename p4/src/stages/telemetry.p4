// SPDX-License-Identifier: Apache-2.0
//
// Limits how often this switch sends digests: to the intervals that the controller sets,
// and to what the traffic pays for. Until the controller sets them, the switch measures and
// reports nothing.
//
//   Telemetry --- may this packet send a digest? ---> Rtt, SampleQueue
//       ^                                                   |
//       '------- debt ------- AccountDigest <---------------'
//
// Each digest adds `digest_bytes` to a debt, and each byte of traffic pays one byte back. No
// stage reports while the debt is above its limit. So at any load, there is at most one
// digest per `digest_bytes` of traffic, after a burst of 2^DIGEST_BURST_SHIFT when the debt
// is paid. Half of the burst is reserved for changes, so that confirmations of earlier
// reports cannot delay them.

#ifndef STAGES_TELEMETRY_P4_
#define STAGES_TELEMETRY_P4_

#include "headers.p4"
#include "metadata.p4"

// P4Runtime targets ignore the receiver of a digest.
const bit<32> DIGEST_RECEIVER = 1;

// Up to 16 digests may leave in a row, and up to 8 that only confirm.
const bit<8> DIGEST_BURST_SHIFT = 4;
const bit<8> DIGEST_SPARE_SHIFT = 3;

// In bytes of traffic. Starts at zero.
@name("telemetry.debt") @id(0x16000030)
register<bit<32>>(1) telemetry_debt;

// Whether `interval` has passed since `last`, even across a wrap of the clock.
bool is_due(in time_t now, in time_t last, in time_t interval) {
    return now - last >= interval;
}

control Telemetry(inout telemetry_t telemetry) {
    @name(".telemetry.off") @id(0x01000020)
    action off() {
        telemetry.enabled = 0;
    }

    // A change is reported at once, but at most once per `rtt_interval` (for a remote leaf
    // and path) or `queue_interval` (for a port). An unchanged value is reported after
    // `longest_interval`. Each digest costs `digest_bytes` of traffic; a burst of them must
    // fit into the 32 bits of the debt.
    @name(".telemetry.sample_every") @id(0x01000021)
    @action_restriction("digest_bytes <= 0x0fffffff")
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
