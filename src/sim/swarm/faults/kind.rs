//! The kinds of faults: what they hide, how often they are drawn, and how they are made.

use std::sync::Arc;

use crate::protocol::Event;
use crate::sim::tamper::{
    AnswerFault, Answers, AuthDemands, AuthFault, Chance, Forged, Forgery, FrameFault, Frames, Ignores, LimitZero,
    Loss, NOTICES, NegRefusal, OkFault, Oks, PageCap, Place, REFUSALS, RateLimit, RateLimitBy, Replacement,
    SessionFault, Sessions, Shuffled, Sometimes, Stray, Strays, SubscriptionCap, Tamper,
};

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of frames, whatever is in them.
    Frame(FrameFault),
    /// Forged events.
    Forged(Forgery, Place),
    /// Events that nobody asked for.
    Stray(Stray),
    /// Of answers, now and then.
    Answer(AnswerFault),
    /// A silent cap on pages, of 20 and more.
    PageCap,
    /// A silent cap on pages, below 20.
    PageCapSmall,
    /// Answers oldest first.
    OldestFirst,
    /// Answers in no order.
    Shuffled,
    /// Fields of filters that are not looked at.
    Ignores(Ignores),
    /// `limit: 0` misread.
    LimitZero(LimitZero),
    /// At most so many requests a minute.
    RateLimit(RateLimitBy),
    /// At most so many subscriptions, refused by a NOTICE or a CLOSED.
    SubscriptionCap {
        /// By a NOTICE.
        by_notice: bool,
    },
    /// Of authentication.
    Auth(AuthFault),
    /// Of publishing.
    Ok(OkFault),
    /// Of reconciliation.
    Session(SessionKind),
}

/// The kinds of [`SessionFault`], without what is drawn for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of `SessionFault`")]
pub enum SessionKind {
    ByNotice,
    ByClosed,
    ByNegErr,
    Unanswered,
    TooLarge { is_stated: bool },
    Lost(Loss),
    Endless,
    OutOfTurn,
    Replaced(Replacement),
    Inventing,
    Short,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 84] = [
        Self::Frame(FrameFault::Twice),
        Self::Frame(FrameFault::Cut),
        Self::Frame(FrameFault::CutWithWords),
        Self::Frame(FrameFault::Flood),
        Self::Frame(FrameFault::BigFlood),
        Self::Frame(FrameFault::Garbage),
        Self::Frame(FrameFault::BrokenText),
        Self::Frame(FrameFault::Truncated),
        Self::Frame(FrameFault::TruncatedEvent),
        Self::Frame(FrameFault::Deep),
        Self::Frame(FrameFault::Oversize),
        Self::Frame(FrameFault::Chatter),
        Self::Frame(FrameFault::ClosedForNothing),
        Self::Forged(Forgery::Signature, Place::Instead),
        Self::Forged(Forgery::Signature, Place::Before),
        Self::Forged(Forgery::Signature, Place::After),
        Self::Forged(Forgery::OtherSignature, Place::Instead),
        Self::Forged(Forgery::OtherSignature, Place::Before),
        Self::Forged(Forgery::OtherSignature, Place::After),
        Self::Forged(Forgery::Id, Place::Instead),
        Self::Forged(Forgery::Id, Place::Before),
        Self::Forged(Forgery::Id, Place::After),
        Self::Forged(Forgery::Content, Place::Instead),
        Self::Forged(Forgery::Content, Place::Before),
        Self::Forged(Forgery::Content, Place::After),
        Self::Stray(Stray::OtherSubscription),
        Self::Stray(Stray::Moved),
        Self::Stray(Stray::NeverOpened),
        Self::Stray(Stray::NoMatch),
        Self::Stray(Stray::Future),
        Self::Stray(Stray::Zero),
        Self::Answer(AnswerFault::EoseLost),
        Self::Answer(AnswerFault::EoseTwice),
        Self::Answer(AnswerFault::EoseWithoutId),
        Self::Answer(AnswerFault::EoseEarly),
        Self::Answer(AnswerFault::EoseFirst),
        Self::Answer(AnswerFault::EoseLongBefore),
        Self::Answer(AnswerFault::EoseInstead),
        Self::Answer(AnswerFault::EventLost),
        Self::Answer(AnswerFault::NotServed),
        Self::PageCap,
        Self::PageCapSmall,
        Self::OldestFirst,
        Self::Shuffled,
        Self::Ignores(Ignores::Until),
        Self::Ignores(Ignores::UntilZero),
        Self::LimitZero(LimitZero::Silent),
        Self::LimitZero(LimitZero::Closed),
        Self::LimitZero(LimitZero::Notice),
        Self::LimitZero(LimitZero::NoLimit),
        Self::RateLimit(RateLimitBy::Notice),
        Self::RateLimit(RateLimitBy::Closed),
        Self::RateLimit(RateLimitBy::Close),
        Self::SubscriptionCap { by_notice: true },
        Self::SubscriptionCap { by_notice: false },
        Self::Auth(AuthFault::ChallengeFirst),
        Self::Auth(AuthFault::RefusalFirst),
        Self::Auth(AuthFault::ChallengeReplaced),
        Self::Auth(AuthFault::AnswerRefused),
        Self::Auth(AuthFault::AnswerIgnored),
        Self::Auth(AuthFault::ChallengeForNothing),
        Self::Ok(OkFault::Lost),
        Self::Ok(OkFault::False),
        Self::Ok(OkFault::Twice),
        Self::Ok(OkFault::RateLimited),
        Self::Ok(OkFault::Refused),
        Self::Session(SessionKind::ByNotice),
        Self::Session(SessionKind::ByClosed),
        Self::Session(SessionKind::ByNegErr),
        Self::Session(SessionKind::Unanswered),
        Self::Session(SessionKind::TooLarge { is_stated: true }),
        Self::Session(SessionKind::TooLarge { is_stated: false }),
        Self::Session(SessionKind::Lost(Loss::Silence)),
        Self::Session(SessionKind::Lost(Loss::NegErr)),
        Self::Session(SessionKind::Lost(Loss::Close)),
        Self::Session(SessionKind::Endless),
        Self::Session(SessionKind::OutOfTurn),
        Self::Session(SessionKind::Replaced(Replacement::NotHex)),
        Self::Session(SessionKind::Replaced(Replacement::Malformed)),
        Self::Session(SessionKind::Replaced(Replacement::BreaksOff)),
        Self::Session(SessionKind::Replaced(Replacement::Overlong)),
        Self::Session(SessionKind::Replaced(Replacement::OtherVersion)),
        Self::Session(SessionKind::Inventing),
        Self::Session(SessionKind::Short),
    ];

    /// Does a relay with this fault hide events, even if nothing else is wrong with it?
    pub fn hides(self) -> bool {
        match self {
            // A piece of a frame comes, but not whose: to a client it is noise.
            Self::Frame(fault) => fault == FrameFault::TruncatedEvent,
            // The honest copy does not come. That the relay has one cannot be known from a copy that proves nothing. And
            // made-up ids pad an answer, which passes for a larger page until they are checked.
            Self::Forged(forgery, place) => place == Place::Instead || forgery == Forgery::Id,
            // What goes to the wrong subscription is missing from its own, whose answer ends honestly. Events beside the
            // honest ones hide nothing: what does not match, is newer than asked for, or belongs to nobody moves no page. But
            // an event of 1970 passes for the end of a page that breaks off behind it, with nothing between.
            Self::Stray(stray) => matches!(stray, Stray::Moved | Stray::Zero),
            Self::Answer(fault) => match fault {
                // The request stalls, or is over already.
                AnswerFault::EoseLost | AnswerFault::EoseTwice | AnswerFault::EoseWithoutId => false,
                // The client asks for the next page when the first event too old to be news comes behind the EOSE.
                AnswerFault::EoseEarly => false,
                // An empty page is asked for again, and what comes behind it meets that, unless the connection breaks
                // between the two.
                AnswerFault::EoseFirst => true,
                // The client has long gone, or nothing comes that could show it.
                AnswerFault::EoseLongBefore | AnswerFault::EoseInstead | AnswerFault::EventLost => true,
                // It was offered, and asked for by name.
                AnswerFault::NotServed => false,
            },
            // Caps are learned from what turns up below a page. A page of fewer than 20 is not taken for a cut one unless
            // something does: the events of one second, with nothing below them, show nothing.
            Self::PageCap => false,
            Self::PageCapSmall => true,
            // Each page has the events that it should have.
            Self::OldestFirst | Self::Shuffled => false,
            // Events newer than asked for show it, and are a gap.
            Self::Ignores(_) => false,
            // It concerns what is to come, not what is held.
            Self::LimitZero(_) => false,
            // A refusal is no answer.
            Self::RateLimit(_) | Self::SubscriptionCap { .. } | Self::Auth(_) => false,
            // Events that go up are none that the relay has.
            Self::Ok(_) => false,
            // A session that does not end in agreement proves nothing, and ids that nobody has are asked for in vain. But a
            // set that lacks what the relay has lets both sides agree on it.
            Self::Session(kind) => kind == SessionKind::Short,
        }
    }

    /// Do these two hide events together, though neither does alone?
    pub fn hides_with(self, other: Self) -> bool {
        let both = [self, other];
        let is_reordered = both.contains(&Self::OldestFirst) || both.contains(&Self::Shuffled);
        let is_early = both.contains(&Self::Answer(AnswerFault::EoseEarly));
        // Pages lead down from what came before an early EOSE only if that is the newest.
        is_reordered && is_early
    }

    /// The highest rate, per mille, at which the kind is drawn: above it a relay would never get anything done, or the
    /// simulation.
    pub fn rate_max(self) -> u64 {
        match self {
            Self::Frame(FrameFault::Cut | FrameFault::CutWithWords | FrameFault::Deep | FrameFault::Flood) => 50,
            Self::Frame(FrameFault::BigFlood | FrameFault::Oversize) => 10,
            Self::Frame(FrameFault::ClosedForNothing) => 200,
            // Who authenticates is let in at some time.
            Self::Auth(AuthFault::ChallengeFirst | AuthFault::RefusalFirst | AuthFault::ChallengeReplaced) => 500,
            _ => 1_000,
        }
    }

    /// Has it no rate, because it is a property of the relay?
    fn is_constant(self) -> bool {
        matches!(
            self,
            Self::PageCap
                | Self::PageCapSmall
                | Self::OldestFirst
                | Self::Shuffled
                | Self::RateLimit(_)
                | Self::SubscriptionCap { .. }
        )
    }

    /// A rate for it, per mille: some are tiny, some are always.
    pub fn draw_rate(self, chance: &mut Chance) -> u64 {
        if self.is_constant() {
            return 1_000;
        }
        let rate = match chance.below(4) {
            0 => chance.within(1, 10),
            1 => chance.within(10, 100),
            2 => chance.within(100, 1_000),
            _ => 1_000,
        };
        rate.min(self.rate_max())
    }

    /// A fault of this kind, and its name for people. `pool` has every event that the relay may come to have.
    pub fn make(self, rate: u64, pool: &Arc<[Event]>, chance: &mut Chance) -> (Box<dyn Tamper>, String) {
        let own = Chance::new(rate, chance.below(u64::MAX));
        let rated = |name: &str| format!("{name} {rate}‰");
        match self {
            Self::Frame(fault) => (Box::new(Frames::new(fault, own)), rated(fault.name())),
            Self::Forged(forgery, place) => {
                (Box::new(Forged::new(forgery, place, own)), rated(Forged::name(forgery, place)))
            }
            Self::Stray(stray) => (Box::new(Strays::new(stray, pool.clone(), own)), rated(stray.name())),
            Self::Answer(fault) => (Box::new(Answers::new(fault, own)), rated(fault.name())),
            Self::PageCap => page_cap(chance.within(20, 500)),
            Self::PageCapSmall => page_cap(chance.within(1, 19)),
            Self::OldestFirst => (Box::new(Shuffled::oldest_first()), "oldest first".to_owned()),
            Self::Shuffled => (Box::new(Shuffled::by(chance.below(u64::MAX))), "shuffled".to_owned()),
            Self::Ignores(field) => (Box::new(Sometimes::new(field, own)), rated(field.name())),
            Self::LimitZero(fault) => (Box::new(Sometimes::new(fault, own)), rated(fault.name())),
            Self::RateLimit(by) => {
                let requests_max = index(chance.within(5, 60));
                (Box::new(RateLimit::new(requests_max, by)), format!("{} {requests_max} a minute", by.name()))
            }
            Self::SubscriptionCap { by_notice } => {
                let most = index(chance.within(1, 4));
                let by = if by_notice { "notice" } else { "closed" };
                (Box::new(SubscriptionCap::new(most, by_notice)), format!("subscription cap {most} by {by}"))
            }
            Self::Auth(fault) => (Box::new(AuthDemands::new(fault, own)), rated(fault.name())),
            Self::Ok(fault) => (Box::new(Oks::new(fault, own)), rated(fault.name())),
            Self::Session(kind) => {
                let fault = kind.draw(chance);
                let name = rated(fault.name());
                (Box::new(Sessions::new(fault, pool.clone(), own)), name)
            }
        }
    }
}

impl SessionKind {
    fn draw(self, chance: &mut Chance) -> SessionFault {
        let refusal = chance.words(&REFUSALS).to_owned();
        match self {
            Self::ByNotice => SessionFault::Refused(NegRefusal::Notice(chance.words(&NOTICES).to_owned())),
            Self::ByClosed => SessionFault::Refused(NegRefusal::Closed(refusal)),
            Self::ByNegErr => SessionFault::Refused(NegRefusal::NegErr(refusal)),
            Self::Unanswered => SessionFault::Refused(NegRefusal::Silence),
            Self::TooLarge { is_stated } => SessionFault::TooLarge { records_max: chance.within(5, 200), is_stated },
            Self::Lost(loss) => SessionFault::LostAfter(chance.below(3), loss),
            Self::Endless => SessionFault::Endless,
            Self::OutOfTurn => SessionFault::OutOfTurn,
            Self::Replaced(what) => SessionFault::Replaced(what),
            Self::Inventing => SessionFault::Inventing,
            Self::Short => SessionFault::Short,
        }
    }
}

fn page_cap(events_max: u64) -> (Box<dyn Tamper>, String) {
    (Box::new(PageCap(index(events_max))), format!("page cap {events_max}"))
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
