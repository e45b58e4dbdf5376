//! Words for contents: several scripts, and each character that NIP-01 escapes.

use super::dice::Dice;

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "relay", "event", "sync", "the", "a", "of", "and", "every", "missing", "note", "signed", "window", "page",
    "until", "since", "set", "whole", "again", "later", "morning", "coffee", "bitcoin", "patch", "review", "merged",
    "branch", "naïve", "Straße", "café", "привет", "мир", "日本語", "同期", "مرحبا", "שלום", "한국어", "🦀", "👩‍💻", "🏳️‍🌈",
    "é", "𝕏", "—", "#nostr", "https://example.com/a?b=c&d=%20#e", "nostr:npub1", "<b>", "\"quoted\"", "back\\slash",
    "tab\there", "line\nbreak", "carriage\rreturn", "form\u{c}feed", "back\u{8}space", "/slash/", "\u{2028}",
    "\u{7f}", "{\"json\":[1]}",
];

/// About `chars` characters of words, more or less.
pub(super) fn prose(dice: &mut Dice, chars: u64) -> String {
    let chars = dice.within(chars / 3, chars * 5 / 3) as usize;
    let mut text = String::with_capacity(chars + 32);
    while text.len() < chars {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(dice.pick(WORDS));
    }
    text
}

/// One of a few topics, for `t` tags.
pub(super) fn topic(dice: &mut Dice) -> &'static str {
    dice.pick(&["nostr", "sync", "rust", "grownostr", "日本語", "bitcoin", "art", "git"])
}

/// One of a few relays, for `r` and `relays` tags and hints.
pub(super) fn relay(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "wss://relay.example.com",
        "wss://nos.example.org/",
        "wss://git.example.net",
        "wss://relay.example.com:8443/x",
    ])
}
