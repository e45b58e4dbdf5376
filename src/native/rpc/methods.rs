//! The methods: what they take, and how they are carried out.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::params::{Param, Params, shown};
use crate::native::control::{Control, ControlError, FileFault};
use crate::peer::{PeerSpec, Rule};

/// A call, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::native) struct Asked {
    pub(in crate::native) method: String,
    #[serde(default)]
    pub(in crate::native) params: Vec<Box<RawValue>>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One of the parameters may be a secret.
        f.debug_struct("Asked").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Why a call was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) struct Fault {
    pub(in crate::native) blame: Blame,
    pub(in crate::native) words: String,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Blame {
    /// The call is wrong.
    Call,
    /// There is no such method or peer.
    Name,
    /// It cannot be done as things are.
    Circumstances,
    /// We have failed.
    Us,
}

impl Fault {
    pub(super) fn wrong(words: String) -> Self {
        Self { blame: Blame::Call, words }
    }

    pub(super) fn broken(words: String) -> Self {
        Self { blame: Blame::Us, words }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl From<ControlError> for Fault {
    fn from(error: ControlError) -> Self {
        let blame = match &error {
            ControlError::Mistakes(_) => Blame::Call,
            ControlError::UnknownPeer(_) => Blame::Name,
            ControlError::Refused(_) => Blame::Circumstances,
            ControlError::File(error) if matches!(error.fault, FileFault::Full { .. }) => Blame::Circumstances,
            ControlError::File(_) | ControlError::Stopped => Blame::Us,
        };
        Self { blame, words: error.to_string() }
    }
}

#[derive(Debug, Clone, Copy)]
enum Method {
    SupportedMethods,
    GetIdentity,
    EnsureIdentity,
    ImportIdentity,
    RotateIdentity,
    GrantAccess,
    RevokeAccess,
    MoveAccess,
    ListAccess,
    ProtectEvents,
    UnprotectEvents,
    ListProtected,
    PutPeer,
    GetPeer,
    ListPeers,
    RemovePeer,
    StartPeer,
    StopPeer,
    SyncPeer,
    PeerStats,
    SyncStats,
    SyncHealth,
    EventContext,
}

const ID: Param = Param { name: "id", form: "the name of a peer" };
const RULE: Param = Param {
    name: "rule",
    form: "an object like {\"principal\":\"npub1…\",\"capability\":\"sync_read\",\"match\":{\"kinds\":[5000]}}",
};
const FILTER: Param = Param { name: "filter", form: "kinds, authors and tags of a filter, like {\"kinds\":[5000]}" };
const KEY_FORM: &str = "a public key, as npub1… or 64 hexadecimal digits";

/// All methods, by name, with their parameters.
const METHODS: &[(&str, Method, &[Param])] = &[
    ("supportedmethods", Method::SupportedMethods, &[]),
    ("getidentity", Method::GetIdentity, &[]),
    ("ensureidentity", Method::EnsureIdentity, &[]),
    (
        "importidentity",
        Method::ImportIdentity,
        &[Param { name: "secret", form: "a secret key, as nsec1… or 64 hexadecimal digits" }],
    ),
    ("rotateidentity", Method::RotateIdentity, &[]),
    ("grantaccess", Method::GrantAccess, &[RULE]),
    ("revokeaccess", Method::RevokeAccess, &[RULE]),
    ("moveaccess", Method::MoveAccess, &[Param { name: "from", form: KEY_FORM }, Param { name: "to", form: KEY_FORM }]),
    ("listaccess", Method::ListAccess, &[]),
    ("protectevents", Method::ProtectEvents, &[FILTER]),
    ("unprotectevents", Method::UnprotectEvents, &[FILTER]),
    ("listprotected", Method::ListProtected, &[]),
    ("putpeer", Method::PutPeer, &[Param { name: "peer", form: "an object with the fields of a peer" }]),
    ("getpeer", Method::GetPeer, &[ID]),
    ("listpeers", Method::ListPeers, &[]),
    ("removepeer", Method::RemovePeer, &[ID]),
    ("startpeer", Method::StartPeer, &[ID]),
    ("stoppeer", Method::StopPeer, &[ID]),
    ("syncpeer", Method::SyncPeer, &[ID]),
    ("peerstats", Method::PeerStats, &[ID]),
    ("syncstats", Method::SyncStats, &[]),
    ("synchealth", Method::SyncHealth, &[]),
    (
        "eventcontext",
        Method::EventContext,
        &[Param { name: "id", form: "the id of an event, in 64 hexadecimal digits" }],
    ),
];

/// Is this method for those who are on this machine only?
fn is_local(method: Method) -> bool {
    matches!(method, Method::ImportIdentity)
}

/// Carries out a call. `local`: whoever calls is on this machine, and may use its files anyway.
///
/// # Errors
/// The call is wrong, or it cannot be carried out. Then nothing has changed.
pub(in crate::native) async fn carry_out(control: &Control, asked: &Asked, local: bool) -> Result<Value, Fault> {
    let found = METHODS.iter().find(|(name, ..)| *name == asked.method);
    let Some((name, method, params)) = found.copied() else {
        let words =
            format!("there is no method {}; supportedmethods gives all of them", shown(&format!("{:?}", asked.method)));
        return Err(Fault { blame: Blame::Name, words });
    };
    if is_local(method) && !local {
        let words =
            format!("{name} is taken on the daemon's own machine only, over its socket: no secret is sent here");
        return Err(Fault { blame: Blame::Name, words });
    }
    let mut params = Params::of(name, params, &asked.params)?;
    match method {
        Method::SupportedMethods => Ok(supported(local)),
        Method::GetIdentity | Method::EnsureIdentity | Method::ImportIdentity | Method::RotateIdentity => {
            identify(control, method, &mut params).await
        }
        Method::GrantAccess
        | Method::RevokeAccess
        | Method::MoveAccess
        | Method::ListAccess
        | Method::ProtectEvents
        | Method::UnprotectEvents
        | Method::ListProtected => grant(control, method, &mut params).await,
        _ => peer(control, method, &mut params).await,
    }
}

fn supported(local: bool) -> Value {
    METHODS.iter().filter(|(_, method, _)| local || !is_local(*method)).map(|(name, ..)| *name).collect()
}

async fn identify(control: &Control, method: Method, params: &mut Params<'_>) -> Result<Value, Fault> {
    let identity = control.identity();
    match method {
        Method::ImportIdentity => written(&identity.import(&params.secret()?).await?),
        Method::EnsureIdentity => written(&identity.ensure().await?),
        Method::RotateIdentity => written(&identity.rotate().await?),
        _ => written(&identity.get()),
    }
}

async fn grant(control: &Control, method: Method, params: &mut Params<'_>) -> Result<Value, Fault> {
    let access = control.access();
    let changed = match method {
        Method::GrantAccess => access.grant(params.next(Rule::parse)?).await?,
        Method::RevokeAccess => access.revoke(params.next(Rule::parse)?).await?,
        Method::ProtectEvents => access.protect(params.next(Rule::parse_match)?).await?,
        Method::UnprotectEvents => access.unprotect(params.next(Rule::parse_match)?).await?,
        Method::MoveAccess => {
            let (from, to) = (params.public_key()?, params.public_key()?);
            return Ok(json!({ "moved": access.move_grants(from, to).await? }));
        }
        Method::ListAccess => return written(&access.list()),
        _ => return written(&access.protected()),
    };
    Ok(json!({ "changed": changed }))
}

async fn peer(control: &Control, method: Method, params: &mut Params<'_>) -> Result<Value, Fault> {
    let peers = control.peers();
    match method {
        Method::PutPeer => written(&peers.put(params.next(PeerSpec::parse)?).await?),
        Method::GetPeer => written(&peers.get(&params.text()?)?),
        Method::StartPeer => written(&peers.start(&params.text()?).await?),
        Method::StopPeer => written(&peers.stop(&params.text()?).await?),
        Method::RemovePeer => Ok(json!({ "changed": peers.remove(&params.text()?).await? })),
        Method::SyncPeer => {
            peers.sync_now(&params.text()?).await?;
            Ok(true.into())
        }
        Method::PeerStats => written(&peers.stats(&params.text()?)?),
        Method::SyncStats => written(&peers.all_stats()),
        Method::SyncHealth => written(&peers.health()),
        Method::EventContext => written(&peers.brought(params.event_id()?).await?),
        _ => written(&peers.list()),
    }
}

fn written(result: &impl Serialize) -> Result<Value, Fault> {
    serde_json::to_value(result).map_err(|error| Fault::broken(format!("the result cannot be written: {error}")))
}
