// SPDX-License-Identifier: Apache-2.0

//! What `weft` says of a command line that it cannot use: one line, with what would be right.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use weft_text::usage::one_line;

use crate::{Cli, Failure, Outcome, display};

/// Help and version texts go where they belong; mistakes become one line.
pub fn refuse(error: &clap::Error, arguments: &[OsString]) -> Outcome {
    let Some(line) = one_line(error) else {
        return display::out(error.to_string());
    };
    let command = command_path(arguments);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(Failure::Usage(format!(
            "no command given; see {command} --help"
        )));
    }
    let line = renamed(error)
        .or_else(|| of_others(error, &command))
        .unwrap_or(line);
    Err(Failure::Usage(format!("{line}; see {command} --help")))
}

fn named(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name),
        _ => None,
    }
}

/// What replaces a flag that had another name once.
fn renamed(error: &clap::Error) -> Option<String> {
    match named(error, ContextKind::InvalidArg)? {
        "--pattern" => Some(
            "--pattern is now called --traffic, such as --traffic incast; allocation patterns \
             have --pattern-input and --pattern-ttl"
                .to_owned(),
        ),
        flag if flag.starts_with("--routing") => (named(error, ContextKind::InvalidValue)
            == Some("weft"))
        .then(|| "--routing weft is now called --routing subflow".to_owned()),
        _ => None,
    }
}

/// Which other commands have the flag that this one lacks; not if it has nearly the same one.
fn of_others(error: &clap::Error, command: &str) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let flag = named(error, ContextKind::InvalidArg)?.strip_prefix("--")?;
    if let Some(near) = named(error, ContextKind::SuggestedArg) {
        let near = near.trim_start_matches('-');
        if near.starts_with(flag) || flag.starts_with(near) {
            return None;
        }
    }
    let weft = Cli::command();
    let mut others: Vec<String> = commands(&weft, "")
        .into_iter()
        .filter(|(_, other)| {
            other
                .get_arguments()
                .any(|arg| arg.get_long() == Some(flag))
        })
        .map(|(path, _)| path)
        .collect();
    let last = others.pop()?;
    let owners = if others.is_empty() {
        format!("{last} has it")
    } else {
        format!("{} and {last} have it", others.join(", "))
    };
    Some(format!("{command} has no --{flag}; {owners}"))
}

/// Every command from `command` down, with what is typed for it; those below come first.
pub fn commands<'a>(command: &'a clap::Command, above: &str) -> Vec<(String, &'a clap::Command)> {
    let path = format!("{above} {}", command.get_name());
    let path = path.trim_start();
    let below = command.get_subcommands();
    let mut all: Vec<_> = below.flat_map(|next| commands(next, path)).collect();
    all.push((path.to_owned(), command));
    all
}

/// The command as far as it was understood: `weft topo up`.
fn command_path(arguments: &[OsString]) -> String {
    let mut path = "weft".to_owned();
    let mut command = Cli::command();
    for argument in arguments.iter().skip(1) {
        let Some(next) = argument
            .to_str()
            .and_then(|name| command.find_subcommand(name))
        else {
            break;
        };
        path.push(' ');
        path.push_str(next.get_name());
        command = next.clone();
    }
    path
}
