//! What relays say, for the memory of peers and for the eyes of operators.

/// Characters of a relay's words that are kept and shown; it may send as many as it likes.
pub const WORDS_CHARS_MAX: usize = 400;

/// The beginning of `words`, of [`WORDS_CHARS_MAX`] characters at most.
pub(super) fn cut(words: &str) -> String {
    let mut characters = words.chars();
    let mut beginning: String = characters.by_ref().take(WORDS_CHARS_MAX).collect();
    if characters.next().is_some() {
        beginning.pop();
        beginning.push('…');
    }
    beginning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_end_are_cut_between_characters() {
        assert_eq!(cut("restricted: no"), "restricted: no");
        let whole = "ä".repeat(WORDS_CHARS_MAX);
        assert_eq!(cut(&whole), whole);
        let cut = cut(&format!("{whole}b"));
        assert!(cut.chars().count() == WORDS_CHARS_MAX && cut.ends_with("ä…"), "{cut}");
    }
}
