//! Room 5, publish: a plan as commits. Next room: `render::release`.
