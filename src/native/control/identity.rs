//! Who we are.

use serde::{Deserialize, Serialize};

use super::state::{Named, State};
use super::{Control, ControlError, Desk, Secret};
use crate::native::clock::unix_secs;
use crate::peer::rfc3339;
use crate::protocol::PublicKey;

/// Our identity as a server: the key by which we authenticate to relays (NIP-42), and which our own relay names in its
/// information document. It has nothing to do with certificates, nor with the authors of events.
///
/// A configured key has precedence; else it is the one that is kept here, which is generated if there is none.
///
/// ```
/// # tokio_test(async {
/// # let folder = tempfile::tempdir().unwrap();
/// use relaysync::native::control::{Control, ControlConfig, IdentitySource};
///
/// let control = Control::open(ControlConfig::beside(folder.path().join("events.db"))).await.unwrap();
/// let identity = control.identity();
/// let first = identity.ensure().await.unwrap();
/// assert_eq!(first.source, IdentitySource::Generated);
/// assert_eq!(identity.ensure().await.unwrap().pubkey, first.pubkey);
///
/// // Whoever has granted something to the former key sees whose it was.
/// let second = identity.rotate().await.unwrap();
/// assert_eq!(second.previous, [first.pubkey]);
/// # });
/// # fn tokio_test(test: impl Future<Output = ()>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Identity {
    pub(super) control: Control,
}

/// Who we are, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityInfo {
    /// The key that others know.
    pub pubkey: PublicKey,
    /// Where it comes from.
    pub source: IdentitySource,
    /// When it became our identity for the first time, in seconds since 1970; in JSON text (RFC 3339).
    #[serde(rename = "created_at", with = "rfc3339::moment")]
    pub created_at_secs: u64,
    /// Who we have been, the last one first.
    pub previous: Vec<PublicKey>,
}

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentitySource {
    /// The configuration.
    Configured,
    /// It was imported.
    Imported,
    /// It was made here.
    Generated,
}

impl Identity {
    /// Who we are; `None` as long as nothing has made it necessary to be somebody.
    pub fn get(&self) -> Option<IdentityInfo> {
        self.control.desired().identity.clone()
    }

    /// Who we are. If we are nobody yet, a key is generated.
    ///
    /// # Errors
    /// It could not be generated and kept.
    pub async fn ensure(&self) -> Result<IdentityInfo, ControlError> {
        self.change(|desk| match desk.state.identity {
            Some(_) => Ok(()),
            None => install(desk, generate()?, IdentitySource::Generated),
        })
        .await
    }

    /// From now on we are whose secret key this is, as nsec1… or 64 hexadecimal digits.
    ///
    /// # Errors
    /// It is none, the identity is configured, or it could not be kept.
    pub async fn import(&self, secret: &str) -> Result<IdentityInfo, ControlError> {
        let secret = Secret::parse(secret).ok_or_else(|| {
            ControlError::Refused("this is no secret key; write nsec1… or 64 hexadecimal digits".to_owned())
        })?;
        self.change(|desk| {
            refuse_if_configured(desk)?;
            match desk.state.identity {
                Some(identity) if identity.pubkey == secret.pubkey() => Ok(()),
                _ => install(desk, secret, IdentitySource::Imported),
            }
        })
        .await
    }

    /// From now on we are somebody new. The old key is gone then; what was granted to it stays visible in
    /// [`Access::list`](super::Access::list) until it is moved.
    ///
    /// # Errors
    /// The identity is configured, or the new key could not be kept.
    pub async fn rotate(&self) -> Result<IdentityInfo, ControlError> {
        self.change(|desk| {
            refuse_if_configured(desk)?;
            install(desk, generate()?, IdentitySource::Generated)
        })
        .await
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut Desk) -> Result<(), ControlError> + Send + 'static,
    ) -> Result<IdentityInfo, ControlError> {
        self.control
            .with_desk(|desk| {
                change(desk)?;
                desk.identity_info().ok_or(ControlError::Stopped)
            })
            .await
    }
}

fn generate() -> Result<Secret, ControlError> {
    Secret::generate().map_err(|error| ControlError::Refused(format!("no key can be generated: {error}")))
}

fn refuse_if_configured(desk: &Desk) -> Result<(), ControlError> {
    match desk.state.identity {
        Some(Named { source: IdentitySource::Configured, .. }) => Err(ControlError::Refused(
            "the identity is configured (identity.key_file): put another key into that file and start again, or take \
             the setting out to have the key kept here"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Makes this our identity, kept here: first the key is written, then it is named, then it is used.
fn install(desk: &mut Desk, secret: Secret, source: IdentitySource) -> Result<(), ControlError> {
    desk.check_certain()?;
    let kept = desk.state.kept.map(|kept| kept.pubkey);
    // What an earlier change may have left must not get lost.
    desk.key.settle(kept)?;
    desk.key.prepare(&secret)?;
    let mut state = State::clone(&desk.state);
    let named = Named { pubkey: secret.pubkey(), source, created_secs: unix_secs() };
    state.kept = Some(named);
    state.rename(named, desk.bounds.previous_keys_max);
    // If it cannot be written, it may be there all the same: then whoever opens the files next needs the new key.
    desk.write(state)?;
    desk.secret = Some(secret);
    if let Err(error) = desk.key.adopt() {
        // The state names it, so it is found where it is.
        tracing::warn!("the new key is used, but does not have its place yet: {error}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::control::{ControlConfig, durable::faults};

    /// Whatever of a change is on disk when a folder cannot be written any more: who opens the files next is somebody.
    #[test]
    fn a_folder_that_cannot_be_written_costs_no_key() {
        for good in 0..6 {
            let folder = tempfile::tempdir().unwrap();
            let config = ControlConfig::beside(folder.path().join("events.db"));
            let open = || Desk::open(config.clone()).unwrap().0;
            let mut desk = open();
            install(&mut desk, generate().unwrap(), IdentitySource::Generated).unwrap();
            let old = desk.identity_info().unwrap();
            faults::after(Some(good));
            let changed = install(&mut desk, generate().unwrap(), IdentitySource::Generated);
            let again = install(&mut desk, generate().unwrap(), IdentitySource::Generated);
            assert!(again.is_err(), "{good}");
            let told = desk.identity_info().unwrap();
            assert_eq!(changed.is_err(), told == old, "{good}");
            faults::after(None);
            drop(desk);
            let mut desk = open();
            assert!(desk.secret.is_some() && (changed.is_err() || desk.identity_info() == Some(told)), "{good}");
            install(&mut desk, generate().unwrap(), IdentitySource::Generated).unwrap();
        }
    }

    #[test]
    fn what_could_not_be_written_is_put_back_before_anything_else_changes() {
        let folder = tempfile::tempdir().unwrap();
        let config = ControlConfig::beside(folder.path().join("events.db"));
        let mut desk = Desk::open(config.clone()).unwrap().0;
        install(&mut desk, generate().unwrap(), IdentitySource::Generated).unwrap();
        let old = desk.identity_info();
        // The new key and the unfinished state are there, and the state has its name, but not for good.
        faults::after(Some(2));
        install(&mut desk, generate().unwrap(), IdentitySource::Generated).unwrap_err();
        desk.check_certain().unwrap_err();
        faults::after(None);
        desk.check_certain().unwrap();
        drop(desk);
        assert_eq!(Desk::open(config).unwrap().0.identity_info(), old);
    }
}
