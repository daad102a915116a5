// SPDX-License-Identifier: Apache-2.0

//! `weft-lab`: starts a lab from its specification, and runs inside it.
//!
//! Users run `weft topo`, which writes the specification.

use std::fs;
use std::io::Write;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use weft_lab::{
    BatchOptions, ClockPolicy, Error, ExecRequest, Lab, LabSpec, Result, UpOptions, run_batch,
    supervisor,
};
use weft_text::usage::plain;

/// Virtual-time labs.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a lab and leave it running.
    Up {
        /// Its specification, a JSON file.
        spec: PathBuf,
        /// Its name.
        #[arg(long, default_value = "lab")]
        name: String,
        /// Memory in MiB [default: 6 for each host, at least 2048]
        #[arg(long)]
        memory: Option<u64>,
        /// Real seconds without a sign of life after which the boot has failed.
        #[arg(long, default_value_t = 60)]
        stall_seconds: u64,
    },
    /// Run the batch command of a specification in a separate lab.
    Batch {
        /// Its specification, a JSON file.
        spec: PathBuf,
        /// Folder for the results.
        #[arg(long)]
        out: PathBuf,
    },
    /// Stop a lab.
    Down {
        /// Its name.
        #[arg(long, default_value = "lab")]
        name: String,
    },
    /// Print the status of a lab.
    Status {
        /// Its name.
        #[arg(long, default_value = "lab")]
        name: String,
    },
    /// Run a command inside a lab.
    Exec {
        /// The lab's name.
        #[arg(long, default_value = "lab")]
        name: String,
        /// Host whose network namespace it runs in [default: the lab's own]
        #[arg(long)]
        host: Option<String>,
        /// Run it on a terminal.
        #[arg(long, short = 't')]
        pty: bool,
        /// Program and arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<String>,
    },
    /// Open a Mininet prompt inside a lab.
    Shell {
        /// The lab's name.
        #[arg(long, default_value = "lab")]
        name: String,
    },
    /// Set how the virtual time of a lab advances.
    Clock {
        /// The lab's name.
        #[arg(long, default_value = "lab")]
        name: String,
        /// `free`, `paused`, or virtual seconds per real second.
        #[arg(value_parser = policy)]
        policy: ClockPolicy,
    },
    /// The supervisor of a running lab.
    #[command(hide = true)]
    Supervise {
        rundir: PathBuf,
        #[arg(long)]
        cpu: Option<usize>,
        #[arg(long)]
        memory_bytes: Option<u64>,
        #[arg(long)]
        stall_seconds: u64,
    },
    /// Process 1 of a lab.
    #[command(hide = true)]
    Guest,
    /// Process 1 of a network on this machine's own kernel.
    #[command(hide = true)]
    GuestNative {
        rundir: PathBuf,
        #[arg(long)]
        line: RawFd,
    },
    /// The worker of process 1.
    #[command(hide = true)]
    GuestWorker {
        #[arg(long)]
        line: Option<RawFd>,
    },
}

fn policy(text: &str) -> Result<ClockPolicy, String> {
    match text {
        "free" => Ok(ClockPolicy::Free),
        "paused" => Ok(ClockPolicy::Paused),
        _ => match text.parse() {
            Ok(ratio) if ratio > 0.0 => Ok(ClockPolicy::Paced { ratio }),
            _ => Err("give `free`, `paused` or a number above 0".into()),
        },
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("weft-lab: {}", plain(error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<i32> {
    match command {
        Command::Guest => weft_lab::guest::init().map_err(inside).map(|()| 0),
        Command::GuestNative { rundir, line } => weft_lab::guest::init_native(&rundir, line)
            .map_err(inside)
            .map(|()| 0),
        Command::GuestWorker { line } => weft_lab::guest::worker(line).map_err(inside).map(|()| 0),
        command => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(inside)?;
            tokio::task::LocalSet::new().block_on(&runtime, run_outside(command))
        }
    }
}

async fn run_outside(command: Command) -> Result<i32> {
    match command {
        Command::Up {
            spec,
            name,
            memory,
            stall_seconds,
        } => {
            let options = UpOptions {
                name,
                cpu: None,
                memory_bytes: memory.map(|mib| mib << 20),
                stall_limit: Duration::from_secs(stall_seconds),
            };
            Lab::up(&read_spec(&spec)?, &options, |step| {
                eprintln!("{:>7.3} s  {}", step.wall.as_secs_f64(), step.name);
            })
            .await?;
            Ok(0)
        }
        Command::Batch { spec, out } => {
            let options = BatchOptions::new(out);
            let outcome = run_batch(&read_spec(&spec)?, &options, |_| {}).await?;
            eprintln!(
                "exit {}, {:.6} s virtual, {:.3} s real, {}",
                outcome.exit_code,
                outcome.virtual_ns as f64 / 1e9,
                outcome.wall.as_secs_f64(),
                outcome.out.display()
            );
            Ok(outcome.exit_code)
        }
        Command::Down { name } => {
            find(&name)?.down().await?;
            Ok(0)
        }
        Command::Status { name } => {
            let status = find(&name)?.status().await?;
            let json = serde_json::to_string_pretty(&status).map_err(|e| inside(e.into()))?;
            // The reader may have closed the pipe.
            writeln!(std::io::stdout(), "{json}").map_err(inside)?;
            Ok(0)
        }
        Command::Exec {
            name,
            host,
            pty,
            argv,
        } => {
            let request = ExecRequest {
                argv,
                host,
                pty,
                ..ExecRequest::default()
            };
            find(&name)?.exec(request).await
        }
        Command::Shell { name } => find(&name)?.mininet_shell().await,
        Command::Clock { name, policy } => {
            find(&name)?.set_clock(policy).await?;
            Ok(0)
        }
        Command::Supervise {
            rundir,
            cpu,
            memory_bytes,
            stall_seconds,
        } => {
            let options = supervisor::Options {
                rundir,
                cpu,
                memory_bytes,
                stall_limit: Duration::from_secs(stall_seconds),
            };
            supervisor::run_started(options).await?;
            Ok(0)
        }
        Command::Guest | Command::GuestNative { .. } | Command::GuestWorker { .. } => Ok(0),
    }
}

fn find(name: &str) -> Result<Lab> {
    Lab::find(name)?.ok_or_else(|| Error::NotUp(name.into()))
}

fn read_spec(path: &Path) -> Result<LabSpec> {
    let spec = fs::read(path).and_then(|json| Ok(serde_json::from_slice(&json)?));
    spec.map_err(|source| Error::Io {
        context: path.display().to_string(),
        source,
    })
}

fn inside(source: std::io::Error) -> Error {
    Error::Io {
        context: "weft-lab".into(),
        source,
    }
}
