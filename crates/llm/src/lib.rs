//! From a request value to a stream of model events.
