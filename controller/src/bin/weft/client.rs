//! The way to the controller of a running lab.

use anyhow::{Context, Result};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use weft_lab::Lab;
use weft_proto::v1::weft_client::WeftClient;

/// The running lab called `name`.
///
/// # Errors
/// One line that says that there is none, and how to start it.
pub fn running_lab(name: &str) -> Result<Lab> {
    Lab::find(name)?.ok_or_else(|| weft_lab::Error::NotUp(name.to_owned()).into())
}

/// A client of the controller in the lab called `name`.
pub async fn connect(name: &str) -> Result<WeftClient<Channel>> {
    let socket = running_lab(name)?.controller_socket();
    // The address is for HTTP's sake; the socket decides where it goes.
    let channel = Endpoint::from_static("http://controller")
        .connect_with_connector(service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await
        .with_context(|| format!("lab {name}: its controller does not answer"))?;
    Ok(WeftClient::new(channel))
}

/// What the controller refused, in one line.
pub fn refusal(status: Status) -> anyhow::Error {
    anyhow::anyhow!("controller: {} ({})", status.message(), status.code())
}
