//! `relaysync serve`.
