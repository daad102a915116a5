//! Patterns from the controller into the kernels of hosts
