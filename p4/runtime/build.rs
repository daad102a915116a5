// SPDX-License-Identifier: Apache-2.0

//! Generates the Rust side of P4Runtime from the descriptors that the official
//! Python package `p4runtime` carries.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let script = here.join("descriptors.py");
    let python = interpreter(&here);
    println!("cargo:rerun-if-changed={}", script.display());
    println!("cargo:rerun-if-env-changed=WEFT_PYTHON");

    let encoded = dump(&python, &script)?;
    std::fs::write(out.join("p4runtime.bin"), &encoded)?;
    let descriptors = prost_types::FileDescriptorSet::decode(encoded.as_slice())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}

/// `WEFT_PYTHON`, else the project's own environment, else the system's.
fn interpreter(here: &Path) -> OsString {
    if let Some(python) = std::env::var_os("WEFT_PYTHON") {
        return python;
    }
    let own = here.join("../../.venv/bin/python");
    println!("cargo:rerun-if-changed={}", own.display());
    if own.exists() {
        own.into_os_string()
    } else {
        "python3".into()
    }
}

fn dump(python: &OsString, script: &Path) -> Result<Vec<u8>, String> {
    let shown = python.to_string_lossy();
    let output = Command::new(python)
        .arg(script)
        // The package's generated code is too old for the fast implementation
        // of today's protobuf.
        .env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        .output()
        .map_err(|error| format!("{shown}: {error}; run `make deps`, or set WEFT_PYTHON"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or("no message");
    Err(format!(
        "{shown} has no usable `p4runtime` package ({last}); run `make deps`, or set WEFT_PYTHON \
         to a Python that has it"
    ))
}
