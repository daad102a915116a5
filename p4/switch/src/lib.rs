//! The embedded P4 target: runs BMv2 JSON, speaks P4Runtime

pub mod pipeline;
