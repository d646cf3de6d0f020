//! Two hubs over one remote: what they decide ([`steps`]), and who reaches whom by either ([`one_agent`]).

mod one_agent;
mod pair;
mod steps;
