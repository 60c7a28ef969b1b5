//! What tests share: the scripted model, a temporary project and the built binary.
