//! Publishing single events for the embedder, each to have an answer: whatever the relay says, or that it says nothing.

use std::collections::{BTreeMap, VecDeque};

use super::{Ctx, Relay};
use crate::engine::{Effect, Notice, PublishAnswer};
use crate::protocol::message::client;
use crate::protocol::{Event, hex};
use crate::relay::session::Link;
use crate::runtime::{CloseReason, Instant};

/// An event to be published, whose answer is awaited.
#[derive(Debug)]
struct Post {
    /// For the answer.
    ticket: u64,
    event: Box<Event>,
    give_up_at: Instant,
}

/// Events on their way to one relay.
#[derive(Debug, Default)]
pub(super) struct Posts {
    waiting: VecDeque<Post>,
    /// Sent on this connection, by their ids.
    sent: BTreeMap<[u8; 32], Vec<Post>>,
    /// All was answered, and the connection is kept until then, as more may come.
    lingers_until: Option<Instant>,
    /// The relay wants authentication first, in these words.
    auth_demanded: Option<String>,
}

impl Posts {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// Is the connection to be kept?
    pub(super) fn need_connection(&self) -> bool {
        !self.is_empty() || self.lingers_until.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.sent.values().map(Vec::len).sum::<usize>()
    }

    /// When the next is given up, or the connection is not needed any more.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let posts = self.waiting.iter().chain(self.sent.values().flatten());
        posts.map(|post| post.give_up_at).chain(self.lingers_until).min()
    }

    fn take(&mut self, is_meant: impl Fn(&Post) -> bool) -> Vec<Post> {
        let mut taken: Vec<Post> = Vec::new();
        let mut left = VecDeque::new();
        for post in self.waiting.drain(..) {
            if is_meant(&post) { taken.push(post) } else { left.push_back(post) }
        }
        self.waiting = left;
        for posts in self.sent.values_mut() {
            taken.extend(posts.extract_if(.., |post| is_meant(post)));
        }
        self.sent.retain(|_, posts| !posts.is_empty());
        taken
    }

    /// The connection is gone: what was sent is sent again on the next, as nobody knows whether it has come.
    fn renew(&mut self) {
        (self.auth_demanded, self.lingers_until) = (None, None);
        let sent = std::mem::take(&mut self.sent).into_values().flatten();
        for post in sent.collect::<Vec<_>>().into_iter().rev() {
            self.waiting.push_front(post);
        }
    }
}

impl Relay {
    /// This is to be published, and an answer given until `give_up_at`.
    pub(in crate::engine) fn post(&mut self, ticket: u64, event: Box<Event>, give_up_at: Instant, ctx: &mut Ctx<'_>) {
        if self.posts.len() >= ctx.config.posts_max {
            let words = "too many events wait to be published to this relay".to_owned();
            return self.answer(ticket, PublishAnswer::RateLimited(words), ctx);
        }
        self.given_up = false;
        self.posts.lingers_until = None;
        self.posts.waiting.push_back(Post { ticket, event, give_up_at });
        if self.session.link == Link::Down {
            self.health.retry_soon(ctx.config);
        }
        self.pump(ctx);
    }

    /// Sends what there is room for.
    pub(super) fn poll_posts(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        if self.posts.auth_demanded.is_some() && !self.session.auth.accepted {
            return;
        }
        while self.posts.sent.len() < ctx.config.publish_in_flight_max.max(1)
            && let Some(post) = self.posts.waiting.pop_front()
        {
            let id = post.event.id.to_bytes();
            // One answer counts for all that ask for the same event.
            let is_under_way = self.posts.sent.contains_key(&id);
            let frame = client::event(post.event.json_str());
            self.posts.sent.entry(id).or_default().push(post);
            if !is_under_way {
                self.send(ctx, conn, frame);
            }
        }
    }

    /// The relay's word on an event that was published so; `None` if it is for none.
    pub(super) fn handle_post_ok(&mut self, id: &str, accepted: bool, words: &str, ctx: &mut Ctx<'_>) -> Option<()> {
        let id: [u8; 32] = hex::decode(id)?.try_into().ok()?;
        let posts = self.posts.sent.remove(&id)?;
        let answer = PublishAnswer::read(accepted, words);
        match &answer {
            PublishAnswer::AuthRequired(_) if self.may_authenticate() => {
                self.posts.auth_demanded = Some(words.to_owned());
                self.posts.waiting.extend(posts);
                self.auth_wait_until.get_or_insert(ctx.now.instant + ctx.config.stall);
                return Some(());
            }
            PublishAnswer::RateLimited(_) => self.rest(words, ctx),
            PublishAnswer::AuthRequired(_) => {}
            PublishAnswer::Accepted(_) | PublishAnswer::Duplicate(_) => {
                self.counters.published += 1;
                self.record_useful(ctx);
                self.record_served();
            }
            _ => {
                self.counters.refused += 1;
                self.record_useful(ctx);
                self.record_served();
            }
        }
        for post in posts {
            self.answer(post.ticket, answer.clone(), ctx);
        }
        if self.posts.is_empty() {
            self.posts.lingers_until = Some(ctx.now.instant + ctx.config.post_linger);
        }
        Some(())
    }

    /// May authentication still help?
    fn may_authenticate(&self) -> bool {
        let auth = &self.session.auth;
        self.authenticates() && !auth.accepted && auth.refused.is_none()
    }

    /// Authentication came to nothing.
    pub(super) fn fail_posts_for_auth(&mut self, why: &str, ctx: &mut Ctx<'_>) {
        if let Some(words) = self.posts.auth_demanded.take() {
            self.answer_all(&PublishAnswer::AuthRequired(format!("{words} ({why})")), ctx);
        }
    }

    /// The connection is gone.
    pub(super) fn renew_posts(&mut self) {
        self.posts.renew();
    }

    /// The link has failed in a way that lasts, or too often.
    pub(super) fn fail_posts(&mut self, reason: &CloseReason, ctx: &mut Ctx<'_>) {
        let answer = match reason {
            CloseReason::RateLimited => PublishAnswer::RateLimited(reason.to_string()),
            CloseReason::AuthRefused(words) => PublishAnswer::AuthRequired(words.clone()),
            _ => PublishAnswer::Unreachable(reason.to_string()),
        };
        self.answer_all(&answer, ctx);
    }

    /// Nothing more is published.
    pub(super) fn stop_posts(&mut self, ctx: &mut Ctx<'_>) {
        self.posts.lingers_until = None;
        self.answer_all(&PublishAnswer::Stopped, ctx);
    }

    /// Gives up what has waited for too long.
    pub(super) fn expire_posts(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now.instant;
        if self.posts.deadline().is_none_or(|at| at > now) {
            return;
        }
        self.posts.lingers_until.take_if(|until| *until <= now);
        let answer = self.why_unanswered(ctx);
        for post in self.posts.take(|post| post.give_up_at <= now) {
            self.answer(post.ticket, answer.clone(), ctx);
        }
    }

    fn why_unanswered(&self, ctx: &Ctx<'_>) -> PublishAnswer {
        let last = || self.last_error.as_ref().map(|error| error.words.clone());
        if self.health.cooldown(ctx.now.instant).is_some() {
            return PublishAnswer::RateLimited(last().unwrap_or_default());
        }
        match (&self.posts.auth_demanded, self.session.conn()) {
            (Some(words), Some(_)) => PublishAnswer::AuthRequired(words.clone()),
            (None, Some(_)) => PublishAnswer::TimedOut,
            (_, None) => last().map_or(PublishAnswer::TimedOut, PublishAnswer::Unreachable),
        }
    }

    fn answer_all(&mut self, answer: &PublishAnswer, ctx: &mut Ctx<'_>) {
        for post in self.posts.take(|_| true) {
            self.answer(post.ticket, answer.clone(), ctx);
        }
    }

    fn answer(&mut self, ticket: u64, answer: PublishAnswer, ctx: &mut Ctx<'_>) {
        let notice = Notice::Published { ticket, relay: self.url.clone(), answer };
        ctx.out.push_back(Effect::Notify(notice));
    }
}
