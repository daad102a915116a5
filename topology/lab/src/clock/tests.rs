// SPDX-License-Identifier: Apache-2.0

use super::*;

const MS: u64 = 1_000_000;

/// A scripted kernel that talks to a clock.
struct Kernel {
    clock: Clock,
    seq: u32,
}

impl Kernel {
    fn new(policy: ClockPolicy) -> Self {
        let mut kernel = Self {
            clock: Clock::new(policy),
            seq: 100,
        };
        kernel.says(Op::Start, u64::MAX, 0);
        kernel.hears();
        kernel
    }

    fn says(&mut self, op: Op, time_ns: u64, wall_ms: u64) {
        self.seq += 1;
        let message = Message {
            op,
            seq: self.seq,
            time_ns,
        };
        self.clock.handle(message, Duration::from_millis(wall_ms));
    }

    fn acknowledges(&mut self, seq: u32) {
        let ack = Message {
            op: Op::Ack,
            seq,
            time_ns: 0,
        };
        self.clock.handle(ack, Duration::ZERO);
    }

    fn waits_for(&mut self, time_ns: u64, wall_ms: u64) {
        self.says(Op::Request, time_ns, wall_ms);
        self.says(Op::Wait, u64::MAX, wall_ms);
    }

    fn polled(&mut self, wall_ms: u64) -> Option<Duration> {
        self.clock.poll(Duration::from_millis(wall_ms))
    }

    fn hears(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.clock.poll_transmit()).collect()
    }

    /// The messages it gets, without acknowledgements.
    fn orders(&mut self) -> Vec<(Op, u64)> {
        let orders = self.hears().into_iter().filter(|m| m.op != Op::Ack);
        orders.map(|m| (m.op, m.time_ns)).collect()
    }
}

#[test]
fn every_message_is_acknowledged_with_its_number() {
    let mut kernel = Kernel::new(ClockPolicy::Paused);
    for op in [Op::Request, Op::Wait, Op::Get, Op::Update, Op::GetTod] {
        kernel.says(op, 0, 0);
        let seq = kernel.seq;
        let heard = kernel.hears();
        assert_eq!(heard.len(), 1, "{op:?}");
        assert_eq!((heard[0].op, heard[0].seq), (Op::Ack, seq), "{op:?}");
    }
}

#[test]
fn the_time_of_day_is_always_the_same() {
    let mut kernel = Kernel::new(ClockPolicy::Free);
    kernel.says(Op::GetTod, u64::MAX, 12345);
    assert_eq!(kernel.hears()[0].time_ns, TIME_OF_DAY_NS);
}

#[test]
fn free_grants_a_request_at_once_and_lets_the_kernel_run_ahead() {
    let mut kernel = Kernel::new(ClockPolicy::Free);
    kernel.waits_for(5 * MS, 0);
    assert_eq!(kernel.polled(0), None);
    assert_eq!(
        kernel.orders(),
        [(Op::FreeUntil, 5 * MS + FREE_AHEAD_NS), (Op::Run, 5 * MS)]
    );
}

#[test]
fn a_request_without_a_wait_is_not_granted() {
    let mut kernel = Kernel::new(ClockPolicy::Free);
    kernel.says(Op::Request, 5 * MS, 0);
    kernel.polled(0);
    assert_eq!(kernel.orders(), []);
}

#[test]
fn a_later_request_replaces_the_one_before() {
    let mut kernel = Kernel::new(ClockPolicy::Paused);
    kernel.waits_for(500 * MS, 0);
    kernel.says(Op::Request, 7 * MS, 0);
    kernel.clock.set_policy(ClockPolicy::Free, Duration::ZERO);
    kernel.polled(0);
    assert!(kernel.orders().contains(&(Op::Run, 7 * MS)));
}

#[test]
fn paused_grants_nothing_until_it_is_resumed() {
    let mut kernel = Kernel::new(ClockPolicy::Paused);
    kernel.waits_for(5 * MS, 0);
    assert_eq!(kernel.polled(60_000), None);
    assert_eq!(kernel.orders(), []);
    let resumed = ClockPolicy::Paced { ratio: 1.0 };
    kernel.clock.set_policy(resumed, Duration::from_secs(60));
    assert_eq!(
        kernel.polled(60_000),
        Some(Duration::from_nanos(60_005_000_001))
    );
    kernel.polled(60_006);
    assert!(kernel.orders().contains(&(Op::Run, 5 * MS)));
}

#[test]
fn paced_grants_a_request_when_real_time_has_come_that_far() {
    let mut kernel = Kernel::new(ClockPolicy::Paced { ratio: 1.0 });
    kernel.waits_for(50 * MS, 0);
    let deadline = kernel.polled(20).unwrap();
    assert_eq!(deadline, Duration::from_nanos(50 * MS + 1));
    assert_eq!(kernel.orders(), []);
    assert_eq!(kernel.clock.poll(deadline), None);
    assert_eq!(
        kernel.orders(),
        [
            (Op::FreeUntil, 50 * MS + PACED_AHEAD_NS + 1),
            (Op::Run, 50 * MS)
        ]
    );
}

#[test]
fn a_ratio_of_a_tenth_takes_ten_times_as_long() {
    let mut kernel = Kernel::new(ClockPolicy::Paced { ratio: 0.1 });
    kernel.waits_for(50 * MS, 0);
    assert_eq!(kernel.polled(0), Some(Duration::from_nanos(500 * MS + 1)));
    assert_eq!(kernel.polled(501), None);
}

#[test]
fn a_lab_that_could_not_keep_up_catches_up_by_a_bounded_lag() {
    let mut kernel = Kernel::new(ClockPolicy::Paced { ratio: 1.0 });
    kernel.waits_for(50 * MS, 0);
    kernel.polled(10_000);
    assert_eq!(
        kernel.orders()[0],
        (Op::FreeUntil, 50 * MS + MAX_LAG_NS + PACED_AHEAD_NS)
    );
}

#[test]
fn input_to_a_waiting_kernel_is_granted_the_present() {
    let mut kernel = Kernel::new(ClockPolicy::Paced { ratio: 1.0 });
    kernel.waits_for(5_000 * MS, 0);
    kernel.says(Op::Get, u64::MAX, 2_000);
    assert_eq!(kernel.hears().last().unwrap().time_ns, 2_000 * MS);
    kernel.says(Op::Request, 2_000 * MS, 2_000);
    kernel.polled(2_000);
    assert!(kernel.orders().contains(&(Op::Run, 2_000 * MS)));
}

#[test]
fn the_present_never_passes_what_the_kernel_has_requested() {
    let mut kernel = Kernel::new(ClockPolicy::Paced { ratio: 1.0 });
    kernel.waits_for(5 * MS, 0);
    kernel.says(Op::Get, u64::MAX, 2_000);
    assert_eq!(kernel.hears().last().unwrap().time_ns, 5 * MS);
}

#[test]
fn a_run_that_crosses_an_interrupt_is_granted_again() {
    let mut kernel = Kernel::new(ClockPolicy::Free);
    kernel.waits_for(5 * MS, 0);
    kernel.polled(0);
    assert!(kernel.orders().contains(&(Op::Run, 5 * MS)));
    // Interrupted before it read the RUN, which it now reads instead of the answer.
    kernel.says(Op::Get, u64::MAX, 0);
    assert_eq!(kernel.hears()[0].time_ns, 5 * MS);
    kernel.polled(0);
    assert!(kernel.orders().contains(&(Op::Run, 5 * MS)));
}

#[test]
fn an_acknowledged_run_is_not_granted_again() {
    let mut kernel = Kernel::new(ClockPolicy::Free);
    kernel.waits_for(5 * MS, 0);
    kernel.polled(0);
    let run = kernel.hears().pop().unwrap();
    kernel.acknowledges(run.seq);
    kernel.says(Op::Request, 9 * MS, 0);
    kernel.polled(0);
    assert_eq!(kernel.orders(), []);
}

#[test]
fn a_kernel_without_any_timer_is_never_run() {
    let mut kernel = Kernel::new(ClockPolicy::Free);
    kernel.waits_for(i64::MAX as u64, 0);
    assert_eq!(kernel.polled(1_000), None);
    assert_eq!(kernel.orders(), []);
    assert!(kernel.clock.is_idle_forever());
}
