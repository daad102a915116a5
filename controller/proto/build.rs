// SPDX-License-Identifier: Apache-2.0

//! Generates the Rust side of `weft.v1`. protox parses the `.proto`, so that a
//! build needs no `protoc`.

use std::error::Error;

const PROTO: &str = "weft/v1/weft.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let descriptors = protox::compile([PROTO], ["."])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
