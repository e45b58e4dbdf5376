//! What every store does.

mod arrivals;
mod fates;
mod reading;
mod views;

pub(crate) use arrivals::*;
pub(crate) use fates::*;
pub(crate) use reading::*;
pub(crate) use views::*;

use relaysync::protocol::RelayUrl;
use relaysync::store::StoreConfig;

use crate::Harness;

const OWN_URL: &str = "wss://own.example";
const NONE: [u32; 0] = [];

async fn create<H: Harness>() -> H {
    H::create(StoreConfig { own_urls: vec![RelayUrl::parse(OWN_URL).unwrap()] }).await
}

/// Every behaviour, for each of some stores: by a macro `conformance` that the test has.
macro_rules! conformance_of {
    ($($module:ident: $harness:ty),* $(,)?) => {
        $(
            conformance!($module, $harness, [
                an_empty_batch_changes_nothing,
                what_is_stored_is_read_back_byte_for_byte,
                a_second_commit_of_an_event_is_a_duplicate,
                an_event_twice_in_a_batch_is_stored_once,
                answers_come_newest_first_and_ties_by_lowest_id,
                cursors_lead_through_everything_once,
                a_page_ends_by_bytes_but_has_one_event,
                the_limit_of_the_filter_counts,
                since_and_until_are_inclusive,
                extreme_dates_are_kept_in_order,
                every_filter_field_selects,
                tag_filters_select_by_name_and_value,
                huge_tags_and_values_are_found,
                an_empty_list_selects_nothing,
                counts_of_several_filters_count_an_event_once,
                events_come_in_the_order_of_the_ids,
                the_newest_replaceable_event_stays,
                of_equal_times_the_lowest_id_stays,
                addressable_events_are_told_apart_by_identifier,
                a_deletion_removes_events_of_its_author_only,
                a_deletion_may_arrive_first,
                a_deletion_of_an_address_spares_later_versions,
                requests_cannot_be_deleted,
                a_vanish_request_removes_and_refuses,
                gift_wraps_vanish_with_their_recipient,
                a_vanish_request_to_others_has_no_effect,
                expired_events_are_refused_hidden_and_swept,
                ephemeral_events_are_passed_on_only,
                what_is_gone_is_known_and_among_the_items,
                items_are_cut_to_window_and_filter,
                coverage_is_replaced_and_loaded,
                everything_outlives_a_reopen,
                a_batch_takes_effect_in_order,
                what_a_view_hides_is_not_there,
                the_last_event_is_found_behind_thousands_that_are_hidden,
                pages_are_as_full_as_if_hidden_events_were_not_there,
                what_is_gone_and_may_have_been_hidden_is_not_among_the_items,
                who_brought_an_event_is_kept_as_long_as_the_event,
                arrivals_come_in_the_order_of_storing,
                arrivals_go_on_behind_a_cursor,
                arrivals_end_by_bytes_but_have_one_event,
                what_is_gone_is_no_arrival_and_keeps_its_number,
                arrivals_outlive_a_reopen,
            ]);
        )*
    };
}
