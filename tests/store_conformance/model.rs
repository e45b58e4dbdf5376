//! A store as simple as can be: a list, walked from end to end for every question. The rules are written down here a
//! second time, in the words of the NIPs.

use relaysync::peer::View;
use relaysync::protocol::{Filter, Window, filter::matches, hex};
use relaysync::store::Outcome;

use crate::events::{Draft, number};

#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Everything that was ever taken, with the reason why it is gone.
    taken: Vec<(Draft, Option<Outcome>)>,
}

impl Model {
    pub(crate) fn commit(&mut self, drafts: &[Draft], now_secs: u64) -> Vec<Outcome> {
        for (draft, gone) in &mut self.taken {
            if gone.is_none() && expires(draft).is_some_and(|secs| secs <= now_secs) {
                *gone = Some(Outcome::Expired);
            }
        }
        drafts.iter().map(|draft| self.take(draft, now_secs)).collect()
    }

    fn held(&self) -> impl Iterator<Item = &Draft> {
        self.taken.iter().filter(|(_, gone)| gone.is_none()).map(|(draft, _)| draft)
    }

    fn take(&mut self, draft: &Draft, now_secs: u64) -> Outcome {
        if (20_000..30_000).contains(&draft.kind) {
            return Outcome::Ephemeral;
        }
        if let Some((_, gone)) = self.taken.iter().find(|(other, _)| other.id == draft.id) {
            return gone.unwrap_or(Outcome::Duplicate);
        }
        let refusal = self.refusal(draft, now_secs);
        self.taken.push((draft.clone(), refusal));
        if let Some(refusal) = refusal {
            return refusal;
        }
        for (other, gone) in &mut self.taken {
            if gone.is_none() && other.id != draft.id {
                *gone = removes(draft, other);
            }
        }
        Outcome::Stored
    }

    fn refusal(&self, draft: &Draft, now_secs: u64) -> Option<Outcome> {
        let by = |reason| self.held().any(|other| request_removes(other, draft) == Some(reason));
        if by(Outcome::Vanished) {
            Some(Outcome::Vanished)
        } else if by(Outcome::Deleted) {
            Some(Outcome::Deleted)
        } else if expires(draft).is_some_and(|secs| secs <= now_secs) {
            Some(Outcome::Expired)
        } else {
            self.held().any(|other| supersedes(other, draft)).then_some(Outcome::Superseded)
        }
    }

    pub(crate) fn is_known(&self, id: &[u8; 32]) -> bool {
        self.taken.iter().any(|(draft, _)| draft.id == *id)
    }

    /// Newest first, ties by lowest id.
    pub(crate) fn query(&self, filter: &Filter, view: &View, now_secs: u64) -> Vec<String> {
        let alive = |draft: &&Draft| expires(draft).is_none_or(|secs| secs > now_secs);
        let mut found: Vec<&Draft> =
            self.held().filter(alive).filter(|draft| is_seen(view, draft) && matches(filter, &draft.event())).collect();
        found.sort_by_key(|draft| (u64::MAX - draft.created_at, draft.id));
        found.into_iter().take(filter.limit.unwrap_or(usize::MAX)).map(Draft::json).collect()
    }

    pub(crate) fn count(&self, filters: &[Filter], view: &View, now_secs: u64) -> u64 {
        let alive = |draft: &&Draft| expires(draft).is_none_or(|secs| secs > now_secs);
        let selected = |draft: &&Draft| filters.iter().any(|filter| matches(filter, &draft.event()));
        self.held().filter(alive).filter(selected).filter(|draft| is_seen(view, draft)).count() as u64
    }

    pub(crate) fn items(&self, filter: &Filter, window: Window, view: &View) -> Vec<u32> {
        let with_gone = filter.generic_tags.is_empty();
        let counts = |(draft, gone): &&(Draft, Option<Outcome>)| match gone {
            None => is_seen(view, draft),
            Some(_) => with_gone && is_surely_seen(view, draft),
        };
        let selected = |draft: &&Draft| window.contains(draft.created_at) && matches(filter, &draft.event());
        let mut found: Vec<&Draft> =
            self.taken.iter().filter(counts).map(|(draft, _)| draft).filter(selected).collect();
        found.sort_by_key(|draft| (draft.created_at, draft.id));
        found.into_iter().map(|draft| number(&draft.id)).collect()
    }
}

fn is_seen(view: &View, draft: &Draft) -> bool {
    let is_any = |filters: &[Filter]| filters.iter().any(|filter| matches(filter, &draft.event()));
    !is_any(view.hidden()) || is_any(view.shown())
}

/// The same for what is gone, of which the tags are not known.
fn is_surely_seen(view: &View, draft: &Draft) -> bool {
    let without_tags = Draft { tags: Vec::new(), ..draft.clone() }.event();
    let may_match = |filter: &Filter| {
        let has_empty_list = filter.generic_tags.values().any(|values| values.is_empty());
        !has_empty_list && matches(&Filter { generic_tags: Default::default(), ..filter.clone() }, &without_tags)
    };
    !view.hidden().iter().any(may_match) || view.shown().iter().any(|filter| matches(filter, &without_tags))
}

fn values<'d>(draft: &'d Draft, name: &'d str) -> impl Iterator<Item = &'d str> {
    draft.tags.iter().filter(move |tag| tag[0] == name).map(|tag| tag[1].as_str())
}

fn expires(draft: &Draft) -> Option<u64> {
    values(draft, "expiration").next()?.parse().ok()
}

fn address(draft: &Draft) -> Option<String> {
    let identifier = match draft.kind {
        0 | 3 | 10_000..20_000 => "",
        30_000..40_000 => values(draft, "d").next().unwrap_or_default(),
        _ => return None,
    };
    Some(format!("{}:{}:{identifier}", draft.kind, hex::encode(&draft.author)))
}

fn supersedes(newer: &Draft, older: &Draft) -> bool {
    let same = address(newer).is_some() && address(newer) == address(older);
    same && (newer.created_at > older.created_at || newer.created_at == older.created_at && newer.id < older.id)
}

fn request_removes(request: &Draft, target: &Draft) -> Option<Outcome> {
    if request.author != target.author || matches!(target.kind, 5 | 62) {
        return None;
    }
    if request.kind == 62
        && values(request, "relay").any(|relay| relay == "ALL_RELAYS")
        && target.created_at <= request.created_at
    {
        return Some(Outcome::Vanished);
    }
    let id = hex::encode(&target.id);
    let address = address(target).filter(|_| target.created_at <= request.created_at);
    let named = values(request, "e").any(|value| value == id)
        || address.is_some_and(|address| values(request, "a").any(|value| value == address));
    (request.kind == 5 && named).then_some(Outcome::Deleted)
}

fn removes(draft: &Draft, other: &Draft) -> Option<Outcome> {
    let superseded = supersedes(draft, other).then_some(Outcome::Superseded);
    request_removes(draft, other).or(superseded)
}
