//! placeholder
use crate::engine::Rng;
use crate::protocol::Event;
use crate::sim::Tamper;
pub struct Drawn {
    pub tampers: Vec<Box<dyn Tamper>>,
    pub names: Vec<String>,
    pub hides: bool,
    pub info: bool,
}
pub fn draw(_rng: &mut Rng, _pool: &[Event]) -> Drawn {
    Drawn { tampers: vec![], names: vec![], hides: false, info: true }
}
