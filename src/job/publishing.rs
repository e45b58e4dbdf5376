//! Publishing: into our own store first, then to relays that each have an answer to give.

use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;

use super::runner::{Asker, RunnerId, Way};
use super::shared::{Shared, State};
use super::spec::check_relays;
use super::{Added, JobError, JobsConfig, PublishReport, RelayAnswer};
use crate::engine::{Command, Direction, PublishAnswer};
use crate::protocol::{Event, RelayUrl};
use crate::runtime::Runtime;
use crate::store::Outcome;

/// What is published shares connections with what is fetched.
const WAY: Way = Way { direction: Direction::Down, method: None };

impl<R: Runtime> Shared<R> {
    /// See [`Jobs::publish`](super::Jobs::publish).
    pub(super) async fn publish(
        self: &Arc<Self>,
        event: Event,
        mut relays: Vec<RelayUrl>,
        timeout: Duration,
    ) -> Result<PublishReport, JobError> {
        check_relays(&relays, &self.config)?;
        let mut seen = std::collections::BTreeSet::new();
        relays.retain(|relay| seen.insert(relay.clone()));
        let added = self.add(vec![event.clone()]).await?;
        let outcome = added.first().copied().unwrap_or(Added::Invalid(crate::ingest::Invalid::Id));
        if !is_to_be_sent(outcome) {
            return Ok(PublishReport { outcome, relays: Vec::new() });
        }
        let (answers, begun) = {
            let mut state = self.lock();
            // It may have been closed while the event was stored: nobody would end what begins now.
            if state.is_closed {
                return Err(JobError::Closed);
            }
            let mut begun = None;
            let send = |relay| (state.publish(&relay, &event, timeout, &self.config, &mut begun), relay);
            (relays.into_iter().map(send).collect::<Vec<_>>(), begun)
        };
        begun.into_iter().for_each(|runner| self.spawn(runner));
        let mut relays = Vec::with_capacity(answers.len());
        for (answer, relay) in answers {
            // An engine that ends without an answer was stopped.
            let answer = answer.await.unwrap_or(PublishAnswer::Stopped);
            relays.push(RelayAnswer { relay, answer });
        }
        Ok(PublishReport { outcome, relays })
    }
}

/// What is forged, or was taken back by its author, is to be seen by nobody; what is only no use to our own store may be to
/// others.
fn is_to_be_sent(outcome: Added) -> bool {
    let Added::Committed(outcome) = outcome else { return false };
    !matches!(outcome, Outcome::Deleted | Outcome::Vanished | Outcome::Expired)
}

impl State {
    /// Has the event sent to a relay; a runner that has to be spawned for that is `begun`.
    fn publish(
        &mut self,
        relay: &RelayUrl,
        event: &Event,
        timeout: Duration,
        config: &JobsConfig,
        begun: &mut Option<RunnerId>,
    ) -> oneshot::Receiver<PublishAnswer> {
        let (asker, answer) = oneshot::channel();
        let ticket = self.next_number();
        let runner = self.connected_to(relay).unwrap_or_else(|| {
            let (runner, is_new) = self.live_runner(WAY, config);
            if is_new {
                *begun = Some(runner);
            }
            runner
        });
        let (relay, event) = (relay.clone(), Box::new(event.clone()));
        if let Some(runner) = self.runners.get_mut(&runner) {
            runner.ask(ticket, Command::Publish { ticket, relay, event, timeout }, Asker::Publish(asker));
        }
        answer
    }
}
