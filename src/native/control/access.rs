//! Access rules, and what is protected.

use serde::Serialize;

use super::state::{Owner, State};
use super::{Control, ControlError, Desk};
use crate::peer::{MatchError, Rule, SpecMistake, SpecMistakes, check_match};
use crate::protocol::{Filter, PublicKey};

/// Who may read and write which protected events.
///
/// ```
/// # tokio_test(async {
/// # let folder = tempfile::tempdir().unwrap();
/// use relaysync::native::control::{Control, ControlConfig, Whose};
/// use relaysync::peer::{Capability, Rule};
///
/// let control = Control::open(ControlConfig::beside(folder.path().join("events.db"))).await.unwrap();
/// let access = control.access();
/// access.protect(Rule::parse_match(r#"{"kinds": [5000]}"#).unwrap()).await.unwrap();
/// let rule = Rule::parse(
///     r##"{
///         "principal": "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4",
///         "capability": "sync_read",
///         "match": {"kinds": [5000], "#r": ["tribes.accounts.user"]}
///     }"##,
/// )
/// .unwrap();
/// assert!(access.grant(rule.clone()).await.unwrap(), "it is new");
/// assert_eq!(access.list()[0].whose, Whose::Unknown, "no peer has this key");
/// assert!(access.revoke(rule).await.unwrap(), "it was there");
/// # });
/// # fn tokio_test(test: impl Future<Output = ()>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Access {
    pub(super) control: Control,
}

/// A rule, and whose key it grants to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantInfo {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Whose key it is.
    pub whose: Whose,
}

/// Whose a key is. In JSON `{"owner": "peer", "id": "tribes-primary"}` and the like.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "owner")]
pub enum Whose {
    /// Ours.
    Us,
    /// One that we had before: what it was granted should be moved.
    PreviouslyUs,
    /// A peer's.
    Peer {
        /// Its name.
        id: String,
    },
    /// One that a peer had before: what it was granted should be moved.
    PreviousOfPeer {
        /// Its name.
        id: String,
    },
    /// Of nobody that is known here.
    Unknown,
}

/// What is protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProtectedInfo {
    /// Events that satisfy this.
    pub filter: Filter,
    /// By configuration, so that only that can change it?
    pub configured: bool,
}

impl Access {
    /// Adds a rule. `false` if it was there already.
    ///
    /// # Errors
    /// It is about more than kinds, authors and tags, there are too many, or it could not be kept.
    pub async fn grant(&self, rule: Rule) -> Result<bool, ControlError> {
        check("match", &rule.events)?;
        self.control
            .with_desk(move |desk| {
                desk.check_match(&rule.events)?;
                let mut state = State::clone(&desk.state);
                let is_new = state.rules.insert(rule);
                desk.check_count("access rules", state.rules.len(), desk.bounds.rules_max)?;
                desk.write_if(is_new, state)
            })
            .await
    }

    /// Takes a rule away. `false` if it was not there.
    ///
    /// # Errors
    /// It could not be kept.
    pub async fn revoke(&self, rule: Rule) -> Result<bool, ControlError> {
        self.control
            .with_desk(move |desk| {
                let mut state = State::clone(&desk.state);
                let was_there = state.rules.remove(&rule);
                desk.write_if(was_there, state)
            })
            .await
    }

    /// Whatever is granted to `from` is granted to `to` instead. Gives the number of rules.
    ///
    /// # Errors
    /// It could not be kept.
    pub async fn move_grants(&self, from: PublicKey, to: PublicKey) -> Result<usize, ControlError> {
        self.control
            .with_desk(move |desk| {
                let mut state = State::clone(&desk.state);
                let (moved, kept) = state.rules.into_iter().partition::<Vec<_>, _>(|rule| rule.principal == from);
                let count = moved.len();
                state.rules = kept.into_iter().collect();
                state.rules.extend(moved.into_iter().map(|rule| Rule { principal: to, ..rule }));
                desk.write_if(count > 0 && from != to, state)?;
                Ok(count)
            })
            .await
    }

    /// All rules.
    pub fn list(&self) -> Vec<GrantInfo> {
        let desired = self.control.desired();
        let owners = desired.state.owners();
        let whose = |key: &PublicKey| match owners.get(key) {
            Some(Owner::Us) => Whose::Us,
            Some(Owner::PreviouslyUs) => Whose::PreviouslyUs,
            Some(Owner::Peer(id)) => Whose::Peer { id: (*id).to_owned() },
            Some(Owner::PreviousOfPeer(id)) => Whose::PreviousOfPeer { id: (*id).to_owned() },
            None => Whose::Unknown,
        };
        let rules = desired.state.rules.iter();
        rules.map(|rule| GrantInfo { rule: rule.clone(), whose: whose(&rule.principal) }).collect()
    }

    /// Protects what satisfies `filter`. `false` if it is protected in these words already.
    ///
    /// # Errors
    /// It is about more than kinds, authors and tags, there are too many, or it could not be kept.
    pub async fn protect(&self, filter: Filter) -> Result<bool, ControlError> {
        check("", &filter)?;
        self.control
            .with_desk(move |desk| {
                desk.check_match(&filter)?;
                let mut state = State::clone(&desk.state);
                let is_new = state.protected.insert(filter);
                desk.check_count("protected filters", state.protected.len(), desk.bounds.protected_max)?;
                desk.write_if(is_new, state)
            })
            .await
    }

    /// What satisfies `filter` is not protected any more, unless it satisfies another. `false` if it was not there.
    ///
    /// # Errors
    /// It is configured, or it could not be kept.
    pub async fn unprotect(&self, filter: Filter) -> Result<bool, ControlError> {
        self.control
            .with_desk(move |desk| {
                if desk.protected.contains(&filter) {
                    let reason = "it is protected by configuration (access.protected): take it out there, and reload";
                    return Err(ControlError::Refused(reason.to_owned()));
                }
                let mut state = State::clone(&desk.state);
                let was_there = state.protected.remove(&filter);
                desk.write_if(was_there, state)
            })
            .await
    }

    /// What is protected.
    pub fn protected(&self) -> Vec<ProtectedInfo> {
        let desired = self.control.desired();
        let info = |configured: bool| move |filter: &Filter| ProtectedInfo { filter: filter.clone(), configured };
        let configured = desired.protected.iter().map(info(true));
        let added = desired.state.protected.iter().filter(|filter| !desired.protected.contains(filter));
        configured.chain(added.map(info(false))).collect()
    }
}

/// Rules, and what is protected, are about kinds, authors and tags: what an event is, not when it is, or which.
fn check(path: &str, filter: &Filter) -> Result<(), ControlError> {
    let mistake = |error: MatchError| SpecMistake { path: path.to_owned(), reason: error.reason };
    check_match(filter).map_err(|error| SpecMistakes(vec![mistake(error)]).into())
}

impl Desk {
    fn check_match(&self, filter: &Filter) -> Result<(), ControlError> {
        let bytes = serde_json::to_vec(filter).map_or(usize::MAX, |json| json.len());
        self.check_count("bytes of this filter", bytes, self.bounds.match_bytes_max)
    }
}
