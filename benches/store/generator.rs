//! Events like real ones: about 500 bytes of JSON, some tags, 2,000 authors, mixed kinds. The same ones each time.

use bitcoin_hashes::sha256;

const AUTHORS: u64 = 2000;

/// The JSON of event number `n`, with a signature that is none.
pub(crate) fn json(n: u64) -> String {
    let mut dice = Dice(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    // Some authors write far more than others.
    let author = (dice.below(AUTHORS) * dice.below(AUTHORS)) / AUTHORS;
    let kind = match dice.below(100) {
        0..55 => 1,
        55..75 => 7,
        75..82 => 6,
        82..88 => 1111,
        88..91 => 0,
        91..93 => 3,
        93..95 => 10_002,
        95..98 => 30_023,
        98 => 1621,
        _ => 5,
    };
    // A history is fetched from its new end.
    let created_at = 1_700_000_000 - n / 4 + dice.below(1000);
    let mut tags = Vec::new();
    match kind {
        0 | 10_002 => tags.push(format!(r#"["r","wss://relay{}.example"]"#, dice.below(50))),
        30_023 => tags.push(format!(r#"["d","article-{}"]"#, dice.below(200))),
        5 => tags.push(format!(r#"["e","{}"]"#, hex("id", dice.below(n + 1)))),
        _ => {
            tags.push(format!(r#"["e","{}","wss://relay.example","reply"]"#, hex("id", dice.below(n + 1))));
            tags.push(format!(r#"["p","{}"]"#, hex("author", dice.below(AUTHORS))));
            if dice.below(3) == 0 {
                tags.push(format!(r#"["t","topic{}"]"#, dice.below(300)));
            }
        }
    }
    let words = "packed sorted runs make a quick store ".repeat(1 + dice.below(4) as usize);
    format!(
        r#"{{"id":"{}","pubkey":"{}","created_at":{created_at},"kind":{kind},"tags":[{}],"content":"{words}","sig":"{}"}}"#,
        hex("id", n),
        hex("author", author),
        tags.join(","),
        "5".repeat(128),
    )
}

/// The id or key of this number, in hexadecimal.
pub(crate) fn hex(what: &str, n: u64) -> String {
    format!("{:x}", sha256::Hash::hash(format!("{what} {n}").as_bytes()))
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}
