//! The known name that an unknown one may have meant.

/// A distance beyond which nothing was meant.
const DISTANCE_MAX: usize = 3;

/// The nearest of `known` to `unknown`, if one is near.
pub(super) fn nearest<'n>(unknown: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near = known.into_iter().filter_map(|name| {
        let distance = strsim::damerau_levenshtein(unknown, name);
        // Of a short word nothing is left when three letters change; a part of a long one is near to it, too.
        let is_part = unknown.len() >= 4 && (name.contains(unknown) || unknown.contains(name));
        let is_near = distance <= DISTANCE_MAX.min(unknown.chars().count() / 2);
        (is_near || is_part).then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["listen", "backoff_base", "backoff_max"];
        assert_eq!(nearest("lisen", known), Some("listen"));
        assert_eq!(nearest("back_off_max", known), Some("backoff_max"));
        assert_eq!(nearest("backoff", known), Some("backoff_max"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
