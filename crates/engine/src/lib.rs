//! Sessions and the agent loop; the only room that knows the others' meaning.
