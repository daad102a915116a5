// SPDX-License-Identifier: Apache-2.0

//! Digest subscriptions, and how switches batch digests.

use std::time::Duration;

use weft_p4runtime::p4::v1::{DigestEntry, digest_entry};

use super::program::{Error, Program};
use super::timestamps::TimestampUnit;

/// How long a sample waits in a switch for others to share its digest message: a tenth of
/// the time budget from sample to kernel.
pub const DIGEST_WAIT_NS: u64 = 20_000;

/// Maximum number of samples in a digest message.
const DIGEST_SAMPLES: i32 = 64;

/// Samples without an acknowledgement for this long may be sent again.
const DIGEST_ACK_TIMEOUT: Duration = Duration::from_secs(1);

/// Subscriptions to the named digests at a target with this timestamp unit.
///
/// # Errors
/// If the program lacks one of them.
pub fn subscriptions(
    program: &Program,
    names: &[&str],
    unit: TimestampUnit,
) -> Result<Vec<DigestEntry>, Error> {
    let config = config(unit);
    let subscription = |name: &&str| {
        Ok(DigestEntry {
            digest_id: program.digest_id(name)?,
            config: Some(config),
        })
    };
    names.iter().map(subscription).collect()
}

/// BMv2 counts the wait in whole milliseconds and has no value for "until the list is full".
/// So there every sample is sent alone, at once.
fn config(unit: TimestampUnit) -> digest_entry::Config {
    let (max_timeout_ns, max_list_size) = match unit {
        TimestampUnit::Nanoseconds => (DIGEST_WAIT_NS as i64, DIGEST_SAMPLES),
        TimestampUnit::Microseconds => (0, 1),
    };
    digest_entry::Config {
        max_timeout_ns,
        max_list_size,
        ack_timeout_ns: DIGEST_ACK_TIMEOUT.as_nanos() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sample_waits_on_bmv2_for_a_list_that_may_never_fill() {
        let config = config(TimestampUnit::Microseconds);
        assert_eq!((config.max_timeout_ns, config.max_list_size), (0, 1));
    }
}
