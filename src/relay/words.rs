//! The words of a relay. It chooses them, and how many: what is kept of them, in gaps and reports, is their beginning.

/// The beginning of `words`, in at most `bytes_max` bytes.
pub fn clip(words: &str, bytes_max: usize) -> &str {
    &words[..words.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_between_characters() {
        assert_eq!(clip("short", 1_024), "short");
        assert_eq!(clip("naïve", 3), "na");
        assert_eq!(clip("naïve", 4), "naï");
    }
}
