//! What one relay can take at a time, as stated, shown or assumed.

use crate::engine::{Config, Planted};
use crate::protocol::RelayInfo;

/// The limits of one relay, as far as they are known.
#[derive(Debug, Clone)]
pub struct Budget {
    subscriptions_max: usize,
    filters_max: usize,
    request_bytes_max: usize,
    page_events: usize,
    answer_events_max: usize,
    page_stays_max: u32,
    page_cap: Option<usize>,
    page_largest: usize,
    /// Some of what came in answers was not genuine.
    is_padding: bool,
    page_cap_plausible_min: usize,
    ids_per_request: usize,
    negentropy_frame_bytes_max: u64,
    planted: Option<Planted>,
}

/// The smallest frame limit that the negentropy protocol knows, in bytes.
const NEGENTROPY_FRAME_BYTES_MIN: u64 = 4_096;

impl Budget {
    /// What is assumed of a relay that nothing is known of.
    pub fn new(config: &Config) -> Self {
        Self {
            subscriptions_max: config.subscriptions_max.max(1),
            filters_max: config.filters_per_request_max.max(1),
            request_bytes_max: config.request_bytes_max,
            page_events: config.page_events.max(1),
            answer_events_max: config.answer_events_max,
            page_stays_max: config.page_stays_max.max(1),
            page_cap: None,
            page_largest: 0,
            is_padding: false,
            page_cap_plausible_min: config.page_cap_plausible_min.max(1),
            ids_per_request: config.ids_per_request.max(1),
            negentropy_frame_bytes_max: config.negentropy_frame_bytes_max.max(NEGENTROPY_FRAME_BYTES_MIN),
            planted: config.planted(),
        }
    }

    /// Is this fault put in on purpose?
    pub(crate) fn plants(&self, fault: Planted) -> bool {
        self.planted == Some(fault)
    }

    /// Takes hints from the relay information document. They only ever lower what is asked.
    pub fn apply_info(&mut self, info: &RelayInfo) {
        let limits = &info.limitation;
        let stated =
            |value: Option<u64>| value.filter(|value| *value > 0).and_then(|value| usize::try_from(value).ok());
        if let Some(most) = stated(limits.max_subscriptions) {
            self.subscriptions_max = self.subscriptions_max.min(most);
        }
        if let Some(most) = stated(limits.max_filters) {
            self.filters_max = self.filters_max.min(most);
        }
        if let Some(most) = stated(limits.max_limit) {
            let most = most.max(self.page_cap_plausible_min);
            self.page_events = self.page_events.min(most);
            self.ids_per_request = self.ids_per_request.min(most);
        }
        if let Some(bytes) = limits.max_message_length.filter(|bytes| *bytes > 0) {
            // Hexadecimal doubles the message; 512 bytes are for the rest of the frame, filter included.
            let most = (bytes.saturating_sub(512) / 2).max(NEGENTROPY_FRAME_BYTES_MIN);
            self.negentropy_frame_bytes_max = self.negentropy_frame_bytes_max.min(most);
            let request = usize::try_from(bytes.saturating_sub(256)).unwrap_or(usize::MAX);
            self.request_bytes_max = self.request_bytes_max.min(request);
            let ids = usize::try_from(bytes.saturating_sub(256) / 67).unwrap_or(usize::MAX);
            self.ids_per_request = self.ids_per_request.min(ids.max(1));
        }
    }

    /// Subscriptions that may be open at a time.
    pub fn subscriptions_max(&self) -> usize {
        self.subscriptions_max
    }

    /// The relay refused one of `open` subscriptions as too many.
    pub fn learn_subscriptions(&mut self, open: usize) {
        self.subscriptions_max = open.saturating_sub(1).clamp(1, self.subscriptions_max);
    }

    /// Filters that go into one request.
    pub fn filters_max(&self) -> usize {
        self.filters_max
    }

    /// The filters of one request, in bytes.
    pub fn request_bytes_max(&self) -> usize {
        self.request_bytes_max
    }

    /// The relay did not take a request with so many filters.
    pub fn learn_filters(&mut self, filters: usize) {
        self.filters_max = (filters / 2).clamp(1, self.filters_max);
    }

    /// Events to ask for in a page.
    pub fn page_events(&self) -> usize {
        self.page_events
    }

    /// Events of one answer, or of one second, that are remembered while more of them come.
    pub fn answer_events_max(&self) -> usize {
        self.answer_events_max
    }

    /// Pages in a row that may bring something new of one second and nothing older.
    pub fn page_stays_max(&self) -> u32 {
        self.page_stays_max
    }

    /// The smallest page that is known to have been cut: only a smaller one is known to be whole.
    pub fn page_cap(&self) -> Option<usize> {
        self.page_cap
    }

    /// The relay has given `events` in one answer.
    pub fn learn_page(&mut self, events: usize) {
        self.page_largest = self.page_largest.max(events);
    }

    /// May an answer of `events`, of `asked`, have been cut?
    pub fn may_be_cut(&self, events: usize, asked: usize) -> bool {
        match self.page_cap {
            _ if events >= asked => true,
            Some(cap) => events >= cap,
            // Nothing was seen to be cut, so anything that was given shows a higher cap.
            None => (events >= self.page_largest || self.is_padding) && events >= self.page_cap_plausible_min,
        }
    }

    /// The relay sends events that are not genuine: how many it gives in one answer says nothing of its cap.
    pub fn doubt_pages(&mut self) {
        self.is_padding = true;
    }

    /// A page of `events` was cut: there was more.
    pub fn learn_page_cap(&mut self, events: usize) {
        self.page_cap = Some(self.page_cap.map_or(events, |cap| cap.min(events)));
    }

    /// What was learned of pages may have been a mood of the relay: it is learned anew.
    pub fn forget_pages(&mut self) {
        self.page_cap = None;
        self.page_largest = 0;
        self.is_padding = false;
    }

    /// Ids to ask for in one request.
    pub fn ids_per_request(&self) -> usize {
        self.ids_per_request.min(self.page_cap.unwrap_or(usize::MAX).max(self.page_cap_plausible_min))
    }

    /// A request for `asked` ids brought `received` events: if far fewer, then the relay has a cap.
    pub fn learn_ids(&mut self, asked: usize, received: usize) {
        if received > 0 && received < asked - asked / 4 {
            self.ids_per_request = self.ids_per_request.min(received.max(self.page_cap_plausible_min));
        }
    }

    /// A request for many ids was not answered at all: some relays fall silent beyond a number of ids.
    pub fn learn_ids_silence(&mut self, asked: usize) {
        self.ids_per_request = self.ids_per_request.min((asked / 2).max(self.page_cap_plausible_min));
    }

    /// The largest negentropy message to send, in bytes before hexadecimal.
    pub fn negentropy_frame_bytes_max(&self) -> u64 {
        self.negentropy_frame_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_limits_lower_what_is_asked_and_never_raise_it() {
        let mut budget = Budget::new(&Config::default());
        budget.apply_info(
            &RelayInfo::parse(r#"{"limitation":{"max_subscriptions":8,"max_limit":300,"max_message_length":65536}}"#)
                .unwrap(),
        );
        assert_eq!((budget.subscriptions_max(), budget.page_events()), (8, 300));
        assert!(budget.negentropy_frame_bytes_max() * 2 + 512 <= 65_536);
        budget.apply_info(
            &RelayInfo::parse(r#"{"limitation":{"max_subscriptions":9999,"max_limit":99999,"max_message_length":0}}"#)
                .unwrap(),
        );
        assert_eq!((budget.subscriptions_max(), budget.page_events()), (8, 300));
    }

    #[test]
    fn the_smallest_cut_page_counts() {
        let mut budget = Budget::new(&Config::default());
        budget.learn_page_cap(300);
        budget.learn_page_cap(500);
        assert_eq!(budget.page_cap(), Some(300));
    }
}
