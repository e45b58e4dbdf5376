//! Forged copies of events.

use super::{Chance, Tamper, Turn, event_of};
use crate::protocol::Event;
use crate::protocol::message::relay;

/// What is wrong with a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgery {
    /// The id is right and the signature is none.
    Signature,
    /// The id is right and the signature is of another event.
    OtherSignature,
    /// The id is of nothing.
    Id,
    /// Id and signature are right, the content is another one.
    Content,
}

/// Where the forged copy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The honest copy does not come at all.
    Instead,
    /// The honest copy follows.
    Before,
    /// The honest copy came before.
    After,
}

/// A relay that forges events.
#[derive(Debug, Clone)]
pub struct Forged {
    forgery: Forgery,
    place: Place,
    chance: Chance,
    /// The signature of the event that was forged last.
    other_signature: String,
}

impl Forged {
    /// Forges so, so often.
    pub fn new(forgery: Forgery, place: Place, chance: Chance) -> Self {
        Self { forgery, place, chance, other_signature: "11".repeat(64) }
    }

    /// Its name.
    pub fn name(forgery: Forgery, place: Place) -> &'static str {
        match (place, forgery) {
            (Place::Instead, Forgery::Signature) => "bad signature instead",
            (Place::Instead, Forgery::OtherSignature) => "other's signature instead",
            (Place::Instead, Forgery::Id) => "bad id instead",
            (Place::Instead, Forgery::Content) => "altered content instead",
            (Place::Before, Forgery::Signature) => "bad signature before",
            (Place::Before, Forgery::OtherSignature) => "other's signature before",
            (Place::Before, Forgery::Id) => "bad id before",
            (Place::Before, Forgery::Content) => "altered content before",
            (Place::After, Forgery::Signature) => "bad signature after",
            (Place::After, Forgery::OtherSignature) => "other's signature after",
            (Place::After, Forgery::Id) => "bad id after",
            (Place::After, Forgery::Content) => "altered content after",
        }
    }

    fn forge(&mut self, event: &Event) -> Option<String> {
        let mut json: serde_json::Value = serde_json::from_str(event.json_str()).ok()?;
        match self.forgery {
            Forgery::Signature => json["sig"] = "00".repeat(64).into(),
            Forgery::OtherSignature => {
                let own = json["sig"].as_str()?.to_owned();
                json["sig"] = std::mem::replace(&mut self.other_signature, own).into();
            }
            // The same each time: else a relay could give new ids for ever.
            Forgery::Id => json["id"] = event.id.to_hex().chars().rev().collect::<String>().into(),
            Forgery::Content => json["content"] = format!("{} (altered)", event.content).into(),
        }
        Some(json.to_string())
    }
}

impl Tamper for Forged {
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        let forged = match frame.starts_with("[\"EVENT\"") && self.chance.hits() {
            true => event_of(&frame).and_then(|(name, event)| Some(relay::event(&name, &self.forge(&event)?))),
            false => None,
        };
        let Some(forged) = forged else { return turn.say(frame) };
        turn.inject(Self::name(self.forgery, self.place));
        match self.place {
            Place::Instead => turn.say(forged),
            Place::Before => {
                turn.say(forged);
                turn.say(frame);
            }
            Place::After => {
                turn.say(frame);
                turn.say(forged);
            }
        }
    }
}
