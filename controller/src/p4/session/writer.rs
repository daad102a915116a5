// SPDX-License-Identifier: Apache-2.0

//! How a primary configures a switch at the start of a session.

use tonic::{Code, Status};
use tracing::info;
use weft_p4runtime::p4::v1::{self as p4, Entity, entity};

use super::{Client, Error, Target, call, uint128};
use crate::p4::reconcile::{Found, plan};

/// The unary calls of a primary.
#[derive(Clone)]
pub(super) struct Writer<'a> {
    pub target: &'a Target,
    pub client: Client,
    pub election_id: u128,
}

impl Writer<'_> {
    /// Pushes the program unless the switch runs it, and corrects its entries.
    pub async fn configure(mut self) -> Result<(), Error> {
        let pushed = !self.runs_program().await?;
        if pushed {
            self.push_program().await?;
        }
        let found = self.read().await?;
        let updates = plan(&self.target.desired, &found);
        info!(
            switch = self.target.name,
            pushed,
            corrections = updates.len(),
            "configured"
        );
        self.write(updates).await.map_err(call("writing tables"))
    }

    /// Limits what hosts send in each class to these shares of their links.
    pub async fn limit(&mut self, rates: &[f64]) -> Result<(), Error> {
        let updates = self.target.limits.updates(rates);
        let written = self.write(updates).await;
        written.map_err(call("limiting classes"))
    }

    /// Classifies flows whose hosts claim no class by these thresholds of class 1, 2, ...
    pub async fn classify(&mut self, most_bytes: &[u64]) -> Result<(), Error> {
        let target = self.target;
        let updates = target
            .desired
            .by_sent
            .updates(&target.program, most_bytes)?;
        let written = self.write(updates).await;
        written.map_err(call("classifying flows by what they have sent"))
    }

    async fn write(&mut self, updates: Vec<p4::Update>) -> Result<(), Status> {
        if updates.is_empty() {
            return Ok(());
        }
        self.client
            .write(p4::WriteRequest {
                device_id: self.target.device_id,
                election_id: Some(uint128(self.election_id)),
                updates,
                ..p4::WriteRequest::default()
            })
            .await?;
        Ok(())
    }

    async fn runs_program(&mut self) -> Result<bool, Error> {
        let request = p4::GetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            response_type: p4::get_forwarding_pipeline_config_request::ResponseType::CookieOnly
                .into(),
        };
        let cookie = match self.client.get_forwarding_pipeline_config(request).await {
            Ok(response) => response
                .into_inner()
                .config
                .and_then(|config| config.cookie)
                .map(|cookie| cookie.cookie),
            // No program yet, in the words of P4Runtime and of BMv2.
            Err(status) if matches!(status.code(), Code::FailedPrecondition | Code::NotFound) => {
                None
            }
            Err(status) => return Err(call("reading the pipeline")(status)),
        };
        Ok(cookie == Some(self.target.program.cookie))
    }

    async fn push_program(&mut self) -> Result<(), Error> {
        use p4::set_forwarding_pipeline_config_request::Action;
        let program = &self.target.program;
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            election_id: Some(uint128(self.election_id)),
            action: Action::VerifyAndCommit.into(),
            config: Some(p4::ForwardingPipelineConfig {
                p4info: Some(program.info.clone()),
                p4_device_config: program.device_config.clone(),
                cookie: Some(p4::forwarding_pipeline_config::Cookie {
                    cookie: program.cookie,
                }),
            }),
            ..p4::SetForwardingPipelineConfigRequest::default()
        };
        self.client
            .set_forwarding_pipeline_config(request)
            .await
            .map_err(call("pushing the pipeline"))?;
        Ok(())
    }

    /// Reads all entries, those default entries that matter, and all digests.
    async fn read(&mut self) -> Result<Found, Error> {
        let defaults = self
            .target
            .desired
            .entries
            .iter()
            .filter(|entry| entry.is_default_action)
            .map(|entry| p4::TableEntry {
                table_id: entry.table_id,
                is_default_action: true,
                ..p4::TableEntry::default()
            });
        let entries = std::iter::once(p4::TableEntry::default())
            .chain(defaults)
            .map(entity::Entity::TableEntry)
            .collect();
        let mut found = Found::default();
        let read = self.read_entities(entries, &mut found).await;
        read.map_err(call("reading tables"))?;
        self.read_digests(&mut found)
            .await
            .map_err(call("reading digests"))?;
        Ok(found)
    }

    /// Reads all digests: at once, or one by one for BMv2.
    async fn read_digests(&mut self, found: &mut Found) -> Result<(), Status> {
        let every = entity::Entity::DigestEntry(p4::DigestEntry::default());
        match self.read_entities(vec![every], found).await {
            Err(status) if status.code() == Code::Unimplemented => {}
            read => return read,
        }
        let target = self.target;
        for digest in &target.desired.digests {
            let one = p4::DigestEntry {
                digest_id: digest.digest_id,
                ..p4::DigestEntry::default()
            };
            let one = entity::Entity::DigestEntry(one);
            match self.read_entities(vec![one], found).await {
                // There is no subscription yet.
                Err(status) if status.code() == Code::NotFound => {}
                read => read?,
            }
        }
        Ok(())
    }

    async fn read_entities(
        &mut self,
        entities: Vec<entity::Entity>,
        found: &mut Found,
    ) -> Result<(), Status> {
        let entities = entities.into_iter().map(|entity| Entity {
            entity: Some(entity),
        });
        let request = p4::ReadRequest {
            device_id: self.target.device_id,
            entities: entities.collect(),
            ..p4::ReadRequest::default()
        };
        let mut responses = self.client.read(request).await?.into_inner();
        while let Some(response) = responses.message().await? {
            found.extend(response.entities);
        }
        Ok(())
    }
}
