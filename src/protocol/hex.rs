//! Hexadecimal, as NIP-01 and NIP-77 write ids and reconciliation messages: lower case, two digits a byte.

/// `bytes` as lower-case hexadecimal.
pub fn encode(bytes: &[u8]) -> String {
    faster_hex::hex_string(bytes)
}

/// Appends `bytes` to `out` as lower-case hexadecimal, without an allocation of its own.
pub fn encode_into(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
}

/// The bytes that `text` writes; `None` if it has an odd length or another character than a hexadecimal digit.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let mut bytes = vec![0; text.len() / 2];
    faster_hex::hex_decode(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}
