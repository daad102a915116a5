// SPDX-License-Identifier: Apache-2.0

//! Groups of flags that several commands have.

use std::path::PathBuf;

use clap::ValueEnum as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use weft_lab::{BatchSpec, ClockMode, LabSpec};
use weft_load::args::{SchedulerArgs, WorkloadArgs};

use crate::capture_args::CaptureArgs;
use crate::fabric_args::FabricArgs;
use crate::generator::load_argv;
use crate::outdir::{self, Place};
use crate::switch_args::SwitchArgs;
use crate::{Failure, installation};

/// Flows under one scheduler: `weft run` and `weft workload`.
#[derive(Debug, clap::Args)]
pub struct FlowArgs {
    #[command(flatten)]
    pub workload: WorkloadArgs,

    #[command(flatten)]
    pub kernel: SchedulerArgs,

    /// Folder for the results; must not exist [default: runs/NAME, numbered]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl FlowArgs {
    /// A name for the run: `websearch-rb-seed1`.
    pub fn name(&self) -> String {
        let (workload, scheduler) = (&self.workload, &self.kernel.scheduler);
        format!(
            "{}-{scheduler}-seed{}",
            workload.short_name(),
            workload.seed
        )
    }

    /// Takes the folder for the results.
    pub fn out(&self) -> Result<Place, Failure> {
        outdir::choose(self.out.clone(), &self.name())
    }
}

/// A lab that exists for its flows: `weft run` and `weft compare`.
#[derive(Debug, clap::Args)]
pub struct BatchLabArgs {
    #[command(flatten)]
    fabric: FabricArgs,

    #[command(flatten)]
    switch: SwitchArgs,

    #[command(flatten)]
    capture: CaptureArgs,

    /// How time passes: virtual time, as fast as possible (free), or real time, where computing
    /// takes time too (real)
    #[arg(
        long,
        value_name = "HOW",
        value_parser = batch_clocks(),
        default_value = "free",
        hide_possible_values = true
    )]
    clock: ClockMode,
}

/// The clocks of a lab that runs a workload and ends: nobody waits for it, and it has a kernel of
/// its own.
fn batch_clocks() -> impl TypedValueParser<Value = ClockMode> {
    PossibleValuesParser::new(["free", "real"]).try_map(|name| ClockMode::from_str(&name, false))
}

impl BatchLabArgs {
    /// Refuses fabrics that cannot be, or in which no flow can run.
    pub fn check(&self) -> Result<(), Failure> {
        self.fabric.carries_flows().map_err(Failure::Usage)?;
        self.fabric.topology().map_err(Failure::Usage)?;
        Ok(())
    }

    /// The lab with this fabric that runs this workload and leaves the results in its folder
    /// `results`.
    pub fn spec(
        &self,
        workload: &WorkloadArgs,
        scheduler: &str,
        results: &str,
    ) -> Result<LabSpec, Failure> {
        let mut spec = self
            .fabric
            .lab(workload.seed, self.clock, installation::paths()?)
            .map_err(Failure::Usage)?;
        spec.capture = self.capture.spec();
        spec.batch = Some(BatchSpec {
            argv: load_argv(&spec.paths, workload.clone(), scheduler, results),
            needs: Vec::new(),
            reads: workload.files(),
        });
        self.switch.apply(&mut spec)?;
        Ok(spec)
    }
}
