//! The way from the relay service to whoever decides which events of clients are wanted, and back.

use tokio::sync::{mpsc, oneshot};

use crate::ingest::Verified;
use crate::native::feed::{Fed, FeedReceiver};
use crate::protocol::Event;
use crate::serve::WorkFault;

/// Asks whether events are wanted. Its answers come from the [`Docket`] that was made with it.
#[derive(Debug, Clone)]
pub struct Judge {
    cases: mpsc::Sender<Case>,
}

/// Events to be judged, in the order in which they are to take effect: one that is wanted counts as held when those
/// behind it are judged.
#[derive(Debug)]
pub struct Case {
    /// The events.
    pub events: Vec<Verified<Event>>,
    answer: oneshot::Sender<Vec<Option<String>>>,
}

impl Case {
    /// Answers: one objection an event, in order, `None` for those that are wanted. An objection is what OK says to the
    /// client and begins with a machine-readable prefix (NIP-01), such as `blocked: `.
    pub fn answer(self, objections: Vec<Option<String>>) {
        if self.answer.send(objections).is_err() {
            tracing::debug!("a judgement came too late");
        }
    }
}

/// What comes before whoever decides: first what has been stored, then what is to be judged. An event whose client has
/// got its OK comes out of here before anything that a client sent after that OK.
#[derive(Debug)]
pub struct Docket {
    feed: FeedReceiver,
    cases: mpsc::Receiver<Case>,
    /// Taken, while what was stored before it may still be waiting in the feed.
    pending: Option<Case>,
}

/// One thing that comes before whoever decides.
#[derive(Debug)]
pub enum Matter {
    /// Something was stored.
    Fed(Fed),
    /// Something is to be judged.
    Case(Case),
}

/// A judge for a relay service, and where its cases go. `feed` is that of the [`FedStore`](crate::native::feed::FedStore)
/// through which the same service writes.
pub fn docket(feed: FeedReceiver) -> (Judge, Docket) {
    // One service has one case at a time.
    let (sender, cases) = mpsc::channel(1);
    (Judge { cases: sender }, Docket { feed, cases, pending: None })
}

impl Judge {
    pub(super) async fn objections(&self, events: Vec<Verified<Event>>) -> Result<Vec<Option<String>>, WorkFault> {
        let (answer, answered) = oneshot::channel();
        let nobody = || WorkFault("nobody judges".into());
        self.cases.send(Case { events, answer }).await.map_err(|_| nobody())?;
        answered.await.map_err(|_| nobody())
    }
}

impl Docket {
    /// The next matter. `None` once all judges are gone and everything was taken. Nothing is lost if this is dropped
    /// before it ends.
    pub async fn next(&mut self) -> Option<Matter> {
        loop {
            if let Some(fed) = self.feed.try_recv() {
                return Some(Matter::Fed(fed));
            }
            if let Some(case) = self.pending.take() {
                return Some(Matter::Case(case));
            }
            tokio::select! {
                fed = self.feed.recv() => return Some(Matter::Fed(fed)),
                case = self.cases.recv() => match case {
                    // The feed is looked at once more before it is handed out.
                    Some(case) => self.pending = Some(case),
                    None => return self.feed.try_recv().map(Matter::Fed),
                },
            }
        }
    }
}
