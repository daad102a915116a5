// SPDX-License-Identifier: Apache-2.0

//! The way to the controller of a running lab.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use weft_lab::Lab;
use weft_proto::v1::GetRoleRequest;
use weft_proto::v1::weft_client::WeftClient;

/// For an answer of one of several controllers, in real time; one that hangs gives none.
const PATIENCE: Duration = Duration::from_secs(2);

/// The running lab called `name`.
///
/// # Errors
/// One line that says that there is none, and how to start it.
pub fn running_lab(name: &str) -> Result<Lab> {
    Lab::find(name)?.ok_or_else(|| weft_lab::Error::NotUp(name.to_owned()).into())
}

/// A client of the controller in the lab called `name`; of several, the one that is
/// primary, or one that answers while none is.
pub async fn connect(name: &str) -> Result<WeftClient<Channel>> {
    let sockets = running_lab(name)?.controller_sockets();
    let clients = match &sockets[..] {
        [only] => {
            let client = client_at(only.clone()).await;
            return client.with_context(|| format!("lab {name}: its controller does not answer"));
        }
        sockets => ask_for_roles(sockets).await,
    };
    let primary = clients.iter().position(|(_, is_primary)| *is_primary);
    let chosen = clients.into_iter().nth(primary.unwrap_or(0));
    let (client, _) = chosen.with_context(|| format!("lab {name}: no controller answers"))?;
    Ok(client)
}

/// The controllers that answer, and whether each is primary.
async fn ask_for_roles(sockets: &[PathBuf]) -> Vec<(WeftClient<Channel>, bool)> {
    let mut roles = JoinSet::new();
    for (place, socket) in sockets.iter().cloned().enumerate() {
        roles.spawn(async move {
            let asked = async {
                let mut client = client_at(socket).await.ok()?;
                let role = client.get_role(GetRoleRequest {}).await.ok()?;
                Some((place, client, role.into_inner().primary))
            };
            tokio::time::timeout(PATIENCE, asked).await.ok()?
        });
    }
    let mut clients: Vec<_> = roles.join_all().await.into_iter().flatten().collect();
    clients.sort_by_key(|(place, ..)| *place);
    let without_place = |(_, client, is_primary)| (client, is_primary);
    clients.into_iter().map(without_place).collect()
}

async fn client_at(socket: PathBuf) -> Result<WeftClient<Channel>, tonic::transport::Error> {
    // The address is for HTTP's sake; the socket decides where it goes.
    let channel = Endpoint::from_static("http://controller")
        .connect_with_connector(service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await?;
    Ok(WeftClient::new(channel))
}

/// What the controller refused, in one line.
pub fn refusal(status: Status) -> anyhow::Error {
    anyhow::anyhow!("controller: {} ({})", status.message(), status.code())
}
