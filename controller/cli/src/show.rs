// SPDX-License-Identifier: Apache-2.0

//! `weft topo show`: a fabric as a drawing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow};
use clap::Args;
use weft_lab::TopologySpec;

use crate::client::running_lab;
use crate::fabric_args::FabricArgs;
use crate::{Failure, Outcome, display, installation};

/// A fabric to draw.
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    fabric: FabricArgs,

    /// Draw the running lab of this name instead of the fabric that the flags describe
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Write an SVG picture of all nodes and links to FILE, instead of printing a text that
    /// leaves out the middle ones
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print topology.json instead of a drawing
    #[arg(long, conflicts_with = "svg")]
    json: bool,
}

/// Draws it.
pub async fn show(args: &ShowArgs) -> Outcome {
    let topology = match &args.name {
        None => args.fabric.topology().map_err(Failure::Usage)?,
        Some(name) => {
            let status = running_lab(name)?.status().await?;
            let topology = status.spec.topology;
            topology.ok_or_else(|| anyhow!("lab {name} has no network"))?
        }
    };
    let how = match (args.svg.is_some(), args.json) {
        (true, _) => Some("--svg"),
        (_, true) => Some("--json"),
        (false, false) => None,
    };
    let drawing = drawn(&topology, how)?;
    match &args.svg {
        None => display::out(drawing),
        Some(file) => Ok(write_whole(file, &drawing)?),
    }
}

/// The drawing. Python makes it, because only `weft_topology` describes fabrics.
fn drawn(topology: &TopologySpec, how: Option<&str>) -> Result<String, Failure> {
    let python = installation::root()?.join(".venv/bin/python");
    let mut command = Command::new(&python);
    command.args(["-m", "weft_topology", "draw", "-"]);
    command.args(how);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = pipes
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}: install it with `make deps`", python.display()))?;
    let document = serde_json::to_vec(topology).context("the fabric as JSON")?;
    if let Some(mut input) = process.stdin.take() {
        // One that ended before it has read all says why.
        let _ = input.write_all(&document);
    }
    let output = process.wait_with_output().context("weft_topology")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(match output.status.code() {
            Some(2) => Failure::Usage(said),
            _ => anyhow!("weft_topology: {said}").into(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes the file whole or not at all.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, file))
        .with_context(|| format!("--svg {}", file.display()))
}
