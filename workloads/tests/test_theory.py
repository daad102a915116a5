# SPDX-License-Identifier: Apache-2.0
"""Formulas give the numbers of RFC 9438's tables, and those worked out by hand."""

import pytest
from weft_scenarios.measures import theory

TABLE_1 = {1e-2: 12, 1e-3: 38, 1e-4: 187, 1e-5: 1054, 1e-6: 5926, 1e-7: 33325}
TABLE_2 = {1e-2: 12, 1e-3: 38, 1e-4: 120, 1e-5: 379, 1e-6: 1200, 1e-7: 5926}
"""CUBIC's column of RFC 9438's tables, for RTTs of 0.1 and 0.01 s: windows by rate of loss."""


@pytest.mark.parametrize(("rtt_s", "table"), [(0.1, TABLE_1), (0.01, TABLE_2)])
def test_cubics_windows_are_those_of_rfc_9438(rtt_s: float, table: dict[float, int]) -> None:
    for loss, packets in table.items():
        assert theory.cubic_window(loss, rtt_s) == pytest.approx(packets, abs=0.5)


def test_renos_windows_are_those_of_rfc_9438() -> None:
    for loss, packets in {1e-2: 12, 1e-3: 38, 1e-4: 120, 1e-5: 379, 1e-6: 1200}.items():
        assert theory.reno_window(loss) == pytest.approx(packets, abs=0.5)


RATES = [1e-3, 3e-3, 1e-2]


@pytest.mark.parametrize("loss", RATES)
def test_the_algorithms_have_the_windows_of_the_formulas_with_losses_at_equal_distances(
    loss: float,
) -> None:
    reno = theory.window_by_rounds("reno", loss, 0.1, is_random=False)
    assert reno == pytest.approx(theory.reno_window(loss), rel=0.02)
    for rtt_s in (0.1, 0.4):
        cubic = theory.window_by_rounds("cubic", loss, rtt_s, is_random=False)
        assert cubic == pytest.approx(theory.cubic_window(loss, rtt_s), rel=0.06)


@pytest.mark.parametrize("loss", RATES)
def test_with_losses_at_random_the_same_algorithms_have_larger_windows(loss: float) -> None:
    reno = theory.window_by_rounds("reno", loss, 0.1, is_random=True)
    assert 1.08 < reno / theory.reno_window(loss) < 1.11
    for rtt_s in (0.1, 0.4):
        cubic = theory.window_by_rounds("cubic", loss, rtt_s, is_random=True)
        assert 1.17 < cubic / theory.cubic_window(loss, rtt_s) < 1.26


def test_pftk_without_timeouts_is_the_square_root_of_the_loss() -> None:
    # sqrt(3 / (2 b p)), which is 10 for b = 1.5.
    assert theory.pftk_window(0.01, 0.1, 0.0) == pytest.approx(12.247, rel=1e-3)
    assert theory.pftk_window(0.01, 0.1, 0.0, packets_per_ack=2) == pytest.approx(8.66, rel=1e-3)


def test_pftk_with_timeouts_is_the_sum_of_both_times_per_packet() -> None:
    # An RTT of 1 s: 0.08165 s by fast retransmit, and 2 s * 3 * 0.06124 * 0.01 * 1.0032.
    per_packet_s = 0.08165 + 0.003686
    assert theory.pftk_window(0.01, 1.0, 2.0) == pytest.approx(1 / per_packet_s, rel=1e-3)


def test_every_loss_costs_a_timeout_at_most_once() -> None:
    # With half of the packets lost, 3 sqrt(3 p / 8) would be 1.3.
    per_packet_s = (2 * 0.5 / 3) ** 0.5 + 1.0 * 0.5 * (1 + 32 * 0.25)
    assert theory.pftk_window(0.5, 1.0, 1.0) == pytest.approx(1 / per_packet_s)


def test_dctcps_sawtooth_grows_with_the_root_of_the_flows() -> None:
    # The setting of the paper's figure 12: 10 Gbit/s, 100 us, K = 40, packets of 1500 B.
    bdp = 10e9 * 100e-6 / 8 / 1500
    assert theory.dctcp_highest_queue(40, 2) == 42
    assert theory.dctcp_amplitude(40, 2, bdp) == pytest.approx(11.1, abs=0.1)
    assert theory.dctcp_amplitude(40, 8, bdp) == 2 * theory.dctcp_amplitude(40, 2, bdp)


def test_one_bdp_of_buffer_keeps_a_link_busy_and_none_three_quarters_of_it() -> None:
    assert theory.link_use(0, 100, 1) == pytest.approx(0.75)
    assert theory.link_use(50, 100, 1) == pytest.approx(0.9643, rel=1e-3)
    assert theory.link_use(100, 100, 1) == theory.link_use(300, 100, 1) == 1


def test_many_flows_need_less_buffer() -> None:
    # erf(1.837 / 1.01) with BDP / sqrt(n), erf(1.5 * 1.837 / 1.015) with 1.5 times that.
    assert theory.link_use(100, 10_000, 10_000) == pytest.approx(0.9899, abs=1e-4)
    assert theory.link_use(150, 10_000, 10_000) == pytest.approx(0.9999, abs=1e-4)
