// SPDX-License-Identifier: Apache-2.0

//! `SetForwardingPipelineConfig` and its counterpart.

use tonic::Status;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;

use super::config::Config;
use super::device::{Device, Saved, Setup};
use super::world::World;
use crate::pipeline::Pipeline;

/// Checks a request and loads its program. This takes a while: do not hold the world's lock.
pub(super) fn verify(
    request: &mut p4::SetForwardingPipelineConfigRequest,
) -> Result<Option<Config>, Status> {
    let config = request.config.take();
    match (request.action(), config) {
        (Action::Unspecified, _) => Err(Status::invalid_argument("an action is missing")),
        (Action::Commit, Some(_)) => Err(Status::invalid_argument(
            "COMMIT commits what was saved and takes no configuration",
        )),
        (Action::Commit, None) => Ok(None),
        (_, None) => Err(Status::invalid_argument("a configuration is missing")),
        (_, Some(config)) => Config::verify(config).map(Some),
    }
}

/// Carries out `request` with its verified configuration.
pub(super) fn set(
    world: &mut World,
    switch: usize,
    request: &p4::SetForwardingPipelineConfigRequest,
    config: Option<Config>,
) -> Result<(), Status> {
    let device = &mut world.devices[switch];
    device
        .arbiter
        .authorize(request.device_id, &request.role, request.election_id)?;
    let seed = world.seed ^ switch as u64;
    let ticks_per_s = world.network.timestamp_unit().per_second();
    let fresh = |config| fresh(config, seed, ticks_per_s);
    match (request.action(), config) {
        (Action::VerifyAndSave, Some(config)) => device.saved = Some(fresh(config)),
        (Action::VerifyAndCommit, Some(config)) => commit(world, switch, fresh(config)),
        (Action::Commit, _) => {
            let text = "there is no saved configuration to commit";
            let saved = device.saved.take();
            let saved = saved.ok_or_else(|| Status::not_found(text))?;
            commit(world, switch, saved);
        }
        (Action::ReconcileAndCommit, Some(config)) => match &mut device.running {
            None => commit(world, switch, fresh(config)),
            Some(running) if running.config.is_same_program(&config) => {
                running.config.cookie = config.cookie;
                device.saved = None;
            }
            Some(_) => {
                return Err(Status::unimplemented(
                    "a different program cannot keep the entries; use VERIFY_AND_COMMIT",
                ));
            }
        },
        (_, _) => {}
    }
    Ok(())
}

/// A program with its initial state.
fn fresh(config: Config, seed: u64, ticks_per_s: u64) -> Saved {
    let mut pipeline = Pipeline::new(config.program.clone(), seed);
    pipeline.set_ticks_per_second(ticks_per_s);
    Saved {
        setup: Setup::new(config),
        pipeline,
    }
}

/// Starts a program, with the entries written since it was saved.
fn commit(world: &mut World, switch: usize, Saved { setup, pipeline }: Saved) {
    world.network.install(switch, pipeline);
    let device = &mut world.devices[switch];
    let tables = setup.config.tables.len();
    tracing::info!(switch = %device.name, tables, "new pipeline");
    device.running = Some(setup);
    device.saved = None;
}

/// The parts of the configuration that `wanted` names.
pub(super) fn get(
    device: &Device,
    wanted: ResponseType,
) -> Result<p4::GetForwardingPipelineConfigResponse, Status> {
    let Some(Setup { config, .. }) = &device.running else {
        // If no configuration was ever set, the answer is empty, not an error.
        return Ok(p4::GetForwardingPipelineConfigResponse::default());
    };
    let p4info = matches!(wanted, ResponseType::All | ResponseType::P4infoAndCookie);
    let program = matches!(
        wanted,
        ResponseType::All | ResponseType::DeviceConfigAndCookie
    );
    Ok(p4::GetForwardingPipelineConfigResponse {
        config: Some(p4::ForwardingPipelineConfig {
            p4info: p4info.then(|| config.p4info.clone()),
            p4_device_config: if program {
                config.device_config.clone()
            } else {
                Vec::new()
            },
            cookie: config.cookie,
        }),
    })
}
