//! Traffic generator: flow sizes, arrivals, MPTCP flows, results
