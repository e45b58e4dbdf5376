//! Delivers what is due, each delivery in a task of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::config::{Delivery, HookTarget};
use super::{Shared, clerk, command};
use crate::native::http::HttpClient;
use crate::protocol::Address;
use crate::store::Store;

/// The one who delivers.
pub(super) struct Courier<S> {
    shared: Arc<Shared<S>>,
    client: HttpClient,
}

/// What came of a delivery.
enum Fate {
    Taken,
    /// None of its events is held any more.
    Gone,
    TimedOut,
    Refused(String),
}

impl<S: Store> Courier<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, client: HttpClient) -> Self {
        Self { shared, client }
    }

    pub(super) async fn run(self, mut is_stopping: watch::Receiver<bool>) {
        let courier = Arc::new(self);
        let mut clerk = JoinSet::new();
        clerk.spawn(clerk::run(courier.shared.clone()));
        let mut deliveries = JoinSet::new();
        loop {
            let wake = courier.start_due(&mut deliveries);
            tokio::select! {
                biased;
                () = stopped(&mut is_stopping) => break,
                Some(ended) = deliveries.join_next() => report_panic(ended),
                Some(ended) = clerk.join_next() => report_panic(ended),
                () = courier.shared.due.notified() => {}
                () = sleep(wake) => {}
            }
        }
        let under_way = async { while deliveries.join_next().await.is_some() {} };
        if timeout(courier.shared.config.shutdown_max, under_way).await.is_err() {
            tracing::info!("{} deliveries of the hook were cut short, and will be made again", deliveries.len());
        }
        deliveries.shutdown().await;
        clerk.shutdown().await;
        courier.shared.remove().await;
    }

    /// Starts what is due, as far as there is room; gives when the next delivery is due for which there is.
    fn start_due(self: &Arc<Self>, deliveries: &mut JoinSet<()>) -> Option<Instant> {
        let mut board = self.shared.board();
        while deliveries.len() < self.shared.config.concurrent_max.max(1) {
            match board.take_due(Instant::now()) {
                Some(delivery) => drop(deliveries.spawn(self.clone().deliver(delivery))),
                None => return board.next_due(),
            }
        }
        None
    }

    async fn deliver(self: Arc<Self>, delivery: Delivery) {
        let address = delivery.repository.clone();
        // A callback may panic; whatever it was about to do is its own.
        let trying = AssertUnwindSafe(self.try_deliver(delivery)).catch_unwind();
        let fate = trying.await.unwrap_or_else(|_| Fate::Refused("the callback panicked".to_owned()));
        self.settle(&address, fate);
        self.shared.notify();
    }

    fn settle(&self, address: &Address, fate: Fate) {
        let (config, now) = (&self.shared.config, Instant::now());
        let mut board = self.shared.board();
        let words = match fate {
            Fate::Taken => {
                board.counters.delivered += 1;
                return board.finish(address, now, config);
            }
            Fate::Gone => {
                board.counters.gone += 1;
                return board.finish(address, now, config);
            }
            Fate::TimedOut => {
                board.counters.timed_out += 1;
                format!("not taken within {} s", config.timeout.as_secs_f32())
            }
            Fate::Refused(words) => words,
        };
        board.counters.failed += 1;
        let (wait, failures) = board.fail(address, now, config);
        let wait = wait.as_secs_f32();
        // A hook that is down fails for every repository: that is said less and less often.
        if failures.is_power_of_two() {
            tracing::warn!(
                "the hook did not take {address:?}, failure {failures} in a row; again in {wait} s: {words}"
            );
        } else {
            tracing::debug!("the hook did not take {address:?}; again in {wait} s: {words}");
        }
    }

    async fn try_deliver(&self, mut delivery: Delivery) -> Fate {
        match self.shared.store.events(delivery.ids.iter().copied().collect()).await {
            Ok(held) => delivery.ids = held.into_iter().flatten().map(|record| record.id).collect(),
            Err(error) => return Fate::Refused(error.to_string()),
        }
        if delivery.ids.is_empty() && delivery.complete {
            return Fate::Gone;
        }
        let config = &self.shared.config;
        match timeout(config.timeout, self.hand_over(delivery)).await {
            Ok(Ok(())) => Fate::Taken,
            Ok(Err(words)) => Fate::Refused(words),
            Err(_) => Fate::TimedOut,
        }
    }

    async fn hand_over(&self, delivery: Delivery) -> Result<(), String> {
        let config = &self.shared.config;
        match &config.target {
            HookTarget::Callback(callback) => callback.deliver(delivery).await,
            HookTarget::Command(argv) => command::run(argv, &delivery, config).await,
            HookTarget::Url(url) => {
                let json = delivery.to_json().into();
                let posting = self.client.post_json(&url.0, json, config.output_bytes_max, config.timeout);
                let answer = posting.await.map_err(|error| error.to_string())?;
                if answer.status.is_success() {
                    return Ok(());
                }
                let body = String::from_utf8_lossy(&answer.body);
                Err(format!("HTTP {}: {:?}", answer.status, body.trim()))
            }
        }
    }
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Ends when the hook is to stop; an owner that is gone without a word wants that, too.
async fn stopped(is_stopping: &mut watch::Receiver<bool>) {
    if is_stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
        tracing::debug!("the hook was dropped");
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a task of the hook ended badly: {error}");
    }
}
