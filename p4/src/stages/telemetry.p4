// SPDX-License-Identifier: Apache-2.0
//
// How often this switch reports, as the controller wishes. Without a wish it
// measures and says nothing.

#ifndef STAGES_TELEMETRY_P4_
#define STAGES_TELEMETRY_P4_

#include "headers.p4"
#include "metadata.p4"

// The receiver of a digest means nothing to P4Runtime targets.
const bit<32> DIGEST_RECEIVER = 1;

// `interval` has passed since `last`. Right across a wrap of the clock.
bool is_due(in time_t now, in time_t last, in time_t interval) {
    return now - last >= interval;
}

control Telemetry(inout telemetry_t telemetry) {
    @name(".telemetry.off") @id(0x01000020)
    action off() {
        telemetry.enabled = 0;
    }

    // At most one `rtt_sample_t` per remote leaf and path in `rtt_interval`,
    // and one `queue_sample_t` per port in `queue_interval`.
    @name(".telemetry.sample_every") @id(0x01000021)
    action sample_every(@id(1) time_t rtt_interval,
                        @id(2) time_t queue_interval) {
        telemetry.enabled = 1;
        telemetry.rtt_interval = rtt_interval;
        telemetry.queue_interval = queue_interval;
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
    }
}

#endif  // STAGES_TELEMETRY_P4_
