// SPDX-License-Identifier: Apache-2.0

//! Rows of a run's tables.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// A row of `flows.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// Number, from 0, in order of arrival.
    pub flow: usize,
    /// Host that sent.
    pub src: String,
    /// Host that received.
    pub dst: String,
    /// Size; for a stopped flow, the bytes that the receiver had read by then.
    pub bytes: u64,
    /// Arrival, from the start of the run; for an object of a page, its request.
    pub start_ns: u64,
    /// Flow completion time: from arrival until the last byte is read, or until the stop; empty if
    /// the flow failed.
    pub fct_ns: Option<u64>,
    /// Ideal flow completion time in an idle fabric, see [`crate::ideal_fabric`].
    pub ideal_fct_ns: u64,
    /// Subflows of its connection at the end.
    pub subflows: u32,
    /// Packets retransmitted during the flow.
    pub retransmissions: u64,
    /// Retransmission timeouts during the flow.
    pub timeouts: u64,
    /// Bytes reinjected on another subflow during the flow because the connection's own timer
    /// expired: a timeout that no subflow had.
    pub reinjected_bytes: u64,
    /// Error message; empty unless the flow failed.
    pub error: String,
}

/// A row of `subflows.csv`: the sender kernel's RTT of a subflow when the last byte of a flow
/// arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubflowRow {
    /// Number of the flow in `flows.csv`.
    pub flow: usize,
    /// Time from the start of the run.
    pub time_ns: u64,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
    /// Its port.
    pub destination_port: u16,
    /// Smoothed RTT.
    pub srtt_ns: u64,
    /// Lowest recent RTT.
    pub min_rtt_ns: u64,
}

/// A row of `samples.csv`: the state of a subflow during a flow, at the sending end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Number of the flow in `flows.csv`.
    pub flow: usize,
    /// Time from the start of the run.
    pub time_ns: u64,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
    /// Smoothed RTT.
    pub srtt_ns: u64,
    /// Lowest recent RTT.
    pub min_rtt_ns: u64,
    /// Congestion window.
    pub cwnd_packets: u32,
    /// Packets in flight.
    pub in_flight_packets: u32,
}

/// A row of `background.csv`: a flow of plain TCP in the background. It runs for all of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundRow {
    /// Host that sent.
    pub src: String,
    /// Host that received.
    pub dst: String,
    /// What the receiver read from the start of the run to its end.
    pub bytes: u64,
}
